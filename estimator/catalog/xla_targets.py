"""What XLA is told of a card it compiles for, one entry for each compute capability.

    xla_targets.yaml -> XlaTarget -> text of a GpuTargetConfigProto

Not modelled: clocks and widths of single cards, which do not move a memory plan; MIG slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from estimator.catalog.gpu import Origin, Source
from estimator.device import ComputeCapability
from estimator.documents import read_document

DNN_VERSION = (9, 26)
"""cuDNN the compile assumes. No plan is asked of it: autotuning needs a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTarget:
    """A card that stands for all of its compute capability."""

    compute_capability: ComputeCapability
    name: str
    extension: str
    properties: Mapping[str, int | float]
    source: Source

    def text(self, memory_bytes: int | None = None) -> str:
        """Return the target as XLA reads it, a text protocol buffer.

        *memory_bytes* is what the card has, by default that of the largest of its kind.
        """
        major, minor = self.compute_capability
        properties = dict(self.properties)
        if memory_bytes is not None:
            properties["device_memory_size"] = memory_bytes
        rows = [f"  {key}: {value}" for key, value in properties.items()]
        capability = f"major: {major} minor: {minor} feature_extension: {self.extension}"
        return "\n".join(
            (
                "gpu_device_info {",
                *rows,
                f"  cuda_compute_capability {{ {capability} }}",
                "}",
                'platform_name: "CUDA"',
                f"dnn_version_info {{ major: {DNN_VERSION[0]} minor: {DNN_VERSION[1]} }}",
                f'device_description_str: "{self.name}"',
            )
        )


def xla_target(capability: ComputeCapability) -> XlaTarget | None:
    """Return what XLA is told of cards of *capability*, None if that is not known."""
    return _by_capability().get(capability)


@cache
def _by_capability() -> Mapping[ComputeCapability, XlaTarget]:
    text = files("estimator.catalog").joinpath("data/xla_targets.yaml").read_text("utf-8")
    document: Any = read_document(text, path="xla_targets.yaml")
    targets = [_target(item, document) for item in document["targets"]]
    return {target.compute_capability: target for target in targets}


def _target(item: Mapping[str, Any], document: Mapping[str, Any]) -> XlaTarget:
    major, _, minor = item["compute"].partition(".")
    own = dict(zip(document["columns"], item["values"], strict=True))
    origin, _, words = document["sources"][item["source"]].partition(": ")
    return XlaTarget(
        compute_capability=(int(major), int(minor)),
        name=item["name"],
        extension=item.get("extension", "NONE"),
        properties=MappingProxyType({**document["common"], **own}),
        source=Source(origin=Origin(origin), text=words),
    )
