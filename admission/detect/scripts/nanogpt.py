"""nanoGPT's train.py: GPT-2 by its dimensions, or a GPT-2 that is tuned further.

`train.py config/train_gpt2.py --batch_size=8` -> the draft

Source: the recipe `nanogpt`. Not modelled: layers without bias; a character vocabulary of one's own
(`meta.pkl` beside the data).
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.python_literals import UNKNOWN, events_of, read_module
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.verbs import number_of, put_architecture, put_batch
from admission.detect.words import Word

_NAME = "nanoGPT"
_TABLE = "nanogpt_configs"
_ROUNDED = 50304
"""GPT-2's vocabulary as train.py rounds it up."""
_PRECISIONS = {"bfloat16": "amp-bf16", "float16": "amp-fp16", "float32": "fp32"}
_STEPS = "training.gradientAccumulationSteps"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    for word in call.flags.positional:
        flags = flags.over(_configured(call, draft, word))
    _model(draft, flags)
    put_batch(call, draft, flags.setting("batch_size"))
    _accumulation(call, draft, flags)
    length = flags.setting("block_size")
    draft.integer("input.sequenceLength", length)
    _training(draft, flags)


def _configured(call: Call, draft: Draft, word: Word) -> Flags:
    """Return what the configuration file *word* sets: one of nanoGPT's own, or one that is seen."""
    field = f"{call.invocation.path}.{word.origin or 'args'}"
    if not word.is_known:
        return Flags()
    file = call.read_file(word.text)
    configs = load_table(_TABLE)["configs"]
    if file.text is None:
        own = next((values for name, values in configs.items() if word.text.endswith(name)), None)
        if own is not None:
            return document_flags(own, told_by=f"{_NAME} {word.text}", path=field)
    module = read_module(file.text) if file.text is not None else None
    if module is None:
        draft.gap(
            "model.name",
            "input.batchSize",
            code=ReasonCode.DOCUMENT,
            path=field,
            reason=f"{word.text:.120} {file.problem or 'is no Python that can be read'}",
            hint="put the file in a ConfigMap that the pod mounts, or "
            + annotation_hint("input.batchSize"),
        )
        return Flags()
    events_of(module, module.tree.body)
    known = {name: value for name, value in module.names.items() if value is not UNKNOWN}
    for name in _deciding_names() & (module.names.keys() - known.keys()):
        draft.doubt(f"{field}: {word.text:.80} computes {name}, which is not followed")
    return document_flags(known, told_by=file.source, path=field)


def _deciding_names() -> frozenset[str]:
    """Return the names whose value decides what is needed."""
    return frozenset(
        {"batch_size", "block_size", "n_layer", "n_head", "n_embd", "init_from", "dtype"}
    )


def _model(draft: Draft, flags: Flags) -> None:
    start = flags.setting("init_from")
    text = draft.word("model.name", start)
    if start is None or text is None:
        return
    if text.startswith("gpt2"):
        draft.put("model.source", "huggingface", start.source)
        draft.put("model.name", text, start.source)
        return
    if text != "scratch":
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=start.field,
            reason=f"{start.spelling} {text:.40} takes the dimensions from a checkpoint",
            hint=annotation_hint("model.name"),
        )
        return
    keys = {
        "n_layer": flags.setting("n_layer"),
        "n_head": flags.setting("n_head"),
        "n_embd": flags.setting("n_embd"),
        "n_positions": flags.setting("block_size"),
    }
    put_architecture(draft, "gpt2", keys, name="gpt2", source=start.source)
    draft.put("model.task", "causal-lm", start.source)
    _vocabulary(draft, flags.setting("dataset"))


def _vocabulary(draft: Draft, dataset: Flag | None) -> None:
    text = dataset.value.text if dataset is not None and dataset.value is not None else ""
    known = load_table(_TABLE)["vocabularies"].get(text)
    source = dataset.source if dataset is not None else source_of_default(_NAME)
    draft.put("model.config.vocab_size", known or _ROUNDED, source)
    if known is None and dataset is not None:
        draft.doubt(
            f"{dataset.field}: a meta.pkl beside the data {text:.60} sets another vocabulary than "
            f"{_ROUNDED}",
            "model.config.vocab_size",
        )


def _accumulation(call: Call, draft: Draft, flags: Flags) -> None:
    """Set the accumulation: the number is shared by all processes."""
    flag = flags.setting("gradient_accumulation_steps")
    steps = number_of(flag)
    if flag is None or steps is None:
        draft.integer(_STEPS, flag)
        return
    total = call.ranks.total if call.ranks.is_distributed else 1
    draft.put(
        _STEPS, max(1, steps // total), f"{flag.source} / {total}" if total > 1 else flag.source
    )


def _training(draft: Draft, flags: Flags) -> None:
    source = source_of_default(_NAME)
    draft.put("training.optimizer", {"name": "adamw", "fused": True}, source)
    draft.put("training.gradientCheckpointing", "none", source)
    draft.put("training.zeroGrad", {"position": "after-step", "setToNone": True}, source)
    dtype = flags.setting("dtype")
    text = draft.word("training.precision", dtype)
    if dtype is not None and text in _PRECISIONS:
        draft.put("training.precision", _PRECISIONS[text], dtype.source)
    compiled, clip = flags.setting("compile"), flags.setting("grad_clip")
    if compiled is not None:
        draft.put("training.compile", compiled.is_on, compiled.source)
    if clip is not None and clip.value is not None:
        draft.put("training.clipGradNorm", bool(clip.value.text.strip("0.")), clip.source)


def _is_on_cpu(flags: Flags) -> bool:
    flag = flags.get("device")
    return flag is not None and flag.value is not None and flag.value.text == "cpu"


FAMILY = family_of("nanogpt", read, is_on_cpu=_is_on_cpu)
