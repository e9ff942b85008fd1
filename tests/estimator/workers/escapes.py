"""Ways out of a worker, tried by a fork of a template that only these tests start.

Targets, a way by its name -> the error number that stopped it, or what it got

Each does as little as it can where it succeeds: signal 0, a file of the test, a call with arguments
that the kernel itself would refuse with another error.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import stat
import termios
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from estimator.cudnn import Edition
from estimator.processes import kernel, system_calls
from estimator.workers.fork import Handler, Reply
from estimator.workers.wire import decode_ask, encode_answers
from tests.estimator.workers.standin import estimate_of

_COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
_X32 = 0x40000000
_GROUPS = (
    system_calls.SOCKETS,
    system_calls.NETWORK,
    system_calls.PROGRAMS,
    system_calls.PROCESSES,
    system_calls.TIMERS,
    system_calls.MEMORY_OF_OTHERS,
    system_calls.FILES,
    system_calls.MOUNTS,
    system_calls.IDENTITY,
    system_calls.SHARED,
    system_calls.KERNEL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What a fork tries to reach."""

    secret: str
    """A file of the user it runs as."""
    folder: str
    """A folder of that user."""
    sibling: int
    """Another fork of its template."""
    server: tuple[str, int]
    """Where somebody listens, as the API server would."""


Way = Callable[[Targets], object]


def prepare(framework: str) -> Handler:
    """Return the handler that tries what it is told."""
    return answer


def answer(payload: bytes, plans: Edition | None) -> Reply:
    """Try every way and say what came of each."""
    ask = decode_ask(payload)
    config = ask.spec.model.config
    host, port = str(config["host"]), int(str(config["port"]))
    targets = Targets(
        secret=str(config["secret"]),
        folder=str(config["folder"]),
        sibling=int(str(config["sibling"])),
        server=(host, port),
    )
    seen = {name: _tried(way, targets) for name, way in WAYS.items()}
    return Reply(answer=encode_answers([estimate_of(ask, 0, json.dumps(seen))]))


def _tried(way: Way, targets: Targets) -> str:
    try:
        got = way(targets)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    except ValueError as error:  # resource.setrlimit says EPERM like this
        return str(error)
    return f"got {got!r:.200}"


def call(name: str, *arguments: int | bytes | None) -> int:
    """Return what the call of the kernel returns.

    Raises:
        OSError: as the kernel says.
    """
    numbers = next(group[name] for group in (*_GROUPS, system_calls.CHECKED) if name in group)
    number = numbers[_COLUMN]
    assert number is not None, name
    return _checked(kernel.call(number, *arguments))


def _checked(found: int) -> int:
    if found < 0:
        raise OSError(-found, os.strerror(-found))
    return found


def _socket(family: int, kind: int = socket.SOCK_STREAM) -> Way:
    return lambda _: socket.socket(family, kind)


def _opened(flags: int) -> Way:
    def way(targets: Targets) -> object:
        return os.open(f"{targets.folder}/new", flags, 0o600)

    return way


def _created(folder: str) -> Way:
    return lambda _: os.open(f"{folder}/vramgate-escape", os.O_CREAT | os.O_WRONLY, 0o600)


def _of_process(name: str, pid: Callable[[Targets], int]) -> Way:
    return lambda targets: os.open(f"/proc/{pid(targets)}/{name}", os.O_RDONLY)


def _parent(_: Targets) -> int:
    return os.getppid()


def _sibling(targets: Targets) -> int:
    return targets.sibling


def _send_from_a_pair(targets: Targets) -> object:
    mine, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return mine.sendto(b"x", f"{targets.folder}/log")


def _send_to_an_address(_: Targets) -> object:
    number = next(each for each in range(3, 64) if _kind(each) == "socket")
    return call("sendto", number, b"x", 0, 0, b"\1\0/x\0", 5)


def _type_into_a_terminal(_: Targets) -> object:
    return fcntl.ioctl(1, termios.TIOCSTI, b"x")


def _run_from_memory(_: Targets) -> object:
    descriptor = os.memfd_create("program")
    return call("execveat", descriptor, b"\0", None, None, 0x1000)


def _have_the_kernel_signal(targets: Targets) -> object:
    reading, _ = os.pipe()
    return fcntl.fcntl(reading, fcntl.F_SETOWN, targets.sibling)


def _fork(_: Targets) -> object:
    if (pid := os.fork()) == 0:
        os._exit(0)
    return pid


def _clone_into_namespaces(_: Targets) -> object:
    """Ask for a thread in a network namespace of its own: nothing starts, the stack is none."""
    return call("clone", 0x00010000 | 0x40000000, None, None, None, None)


def _call_by_the_32_bit_abi(_: Targets) -> object:
    """Call getpid as a program of 32 bits does: `mov eax, 20; int 0x80; ret`."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return _checked(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


def _raise_a_limit(_: Targets) -> object:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    return hard


def _prctl(option: int, value: int) -> Way:
    number = system_calls.CHECKED["prctl"][_COLUMN]
    assert number is not None
    return lambda _: _checked(kernel.call(number, option, value, 0, 0, 0))


def _threads_without_end(_: Targets) -> object:
    """Start threads until there is no more room; the way out is that there is no end."""
    over = threading.Event()
    try:
        for _number in range(20_000):
            threading.Thread(target=over.wait, daemon=True).start()
    except (RuntimeError, MemoryError):
        raise OSError(errno.EAGAIN, "") from None
    finally:
        over.set()
    return "20,000 threads"


def _kind(descriptor: int) -> str:
    """Return what kind of file *descriptor* is, empty text for none."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return ""
    names = {
        stat.S_IFSOCK: "socket",
        stat.S_IFIFO: "pipe",
        stat.S_IFCHR: "device",
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
    }
    return names.get(stat.S_IFMT(mode), "other")


def descriptors(_: Targets) -> object:
    """Return the kinds of what is open, one of each file however often it is."""
    found = {(os.fstat(each).st_ino, _kind(each)) for each in range(4096) if _kind(each)}
    return sorted(kind for _, kind in found)


def environment(_: Targets) -> object:
    """Return the names of the variables."""
    return sorted(os.environ)


def refused(_: Targets) -> object:
    """Return each call that is denied in any case, with the error that it got."""
    found = {}
    for group in _GROUPS:
        for name in group:
            if (number := group[name][_COLUMN]) is not None:
                got = kernel.call(number, *(-1,) * 6)
                if got == 0 and name in ("fork", "vfork"):
                    os._exit(0)
                found[name] = errno.errorcode.get(-got, str(got))
    return json.dumps(found)


READS: Mapping[str, Way] = {
    "a secret of the same user": lambda targets: os.open(targets.secret, os.O_RDONLY),
    "the folder of service accounts": lambda _: os.scandir("/var"),
    "the home folder": lambda _: os.scandir(Path("~").expanduser()),
    "passwords": lambda _: os.open("/etc/shadow", os.O_RDONLY),
    "the environment of the template": _of_process("environ", _parent),
    "the memory of the template": _of_process("mem", _parent),
    "the descriptors of the template": lambda _: os.scandir(f"/proc/{os.getppid()}/fd"),
    "the root of the template": lambda _: os.scandir(f"/proc/{os.getppid()}/root"),
    "the environment of a sibling": _of_process("environ", _sibling),
    "the memory of a sibling": _of_process("mem", _sibling),
    "the environment of the first process": lambda _: os.open("/proc/1/environ", os.O_RDONLY),
}
"""What Landlock alone denies."""

WAYS: Mapping[str, Way] = {
    **READS,
    "an IPv4 socket": _socket(socket.AF_INET),
    "an IPv6 socket": _socket(socket.AF_INET6),
    "a Unix socket": _socket(socket.AF_UNIX),
    "a netlink socket": _socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "a packet socket": _socket(socket.AF_PACKET, socket.SOCK_RAW),
    "a vsock": _socket(socket.AF_VSOCK),
    "a socket of the kernel's ciphers": _socket(socket.AF_ALG, socket.SOCK_SEQPACKET),
    "a connection to the API server": lambda targets: socket.create_connection(targets.server),
    "a datagram from a pair of sockets": _send_from_a_pair,
    "an address for the given socket": _send_to_an_address,
    "io_uring": lambda _: call("io_uring_setup", 1, None),
    "a new file": _opened(os.O_CREAT | os.O_WRONLY),
    "a new file without a name": lambda targets: os.open(
        targets.folder, os.O_TMPFILE | os.O_WRONLY, 0o600
    ),
    "a new file in the current folder": _created("."),
    "a new file in /tmp": _created("/tmp"),
    "a new file in shared memory": _created("/dev/shm"),
    "an emptied file": lambda targets: os.open(targets.secret, os.O_RDONLY | os.O_TRUNC),
    "a written file": lambda targets: os.open(targets.secret, os.O_WRONLY),
    "a shorter file": lambda targets: os.truncate(targets.secret, 0),
    "a removed file": lambda targets: os.unlink(targets.secret),  # noqa: PTH108
    "a renamed file": lambda targets: os.rename(targets.secret, f"{targets.folder}/b"),  # noqa: PTH104
    "another mode": lambda targets: os.chmod(targets.secret, 0o777),  # noqa: PTH101
    "another owner": lambda targets: os.chown(targets.secret, os.getuid(), os.getgid()),
    "another time": lambda targets: os.utime(targets.secret),
    "an attribute": lambda targets: os.setxattr(targets.secret, "user.x", b""),
    "a symbolic link": lambda targets: os.symlink(targets.secret, f"{targets.folder}/s"),  # noqa: PTH211
    "a hard link": lambda targets: os.link(targets.secret, f"{targets.folder}/h"),
    "a new folder": lambda targets: os.mkdir(f"{targets.folder}/d"),  # noqa: PTH102
    "a removed folder": lambda targets: os.rmdir(targets.folder),  # noqa: PTH106
    "a new pipe": lambda targets: os.mkfifo(f"{targets.folder}/p"),
    "a fork": _fork,
    "a thread in a namespace": _clone_into_namespaces,
    "threads without end": _threads_without_end,
    "a program": lambda _: os.execv("/bin/true", ["/bin/true"]),
    "a program from memory": _run_from_memory,
    "a spawned program": lambda _: os.posix_spawn("/bin/true", ["true"], {}),
    "a signal to the template": lambda _: os.kill(os.getppid(), 0),
    "a signal to a sibling": lambda targets: os.kill(targets.sibling, 0),
    "a signal to its group": lambda _: os.kill(0, 0),
    "a signal to everybody": lambda _: os.kill(-1, 0),
    "a signal to a thread": lambda targets: call("tgkill", targets.sibling, targets.sibling, 0),
    "a signal from the kernel": _have_the_kernel_signal,
    "a descriptor of the template": lambda _: os.pidfd_open(os.getppid()),
    "a traced sibling": lambda targets: call("ptrace", 0x4206, targets.sibling, 0, 0),
    "the memory of a sibling by a call": lambda targets: call(
        "process_vm_readv", targets.sibling, None, 0, None, 0, 0
    ),
    "a slower sibling": lambda targets: os.setpriority(os.PRIO_PROCESS, targets.sibling, 19),
    "a sibling on one processor": lambda targets: os.sched_setaffinity(targets.sibling, {0}),
    "the limits of a sibling": lambda targets: resource.prlimit(
        targets.sibling, resource.RLIMIT_NOFILE
    ),
    "more memory": _raise_a_limit,
    "more time": lambda _: signal.setitimer(signal.ITIMER_REAL, 0),
    "no time limit": lambda _: call("timer_create", 0, None, None),
    "life after the template": _prctl(kernel.SET_PARENT_DEATH_SIGNAL, 0),
    "memory that others read": _prctl(kernel.SET_DUMPABLE, 1),
    "another filter": _prctl(kernel.SET_SECCOMP, 2),
    "a mount": lambda _: call("mount", None, None, None, 0, None),
    "a user namespace": lambda _: call("unshare", 0x10000000),
    "the namespace of another": lambda _: call("setns", -1, 0),
    "another root": lambda targets: os.chroot(targets.folder),
    "a key": lambda _: call("add_key", None, None, None, 0, 0),
    "a keyring": lambda _: call("keyctl", 0, -3, 0),
    "a program in the kernel": lambda _: call("bpf", -1, None, 0),
    "counters of the processor": lambda _: call("perf_event_open", None, 0, -1, -1, 0),
    "faults of its own memory": lambda _: call("userfaultfd", 0),
    "another personality": lambda _: call("personality", 0x0400000),
    "another user": lambda _: os.setuid(os.getuid()),
    "input of a terminal": _type_into_a_terminal,
    "System V memory": lambda _: call("shmget", 0, 4096, 0o1600),
    "a message queue": lambda _: call("mq_open", b"/vramgate\0", os.O_CREAT, 0o600, None),
    "watched files": lambda _: call("inotify_init1", 0),
    "a call of x32": lambda _: _checked(kernel.call(_X32 + 39)),
    **({"a call of 32 bits": _call_by_the_32_bit_abi} if _COLUMN == 0 else {}),
    "a call that nobody knows": lambda _: _checked(kernel.call(system_calls.NEWEST + 1)),
    "clone3": lambda _: _checked(kernel.call(435, None, 0)),
    "openat2": lambda _: _checked(kernel.call(437, -1, None, None, 0)),
}

SEEN: Mapping[str, Way] = {
    "descriptors": descriptors,
    "environment": environment,
    "refused": refused,
}
"""What a fork finds, beside what it tries."""


def prepare_looking(framework: str) -> Handler:
    """Return the handler that says what it finds."""
    return look


def look(payload: bytes, plans: Edition | None) -> Reply:
    """Say what a fork has."""
    ask = decode_ask(payload)
    nothing = Targets(secret="", folder="", sibling=0, server=("", 0))
    seen = {name: way(nothing) for name, way in SEEN.items()}
    return Reply(answer=encode_answers([estimate_of(ask, 0, json.dumps(seen))]))
