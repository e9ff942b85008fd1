"""torchrun, `python -m torch.distributed.run` and `.launch`.

Source: torch/distributed/run.py `get_args_parser` (2.15.0); `.launch` takes the same flags.
"""

from __future__ import annotations

from admission.detect.flags import Options, Takes
from admission.detect.invocation import Launch
from admission.detect.launchers.step import Line, Step, split_options

OPTIONS = Options(
    names={
        "nnodes": Takes.ONE,
        "nproc_per_node": Takes.ONE,
        "rdzv_backend": Takes.ONE,
        "rdzv_endpoint": Takes.ONE,
        "rdzv_id": Takes.ONE,
        "rdzv_conf": Takes.ONE,
        "standalone": Takes.NOTHING,
        "max_restarts": Takes.ONE,
        "monitor_interval": Takes.ONE,
        "start_method": Takes.ONE,
        "event_log_handler": Takes.ONE,
        "role": Takes.ONE,
        "module": Takes.NOTHING,
        "no_python": Takes.NOTHING,
        "run_path": Takes.NOTHING,
        "log_dir": Takes.ONE,
        "redirects": Takes.ONE,
        "tee": Takes.ONE,
        "local_ranks_filter": Takes.ONE,
        "duplicate_stdout_filters": Takes.ONE,
        "duplicate_stderr_filters": Takes.ONE,
        "node_rank": Takes.ONE,
        "master_addr": Takes.ONE,
        "master_port": Takes.ONE,
        "local_addr": Takes.ONE,
        "logs_specs": Takes.ONE,
        "numa_binding": Takes.ONE,
        "signals_to_handle": Takes.ONE,
        "virtual_local_rank": Takes.NOTHING,
        "use_env": Takes.NOTHING,
    },
    short={"m": "module", "r": "redirects", "t": "tee"},
)


def unwrap(line: Line) -> Step | None:
    """Return the script torchrun starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    if not rest:
        return None
    launch = Launch(
        launcher="torchrun",
        is_distributed=True,
        processes=flags.get("nproc_per_node"),
        nodes=flags.get("nnodes"),
    )
    if flags.has("no_python"):
        return Step(rest=rest, launch=launch)
    return Step(rest=rest[1:], program=rest[0], is_module=flags.has("module"), launch=launch)
