"""`fabric run`, `lightning run model`: processes, strategy and precision by flags.

Source: Lightning-AI/pytorch-lightning@021e6b1 `src/lightning/fabric/cli.py`: one device by
default and for `auto`, one process for `dp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from admission.detect.flags import Flag, Flags, parse_flags
from admission.detect.invocation import Launch
from admission.detect.launchers.step import Line, Step, options_of
from admission.detect.words import Word

OPTIONS = options_of(
    "accelerator strategy devices num_nodes node_rank main_address main_port precision",
    "",
)
_STRATEGIES: Mapping[str, str] = {
    "dp": "dp",
    "ddp": "ddp",
    "ddp_spawn": "ddp",
    "ddp_find_unused_parameters_true": "ddp",
    "fsdp": "fsdp",
    "deepspeed": "zero2",
    "deepspeed_stage_1": "zero1",
    "deepspeed_stage_2": "zero2",
    "deepspeed_stage_3": "zero3",
}
"""Fabric's names; `DeepSpeedStrategy` has `stage=2`."""


def unwrap(line: Line) -> Step | None:
    """Return the script that Fabric starts, and what its flags decide."""
    words = line.words[1:]
    if words[:1] and words[0].text == "run":
        words = words[1:]
    else:
        return None
    if words[:1] and words[0].text == "model":
        words = words[1:]
    own: list[Word] = []
    rest: list[Word] = []
    at = 0
    while at < len(words):
        name, equals, _ = words[at].text.lstrip("-").replace("-", "_").partition("=")
        is_own = words[at].text.startswith("--") and name in OPTIONS.names
        number = 2 if is_own and not equals else 1
        (own if is_own else rest).extend(words[at : at + number])
        at += number
    if not rest:
        return None
    flags = parse_flags(tuple(own), OPTIONS, where=line.where, path=line.path)
    launch = Launch(
        launcher="fabric run",
        is_distributed=True,
        processes=_devices(flags),
        nodes=flags.get("num_nodes"),
        precision=flags.get("precision"),
        parallelism=_parallelism(flags),
        is_on_cpu=any(_text(flags, "accelerator") == name for name in ("cpu", "mps", "tpu")),
    )
    return Step(rest=tuple(rest[1:]), program=rest[0], launch=launch)


def _text(flags: Flags, name: str) -> str:
    flag = flags.get(name)
    return flag.value.text if flag is not None and flag.value is not None else ""


def _parallelism(flags: Flags) -> dict[str, tuple[object, str]]:
    flag = flags.get("strategy")
    name = _text(flags, "strategy")
    if flag is None or name not in _STRATEGIES:
        return {}
    return {"parallelism.strategy": (_STRATEGIES[name], flag.source)}


def _devices(flags: Flags) -> Flag | None:
    """Return `--devices` as a number of processes: `0,1,2` are three, `-1` is every one."""
    if _text(flags, "strategy") == "dp":
        return None
    flag = flags.get("devices")
    if flag is None or flag.value is None or not flag.value.is_known:
        return flag
    text = flag.value.text
    items = [item for item in text.split(",") if item.strip()]
    number = {"-1": "gpu", "auto": "1"}.get(text, str(len(items)) if "," in text else text)
    return replace(flag, values=(flag.value._replace(text=number),))
