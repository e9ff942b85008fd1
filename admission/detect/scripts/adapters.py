"""Adapters and quantised bases, by the names that a program has for them.

    flags, names -> adapter, quantization in the draft

Source: peft 0.21.2 `tuners/lora/config.py`, `utils/other.py` prepare_model_for_kbit_training;
bitsandbytes' schemes as transformers 5.24.0 `utils/quantization_config.py` takes them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags

ALL_LINEAR = "all-linear"
"""peft's word for every linear layer but the output's."""
MAX_MODULES = 256
_MODULE = re.compile(r"[\w.]+(-[\w.]+)*")
_DTYPES = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp32": "fp32",
    "float": "fp32",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraNames:
    """What a program calls the parts of a LoRA configuration."""

    rank: str = "lora_r"
    alpha: str = "lora_alpha"
    dropout: str = "lora_dropout"
    targets: str = "lora_target_modules"
    saved: str = "lora_modules_to_save"
    dora: str = "use_dora"
    rslora: str = "use_rslora"


LORA = LoraNames()


def put_lora(draft: Draft, flags: Flags, *, source: str, names: LoraNames = LORA) -> None:
    """Set a LoRA adapter, or DoRA where its switch is on; what nobody says is left out."""
    dora = flags.setting(names.dora)
    is_dora = dora is not None and dora.is_on
    draft.put("adapter", {}, source)
    draft.put(
        "adapter.type", "dora" if is_dora else "lora", dora.source if dora and is_dora else source
    )
    draft.integer("adapter.rank", flags.setting(names.rank))
    put_number(draft, "adapter.alpha", flags.setting(names.alpha))
    put_number(draft, "adapter.dropout", flags.setting(names.dropout), most=1.0)
    put_modules(draft, "adapter.targetModules", flags.setting(names.targets))
    put_modules(draft, "adapter.trainableModules", flags.setting(names.saved))
    rslora = flags.setting(names.rslora)
    if rslora is not None and rslora.is_on:
        draft.put("adapter.options.use_rslora", True, rslora.source)


def put_modules(draft: Draft, path: str, flag: Flag | None) -> None:
    """Set a list of modules: separate words, one list with commas, or one regular expression."""
    if flag is None or not flag.values:
        return
    if any(not word.is_known for word in flag.values):
        _gap(draft, path, flag, "is not resolved")
        return
    names = [name for word in flag.values for name in _modules(word.text)]
    if names and len(names) <= MAX_MODULES and all(len(name) <= 512 for name in names):
        draft.put(path, [ALL_LINEAR if name == "all" else name for name in names], flag.source)
    elif names:
        _gap(draft, path, flag, "is too long to be a list of modules")


def put_number(draft: Draft, path: str, flag: Flag | None, *, most: float = 1e6) -> None:
    """Set a number from 0 to *most*; one that is not resolved or none is a gap."""
    word = flag.value if flag is not None else None
    if flag is None or word is None:
        return
    try:
        number = float(word.text) if word.is_known else -1.0
    except ValueError:
        number = -1.0
    if 0.0 <= number <= most:
        draft.put(path, number, flag.source)
    else:
        _gap(
            draft, path, flag, "is no number that is taken" if word.is_known else "is not resolved"
        )


def put_bits(draft: Draft, bits: int, *, source: str, scheme: str = "") -> None:
    """Set a base of *bits*: bitsandbytes' nf4 or int8, unless *scheme* says otherwise."""
    draft.put("quantization", {}, source)
    draft.put("quantization.bits", bits, source)
    draft.put("quantization.scheme", scheme or ("nf4" if bits == 4 else "int8"), source)


def put_bitsandbytes(
    draft: Draft,
    flags: Flags,
    *,
    prepare: str = "",
    four: str = "load_in_4bit",
    eight: str = "load_in_8bit",
    scheme: str = "bnb_4bit_quant_type",
    nested: str = "use_bnb_nested_quant",
    compute: str = "bnb_4bit_compute_dtype",
) -> bool:
    """Set a base loaded in 4 or 8 bits; return whether it is.

    *prepare*: what the program does to it before training, as the spec calls it; empty: not told.
    """
    flag = next((f for f in map(flags.setting, (four, eight)) if f is not None and f.is_on), None)
    if flag is None:
        return False
    is_four = flag.name == four
    put_bits(draft, 4 if is_four else 8, source=flag.source)
    if is_four:
        _choice(draft, "quantization.scheme", flags.setting(scheme), {"nf4": "nf4", "fp4": "fp4"})
        _choice(draft, "quantization.computeDtype", flags.setting(compute), _DTYPES)
        double = flags.setting(nested)
        if double is not None:
            draft.put("quantization.doubleQuant", double.is_on, double.source)
    if prepare:
        draft.put("quantization.prepare", prepare, flag.source)
    return True


def dtype_of(flag: Flag | None) -> str | None:
    """Return the dtype that *flag* names (`torch.bfloat16`, `bf16`), or None."""
    word = flag.value if flag is not None else None
    if word is None or not word.is_known:
        return None
    return _DTYPES.get(word.text.lower().removeprefix("torch."))


def note_other_adapter(draft: Draft, flag: Flag, *, what: str) -> None:
    """Note an adapter or a partly frozen model whose extent is not told."""
    draft.gap(
        "adapter",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling:.60} {what}",
        hint="state it in the annotation vramgate.dev/spec: adapter: {type: …}, or adapter: null "
        "if every weight is trained",
    )


def _modules(text: str) -> list[str]:
    parts = text.strip().strip("[]").replace(",", " ").split()
    plain = [part.strip("'\"") for part in parts]
    return plain if all(_MODULE.fullmatch(part) for part in plain) else [text.strip()]


def _choice(draft: Draft, path: str, flag: Flag | None, values: dict[str, str]) -> None:
    word = flag.value if flag is not None else None
    if flag is None or word is None:
        return
    value = values.get(word.text.lower().removeprefix("torch."))
    if value is not None and word.is_known:
        draft.put(path, value, flag.source)
    elif word.text != "auto":
        _gap(draft, path, flag, "is not resolved" if not word.is_known else "is not known")


def _gap(draft: Draft, path: str, flag: Flag, reason: str) -> None:
    word = flag.values[0] if flag.values else None
    draft.gap(
        path.partition(".")[0],
        code=word.code if word is not None and not word.is_known else ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling:.60} {word.text if word else '':.80} {reason}",
        hint=annotation_hint(path),
    )
