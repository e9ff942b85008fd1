"""An optimizer by its class, as configuration files name it.

`bitsandbytes.optim.PagedAdamW8bit` -> training.optimizer
"""

from __future__ import annotations

from typing import Any

from admission.detect.draft import Draft
from admission.detect.flags import Flag

_NAMES = {
    "decoupledadamw": "adamw",
    "decoupled_adamw": "adamw",
    "decoupledlionw": "lion",
    "decoupled_lionw": "lion",
    "decoupledsgdw": "sgd",
    "fusedadam": "adam",
    "fused_adam": "adam",
    "fusedadamw": "adamw",
    "cpuadam": "adam",
    "cpu_adam": "adam",
    "deepspeedcpuadam": "adam",
}
_FUSED = ("fusedadam", "fused_adam", "fusedadamw")
_BITS = (("8bit", 8), ("_8bit", 8))


def optimizer_of_class(name: str) -> dict[str, Any]:
    """Return the optimizer of a class, of whichever package."""
    tail = name.rpartition(".")[2].lower()
    found: dict[str, Any] = {}
    if tail.startswith("paged"):
        tail = tail.removeprefix("paged").lstrip("_")
        found["paged"] = True
    for ending, bits in _BITS:
        if tail.endswith(ending):
            tail = tail.removesuffix(ending).rstrip("_")
            found["bits"] = bits
    if tail in _FUSED:
        found["fused"] = True
    plain = "".join(char for char in _NAMES.get(tail, tail) if char.isalnum() or char in "_.+-")
    return {"name": plain[:64] or "other", **found}


def put_optimizer_class(draft: Draft, flag: Flag | None, *, fused: Flag | None = None) -> None:
    """Set the optimizer by its class; *fused* is a switch beside it."""
    text = draft.word("training.optimizer", flag)
    if flag is None or text is None:
        return
    document = optimizer_of_class(text)
    if fused is not None and fused.is_on:
        document["fused"] = True
    draft.put("training.optimizer", document, flag.source)
