"""Scripts with the flags of transformers' Trainer, the library's examples among them.

    `--model_name_or_path X --per_device_train_batch_size N …` -> JobSpec

Flags stand on the command line or, alone on it, in a JSON or YAML file (`run_clm.py args.json`).
Source: transformers 5.24.0 `training_args.py`, `hf_argparser.py`; huggingface/transformers@00d481d1
examples/pytorch.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.configs import defaults_of
from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.invocation import Invocation
from admission.detect.scripts.adapters import put_bitsandbytes, put_lora
from admission.detect.scripts.by_recipe import with_config
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.hf_arguments import (
    TRAINER,
    put_batches,
    put_checkpoints,
    put_optim,
    put_switches,
    put_training_arguments,
    with_trainer,
)
from admission.detect.scripts.hf_doubts import note_doubts
from admission.detect.scripts.hf_flags import OPTIONS, is_on_cpu
from admission.detect.scripts.hf_models import put_companion, put_model
from admission.detect.scripts.hf_options import put_length
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.hf_sharing import put_sharing
from admission.detect.scripts.tasks import EXAMPLES, GLUE_LABELS, TRL_FLAGS, TRL_SCRIPTS, Example
from estimator.spec import Task

SCRIPT = TRAINER
_NO_TRAINER = "_no_trainer"
_UNKNOWN = Example(task=None)
_BATCH_FLAGS = ("per_device_train_batch_size", "per_gpu_train_batch_size")
_TEACHERS = ("teacher_model", "teacher_model_name_or_path", "reward_model_path")
_PRECISION = "training.precision"
_OWN_CHOICES = (
    "training.optimizer",
    "training.gradientCheckpointing",
    "training.gradientAccumulationSteps",
)
_MODEL_CONFIG = Flags(
    defaults=defaults_of(
        {"lora_r": 16, "lora_alpha": 32, "lora_dropout": 0.05},
        told_by=source_of_default("trl ModelConfig"),
    )
)
_ARGUMENT_FILES = (".json", ".yaml", ".yml")


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: an example script, or the Trainer's own name for the batch."""
    is_example = _stem(invocation) in EXAMPLES
    if is_example and flags.has("model_name_or_path", "model_type", "config_name", *_BATCH_FLAGS):
        return Match.PLACE
    if is_example and argument_file(flags):
        return Match.PLACE
    return Match.FLAGS if flags.has(*_BATCH_FLAGS) else Match.NO


def may_claim(invocation: Invocation) -> bool:
    """Return whether it can be one: a quick look at the names of script and flags."""
    if invocation.launch.launcher == "trl":
        return False
    is_example = _stem(invocation) in EXAMPLES
    return is_example or any(name.startswith("per_") for name in invocation.spellings)


def argument_file(flags: Flags) -> str:
    """Return the file that holds all arguments: the only word of the command line, or nothing."""
    words = [word.text for word in flags.positional]
    is_alone = len(words) == 1 and not flags.given and words[0].endswith(_ARGUMENT_FILES)
    return words[0] if is_alone else ""


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    example = EXAMPLES.get(_stem(call.invocation), _UNKNOWN)
    script = call.invocation.name
    file = argument_file(call.flags)
    call = with_trainer(call, with_config(call, draft, None, path=file) if file else call.flags)
    draft.put("framework", "pytorch", f"{call.invocation.where} {script}")
    if example.task is not None:
        draft.put("model.task", example.task.value, script)
    put_model(call, draft)
    _labels(call, draft)
    _teachers(call, draft)
    put_length(call.flags, draft, example, script)
    put_precision(call, draft, is_trainer=not _is_plain_loop(call))
    _training(call, draft)
    _adapter(call, draft)
    put_sharing(call, draft)
    _purpose(call, draft, example)
    if example.task is None:
        _leave_open(draft)
    note_doubts(call, draft, is_own=example.task is not None)
    if example.task is Task.SPEECH_RECOGNITION:
        draft.doubt(f"{call.origin}: what {script} feeds the model is not read")


def _leave_open(draft: Draft) -> None:
    """Leave out what a script that is not known may set for itself where its flags are silent."""
    is_mixed = draft.get("training.masterWeights") or draft.get("parallelism.mixedPrecision")
    draft.forget_defaults(*_OWN_CHOICES, *(() if is_mixed else (_PRECISION,)))


def _purpose(call: Call, draft: Draft, example: Example) -> None:
    """Note what makes this another kind of run than supervised training with the Trainer."""
    flags, name = call.flags, call.invocation.name
    is_other = flags.is_on("do_eval", "do_predict") or flags.has("do_train")
    may_idle = example.task is not None or is_other
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
    if flags.has(*TRL_FLAGS) or _stem(call.invocation) in TRL_SCRIPTS:
        draft.gap(
            "objective",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"{name:.80} is called like one of TRL's trainers or has their flags; what it "
            "trains for is not told",
            hint="state it in the annotation vramgate.dev/spec: objective: sft",
        )


def _stem(invocation: Invocation) -> str:
    return invocation.name.removesuffix(".py").removesuffix(_NO_TRAINER)


def _is_plain_loop(call: Call) -> bool:
    return call.invocation.name.removesuffix(".py").endswith(_NO_TRAINER)


def _labels(call: Call, draft: Draft) -> None:
    flag = call.flags.setting("task_name")
    glue = flag.value.text.lower() if flag is not None and flag.value is not None else ""
    if _stem(call.invocation) == "run_glue" and flag is not None and glue in GLUE_LABELS:
        draft.put("model.numLabels", GLUE_LABELS[glue], flag.source)
        if glue == "stsb":
            draft.put("model.task", "regression", flag.source)


def _teachers(call: Call, draft: Draft) -> None:
    """Add the frozen models that a script has beside the trained one."""
    for name in _TEACHERS:
        put_companion(draft, call.flags.setting(name))


def _training(call: Call, draft: Draft) -> None:
    """Set what the Trainer's arguments say; the plain loops take only some of them."""
    if not _is_plain_loop(call):
        put_training_arguments(call, draft)
        return
    put_batches(call, draft)
    source = source_of_default(call.invocation.name)
    put_optim(call, draft, name="adamw_torch", source=source)
    put_checkpoints(call, draft)
    put_switches(call, draft)


def _adapter(call: Call, draft: Draft) -> None:
    """Set adapter and quantization by TRL's names for them, which many scripts take over.

    What they do to a quantised base before training is not told.
    """
    flags = call.flags.over(_MODEL_CONFIG)
    peft = flags.setting("use_peft")
    if peft is not None and peft.is_on:
        put_lora(draft, flags, source=peft.source)
    put_bitsandbytes(draft, flags)


FAMILY = Family(
    name=SCRIPT,
    flags=lambda invocation: invocation.flags(OPTIONS),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=may_claim,
)
