"""torchrun, `python -m torch.distributed.run` and `.launch`, and what takes the same flags.

Source: torch/distributed/run.py `get_args_parser` (2.15.0); `.launch` takes the same flags.
`hyperpodrun` adds its own, as AWS documents them for the HyperPod training operator.
"""

from __future__ import annotations

from admission.detect.flags import Flags
from admission.detect.invocation import Launch
from admission.detect.launchers.step import Line, Step, options_of, split_options, started

OPTIONS = options_of(
    "nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts "
    "monitor_interval start_method event_log_handler role log_dir redirects tee "
    "local_ranks_filter duplicate_stdout_filters duplicate_stderr_filters node_rank master_addr "
    "master_port local_addr logs_specs numa_binding signals_to_handle shutdown_timeout "
    "server_host server_port server_log_level server_shutdown_timeout pre_train_script "
    "pre_train_args post_train_script post_train_args "
    "inprocess_restart_timeout",
    "standalone module no_python run_path virtual_local_rank use_env inprocess_restart",
    m="module",
    r="redirects",
    t="tee",
)
_BARE = ("nproc_per_node", "nnodes", "rdzv_endpoint", "rdzv_id", "rdzv_backend")


def unwrap(line: Line) -> Step | None:
    """Return the script torchrun starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    return started(flags, rest, launch_of(flags))


def unwrap_bare(line: Line) -> Step | None:
    """Return the script of torchrun's arguments alone: the image's entry point is torchrun.

    Source: pytorch/elastic v0.2.2 `kubernetes/README.md`: `args` without a command.
    """
    flags, rest = split_options(line.inner(line.words[0], *line.words), OPTIONS)
    if flags.foreign or not flags.has(*_BARE) or not rest:
        return None
    if not rest[0].text.endswith(".py") and not flags.has("module", "no_python"):
        return None
    return started(flags, rest, launch_of(flags))


def launch_of(flags: Flags, *, launcher: str = "torchrun") -> Launch:
    """Return what torchrun's *flags* decide."""
    return Launch(
        launcher=launcher,
        is_distributed=True,
        processes=flags.get("nproc_per_node"),
        nodes=flags.get("nnodes"),
    )
