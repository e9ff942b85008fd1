"""What cuDNN is told of a card, one entry for each compute capability.

    cudnn_devices.yaml -> CudnnDevice

Not modelled: clocks of single cards (they move a workspace by at most 0.25 MiB on sm 90), Turing
cards without tensor cores (GTX 16), which have the capability of those with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from estimator.catalog.gpu import Origin, Source
from estimator.device import ComputeCapability
from estimator.documents import read_document


@dataclass(frozen=True, slots=True, kw_only=True)
class CudnnDevice:
    """A card that stands for all of its compute capability."""

    compute_capability: ComputeCapability
    multiprocessors: int
    count_matters: bool
    """Whether cuDNN's answers follow the number of multiprocessors."""
    properties: Mapping[str, Any]
    """The device-property JSON."""
    sources: tuple[Source, ...]


def cudnn_device(capability: ComputeCapability) -> CudnnDevice | None:
    """Return what cuDNN is told of cards of *capability*, None if that is not known."""
    return _by_capability().get(capability)


@cache
def _by_capability() -> Mapping[ComputeCapability, CudnnDevice]:
    text = Path(__file__).with_name("data").joinpath("cudnn_devices.yaml").read_text("utf-8")
    document: Any = read_document(text, path="cudnn_devices.yaml")
    devices = [_device(item, document) for item in document["devices"]]
    return {device.compute_capability: device for device in devices}


def _device(item: Mapping[str, Any], document: Mapping[str, Any]) -> CudnnDevice:
    major, _, minor = item["compute"].partition(".")
    own = dict(zip(document["columns"], item["properties"], strict=True))
    properties = {
        **document["common"],
        **own,
        "deviceName": item["deviceName"],
        "deviceVer": 100 * int(major) + 10 * int(minor),
    }
    return CudnnDevice(
        compute_capability=(int(major), int(minor)),
        multiprocessors=own["multiProcessorCount"],
        count_matters=item.get("countMatters", False),
        properties=MappingProxyType(properties),
        sources=tuple(_source(document["sources"][name]) for name in item["sources"]),
    )


def _source(text: str) -> Source:
    origin, _, rest = text.partition(": ")
    return Source(origin=Origin(origin), text=rest)
