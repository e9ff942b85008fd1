"""Horovod's fusion buffer: gradients are packed into it before they are reduced.

    JobSpec -> bytes a rank keeps for it

`HOROVOD_FUSION_THRESHOLD` sets it, in bytes; 0 turns packing off. Source: horovod
`docs/tensor-fusion.rst` (128 MB unless told otherwise; releases before 0.20 had 64).
Not modelled: autotuning of the threshold, several buffers at once.
"""

from __future__ import annotations

from estimator.frontends.notebook import Notebook
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.units import MIB

VARIABLE = "HOROVOD_FUSION_THRESHOLD"
DEFAULT = 128 * MIB


def fusion_bytes(spec: JobSpec, notebook: Notebook) -> int:
    """Return the bytes of the buffer, noting where they come from."""
    text = spec.runtime.env.get(VARIABLE, "")
    if text.isdigit():
        return int(text)
    notebook.assume(
        AssumptionCode.LIBRARIES,
        f"runtime.env.{VARIABLE}",
        f"{DEFAULT // MIB} MiB",
        "absent: Horovod packs gradients into a buffer of this size",
    )
    return DEFAULT
