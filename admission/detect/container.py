"""What a container runs and the environment it runs in.

    Unit, documents -> argv, variables

As the kubelet does it: `$(NAME)` is expanded in command, args and env; an unknown one stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from admission.detect.expansion import OPEN
from admission.detect.words import Variables, Word, literal
from admission.errors import RequestError
from admission.values import Json, Unit
from admission.workloads.fields import mapping, sequence, text

MAX_TEXT = 256 << 10
MAX_ENVIRONMENT = 4 << 20
MAX_REFERENCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container, ready to be read."""

    where: str
    """`containers[0]`, as sources name it."""
    path: str
    image: str
    directory: str
    argv: tuple[Word, ...]
    variables: Variables


def read_container(unit: Unit, *, documents: Mapping[str, str]) -> Container:
    """Return the command line and environment of *unit*'s container.

    *documents* are ConfigMap values as `configmap/NAME/KEY`.

    Raises:
        RequestError: if a field has the wrong type.
    """
    spec, path = unit.container_spec, unit.container_path
    variables = _variables(unit, documents)
    argv = []
    for key in ("command", "args"):
        for index, item in enumerate(sequence(spec.get(key), f"{path}.{key}")):
            raw = item if not isinstance(item, int | float) else str(item)
            word = text(raw, f"{path}.{key}[{index}]")
            argv.append(_expanded(word, variables, origin=key))
    return Container(
        where=path.rpartition(".")[2],
        path=path,
        image=text(spec.get("image"), f"{path}.image"),
        directory=text(spec.get("workingDir"), f"{path}.workingDir"),
        argv=tuple(argv),
        variables=variables,
    )


def _variables(unit: Unit, documents: Mapping[str, str]) -> Variables:
    spec, path = unit.container_spec, unit.container_path
    variables: dict[str, tuple[Word, ...]] = {}
    length = 0
    for index, item in enumerate(sequence(spec.get("envFrom"), f"{path}.envFrom")):
        where = f"{path}.envFrom[{index}]"
        source = mapping(item, where)
        reference = mapping(source.get("configMapRef"), f"{where}.configMapRef")
        name = text(reference.get("name"), f"{where}.configMapRef.name")
        prefix = text(source.get("prefix"), f"{where}.prefix")
        keys = [key for key in documents if name and key.startswith(f"configmap/{name}/")]
        if not keys:
            variables[OPEN] = ()
        for key in keys:
            variable = prefix + key.rpartition("/")[2]
            variables[variable] = (literal(documents[key], origin=f"env {variable}"),)
    for index, item in enumerate(sequence(spec.get("env"), f"{path}.env")):
        where = f"{path}.env[{index}]"
        entry = mapping(item, where)
        name = text(entry.get("name"), f"{where}.name")
        if not name:
            continue
        if entry.get("valueFrom") is not None:
            source = mapping(entry.get("valueFrom"), f"{where}.valueFrom")
            variables[name] = (_referred(name, source, where, documents, unit),)
            continue
        raw = entry.get("value")
        value = str(raw) if isinstance(raw, int | float) else text(raw, f"{where}.value")
        word = _expanded(value, variables, origin=f"env {name}")
        length += len(word.text)
        if length > MAX_ENVIRONMENT:
            raise RequestError(f"{path}.env: expands to more than {MAX_ENVIRONMENT} characters")
        variables[name] = (word,)
    return variables


def _referred(
    name: str, source: Json, where: str, documents: Mapping[str, str], unit: Unit
) -> Word:
    """Return the value of a variable with `valueFrom`.

    Known are a ConfigMap's, if it was read, and the container's own number of GPUs.
    """
    field = mapping(source.get("resourceFieldRef"), f"{where}.valueFrom.resourceFieldRef")
    if field.get("resource") in (f"limits.{unit.gpu_resource}", f"requests.{unit.gpu_resource}"):
        return literal(str(unit.gpus), origin=f"env {name}")
    reference = mapping(source.get("configMapKeyRef"), f"{where}.valueFrom.configMapKeyRef")
    key = f"configmap/{reference.get('name')}/{reference.get('key')}"
    if key in documents:
        return literal(documents[key], origin=f"env {name}")
    unknown = f"${{{name}}}"
    return Word(text=unknown, origin=f"env {name}", unresolved=(unknown,))


def _expanded(raw: str, variables: Variables, *, origin: str) -> Word:
    """Return *raw* with the kubelet's `$(NAME)` expanded; `$$` is a plain dollar sign."""
    if "$" not in raw:
        return literal(raw, origin=origin)
    parts: list[str] = []
    unresolved: list[str] = []
    is_template = False
    at = length = 0
    while at < len(raw):
        if length > MAX_TEXT:
            return Word(text=raw, origin=origin, unresolved=(raw[:MAX_REFERENCE],))
        if raw.startswith("$$", at):
            parts.append("$")
            at += 2
            continue
        close = raw.find(")", at, at + MAX_REFERENCE) if raw.startswith("$(", at) else -1
        name = raw[at + 2 : close] if close > 0 else None
        if name is not None and name in variables:
            for word in variables[name]:
                parts.append(word.text)
                length += len(word.text)
                unresolved.extend(word.unresolved)
                is_template |= word.is_template
            at = close + 1
            continue
        parts.append(raw[at])
        at += 1
    word = literal("".join(parts), origin=origin)
    known = tuple(dict.fromkeys((*unresolved, *word.unresolved)))
    return Word(
        text=word.text,
        origin=origin,
        unresolved=known,
        is_template=is_template or set(known) != set(unresolved),
    )
