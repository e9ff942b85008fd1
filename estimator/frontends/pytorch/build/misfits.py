"""What of a configuration and its input cannot be: the user's to mend, with what is accepted.

configuration, model, JobSpec -> (nothing) | SpecError, UnsupportedJobError
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import nn

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.notes import UnknownCode
from estimator.spec import JobSpec

POSITIONS = ("embed_positions", "position_embedding", "position_embeddings", "wpe")
"""Names of tables with a row for each position."""
OTHER_SENSES = ("audio", "image", "speech", "video", "vision", "visual")
"""Words in the path of a part that reads no text: its positions are patches or frames."""
HEADS = "model.config.num_attention_heads"


@contextmanager
def heads_named() -> Iterator[None]:
    """Turn the library's complaint about heads that do not divide into an error with its path.

    Raises:
        SpecError: in place of that complaint.
    """
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())
        if "attention heads" not in text and "num_heads" not in text:
            raise
        raise SpecError([Problem(path=HEADS, message=text.rpartition("Error: ")[2])]) from error


def check_configured(spec: JobSpec, config: Mapping[str, Any]) -> None:
    """Refuse weights stored in a way the spec does not say, and heads that do not divide.

    As a checkpoint of whole weights one of four bits would need four times what it does.

    Raises:
        SpecError: for key and value heads that do not divide the query's.
        UnsupportedJobError: for a configuration of packed weights without `quantization`.
    """
    stored = config.get("quantization_config")
    if stored and spec.quantization is None:
        method = stored.get("quant_method") if isinstance(stored, Mapping) else stored
        raise UnsupportedJobError(
            f"model.config.quantization_config: weights stored by '{method!s:.64}', "
            "and quantization is absent",
            code=UnknownCode.QUANTIZATION,
            path="quantization",
            hint="say how they are kept: quantization: {scheme: …, bits: …}; "
            "without quantization_config they are whole",
        )
    heads, groups = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if isinstance(heads, int) and isinstance(groups, int) and (groups < 1 or heads % groups):
        message = f"{groups}: a divisor of num_attention_heads ({heads}) is accepted"
        raise SpecError([Problem(path="model.config.num_key_value_heads", message=message)])


def check_length(spec: JobSpec, model: Any) -> None:
    """Refuse texts that are longer than a table of positions: a run would read beyond it.

    Rotary and relative positions have no table; they run at any length.

    Raises:
        SpecError: with the longest text that fits.
    """
    length = spec.input.sequence_length
    if length is None or model.main_input_name != "input_ids":
        return
    for name, module in model.named_modules():
        path, _, last = name.rpartition(".")
        is_table = isinstance(module, nn.Embedding) and last in POSITIONS
        if not is_table or any(word in path for word in OTHER_SENSES):
            continue
        before = 0 if module.padding_idx is None else module.padding_idx + 1
        accepted = module.num_embeddings - max(before, getattr(module, "offset", 0))
        if length > accepted:
            message = f"{length}: the model has positions for {accepted} tokens"
            raise SpecError([Problem(path="input.sequenceLength", message=message)])
