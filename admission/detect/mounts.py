"""What a container mounts, as far as it matters where a file comes from.

    pod, container -> Mounts

ConfigMaps with their keys; of everything else, why its files are not seen. A Secret is never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from admission.values import Json, Program
from admission.workloads.fields import mapping, sequence, text

MAX_MOUNTS = 128
MAX_SOURCES = 32
"""Sources of a projected volume. Nobody's own has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One source of files at one path: a projected volume has several."""

    path: str
    config_map: str = ""
    items: Mapping[str, str] | None = None
    """Path below the mount -> key; None: every key under its own name."""
    is_file: bool = False
    """The mount is the one file of `items`: a subPath."""
    problem: str = ""


def mounts_of(program: Program) -> Iterator[Mount]:
    """Yield what the container mounts, as far as it matters where a file comes from."""
    path = program.path
    volumes: dict[str, Json] = {}
    for index, item in enumerate(sequence(program.pod.get("volumes"), "volumes")):
        volume = mapping(item, f"volumes[{index}]")
        volumes[text(volume.get("name"), f"volumes[{index}].name")] = volume
    read: dict[str, tuple[Mount, ...]] = {}
    mounts = sequence(program.container.get("volumeMounts"), f"{path}.volumeMounts")
    for index, item in enumerate(mounts[:MAX_MOUNTS]):
        where = f"{path}.volumeMounts[{index}]"
        mount = mapping(item, where)
        target = text(mount.get("mountPath"), f"{where}.mountPath").rstrip("/") or "/"
        below = text(mount.get("subPath"), f"{where}.subPath").strip("/")
        name = text(mount.get("name"), f"{where}.name")
        if name not in read:
            read[name] = tuple(_of_volume(volumes.get(name, {})))
        yield from (_mounted_at(target, below, source) for source in read[name])


def _mounted_at(target: str, below: str, source: Mount) -> Mount:
    """Return *source* at *target*; *below* is the subPath."""
    if not source.config_map or not below:
        return replace(source, path=target)
    key = below if source.items is None else source.items.get(below, below)
    return replace(source, path=target, items={"": key}, is_file=True)


def _of_volume(volume: Json) -> Iterator[Mount]:
    """Yield what *volume* brings, as if it were mounted nowhere yet."""
    projected = mapping(volume.get("projected"), "projected")
    parts = sequence(projected.get("sources"), "projected.sources")
    sources = [volume, *(mapping(item, "projected.sources") for item in parts[:MAX_SOURCES])]
    for source in sources:
        config_map = mapping(source.get("configMap"), "configMap")
        name = text(config_map.get("name"), "configMap.name")
        if name:
            yield Mount(path="", config_map=name, items=_items(config_map))
        elif source.get("secret") is not None:
            yield Mount(path="", problem="is in a Secret, which is never read")
    if len(parts) > MAX_SOURCES:
        yield Mount(path="", problem=f"is on a volume of more than {MAX_SOURCES} sources")
    if not any(key in volume for key in ("configMap", "projected", "secret")):
        yield Mount(path="", problem="is on a volume that only the container sees")


def _items(config_map: Json) -> Mapping[str, str] | None:
    items = sequence(config_map.get("items"), "configMap.items")
    if not items:
        return None
    entries = (mapping(item, "configMap.items") for item in items)
    return {text(entry.get("path"), "path"): text(entry.get("key"), "key") for entry in entries}
