"""Models by name: graphs that come with us.

    name, classes -> symbol document, usual image

`tools/mxnet_graphs.py` makes the file from MXNet itself.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import orjson

from estimator.frontends.mxnet.errors import invalid

FILE = str(files(__package__) / "data/graphs.zip")
SYMBOLS = "symbols/"
_DEEP = re.compile(r"(?P<kind>resnet|resnext|vgg)(?P<version>-v1|)-(?P<depth>[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooModel:
    """A graph of a zoo."""

    document: Mapping[str, Any]
    """The symbol, in the form MXNet writes."""
    image: tuple[int, int, int]
    """Channels, height and width it is usually fed."""


def names() -> tuple[str, ...]:
    """Return the name of every graph, in order."""
    return tuple(sorted({member.removesuffix(".json") for member in _index().values()}))


@lru_cache(maxsize=1)  # a job and the cheapest it may be have one model
def zoo_model(name: str, classes: int | None) -> ZooModel:
    """Return the model of a name, with as many classes as asked for.

    Raises:
        SpecError: if there is no such name.
    """
    member = _index().get(name.lower())
    if member is None:
        near = get_close_matches(name.lower(), _index(), n=3)
        raise invalid(
            f"'{name[:128]}' is not a model of the MXNet zoo",
            path="model.name",
            hint=f"did you mean {', '.join(near)}?" if near else None,
        )
    with zipfile.ZipFile(FILE) as archive:
        graph = orjson.loads(archive.read(member))
    if classes is not None:
        for index, key in graph["sized"]:
            graph["nodes"][index][2][key] = str(classes)
    nodes = [
        {"op": operator, "name": label, "attrs": attributes, "inputs": inputs}
        for operator, label, attributes, inputs in graph["nodes"]
    ]
    channels, height, width = graph["image"]
    return ZooModel(
        document={"nodes": nodes, "heads": graph["heads"]}, image=(channels, height, width)
    )


@cache
def _index() -> dict[str, str]:
    """Return the member of the archive for each name in lower case, other names included."""
    with zipfile.ZipFile(FILE) as archive:
        members = archive.namelist()
    index = {member.removesuffix(".json").lower(): member for member in members}
    for name, member in list(index.items()):
        if name.startswith(SYMBOLS):
            for other in _other_names(name.removeprefix(SYMBOLS)):
                index.setdefault(other, member)
    return index


def _other_names(name: str) -> tuple[str, ...]:
    """Return what a symbol is called where its folder is not named: `resnet-110-cifar`, resnet110.

    A name that a zoo has too is the zoo's.
    """
    bare = name.removesuffix("-cifar")
    found = _DEEP.fullmatch(bare)
    if found is None:
        return (name,)
    version = found["version"].replace("-", "_")
    return (name, f"{found['kind']}{found['depth']}{version}")
