"""Scripts with the flags of transformers' Trainer, the library's examples among them.

    `--model_name_or_path X --per_device_train_batch_size N …` -> JobSpec

Source: transformers 5.24.0 `training_args.py`; huggingface/transformers@00d481d1 examples/pytorch.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.names import hub_id
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.hf_doubts import note_doubts
from admission.detect.scripts.hf_flags import OPTIONS, is_on_cpu
from admission.detect.scripts.hf_options import put_adapter, put_length, put_parallelism
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.optimizers import (
    DEFAULT,
    DEFAULT_BEFORE_2_8,
    optimizer_of,
)
from admission.detect.scripts.tasks import (
    EXAMPLES,
    GLUE_LABELS,
    TRL_FLAGS,
    TRL_SCRIPTS,
    Example,
)
from admission.detect.versions import is_before
from estimator.spec import Task

SCRIPT = "Hugging Face Trainer"
_BATCH = 8
_NO_TRAINER = "_no_trainer"
_UNKNOWN = Example(task=None)
_BATCH_FLAGS = ("per_device_train_batch_size", "per_gpu_train_batch_size")


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: an example script, or the Trainer's own name for the batch."""
    if _stem(invocation) in EXAMPLES and flags.has(
        "model_name_or_path", "model_type", "config_name", *_BATCH_FLAGS
    ):
        return Match.PLACE
    if invocation.launch.launcher == "trl" and invocation.is_module:
        return Match.PLACE
    return Match.FLAGS if flags.has(*_BATCH_FLAGS) else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    example = EXAMPLES.get(_stem(call.invocation), _UNKNOWN)
    script = call.invocation.name
    draft.put("framework", "pytorch", f"{call.invocation.where} {script}")
    _model(call, draft, example)
    _batch(call, draft)
    put_length(call.flags, draft, example, script)
    put_precision(call, draft, is_trainer=not _is_plain_loop(call))
    _training(call, draft)
    put_adapter(call.flags, draft)
    put_parallelism(call, draft)
    _switches(call.flags, draft)
    _purpose(call, draft, example)
    note_doubts(call, draft, is_own=example.task is not None)
    if example.task is Task.SPEECH_RECOGNITION:
        draft.doubt(f"{call.origin}: what {script} feeds the model is not read")


def _purpose(call: Call, draft: Draft, example: Example) -> None:
    """Note what makes this another kind of run than supervised training with the Trainer."""
    flags, name = call.flags, call.invocation.name
    is_trl = _stem(call.invocation) in TRL_SCRIPTS or call.invocation.launch.launcher == "trl"
    is_other = flags.is_on("do_eval", "do_predict") or flags.has("do_train")
    may_idle = example.task is not None or (is_other and not is_trl)
    if may_idle and not _is_plain_loop(call) and not flags.is_on("do_train"):
        draft.gap(
            "phase",
            "input.batchSize",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"{name} trains only with --do_train; evaluation alone is not read yet"
            if example.task is not None
            else f"whether {name} trains without --do_train is not known",
            hint="give --do_train, or state it in the annotation vramgate.dev/spec: "
            "{phase: …, input: {batchSize: …}}",
        )
    if _stem(call.invocation) in TRL_SCRIPTS or flags.has(*TRL_FLAGS):
        draft.gap(
            "objective",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"{name} has flags of TRL's trainers, whose defaults are not read yet",
            hint="state it in the annotation vramgate.dev/spec: objective: sft",
        )
    if call.invocation.launch.launcher == "trl" and call.gpus > 1:
        draft.gap(
            "parallelism.strategy",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason="how trl shares several GPUs is in accelerate's configuration, not read yet",
            hint="state it in the annotation vramgate.dev/spec: parallelism: {strategy: ddp}",
        )


def _stem(invocation: Invocation) -> str:
    return invocation.name.removesuffix(".py").removesuffix(_NO_TRAINER)


def _is_plain_loop(call: Call) -> bool:
    return call.invocation.name.removesuffix(".py").endswith(_NO_TRAINER)


def _model(call: Call, draft: Draft, example: Example) -> None:
    """Set the model: from its checkpoint, or from a configuration for training from scratch."""
    flags = call.flags
    flag = flags.get("model_name_or_path") or flags.get("config_name")
    for teacher in ("teacher_model", "teacher_model_name_or_path", "reward_model_path"):
        other = flags.get(teacher)
        if other is not None:
            draft.gap(
                "model.companions",
                code=ReasonCode.UNSUPPORTED,
                path=other.field,
                reason=f"{other.spelling} puts a second model on the card, which is not read yet",
                hint="frozen models beside the trained one are not estimated yet",
            )
    if example.task is not None:
        draft.put("model.task", example.task.value, call.invocation.name)
    text = draft.word("model.name", flag)
    if flag is not None and text is not None:
        name = hub_id(text)
        if name is not None:
            draft.put("model.source", "huggingface", call.invocation.name)
            draft.put("model.name", name, flag.source)
            _details(call, draft)
        else:
            draft.gap(
                "model.name",
                code=ReasonCode.NO_MODEL,
                path=flag.field,
                reason=f"{flag.spelling} {text:.120} is a path that only the container sees",
                hint="name the Hub id, or the architecture, in the annotation vramgate.dev/spec: "
                "model: {source: huggingface, name: ORG/MODEL}",
            )
    elif flag is None:
        _from_scratch(call, draft)


def _from_scratch(call: Call, draft: Draft) -> None:
    """Set the model by `--model_type`: that type's default configuration, with overrides."""
    flag = call.flags.get("model_type")
    model_type = draft.word("model.name", flag)
    if flag is None or model_type is None or call.flags.has("config_overrides"):
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason=f"{call.invocation.name} names no model",
            hint="give --model_name_or_path ORG/MODEL, or in the annotation vramgate.dev/spec "
            "model: {source: huggingface, name: ORG/MODEL}",
        )
        return
    draft.put("model.source", "huggingface", call.invocation.name)
    draft.put("model.name", model_type, flag.source)
    draft.put("model.config", {"model_type": model_type}, flag.source)


def _details(call: Call, draft: Draft) -> None:
    flags = call.flags
    revision = flags.get("model_revision")
    if revision is not None and revision.value is not None and revision.value.is_known:
        draft.put("model.revision", revision.value.text, revision.source)
    attention = flags.get("attn_implementation")
    text = attention.value.text if attention is not None and attention.value is not None else ""
    if attention is not None and text in ("eager", "sdpa", "flash_attention_2"):
        draft.put("model.attention", text, attention.source)
    elif attention is not None and text in ("flex_attention", "flex"):
        draft.put("model.attention", "flex", attention.source)
    labels = flags.get("task_name")
    glue = labels.value.text.lower() if labels is not None and labels.value is not None else ""
    if _stem(call.invocation) == "run_glue" and labels is not None and glue in GLUE_LABELS:
        draft.put("model.numLabels", GLUE_LABELS[glue], labels.source)
        if glue == "stsb":
            draft.put("model.task", "regression", labels.source)


def _batch(call: Call, draft: Draft) -> None:
    flags = call.flags
    if not draft.integer("input.batchSize", flags.get(*_BATCH_FLAGS)):
        draft.put("input.batchSize", _BATCH, source_of_default(SCRIPT))
    finder = flags.get("auto_find_batch_size")
    if finder is not None and finder.is_on:
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=finder.field,
            reason=f"{finder.spelling} halves the batch until it fits the card",
            hint="give --per_device_train_batch_size alone",
        )
    steps = flags.get("gradient_accumulation_steps")
    if not draft.integer("training.gradientAccumulationSteps", steps):
        draft.put("training.gradientAccumulationSteps", 1, source_of_default(SCRIPT))


def _training(call: Call, draft: Draft) -> None:
    flags = call.flags
    flag = flags.get("optim")
    if _is_plain_loop(call):
        name, source = "adamw_torch", source_of_default(call.invocation.name)
    else:
        is_old = is_before(draft.known("frameworkVersion"), (2, 8))
        name = DEFAULT_BEFORE_2_8 if is_old else DEFAULT
        source = source_of_default(SCRIPT)
        old = flags.get("adafactor")
        if old is not None and old.is_on:
            name, source = "adafactor", old.source
        default = source_of_default(SCRIPT)
        draft.put("training.keepOutputs", False, default)
        draft.put("training.clipGradNorm", not _is_zero(flags.get("max_grad_norm")), default)
        draft.put("training.useCache", flags.is_on("use_cache"), default)
        _evaluation(flags, draft)
    text = draft.word("training.optimizer", flag) if flag is not None else name
    if text is not None:
        draft.put("training.optimizer", optimizer_of(text), flag.source if flag else source)
    checkpointing = flags.get("gradient_checkpointing", "activation_checkpointing")
    is_on = checkpointing is not None and checkpointing.is_on
    draft.put(
        "training.gradientCheckpointing",
        "full" if is_on else "none",
        checkpointing.source if checkpointing is not None else source_of_default(SCRIPT),
    )


def _evaluation(flags: Flags, draft: Draft) -> None:
    """Set the evaluation's own batch if the job evaluates: it may need more than a step."""
    strategy = flags.get("eval_strategy", "evaluation_strategy")
    is_asked = strategy is not None and strategy.value is not None and strategy.value.text != "no"
    if not (flags.is_on("do_eval") or is_asked):
        return
    batch = flags.get("per_device_eval_batch_size", "per_gpu_eval_batch_size")
    if not draft.integer("training.evaluation.batchSize", batch):
        source = source_of_default(SCRIPT)
        draft.put("training.evaluation.batchSize", _BATCH, source)


def _switches(flags: Flags, draft: Draft) -> None:
    for name, path, value in (
        ("torch_compile", "training.compile", True),
        ("use_liger_kernel", "training.kernels", "liger"),
        ("use_liger", "training.kernels", "liger"),
    ):
        flag = flags.get(name)
        if flag is not None and flag.is_on:
            draft.put(path, value, flag.source)
    smoothing = flags.get("label_smoothing_factor")
    if smoothing is not None and not _is_zero(smoothing) and smoothing.value is not None:
        try:
            draft.put("training.labelSmoothing", float(smoothing.value.text), smoothing.source)
        except ValueError:
            draft.warnings.append(f"{smoothing.field}: {smoothing.spelling} is no number")


def _is_zero(flag: Flag | None) -> bool:
    text = flag.value.text if flag is not None and flag.value is not None else ""
    return bool(text) and not text.strip("0.")


FAMILY = Family(
    name=SCRIPT,
    flags=lambda invocation: invocation.flags(OPTIONS),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
)
