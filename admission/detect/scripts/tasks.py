"""The example scripts of transformers: their task, lengths and padding.

    script name -> Example

Source: huggingface/transformers@00d481d1 examples/pytorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.detect.words import words
from estimator.spec import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What one script does when its flags are silent."""

    task: Task | None
    length_flags: tuple[str, ...] = ()
    length: int | None = None
    """None: the tokenizer or the model decides."""
    pads: bool = False
    """Batches are padded to their longest sample, so the length is only an upper end."""
    target_flags: tuple[str, ...] = ()
    target: int | None = None


_SEQ2SEQ = Example(
    task=Task.SEQ2SEQ_LM,
    length_flags=("max_source_length",),
    length=1024,
    pads=True,
    target_flags=("max_target_length",),
    target=128,
)
_GLUE = Example(task=Task.SEQUENCE_CLASSIFICATION, length_flags=("max_seq_length",), length=128)

EXAMPLES: Mapping[str, Example] = {
    "run_clm": Example(task=Task.CAUSAL_LM, length_flags=("block_size",), length=1024),
    "run_mlm": Example(task=Task.MASKED_LM, length_flags=("max_seq_length",)),
    "run_glue": _GLUE,
    "run_xnli": _GLUE,
    "run_classification": _GLUE,
    "run_qa": Example(task=Task.QUESTION_ANSWERING, length_flags=("max_seq_length",), length=384),
    "run_ner": Example(task=Task.TOKEN_CLASSIFICATION, length_flags=("max_seq_length",), pads=True),
    "run_summarization": _SEQ2SEQ,
    "run_translation": _SEQ2SEQ,
    "run_image_classification": Example(task=Task.IMAGE_CLASSIFICATION),
    "run_semantic_segmentation": Example(task=Task.SEMANTIC_SEGMENTATION),
    "run_object_detection": Example(task=Task.OBJECT_DETECTION),
    "run_speech_recognition_ctc": Example(task=Task.SPEECH_RECOGNITION),
    "run_speech_recognition_seq2seq": Example(task=Task.SPEECH_RECOGNITION),
    "run_mae": Example(task=Task.PRE_TRAINING),
    "run_mim": Example(task=Task.PRE_TRAINING),
}
"""Stem of the script, without `_no_trainer` -> what it does."""

GLUE_LABELS: Mapping[str, int] = {
    "cola": 2,
    "mnli": 3,
    "mrpc": 2,
    "qnli": 2,
    "qqp": 2,
    "rte": 2,
    "sst2": 2,
    "stsb": 1,
    "wnli": 2,
}
"""run_glue's `--task_name` -> classes; `stsb` is a regression."""

TRL_SCRIPTS = frozenset(
    words("sft dpo kto orpo cpo bco grpo rloo ppo reward prm online_dpo nash_md xpo gkd dpo_online")
)
"""Stems of TRL's scripts: other losses, reference models, other ways to load."""
TRL_FLAGS = words(
    "ref_model beta num_generations max_prompt_length max_completion_length dataset_text_field "
    "packing reward_model_path reward_funcs loss_type completion_only_loss assistant_only_loss"
)
"""Flags that only TRL's trainers have."""

LENGTH_FLAGS = ("max_seq_length", "max_length", "block_size", "model_max_length", "cutoff_len")
"""Names for the length in scripts that are not in the table."""
