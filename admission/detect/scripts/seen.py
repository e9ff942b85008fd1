"""A training script that is seen, in a ConfigMap or written by the command line itself.

    its calls of transformers, trl and peft -> JobSpec

`AutoModelFor….from_pretrained(X)` is the model, `TrainingArguments(…)` or `DataLoader(…)` have the
batch. Only literals and variables of the environment count; the rest of the script is not
understood, so nobody is refused on it. Not read: scripts with several models, Unsloth's patches,
TRL's other trainers.
Source: transformers 5.24.0 `training_args.py`, trl v1.9.0 `sft_config.py`, peft 0.18
`tuners/lora/config.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from admission.codes import ReasonCode
from admission.detect.budget import Budget
from admission.detect.configs import document_flags
from admission.detect.draft import SHARDED_HINT, Draft, annotation_hint
from admission.detect.files import File, Files
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.python_calls import Argument, CallSite, call_sites
from admission.detect.python_literals import UNKNOWN
from admission.detect.scope import OPEN
from admission.detect.scripts.adapters import put_bitsandbytes, put_lora
from admission.detect.scripts.family import Call, Family, Match
from admission.detect.scripts.hf_arguments import (
    put_batches,
    put_checkpoints,
    put_optim,
    put_training_arguments,
    with_trainer,
)
from admission.detect.scripts.hf_flags import OPTIONS
from admission.detect.scripts.hf_models import put_model
from admission.detect.scripts.hf_precision import put_precision
from admission.detect.scripts.hf_sharing import put_sharing
from admission.detect.scripts.strangers import ADAPTER_HINT
from admission.detect.words import words

_TASKS: Mapping[str, str] = {
    "ForCausalLM": "causal-lm",
    "ForMaskedLM": "masked-lm",
    "ForSeq2SeqLM": "seq2seq-lm",
    "ForSequenceClassification": "sequence-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForImageClassification": "image-classification",
}
_MODEL = re.compile(r"(^|\.)(AutoModel|\w+For[A-Z]\w+|\w+Model)$")
_ADAPTED = ("Peft", "AutoPeft")
"""Classes that put an adapter that is stored elsewhere on a model."""
_ADAPTERS = frozenset(
    words(
        "LoraConfig get_peft_model PrefixTuningConfig PromptTuningConfig PromptEncoderConfig "
        "IA3Config AdaLoraConfig LoHaConfig LoKrConfig OFTConfig BOFTConfig VeraConfig "
        "prepare_model_for_kbit_training"
    )
)
_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig")
_OTHER_TRAINERS = re.compile(
    r"\b(FastLanguageModel|FastModel|FastVisionModel|DPOTrainer|GRPOTrainer|PPOTrainer|KTOTrainer|"
    r"ORPOTrainer|RewardTrainer|RLOOTrainer|GKDTrainer)\b"
)
_SHARDING = re.compile(
    r"\b(FullyShardedDataParallel|fully_shard|deepspeed\.initialize|ZeroRedundancyOptimizer|"
    r"parallelize_module|FSDP)\s*\("
)
_FREEZING = re.compile(r"requires_grad(_\(|\s*=)\s*False")
_MIXING = re.compile(r"\bautocast\b|\bGradScaler\b|\bAccelerator\s*\(")
_LORA = {"r": "lora_r", "target_modules": "lora_target_modules"}
_BITS = {"bnb_4bit_use_double_quant": "use_bnb_nested_quant"}
_OPTIMIZERS = {"AdamW": "adamw_torch", "SGD": "sgd", "Adafactor": "adafactor"}
_CALLS = frozenset(
    words("from_pretrained SFTTrainer DataLoader BitsAndBytesConfig gradient_checkpointing_enable")
) | {*_ARGUMENTS, *_ADAPTERS, *_OPTIMIZERS}
_BATCH = "per_device_train_batch_size"
_LENGTHS = ("max_length", "max_seq_length")
_SPELLINGS = {"model_name_or_path": "from_pretrained"}
_LOOP_SPELLINGS = {_BATCH: "DataLoader batch_size", "optim": "optimizer"}
"""How the file has what the Trainer would call otherwise."""
_OPEN = (
    "training.optimizer",
    "training.gradientCheckpointing",
    "training.gradientAccumulationSteps",
    "training.precision",
)
"""Where a script's own silence is no choice of the Trainer's default."""


@dataclass(slots=True)
class _Found:
    """What the calls say, by the names of the Trainer's flags."""

    values: dict[str, Argument] = field(default_factory=dict)
    task: str = ""
    uses_trainer: bool = False
    uses_adapter: bool = False
    is_supervised_tuning: bool = False


def seen_family(invocation: Invocation, file: File, files: Files, budget: Budget) -> Family | None:
    """Return the family of the script of *invocation*, the *file*, if it can be read.

    It takes its length from the *budget* for scripts; a longer one is not read.
    """
    text = file.text or ""
    if ".from_pretrained(" not in text:
        return None
    if len(text) > budget.script or _OTHER_TRAINERS.search(text):
        return None
    budget.read_script(len(text))
    sites = call_sites(text, _CALLS, lambda name: _variable(invocation, name))
    if sites is None:
        return None
    found = _found(sites)
    if found is None:
        return None
    flags = _flags(found, invocation, file.source)

    def read(call: Call, draft: Draft) -> None:
        files.read(invocation.program.text, directory=invocation.directory)
        _read(call, draft, found, text)

    return Family(
        name=f"a script that is seen ({file.source})",
        flags=lambda _invocation: flags,
        match=lambda _invocation, _flags: Match.FLAGS,
        read=read,
    )


def other_trainer(text: str) -> str:
    """Return the trainer that keeps the script *text* from being read, or nothing."""
    found = _OTHER_TRAINERS.search(text)
    return found.group() if found is not None else ""


def _variable(invocation: Invocation, name: str) -> object:
    words = invocation.variables.get(name)
    if words is None:
        return UNKNOWN if OPEN in invocation.variables else None
    return words[0].text if len(words) == 1 and words[0].is_known else UNKNOWN


def _found(sites: list[CallSite]) -> _Found | None:
    """Return what *sites* say of a training, or None if they name no batch or several models."""
    found = _Found()
    models: list[Argument] = []
    loaders: list[Argument] = []
    for site in sites:
        if site.name == "from_pretrained" and _is_model(site.owner):
            models.append(site.keywords.get("pretrained_model_name_or_path") or site.first or _NO)
            _take(found, site, ("torch_dtype", "dtype", "load_in_4bit", "load_in_8bit", "revision"))
            last = site.owner.rpartition(".")[2]
            found.task = next((task for end, task in _TASKS.items() if last.endswith(end)), "")
        elif site.name in _ARGUMENTS:
            found.uses_trainer = True
            found.is_supervised_tuning |= site.name == "SFTConfig"
            _take(found, site, tuple(OPTIONS.names))
        elif site.name == "SFTTrainer":
            found.is_supervised_tuning = found.uses_trainer = True
            _take(found, site, ("max_seq_length", "packing"))
        elif site.name == "DataLoader" and "batch_size" in site.keywords:
            loaders.append(site.keywords["batch_size"])
        elif site.name == "from_pretrained" and _is_adapted(site.owner):
            found.uses_adapter = True
        elif site.name in _ADAPTERS:
            found.uses_adapter = True
            _take(found, site, ("lora_alpha", "lora_dropout", *_LORA), _LORA)
        elif site.name == "BitsAndBytesConfig":
            _take(found, site, ("load_in_4bit", "load_in_8bit", *_BITS), _BITS)
            _take(found, site, ("bnb_4bit_quant_type", "bnb_4bit_compute_dtype"))
        elif site.name in _OPTIMIZERS and "optim" not in found.values:
            found.values["optim"] = Argument(value=_OPTIMIZERS[site.name])
        elif site.name == "gradient_checkpointing_enable":
            found.values["gradient_checkpointing"] = Argument(value=True)
    if len({str(model.value) for model in models}) != 1 or not (found.uses_trainer or loaders):
        return None
    found.values["model_name_or_path"] = models[0]
    if not found.uses_trainer:
        distinct = {str(loader.value): loader for loader in loaders}
        found.values[_BATCH] = next(iter(distinct.values())) if len(distinct) == 1 else _NO
    return found


_NO = Argument(value=UNKNOWN)


def _is_model(owner: str) -> bool:
    last = owner.rpartition(".")[2]
    return _MODEL.search(owner) is not None and not last.startswith(_ADAPTED)


def _is_adapted(owner: str) -> bool:
    return owner.rpartition(".")[2].startswith(_ADAPTED)


def _take(
    found: _Found, site: CallSite, names: tuple[str, ...], renamed: Mapping[str, str] | None = None
) -> None:
    for name in names:
        if name in site.keywords:
            found.values[(renamed or {}).get(name, name)] = site.keywords[name]


def _flags(found: _Found, invocation: Invocation, source: str) -> Flags:
    """Return what is known as flags; each says where it stands."""
    spellings = _SPELLINGS if found.uses_trainer else {**_SPELLINGS, **_LOOP_SPELLINGS}
    given: list[Flag] = []
    for name, argument in found.values.items():
        if argument.value is UNKNOWN:
            continue
        told_by = f"env {argument.variable} in {source}" if argument.variable else source
        path = f"{invocation.path}.command"
        (flag,) = document_flags({name: argument.value}, told_by=told_by, path=path).given
        given.append(replace(flag, spelling=spellings.get(name, name)))
    return Flags(given=tuple(given))


def _read(call: Call, draft: Draft, found: _Found, text: str) -> None:
    """Fill the draft."""
    script = call.invocation.name
    call = with_trainer(call, call.flags)
    draft.put("framework", "pytorch", f"{call.invocation.where} {script}")
    if found.task:
        draft.put("model.task", found.task, script)
    if found.is_supervised_tuning:
        draft.put("objective", "sft", script)
    put_model(call, draft)
    draft.integer("input.sequenceLength", call.flags.get(*_LENGTHS))
    put_precision(call, draft, is_trainer=found.uses_trainer)
    if found.uses_trainer:
        put_training_arguments(call, draft)
    else:
        put_batches(call, draft)
        put_optim(call, draft)
        put_checkpoints(call, draft)
    if found.uses_adapter:
        put_lora(draft, call.flags, source=f"{call.invocation.where} {script}")
    put_bitsandbytes(draft, call.flags)
    if found.uses_trainer:
        put_sharing(call, draft)
    _leave_open(draft, found, text)
    _note_unread(call, draft, found, text)
    draft.doubt(
        f"{call.origin}: {script:.80} is read by what it gives transformers; what else it does is "
        "not seen"
    )


def _leave_open(draft: Draft, found: _Found, text: str) -> None:
    """Leave out what the script may choose in a way that is not read."""
    unknown = {name for name, argument in found.values.items() if argument.value is UNKNOWN}
    if not found.uses_trainer or unknown & {"optim", "gradient_checkpointing", "bf16", "fp16"}:
        draft.forget_defaults(*_OPEN)
    if _MIXING.search(text) and not found.uses_trainer and isinstance(draft.document, dict):
        draft.document.get("training", {}).pop("precision", None)
        draft.sources.pop("training.precision", None)


def _note_unread(call: Call, draft: Draft, found: _Found, text: str) -> None:
    """Note gaps for what the script decides and its literals do not tell."""
    unknown = {name for name, argument in found.values.items() if argument.value is UNKNOWN}
    if _BATCH in unknown:
        draft.document.get("input", {}).pop("batchSize", None)
        draft.gap(
            "input.batchSize",
            code=ReasonCode.NO_BATCH,
            path=call.origin,
            reason=f"{call.invocation.name:.80} does not say its batch in a literal",
            hint=annotation_hint("input.batchSize"),
        )
    if _FREEZING.search(text) or (found.uses_adapter and draft.get("adapter.rank") is None):
        draft.gap(
            "adapter",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"which weights {call.invocation.name:.80} trains is not said in literals",
            hint=ADAPTER_HINT,
        )
    if _SHARDING.search(text) or unknown & {"deepspeed", "fsdp"}:
        draft.gap(
            "parallelism.strategy",
            code=ReasonCode.UNSUPPORTED,
            path=call.origin,
            reason=f"{call.invocation.name:.80} shards its state in a way that is not read",
            hint=SHARDED_HINT,
        )
