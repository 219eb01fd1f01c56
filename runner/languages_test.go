package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// programs print their arguments, copy in.txt to out.txt beside it, and exit with 3.
var programs = map[writ.Language]string{
	"python": `
import sys
print(" ".join(sys.argv[1:]))
open("out.txt", "w").write(open("in.txt").read())
sys.exit(3)`,
	"javascript": `
import {readFileSync, writeFileSync} from "node:fs";
console.log(process.argv.slice(2).join(" "));
writeFileSync("out.txt", readFileSync("in.txt"));
if (!process.versions.bun) throw new Error("this is not Bun");
process.exit(3);`,
	"typescript": `
import {readFileSync, writeFileSync} from "node:fs";
const args: string[] = process.argv.slice(2);
console.log(args.join(" "));
writeFileSync("out.txt", readFileSync("in.txt"));
process.exit(3);`,
	"node": `
const fs = require("fs");
console.log(process.argv.slice(2).join(" "));
fs.writeFileSync("out.txt", fs.readFileSync("in.txt"));
if (process.versions.bun) throw new Error("this is not Node.js");
process.exit(3);`,
	"bash": `
echo "$@"
cp in.txt out.txt
exit 3`,
	"c": `
#include <stdio.h>
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) printf("%s%s", argv[i], i + 1 < argc ? " " : "\n");
	FILE *in = fopen("in.txt", "r"), *out = fopen("out.txt", "w");
	for (int c; (c = getc(in)) != EOF;) putc(c, out);
	fclose(out);
	return 3;
}`,
	"cpp": `
#include <fstream>
#include <iostream>
#include <string>
#include <vector>
int main(int argc, char **argv) {
	std::vector<std::string> args(argv + 1, argv + argc);
	for (size_t i = 0; i < args.size(); i++) std::cout << (i ? " " : "") << args[i];
	std::cout << std::endl;
	std::ofstream("out.txt") << std::ifstream("in.txt").rdbuf();
	return 3;
}`,
	"java": `
import java.nio.file.*;
public class Anything {
	public static void main(String[] args) throws Exception {
		System.out.println(String.join(" ", args));
		Files.copy(Path.of("in.txt"), Path.of("out.txt"));
		System.exit(new Helper().code());
	}
}
class Helper { int code() { return 3; } }`,
	"php": `<?php
echo implode(" ", array_slice($argv, 1)), "\n";
file_put_contents("out.txt", file_get_contents("in.txt"));
exit(3);`,
	"rust": `
fn main() {
	let args: Vec<String> = std::env::args().skip(1).collect();
	println!("{}", args.join(" "));
	std::fs::copy("in.txt", "out.txt").unwrap();
	std::process::exit(3);
}`,
	"go": `package main

import "os"

func main() {
	os.Stdout.WriteString(os.Args[1] + " " + os.Args[2] + "\n")
	b, err := os.ReadFile("in.txt")
	if err != nil {
		panic(err)
	}
	os.WriteFile("out.txt", b, 0o644)
	os.Exit(3)
}`,
	"d": `
import std.stdio, std.array, std.file;
int main(string[] args) {
	writeln(args[1 .. $].join(" "));
	copy("in.txt", "out.txt");
	return 3;
}`,
	"fortran": `
program main
	character(len=64) :: line, a, b
	call get_command_argument(1, a)
	call get_command_argument(2, b)
	print '(a,1x,a)', trim(a), trim(b)
	open(10, file='in.txt'); read(10, '(a)') line; close(10)
	open(11, file='out.txt'); write(11, '(a)') trim(line); close(11)
	call exit(3)
end program`,
	"r": `
cat(commandArgs(trailingOnly = TRUE), sep = " "); cat("\n")
invisible(file.copy("in.txt", "out.txt"))
quit(status = 3)`,
}

func TestEachLanguageOfTheCodeInterpreter(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	for l, code := range programs {
		t.Run(string(l), func(t *testing.T) {
			testkit.NeedInterpreter(t, r, l)
			if l == "go" && testing.Short() {
				t.Skip("Go compiles its standard library first, some ten seconds of CPU time")
			}
			var d testkit.Depot
			spec := testkit.Interpret(l, code, d.Put("in.txt", []byte("content\n")))
			spec.Args = []string{"--one", "zw\u00f6lf"}
			spec.Collect.Hidden, spec.Collect.Names = true, nil        // whatever a tool leaves would be seen
			spec.Compile.WallMS, spec.Compile.CPUMS = 600_000, 600_000 // Go compiles its standard library
			res := testkit.MustInterpret(t, r, spec, &d)
			if res.Outcome != writ.Failed || res.ExitCode == nil || *res.ExitCode != 3 || res.Compiled {
				t.Fatalf("it ended %s with exit code %v (%s), compiled %v\nstderr %s", res.Outcome, res.ExitCode, res.Reason, res.Compiled, res.Stderr.Text)
			}
			if res.Stdout.Text != "--one zw\u00f6lf\n" || res.Stderr.Text != "" {
				t.Errorf("stdout %q, stderr %q", res.Stdout.Text, res.Stderr.Text)
			}
			if got := testkit.FilesOf(res); got != "new out.txt, same in.txt" || d.Content(res.Files[0]) != "content\n" {
				t.Errorf("files %s, dropped %v", got, res.Dropped)
			}
		})
	}
}

// TestPackagesOfTheHostAreFound: by import and by require. The package that is there is
// npm, which says that it is no library once it is loaded.
func TestPackagesOfTheHostAreFound(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	if !slices.ContainsFunc([]string{"/usr/local/lib", "/usr/lib", "/usr/share/nodejs"}, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "node_modules/npm/package.json"))
		return err == nil
	}) {
		testkit.Missing(t, "npm", "npm is not a package of this host")
	}
	const said = "npm v8"
	const js = `import("npm").catch(e => console.log(e.message)); try { require("npm") } catch (e) { console.log(e.message) }
if (require("./in.json").x != 7 || require("npm/package.json").name != "npm") console.log("other files")`
	for l, code := range map[writ.Language]string{
		"node":       js,
		"javascript": js,
		"typescript": `const name: string = "npm"; await import(name).catch((e: Error) => console.log(e.message)); try { require(name) } catch (e) { console.log(e.message) }`,
	} {
		t.Run(string(l), func(t *testing.T) {
			testkit.NeedInterpreter(t, r, l)
			var d testkit.Depot
			res := testkit.MustInterpret(t, r, testkit.Interpret(l, code, d.Put("in.json", []byte(`{"x": 7}`))), &d)
			if res.Outcome != writ.Succeeded || strings.Count(res.Stdout.Text, "\n") != 2 || strings.Count(res.Stdout.Text, said) != 2 || testkit.FilesOf(res) != "same in.json" {
				t.Errorf("it ended %s (%s) with stdout %q and files %s\nstderr %s", res.Outcome, res.Reason, res.Stdout.Text, testkit.FilesOf(res), res.Stderr.Text)
			}
		})
	}
	// As most programs write it, in a file of its own kind.
	testkit.NeedInterpreter(t, r, "node")
	var d testkit.Depot
	res := testkit.MustInterpret(t, r, testkit.Interpret("bash", "node a.mjs", d.Put("a.mjs", []byte("import npm from 'npm'; npm"))), &d)
	if !strings.Contains(res.Stderr.Text, said) {
		t.Errorf("stderr %s", res.Stderr.Text)
	}
}

// TestJavaKnowsItsMemory: it sizes itself by its machine, and would be killed for what it
// could have collected.
func TestJavaKnowsItsMemory(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	testkit.NeedInterpreter(t, r, "java")
	var d testkit.Depot
	spec := testkit.Interpret("java", `
class Main {
	static byte[] last;
	public static void main(String[] args) {
		for (int i = 0; i < 1000; i++) last = new byte[1 << 20];
		System.out.println(Runtime.getRuntime().maxMemory() >> 20);
	}
}`)
	spec.Limits.MemoryBytes = 256 << 20
	if res := testkit.MustInterpret(t, r, spec, &d); res.Outcome != writ.Succeeded || len(res.Stdout.Text) != len("150\n") {
		t.Errorf("it ended %s (%s) with stdout %q\nstderr %s", res.Outcome, res.Reason, res.Stdout.Text, res.Stderr.Text)
	}
}

// TestProgramsThatTakeAllMemory: each ends for that, or says so itself.
func TestProgramsThatTakeAllMemory(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	for l, code := range map[writ.Language]string{
		"python":     `a = [bytearray(1 << 20) for _ in range(1 << 20)]`,
		"javascript": `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`,
		"node":       `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`,
		"java":       `class M { public static void main(String[] x) { var a = new java.util.ArrayList<byte[]>(); for (;;) a.add(new byte[1 << 20]); } }`,
		"php":        `<?php $a = []; while (1) $a[] = str_repeat("x", 1 << 20);`,
	} {
		t.Run(string(l), func(t *testing.T) {
			testkit.NeedInterpreter(t, r, l)
			var d testkit.Depot
			res := testkit.MustInterpret(t, r, testkit.Interpret(l, code), &d)
			itself := res.Outcome == writ.Failed && res.ExitCode != nil && strings.Contains(res.Stderr.Text, "OutOfMemoryError")
			if res.Outcome != writ.OutOfMemory && !itself {
				t.Errorf("it ended %s (%s) with exit code %v\nstderr %.500s", res.Outcome, res.Reason, res.ExitCode, res.Stderr.Text)
			}
		})
	}
}

// TestCompileErrorIsTheResult: of a language with a compile step the program is not
// started, and the inputs are as they were; one without says so by itself.
func TestCompileErrorIsTheResult(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{})
	ends := map[writ.Language]string{ // what each says of where it is
		"c": "main.c:1", "cpp": "main.cpp:1", "rust": "main.rs:1", "go": "main.go:1", "d": "main.d:1", "fortran": "main.f90:1",
		"java": "main.java:1", "php": "main.php", "typescript": "main.ts:1", "r": "unexpected symbol", "python": "main.py",
	}
	for l := range ends {
		t.Run(string(l), func(t *testing.T) {
			testkit.NeedInterpreter(t, r, l)
			var d testkit.Depot
			code := "this is ( no program\n"
			if l == "php" {
				code = "<?php " + code
			}
			res := testkit.MustInterpret(t, r, testkit.Interpret(l, code, d.Put("in.txt", []byte("content\n"))), &d)
			compiles := slices.Contains(strings.Fields("c cpp rust go d fortran"), string(l))
			if res.Outcome != writ.Failed || res.ExitCode == nil || *res.ExitCode == 0 || res.Compiled != compiles || !strings.Contains(strings.ToLower(res.Stderr.Text), ends[l]) {
				t.Errorf("it ended %s with exit code %v, compiled %v\nstdout %s\nstderr %s", res.Outcome, res.ExitCode, res.Compiled, res.Stdout.Text, res.Stderr.Text)
			}
			if got := testkit.FilesOf(res); got != "same in.txt" {
				t.Errorf("files %s", got)
			}
		})
	}
}
