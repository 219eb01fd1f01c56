package shell

// Ways are texts that make a real shell start the program marker. What runs it and what
// it is read as are two things: this holds them together.
var Ways = []string{
	"marker", `\marker`, "m''arker", `"marker" x`, "mar\\\nker", "X=1 marker", "true; marker", "false || marker", "true && marker", "true | marker", "marker &\nwait",
	"(marker)", "{ marker; }", "! marker", "if marker; then :; fi", "while marker; do break; done", "for x in 1; do marker; done", "case a in a) marker;; esac",
	"f() { marker; }; f", "x=$(marker)", "x=`marker`", ": $(marker)", `: "$(marker)"`, ": ${x:-$(marker)}", ": $((1 + $(marker; echo 1)))", ": <<E\n$(marker)\nE",
	"eval marker", "eval 'true; marker'", `eval "mar""ker"`, "trap marker EXIT", "command marker", "exec marker", "env marker", "env X=1 marker", "env -i \"$BIN/marker\"",
	"nice marker", "nohup marker", "timeout 5 marker", "setsid -w marker", "sh -c marker", "sh -ec 'true; marker'", "sh <<E\nmarker\nE", "echo marker | sh", "echo x | xargs marker",
	"echo marker | xargs -I{} {}", "echo marker | xargs env", "find . -maxdepth 0 -exec marker \\;", "find . -maxdepth 0 -exec sh -c marker \\;", "p=marker; $p", "p=mark; ${p}er",
	"$(echo marker)", "\"$BIN\"/marker", "alias x=marker\nx", "echo marker > s; . ./s", "echo marker > s; sh s", "x=marker sh -c '$x'", "sed -n '1e marker' /etc/passwd",
	"awk 'BEGIN { system(\"marker\") }'", "true\nmarker\n(", "set -- marker; \"$@\"", "printf marker > s; chmod +x s; PATH=.:$PATH; . s", "HOME=$BIN/marker; ~",
	"stdbuf -oL marker", "flock s marker", "flock s -c marker", "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=marker /etc/passwd", "make -f- <<E\nx:; marker\nE",
	"git -c alias.x='!marker' x", "python3 -c 'import os; os.system(\"marker\")'", "perl -e 'system(\"marker\")'", "script -qc marker /dev/null", "watch marker",
}

// BashWays are those that bash alone knows.
var BashWays = []string{
	"$'\\x6darker'", "{marker,x}", "m[a]rker() { :; }; marker", ": <(marker)", "cat < <(marker)", "coproc marker; wait", "time marker", "bash <<< marker", "bash -c 'bash -c marker'",
	"x='a[$(marker)]'; : $((x))", "x='a[$(marker)]'; [[ $x -eq 1 ]]", "a=(1); : ${a[$(marker)]}", "a[$(marker)]=1", "x='$(marker)'; : ${x@P}", "printf -v 'a[$(marker)]' x",
	"declare -n r='a[$(marker)]'; : $r", "PS4='$(marker)'; set -x; :", "builtin eval marker", "shopt -s expand_aliases\nalias x=marker\nx", "BASH_ENV=s bash -c :",
	"function f { marker; }; f", "mapfile -C marker -c 1 a < /etc/passwd", "!(marker)", "coproc { marker; }; wait", "select x in a; do marker; break; done <<< 1",
	"exec -a x marker", "let 'x=a[$(marker)]'", "read x <<< 'a[$(marker)]'; ((x))", "unset 'a[$(marker)]'", "declare 'a[$(marker)]=1'", "compgen -W '$(marker)'",
	"f() { local x=$1; : $((x)); }; f 'a[$(marker)]'", "test -v 'a[$(marker)]'", "[[ -v 'a[$(marker)]' ]]", "for ((i=$(marker; echo 0); i<0; i++)); do :; done", "hash -p $BIN/marker x; x",
	": > >(marker); wait $!", "PROMPT_COMMAND=marker; eval \"$PROMPT_COMMAND\"", "export BASH_FUNC_x%%='() { marker; }'; bash -c x", "x() { marker; }; export -f x; bash -c x",
}
