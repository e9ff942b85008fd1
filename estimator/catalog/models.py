"""Architectures of publicly known models, so that a Hub id needs no Hub.

    Hub id or alias -> KnownModel

Facts only: sizes and switches, no code, no weights. Read once, a line parsed when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model of the catalog. `config` has the Hub config's keys that decide shapes."""

    id: str
    aliases: tuple[str, ...]
    library: str
    """`transformers` or `diffusers`."""
    task: str
    dtype: str
    """dtype of the published checkpoint."""
    config: Mapping[str, Any]
    parameters: int
    """Elements of trainable tensors, tied weights once."""
    separate_head: bool
    """The checkpoint has an output head of its own although its class ties it to the embedding."""
    remote_code: bool
    """The class is not in the library: only closed forms can answer."""
    source: str


def known_model(name: str) -> KnownModel | None:
    """Return the model with this Hub id or alias, in any case."""
    line = _lines().get(name.strip().casefold())
    return None if line is None else _model(orjson.loads(line))


def known_model_ids() -> tuple[str, ...]:
    """Return every Hub id of the catalog, without aliases, in the order of the file."""
    return tuple(dict.fromkeys(orjson.loads(line)["id"] for line in _lines().values()))


@cache
def _lines() -> Mapping[str, bytes]:
    text = Path(__file__).with_name("data").joinpath("models.jsonl").read_bytes()
    found: dict[str, bytes] = {}
    for line in text.splitlines():
        row = orjson.loads(line)
        for name in (row["id"], *row["aliases"]):
            found.setdefault(name.casefold(), line)
    return found


def _model(row: dict[str, Any]) -> KnownModel:
    return KnownModel(
        id=row["id"],
        aliases=tuple(row["aliases"]),
        library=row["library"],
        task=row["task"],
        dtype=row["dtype"],
        config=MappingProxyType(row["config"]),
        parameters=row["parameters"],
        separate_head=row.get("separateHead", False),
        remote_code=row.get("remoteCode", False),
        source=row["source"],
    )
