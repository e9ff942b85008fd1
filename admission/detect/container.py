"""What a container runs and the environment it runs in.

    Unit, documents -> argv, variables

As the kubelet does it: `$(NAME)` is expanded in command, args and env; an unknown one stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from admission.detect.budget import MAX_VALUE, Budget, LimitError
from admission.detect.lookup import Lookup
from admission.detect.scope import OPEN, unknown_value
from admission.detect.words import MAX_REFERENCE, Variables, Word, literal, references, written
from admission.values import Json, Unit
from admission.workloads.fields import mapping, sequence, text, wrong

MAX_BITS = 256
"""Of a number that stands for text."""
MAX_SOURCES = 64
"""Entries of `envFrom` that are looked up."""


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
    problems: tuple[str, ...] = ()
    """What of it is too long to be read."""


def read_container(unit: Unit, budget: Budget, lookup: Lookup) -> Container:
    """Return the command line and environment of *unit*'s program, as far as *budget* goes.

    ConfigMaps that its variables come from are taken from *lookup*.

    Raises:
        RequestError: if a field has the wrong type.
    """
    spec, path = unit.program.container, unit.program.path
    variables: dict[str, tuple[Word, ...]] = {}
    argv: list[Word] = []
    problems: list[str] = []
    try:
        _put_variables(variables, unit, lookup, budget)
        for key in ("command", "args"):
            for index, item in enumerate(sequence(spec.get(key), f"{path}.{key}")):
                word = _scalar(item, f"{path}.{key}[{index}]")
                budget.add_word()
                argv.append(_expanded(word, variables, budget, origin=key))
    except LimitError as error:
        problems.append(str(error))
    return Container(
        where=path.rpartition(".")[2],
        path=path,
        image=text(spec.get("image"), f"{path}.image"),
        directory=text(spec.get("workingDir"), f"{path}.workingDir"),
        argv=tuple(argv),
        variables=variables,
        problems=tuple(problems),
    )


def _scalar(value: object, path: str) -> str:
    """Return *value* as text: a number, unless nobody could have written it, is as good as one."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise wrong(path, value, "a string")
    return str(value) if isinstance(value, int | float) else written(text(value, path))


def _put_variables(
    variables: dict[str, tuple[Word, ...]],
    unit: Unit,
    lookup: Lookup,
    budget: Budget,
) -> None:
    spec, path = unit.program.container, unit.program.path
    for name, value in unit.injected.items():
        variables[name] = (literal(value, origin=f"env {name} (set for a {unit.role or 'pod'})"),)
    sources = sequence(spec.get("envFrom"), f"{path}.envFrom")
    if len(sources) > MAX_SOURCES:
        variables[OPEN] = ()
    for index, item in enumerate(sources[:MAX_SOURCES]):
        where = f"{path}.envFrom[{index}]"
        source = mapping(item, where)
        reference = mapping(source.get("configMapRef"), f"{where}.configMapRef")
        name = text(reference.get("name"), f"{where}.configMapRef.name")
        prefix = text(source.get("prefix"), f"{where}.prefix")
        document = lookup.find(f"configmap/{name}") if name else None
        if document is None or document.problem:
            variables[OPEN] = ()
            continue
        for key, value in document.files.items():
            variables[prefix + key] = (literal(written(value), origin=f"configmap {name}/{key}"),)
    for index, item in enumerate(sequence(spec.get("env"), f"{path}.env")):
        if index >= budget.variables:
            raise LimitError("the container has too many environment variables to be read")
        where = f"{path}.env[{index}]"
        entry = mapping(item, where)
        name = text(entry.get("name"), f"{where}.name")
        if not name:
            continue
        if entry.get("valueFrom") is not None:
            source = mapping(entry.get("valueFrom"), f"{where}.valueFrom")
            variables[name] = (_referred(name, source, where, lookup, unit),)
            continue
        raw = entry.get("value")
        value = _scalar(raw, f"{where}.value")
        variables[name] = (_expanded(value, variables, budget, origin=f"env {name}"),)


def _referred(name: str, source: Json, where: str, lookup: Lookup, unit: Unit) -> Word:
    """Return the value of a variable with `valueFrom`.

    Known are a ConfigMap's, if it was read, and the container's own number of GPUs.
    """
    field = mapping(source.get("resourceFieldRef"), f"{where}.valueFrom.resourceFieldRef")
    if field.get("resource") in (f"limits.{unit.gpu_resource}", f"requests.{unit.gpu_resource}"):
        return literal(str(unit.gpus), origin=f"env {name}")
    reference = mapping(source.get("configMapKeyRef"), f"{where}.valueFrom.configMapKeyRef")
    config_map = text(reference.get("name"), f"{where}.valueFrom.configMapKeyRef.name")
    key = text(reference.get("key"), f"{where}.valueFrom.configMapKeyRef.key")
    document = lookup.find(f"configmap/{config_map}") if config_map and key else None
    if document is not None and key in document.files:
        return literal(document.files[key], origin=f"env {name}")
    return unknown_value(name)[0]._replace(origin=f"env {name}")


def _expanded(raw: str, variables: Variables, budget: Budget, *, origin: str) -> Word:
    """Return *raw* with the kubelet's `$(NAME)` expanded; `$$` is a plain dollar sign.

    A value that is longer than `MAX_VALUE` in the end is not known.
    """
    budget.expand(len(raw))
    if "$" not in raw:
        return literal(raw, origin=origin)
    parts: list[str] = []
    unresolved: dict[str, None] = {}
    is_template = False
    at = length = 0
    while at < len(raw):
        mark = raw.find("$", at)
        mark = mark if mark >= 0 else len(raw)
        parts.append(raw[at:mark])
        length += mark - at
        at = mark
        close = raw.find(")", at, at + MAX_REFERENCE) if raw.startswith("$(", at) else -1
        name = raw[at + 2 : close] if close > 0 else None
        if name is not None and name in variables:
            for word in variables[name]:
                parts.append(word.text)
                length += len(word.text)
                unresolved.update(dict.fromkeys(word.unresolved))
                is_template |= word.is_template
            at = close + 1
        else:
            parts.append(raw[at : at + 1])
            at += 2 if raw.startswith("$$", at) else 1
        if length > MAX_VALUE:
            return Word(text=raw, origin=origin, unresolved=(raw,))
    budget.expand(length)
    word = literal("".join(parts), origin=origin)
    known = references(word.text, (*unresolved, *word.unresolved))
    return Word(
        text=word.text,
        origin=origin,
        unresolved=known,
        is_template=is_template or set(known) != set(unresolved),
    )
