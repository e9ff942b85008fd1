"""`composer`: one process a GPU, on as many nodes as `WORLD_SIZE` says.

Source: mosaicml/composer@6405188 `composer/cli/launcher.py`.
"""

from __future__ import annotations

from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.step import Line, Step, options_of, split_options

OPTIONS = options_of(
    "nproc stdout stderr world_size base_rank node_rank master_addr master_port run_id",
    "module_mode command_mode verbose version",
    n="nproc",
    m="module_mode",
    c="command_mode",
    v="verbose",
)


def unwrap(line: Line) -> Step | None:
    """Return the script Composer starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    if not rest:
        return None
    launch = Launch(
        launcher="composer",
        is_distributed=True,
        spawn=Spawn.ALL,
        processes=flags.get("nproc") or line.variable_flag("LOCAL_WORLD_SIZE"),
        total=flags.get("world_size") or line.variable_flag("WORLD_SIZE"),
        is_spread=True,
    )
    if flags.has("command_mode"):
        return Step(rest=rest, launch=launch)
    is_module = flags.has("module_mode")
    return Step(rest=rest[1:], program=rest[0], is_module=is_module, launch=launch)
