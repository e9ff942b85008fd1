"""In which numbers a transformers model is held and trained.

    dtype it is loaded in, mixed precision -> training.precision

Loaded in 16 bits, mixed precision adds no fp32 copy: Trainer trains the 16-bit weights themselves.
transformers 5 loads a checkpoint in the dtype it is stored in, older versions in fp32.
Source: transformers 5.24.0 `modeling_utils.py` from_pretrained, `training_args.py`.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.scripts.adapters import dtype_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.stored import stored_dtype
from admission.detect.versions import is_before

_PATH = "training.precision"


def put_precision(call: Call, draft: Draft, *, is_trainer: bool) -> None:
    """Set the precision; nothing if neither flags nor the checkpoint tell it."""
    flags = call.flags
    mixed, mixed_source = _mixed(call, draft, is_trainer=is_trainer)
    weights, source = _weights(call, draft)
    if weights in ("bf16", "fp16"):
        draft.put(_PATH, weights, mixed_source if weights == mixed else source)
    elif mixed:
        draft.put(_PATH, f"amp-{mixed}", mixed_source)
    elif weights == "fp32":
        tf32 = flags.setting("tf32")
        if tf32 is not None and tf32.is_on:
            draft.put(_PATH, "tf32", tf32.source)
        else:
            draft.put(_PATH, "fp32", source)


def _mixed(call: Call, draft: Draft, *, is_trainer: bool) -> tuple[str | None, str]:
    """Return the lower dtype of mixed precision and where it is said."""
    flags = call.flags
    names = ("fp16", "bf16") if flags.has("fp16") and not flags.has("bf16") else ("bf16", "fp16")
    for name in names:
        flag = flags.setting(name)
        if is_trainer and flag is not None and flag.is_on:
            return name, flag.source
    flag = call.invocation.launch.precision or flags.setting("mixed_precision")
    if flag is None or flag.value is None:
        return None, ""
    text = draft.word(_PATH, flag)
    if text in ("bf16", "fp16"):
        return text, flag.source
    if text == "fp8":
        draft.gap(
            _PATH,
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} fp8 is not read yet",
            hint=annotation_hint(_PATH),
        )
    return None, ""


def _weights(call: Call, draft: Draft) -> tuple[str | None, str]:
    """Return the dtype the weights are loaded in and what says so."""
    flag: Flag | None = call.flags.setting("torch_dtype", "dtype")
    dtype = dtype_of(flag)
    if flag is not None and dtype is not None:
        return dtype, flag.source
    if flag is not None and flag.value is not None and not flag.value.is_known:
        draft.word(_PATH, flag)
        return None, ""
    is_old = is_before(draft.known("runtime.libraries.transformers"), (5, 0))
    if is_old and flag is None:
        return "fp32", source_of_default("transformers before 5")
    if draft.get("model.config"):
        return "fp32", source_of_default("transformers")
    return stored_dtype(call, draft)
