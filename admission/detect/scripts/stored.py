"""The dtype that a checkpoint is stored in, as the spec calls it.

Call, Draft (its model) -> bf16 | fp16 | fp32 and what says so
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.hub import stored_model
from admission.detect.scripts.family import Call

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def stored_dtype(call: Call, draft: Draft) -> tuple[str | None, str]:
    """Return the dtype the model's weights have on the Hub; None where nobody knows it."""
    name, revision = draft.known("model.name"), draft.known("model.revision")
    if not isinstance(name, str) or not isinstance(revision, str | None):
        return None, ""
    stored = stored_model(name, revision, call.files.lookup)
    dtype = _DTYPES.get(stored.dtype)
    return (dtype, "stored dtype of the checkpoint") if dtype is not None else (None, "")
