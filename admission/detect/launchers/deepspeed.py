"""The `deepspeed` launcher: one process a GPU of the pod.

Source: deepspeed `launcher/runner.py`. Host files of several nodes are not read.
The ZeRO stage is in the JSON that the script's own `--deepspeed` names.
"""

from __future__ import annotations

from admission.detect.flags import Options, Takes
from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step, split_options

OPTIONS = Options(
    names={
        "hostfile": Takes.ONE,
        "include": Takes.ONE,
        "exclude": Takes.ONE,
        "num_nodes": Takes.ONE,
        "num_gpus": Takes.ONE,
        "min_elastic_nodes": Takes.ONE,
        "max_elastic_nodes": Takes.ONE,
        "master_port": Takes.ONE,
        "master_addr": Takes.ONE,
        "node_rank": Takes.ONE,
        "launcher": Takes.ONE,
        "launcher_args": Takes.ONE,
        "autotuning": Takes.ONE,
        "module": Takes.NOTHING,
        "no_python": Takes.NOTHING,
        "no_local_rank": Takes.NOTHING,
        "no_ssh": Takes.NOTHING,
        "force_multi": Takes.NOTHING,
        "save_pid": Takes.NOTHING,
        "elastic_training": Takes.NOTHING,
        "enable_each_rank_log": Takes.ONE,
        "bind_cores_to_rank": Takes.NOTHING,
        "bind_core_list": Takes.ONE,
        "venv_script": Takes.ONE,
    },
    short={"H": "hostfile", "i": "include", "e": "exclude"},
)


def unwrap(line: Line) -> Step | None:
    """Return the script deepspeed starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    if not rest:
        return None
    launch = Launch(
        launcher="deepspeed",
        is_distributed=True,
        spawn=Spawn.ALL,
        processes=flags.get("num_gpus"),
        nodes=flags.get("num_nodes"),
    )
    if flags.has("no_python"):
        return Step(rest=rest, launch=launch)
    return Step(rest=rest[1:], program=rest[0], is_module=flags.has("module"), launch=launch)
