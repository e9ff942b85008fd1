"""`colossalai run`: torchrun on the hosts it is given.

Source: hpcaitech/ColossalAI@4f9953b `colossalai/cli/launcher/__init__.py`; `-m` takes the module
and ends the options. Host files are not read.
"""

from __future__ import annotations

from admission.detect.invocation import Launch
from admission.detect.launchers.step import Line, Step, options_of, split_options

OPTIONS = options_of(
    "hostfile host include exclude num_nodes nproc_per_node master_port master_addr "
    "extra_launch_args ssh_port",
    "",
    H="host",
    host="host",
)


def unwrap(line: Line) -> Step | None:
    """Return the script of `colossalai run`, and how many processes of it."""
    if len(line.words) < 2 or line.words[1].text != "run":
        return None
    flags, rest = split_options(line.inner(*line.words[1:]), OPTIONS)
    own = line.words[2 : len(line.words) - len(rest)]
    is_module = any(word.text == "-m" for word in own)
    launch = Launch(
        launcher="colossalai run",
        is_distributed=True,
        processes=flags.get("nproc_per_node"),
        nodes=flags.get("num_nodes"),
    )
    if not rest:
        return None
    return Step(rest=rest[1:], program=rest[0], is_module=is_module, launch=launch)
