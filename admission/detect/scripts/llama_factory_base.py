"""The dtype and the bits of LLaMA-Factory's base model.

Call -> training.precision, quantization in the draft

Source: hiyouga/LLaMA-Factory@ff6d4d12 src/llamafactory/hparams/parser.py (compute_dtype),
src/llamafactory/model/adapter.py (init_adapter), model_utils/quantization.py.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.scripts.adapters import put_bits
from admission.detect.scripts.family import Call
from admission.detect.scripts.stored import stored_dtype
from admission.detect.scripts.verbs import number_of

_PATH = "training.precision"


def put_dtype(call: Call, draft: Draft) -> None:
    """Set the dtype of what is trained: fp32 beside bf16 or fp16 operations unless it is frozen."""
    flags = call.flags
    pure = flags.setting("pure_bf16")
    if pure is not None and pure.is_on:
        draft.put(_PATH, "bf16", pure.source)
        return
    is_frozen = bool(draft.get("adapter"))
    for name in ("bf16", "fp16"):
        flag = flags.setting(name)
        if flag is not None and flag.is_on:
            draft.put(_PATH, name if is_frozen else f"amp-{name}", flag.source)
            return
    dtype, source = stored_dtype(call, draft)
    if not is_frozen:
        draft.put(_PATH, "fp32", "default of LLaMA-Factory: trained weights in fp32")
    elif dtype is not None:
        draft.put(_PATH, dtype, source)


def put_base(call: Call, draft: Draft) -> None:
    """Set a base that bitsandbytes quantises while it is loaded; others are a gap."""
    flags = call.flags
    flag = flags.setting("quantization_bit")
    bits = number_of(flag)
    if flag is None or draft.word("quantization", flag) is None:
        return
    method = flags.setting("quantization_method")
    text = method.value.text.lower() if method is not None and method.value is not None else "bnb"
    if text not in ("bnb", "bitsandbytes") or bits not in (4, 8):
        draft.gap(
            "quantization",
            code=ReasonCode.UNSUPPORTED,
            path=flag.field,
            reason=f"{flag.spelling} {flag.value.text if flag.value else '':.20} by {text:.20} "
            "is not read yet",
            hint="state it in the annotation vramgate.dev/spec: quantization: {bits: …, scheme: …}",
        )
        return
    kind = flags.setting("quantization_type")
    scheme = kind.value.text if bits == 4 and kind is not None and kind.value is not None else ""
    put_bits(draft, bits, source=flag.source, scheme=scheme if scheme in ("nf4", "fp4") else "")
    double = flags.setting("double_quantization")
    if bits == 4 and double is not None:
        draft.put("quantization.doubleQuant", double.is_on, double.source)
    draft.put("quantization.prepare", "none", "default of LLaMA-Factory")
