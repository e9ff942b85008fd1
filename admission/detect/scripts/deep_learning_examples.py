"""NVIDIA's DeepLearningExamples beside the image classifiers: BERT's pre-training and SSD.

flags -> model, batch of one process, optimizer in the draft

Source: the recipes `nvidia_bert` and `nvidia_ssd`.
BERT's batch is one of a process over all its accumulation steps; `bert_configs/` has two files.
Not modelled: fused attention of the newest releases, distillation.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import ReasonCode
from admission.detect.configs import read_config
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import put_plain, put_sgd, source_of, unsupported_model
from admission.detect.scripts.verbs import number_of, put_batch, put_checkpointing

_BERT = "NVIDIA BERT run_pretraining.py"
_VOCABULARY = 30528
"""Padded to a multiple of eight, as the script does."""
_SHARED: Mapping[str, object] = {
    "model_type": "bert",
    "vocab_size": _VOCABULARY,
    "type_vocab_size": 2,
    "max_position_embeddings": 512,
}
_CONFIGS: Mapping[str, Mapping[str, object]] = {
    "base.json": {
        **_SHARED,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
    },
    "large.json": {
        **_SHARED,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
    },
}
"""What `bert_configs/` holds."""


def _read_bert(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default(_BERT)
    _model(call, draft, flags.get("config_file"))
    draft.put("model.task", "pre-training", told_by)
    steps = flags.setting("gradient_accumulation_steps")
    put_plain(draft, source=told_by)
    draft.integer("training.gradientAccumulationSteps", steps)
    batch = flags.setting("train_batch_size")
    put_batch(call, draft, batch, accumulation=number_of(steps) or 1)
    draft.integer("input.sequenceLength", flags.setting("max_seq_length"))
    half = flags.get("fp16", "amp")
    whole = flags.get("allreduce_post_accumulation_fp16")
    precision = "fp32" if half is None else "fp16" if whole is not None else "amp-fp16"
    draft.put("training.precision", precision, source_of(half, told_by))
    if precision == "fp16":
        draft.put("training.masterWeights", True, source_of(whole, told_by))
    draft.put("training.optimizer", {"name": "lamb"}, told_by)
    put_checkpointing(draft, flags.get("checkpoint_activations"))


def _model(call: Call, draft: Draft, flag: Flag | None) -> None:
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason="no --config_file is given",
            hint=annotation_hint("model.name"),
        )
        return
    config = read_config(call.read_file(text))
    file = text.rpartition("/")[2]
    known = _CONFIGS.get(file)
    values = {**_SHARED, **config.document} if not config.problem else known
    if values is None:
        draft.gap(
            "model.name",
            code=ReasonCode.DOCUMENT,
            path=flag.field,
            reason=f"{text:.120} {config.problem}",
            hint="put the file in a ConfigMap that the pod mounts, or "
            + annotation_hint("model.config"),
        )
        return
    draft.put("model.source", "huggingface", flag.source)
    draft.put("model.name", f"bert-{file.removesuffix('.json')[:60]}", flag.source)
    for key, value in values.items():
        draft.put(f"model.config.{key}", value, flag.source)


def _read_ssd(call: Call, draft: Draft) -> None:
    flags, told_by = call.flags, source_of_default("NVIDIA SSD main.py")
    unsupported_model(
        draft, call.origin, "NVIDIA's SSD300 is a model of its own, which no zoo here has"
    )
    put_batch(call, draft, flags.setting("batch_size"))
    draft.put("input.imageSize", [3, 300, 300], told_by)
    put_plain(draft, source=told_by)
    put_sgd(draft, flags, source=told_by)
    precision = "fp32" if flags.has("no_amp") else "amp-fp16"
    draft.put("training.precision", precision, source_of(flags.get("no_amp", "amp"), told_by))
    draft.integer("training.evaluation.batchSize", flags.setting("eval_batch_size", "ebs"))


FAMILIES = (family_of("nvidia_bert", _read_bert), family_of("nvidia_ssd", _read_ssd))
