package sandbox

// Who a program is inside every box.
const (
	boxUID  = 1000
	boxUser = "agent"
	boxHome = "/home/agent"
)

// syntheticFiles are the files of /etc that are ours, never the host's: its users
// and its name servers have no name in a box. A box without network resolves
// nothing; resolv.conf says so at once instead of letting a program wait.
var syntheticFiles = [...]struct{ path, content string }{
	{"/etc/passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" +
		boxUser + ":x:1000:1000:agent:" + boxHome + ":/bin/sh\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\n" + boxUser + ":x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost writ\n::1 localhost\n"},
	{"/etc/hostname", "writ\n"},
	{"/etc/resolv.conf", "# no name server: this box has no network\n"},
	{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"},
}

// hostEtc is all that a box has of the host's /etc, where the host has it: what
// programs need to find libraries, trust certificates and draw text. Files that may
// hold credentials (npmrc, pip.conf, gitconfig, wgetrc) stay out. Each costs every
// box a mount, some 60 microseconds.
var hostEtc = [...]string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf",
	"/etc/pki/ca-trust/extracted", "/etc/pki/tls/certs", "/etc/crypto-policies", // Fedora and its kin
	"/etc/mime.types", "/etc/services", "/etc/protocols", "/etc/matplotlibrc",
	// What Debian's interpreters read at their start, through links from /usr.
	"/etc/python3.9", "/etc/python3.10", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/python3.14",
	// The same of its PHP, Java and R, piece by piece: beside them may be passwords of the
	// host.
	"/etc/php/8.1/cli/conf.d", "/etc/php/8.2/cli/conf.d", "/etc/php/8.3/cli/conf.d", "/etc/php/8.4/cli/conf.d",
	"/etc/php/8.1/mods-available", "/etc/php/8.2/mods-available", "/etc/php/8.3/mods-available", "/etc/php/8.4/mods-available",
	"/etc/java-11-openjdk/security", "/etc/java-17-openjdk/security", "/etc/java-21-openjdk/security", "/etc/java-25-openjdk/security",
	"/etc/java-11-openjdk/logging.properties", "/etc/java-17-openjdk/logging.properties", "/etc/java-21-openjdk/logging.properties", "/etc/java-25-openjdk/logging.properties",
	"/etc/R/ldpaths", "/etc/R/Renviron", "/etc/R/Makeconf", "/etc/R/repositories",
}

// maskedProc are files of /proc that speak of the host and not of the box. A box
// gets an unreadable file in the place of each that the kernel has and that anybody
// may read; the others belong to a root that no box has.
var maskedProc = [...]string{
	"/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/key-users", "/proc/timer_list",
	"/proc/sched_debug", "/proc/latency_stats", "/proc/config.gz", "/proc/sysrq-trigger",
	"/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/modules", "/proc/slabinfo",
	"/proc/interrupts",
}

// maskedProcDirs are folders of the same kind; a box gets them empty.
var maskedProcDirs = [...]string{"/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/pressure"}
