"""What the programs of the escape suite share.

A program makes attempts; each must be refused. It prints a line for every breach
and, at its end, how many attempts were refused. It exits 0 only without breach and
without an exception of its own.
"""
import atexit, ctypes, errno, os, platform, sys

libc = ctypes.CDLL(None, use_errno=True)
_column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
_numbers = {  # x86-64, arm64
    "ioctl": (16, 29), "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "open_tree": (428, 428), "move_mount": (429, 429), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "personality": (135, 92), "syslog": (103, 116), "ioprio_set": (251, 30), "mlockall": (151, 230),
    "timer_create": (222, 107), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "exit": (60, 93), "quotactl": (179, 60), "swapon": (167, 224), "reboot": (169, 142),
    "init_module": (175, 105), "kexec_load": (246, 104), "acct": (163, 89), "settimeofday": (164, 170),
}
_refused = 0
_breaches = 0


def syscall(name, *args):
    """The raw call, without the C library in between: its result, or OSError."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(_numbers[name][_column]), *[
        ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if r == -1:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r


def breach(what, detail):
    global _breaches
    _breaches += 1
    print(f"BREACH {what}: {detail}", flush=True)


def refused(what, attempt, *names):
    """attempt must fail with one of the errors named, "ENOENT" and so on."""
    global _refused
    try:
        got = attempt()
    except OSError as e:
        name = errno.errorcode.get(e.errno, str(e.errno))
        if name in names:
            _refused += 1
        else:
            breach(what, f"failed with {name}, want one of {', '.join(names)}")
    else:
        breach(what, f"not refused: {got!r:.200}")


def refused_call(name, *args, by=("EPERM",)):
    refused(name, lambda: syscall(name, *args), *by)


def holds(what, condition, detail=""):
    """condition, the state after a refusal, must be true."""
    global _refused
    if condition:
        _refused += 1
    else:
        breach(what, detail or "does not hold")


def finish():
    """Ends the program; the end of a program that does not call it does the same."""
    atexit.unregister(finish)
    print(f"refused {_refused}", flush=True)
    # sys.last_type is set when the program ends by an exception.
    os._exit(1 if _breaches or hasattr(sys, "last_type") else 0)


atexit.register(finish)
