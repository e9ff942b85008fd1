"""What transformers' TrainingArguments say of memory, whoever's program takes them.

    Call (flags over the program's defaults) -> batch, optimizer, checkpointing, evaluation, …

Source: transformers 5.24.0 `training_args.py`, `trainer.py`, `trainer_optimizer.py`.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.configs import defaults_of
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.adapters import put_number
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.nested import mapping_text
from admission.detect.scripts.optimizers import DEFAULT, DEFAULT_BEFORE_2_8, optimizer_of
from admission.detect.versions import is_before

TRAINER = "Hugging Face Trainer"
_DEFAULT = source_of_default(TRAINER)
_BATCH = ("per_device_train_batch_size", "per_gpu_train_batch_size")
_EVALUATION = ("per_device_eval_batch_size", "per_gpu_eval_batch_size")
_DEFAULTS = Flags(
    defaults=defaults_of(
        {
            "per_device_train_batch_size": 8,
            "per_device_eval_batch_size": 8,
            "gradient_accumulation_steps": 1,
            "gradient_checkpointing": False,
            "max_grad_norm": 1.0,
        },
        told_by=_DEFAULT,
    )
)
_CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")
_ATTENTION = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash_attention_2",
    "kernels-community/flash-attn": "flash_attention_2",
    "kernels-community/flash-attn2": "flash_attention_2",
    "flex_attention": "flex",
    "flex": "flex",
}
_NEWER = ("flash_attention_3", "flash-attn3", "flash_attention_4")
"""They keep what flash attention 2 keeps: outputs and one number a row."""


def with_trainer(call: Call, flags: Flags) -> Call:
    """Return *call* with *flags*, and under them what the Trainer takes by default."""
    return replace(call, flags=flags.over(_DEFAULTS))


def put_training_arguments(call: Call, draft: Draft) -> None:
    """Set all of it but model, length, precision and sharing."""
    put_batches(call, draft)
    put_optim(call, draft)
    put_habits(call, draft)
    put_checkpoints(call, draft)
    put_evaluation(call, draft)
    put_switches(call, draft)


def put_batches(call: Call, draft: Draft) -> None:
    """Set batch and accumulation; a batch that the program searches itself is a gap."""
    flags = call.flags
    draft.integer("input.batchSize", flags.setting(*_BATCH))
    finder = flags.setting("auto_find_batch_size")
    if finder is not None and finder.is_on:
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=finder.field,
            reason=f"{finder.spelling} halves the batch until it fits the card",
            hint="give --per_device_train_batch_size alone",
        )
    draft.integer(
        "training.gradientAccumulationSteps", flags.setting("gradient_accumulation_steps")
    )


def put_optim(call: Call, draft: Draft, *, name: str | None = None, source: str = _DEFAULT) -> None:
    """Set the optimizer by `--optim`, else the Trainer's, or *name* if the program has its own."""
    flag = call.flags.setting("optim")
    text = draft.word("training.optimizer", flag)
    if flag is not None:
        if text is not None:
            draft.put("training.optimizer", optimizer_of(text), flag.source)
        return
    old = call.flags.setting("adafactor")
    if old is not None and old.is_on:
        draft.put("training.optimizer", optimizer_of("adafactor"), old.source)
        return
    if name is None:
        is_old = is_before(draft.known("frameworkVersion"), (2, 8))
        name = DEFAULT_BEFORE_2_8 if is_old else DEFAULT
    draft.put("training.optimizer", optimizer_of(name), source)


def put_habits(call: Call, draft: Draft) -> None:
    """Set what the Trainer's loop keeps and clips."""
    norm = call.flags.setting("max_grad_norm")
    cache = call.flags.setting("use_cache")
    draft.put("training.keepOutputs", False, _DEFAULT)
    draft.put("training.clipGradNorm", not is_zero(norm), norm.source if norm else _DEFAULT)
    draft.put(
        "training.useCache",
        cache is not None and cache.is_on,
        cache.source if cache is not None else _DEFAULT,
    )


def put_checkpoints(call: Call, draft: Draft) -> None:
    """Set gradient checkpointing, with its kind where that is told."""
    flag = call.flags.setting(*_CHECKPOINTING)
    if flag is None:
        return
    draft.put("training.gradientCheckpointing", "full" if flag.is_on else "none", flag.source)
    reentrant = call.flags.setting("gradient_checkpointing_kwargs.use_reentrant")
    words = mapping_text(call.flags.setting("gradient_checkpointing_kwargs")) or {}
    value = reentrant.is_on if reentrant is not None else words.get("use_reentrant")
    if flag.is_on and isinstance(value, bool):
        draft.put(
            "training.gradientCheckpointing", {"mode": "full", "reentrant": value}, flag.source
        )


def put_evaluation(call: Call, draft: Draft) -> None:
    """Set the evaluation's own batch if the job evaluates: it may need more than a step."""
    strategy = call.flags.setting("eval_strategy", "evaluation_strategy")
    text = strategy.value.text if strategy is not None and strategy.value is not None else "no"
    if call.flags.is_on("do_eval") or text not in ("no", "false"):
        draft.integer("training.evaluation.batchSize", call.flags.setting(*_EVALUATION))


def put_switches(call: Call, draft: Draft) -> None:
    """Set compilation, fused kernels, label smoothing and activations on the host."""
    for name, path, value in (
        ("torch_compile", "training.compile", True),
        ("use_liger_kernel", "training.kernels", "liger"),
        ("use_liger_kernel", "training.loss", "fused"),
        ("use_liger", "training.kernels", "liger"),
        ("use_liger", "training.loss", "fused"),
        ("activation_offloading", "training.activationOffload", True),
    ):
        flag = call.flags.setting(name)
        if flag is not None and flag.is_on:
            draft.put(path, value, flag.source)
    smoothing = call.flags.setting("label_smoothing_factor")
    if not is_zero(smoothing):
        put_number(draft, "training.labelSmoothing", smoothing)


def put_attention(draft: Draft, flag: Flag | None) -> None:
    """Set the attention that is asked for by transformers' name; one we do not know is a gap."""
    text = draft.word("model.attention", flag)
    if flag is None or text is None:
        return
    known = _ATTENTION.get(text.lower())
    if known is None and text.lower().endswith(_NEWER):
        known = "flash_attention_2"
        draft.warnings.append(f"{flag.field}: {text:.60} is estimated as flash attention 2")
    if known is not None:
        draft.put("model.attention", known, flag.source)
        return
    draft.gap(
        "model.attention",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling} {text:.60} is an attention that is not modelled",
        hint="state the nearest in the annotation vramgate.dev/spec: "
        "model: {attention: flash_attention_2}",
    )


def is_zero(flag: Flag | None) -> bool:
    """Return whether *flag* is given and nothing but zeros."""
    text = flag.value.text if flag is not None and flag.value is not None else ""
    return bool(text) and not text.strip("0.")
