"""The `deepspeed` launcher: one process a GPU of the pod, or of the hosts in its host file.

Source: microsoft/DeepSpeed@38327e0 `deepspeed/launcher/runner.py`: `/job/hostfile` by default,
`--include`, `--num_nodes`, `--num_gpus`.
The ZeRO stage is in the JSON that the script's own `--deepspeed` names.
"""

from __future__ import annotations

from dataclasses import replace

from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.mpi import hostfile_slots
from admission.detect.launchers.step import Line, Step, options_of, split_options, started
from admission.detect.words import Word

OPTIONS = options_of(
    "hostfile include exclude num_nodes num_gpus min_elastic_nodes max_elastic_nodes master_port "
    "master_addr node_rank launcher launcher_args autotuning enable_each_rank_log bind_core_list "
    "venv_script ssh_port",
    "module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training "
    "bind_cores_to_rank",
    H="hostfile",
    i="include",
    e="exclude",
)
_DEFAULT_HOSTFILE = "/job/hostfile"
_MAX_HOSTS = 4_096


def unwrap(line: Line) -> Step | None:
    """Return the script deepspeed starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    processes, nodes = flags.get("num_gpus"), flags.get("num_nodes")
    if processes is None:
        processes, included = _included(flags)
        nodes = nodes or included
    if processes is None:
        processes, hosts = _of_hostfile(line, flags)
        nodes = nodes or hosts
    launch = Launch(
        launcher="deepspeed",
        is_distributed=True,
        spawn=Spawn.ALL,
        processes=processes,
        nodes=nodes,
    )
    return started(flags, rest, launch)


def _included(flags: Flags) -> tuple[Flag | None, Flag | None]:
    """Return the processes a node and the nodes of `--include host1:0,1@host2:0,1`."""
    flag = flags.get("include")
    if flag is None or flag.value is None or not flag.value.is_known:
        return None, None
    hosts = flag.value.text.split("@")[:_MAX_HOSTS]
    counts = {host.partition(":")[2].count(",") + 1 for host in hosts if host.partition(":")[2]}
    if not all(host.partition(":")[0] for host in hosts) or len(counts) > 1:
        return flag, None
    processes = _counted(flag, counts.pop()) if counts else None
    return processes, _counted(flag, len(hosts))


def _of_hostfile(line: Line, flags: Flags) -> tuple[Flag | None, Flag | None]:
    """Return the processes a node and the nodes of a host file that is seen."""
    flag = flags.get("hostfile")
    path = flag.value if flag is not None else None
    file = line.read_file(path.text if path is not None else _DEFAULT_HOSTFILE)
    found = hostfile_slots(file)
    if not found or len(set(found.values())) != 1:
        return None, None
    slots = line.flag("slots", Word(text=str(next(iter(found.values())))), told_by=file.source)
    hosts = line.flag("hosts", Word(text=str(len(found))), told_by=file.source)
    return slots, hosts


def _counted(flag: Flag, number: int) -> Flag:
    word = flag.value or Word(text="")
    return replace(flag, values=(word._replace(text=str(number)),))
