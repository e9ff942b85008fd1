"""`mpirun` and its relatives: processes over all pods that GPUs are in.

Source: openpmix/prrte@008f649 `src/mca/schizo/ompi/schizo_ompi.c` and the manual pages of Open MPI,
MPICH's hydra, MVAPICH2 and Slurm.
Several programs of one call (`prog1 : prog2`) are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.detect.files import File
from admission.detect.flags import Flag
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word, words

NAMES = frozenset(
    words(
        "mpirun mpiexec orterun prterun mpirun.openmpi mpiexec.openmpi mpiexec.hydra mpirun_rsh "
        "mpiexec.mpich mpirun.mpich mpiexec.slurm"
    )
)
_ONE = frozenset(
    words(
        "np n c H host hosts hostfile machinefile machine f bind-to map-by rank-by N npernode "
        "npersocket ppn perhost wdir wd path prefix tune output-filename output app timeout stdin "
        "cpu-set cpu-list cpus-per-proc cpus-per-rank personality am launch-agent genvlist envlist "
        "iface bootstrap launcher rmk default-hostfile x report-uri ofi-provider rsh-args "
        "dvm-uri ppr stream-buffering ompi-server amca"
    )
)
_TWO = frozenset(words("mca gmca omca gomca prtemca pmixmca genv env"))
_TOTAL = frozenset(words("np n c"))
_PER_NODE = frozenset(words("N npernode ppn perhost"))
_HOSTFILES = frozenset(words("hostfile machinefile f default-hostfile"))
_SRUN_ONE = frozenset(
    words(
        "n ntasks N nodes c cpus-per-task p partition t time J job-name w nodelist x exclude "
        "A account q qos D chdir o output e error i input G gpus gpus-per-node gpus-per-task "
        "gres mem mem-per-cpu mem-per-gpu mpi cpu-bind gpu-bind ntasks-per-node ntasks-per-gpu "
        "container-image container-mounts container-workdir container-name container-env jobid "
        "m distribution C constraint network"
    )
)
MAX_HOSTS = 4_096


@dataclass(slots=True)
class _Given:
    """What the words before the program say."""

    total: Flag | None = None
    per_node: Flag | None = None
    nodes: Flag | None = None
    hosts: Word | None = None
    hostfile: Word | None = None


def unwrap(line: Line) -> Step | None:
    """Return the program that MPI starts, how many processes of it, and what `-x` sets."""
    given, assigned = _Given(), dict[str, tuple[Word, ...] | None]()
    rest = line.words[1:]
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        name, joined, value = _name_of(rest[at])
        values = (value,) if joined else rest[at + 1 : at + 1 + _arity(name)]
        at += 1 + (0 if joined else _arity(name))
        if values:
            _note(line, given, assigned, name, rest[at - len(values) - 1 + joined], values)
    while at < len(rest) and _is_setting(rest[at]):
        _set(assigned, rest[at])
        at += 1
    if at >= len(rest):
        return None
    total = given.total or _of_hosts(line, given)
    launch = Launch(
        launcher="mpirun",
        is_distributed=True,
        spawn=Spawn.ALL,
        total=total,
        processes=given.per_node,
        is_spread=True,
    )
    return Step(rest=rest[at:], launch=launch, assigned=assigned)


def unwrap_srun(line: Line) -> Step | None:
    """Return the program that Slurm starts; without `-n` it is one process a node."""
    given = _Given()
    rest = line.words[1:]
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        name, joined, value = _name_of(rest[at])
        word = rest[at]
        takes = name in _SRUN_ONE and not joined
        values = (value,) if joined else rest[at + 1 : at + 2] if takes else ()
        at += 2 if takes else 1
        flag = line.flag(word.text.partition("=")[0], *values)
        if name in ("n", "ntasks"):
            given.total = flag
        elif name in ("N", "nodes"):
            given.nodes = flag
        elif name == "ntasks-per-node":
            given.per_node = flag
    if at >= len(rest):
        return None
    launch = Launch(
        launcher="srun",
        is_distributed=given.total is not None or given.per_node is not None,
        total=given.total,
        processes=given.per_node,
        nodes=given.nodes,
        is_spread=given.nodes is None,
    )
    return Step(rest=rest[at:], launch=launch)


def _name_of(word: Word) -> tuple[str, bool, Word]:
    name, equals, value = word.text.lstrip("-").partition("=")
    return name, bool(equals), word.part(value)


def _arity(name: str) -> int:
    return 2 if name in _TWO else 1 if name in _ONE else 0


def _note(
    line: Line,
    given: _Given,
    assigned: dict[str, tuple[Word, ...] | None],
    name: str,
    word: Word,
    values: tuple[Word, ...],
) -> None:
    flag = line.flag(word.text.partition("=")[0], values[0])
    if name in _TOTAL:
        given.total = flag
    elif name in _PER_NODE:
        given.per_node = flag
    elif name in ("H", "host", "hosts"):
        given.hosts = values[0]
    elif name in _HOSTFILES:
        given.hostfile = values[0]
    elif name == "x" and "=" in values[0].text:
        _set(assigned, values[0])
    elif name in ("genv", "env") and len(values) == 2:
        assigned[values[0].text] = (values[1],)


def _is_setting(word: Word) -> bool:
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.isidentifier()


def _set(assigned: dict[str, tuple[Word, ...] | None], word: Word) -> None:
    name, _, value = word.text.partition("=")
    assigned[name] = (word.part(value),)


def _of_hosts(line: Line, given: _Given) -> Flag | None:
    """Return how many slots the hosts have that are named on the line or in a file that is seen."""
    if given.per_node is not None:
        return None
    if given.hosts is not None and given.hosts.is_known:
        number = sum(slots_of(given.hosts.text.split(",")))
        return line.flag("-host", Word(text=str(number), origin=given.hosts.origin))
    if given.hostfile is not None and given.hostfile.is_known:
        file = line.read_file(given.hostfile.text)
        found = hostfile_slots(file)
        if found:
            return line.flag("slots", Word(text=str(sum(found.values()))), told_by=file.source)
    return None


def slots_of(hosts: list[str]) -> list[int]:
    """Return the slots of each of *hosts*, written `name:slots`; one where none are told."""
    found = []
    for host in hosts[:MAX_HOSTS]:
        slots = host.partition(":")[2]
        found.append(int(slots) if slots.isascii() and slots.isdigit() and len(slots) < 6 else 1)
    return found


def hostfile_slots(file: File) -> Mapping[str, int]:
    """Return host -> slots of a host file; empty if it is not seen or not read."""
    if file.text is None or file.unresolved:
        return {}
    found: dict[str, int] = {}
    for line in file.text.splitlines()[:MAX_HOSTS]:
        fields = line.partition("#")[0].replace(":", " slots=").split()
        if not fields:
            continue
        slots = next((item[6:] for item in fields[1:] if item.startswith("slots=")), "1")
        if not (slots.isascii() and slots.isdigit() and len(slots) < 6):
            return {}
        found[fields[0]] = found.get(fields[0], 0) + int(slots)
    return found
