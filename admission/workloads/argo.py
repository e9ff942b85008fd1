"""Workflow, CronWorkflow and the templates of workflows (argoproj.io/v1alpha1).

Steps and tasks call templates with arguments, several levels deep; a template becomes a pod for
each call, unless `when:` is surely false.
Source: argoproj/argo-workflows f016ad89, `pkg/apis/workflow/v1alpha1/workflow_types.go`,
`workflow/controller/{steps,dag,operator}.go`.
Not modelled: jobs that a `resource` template makes (they pass admission themselves), hooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from admission.codes import ReasonCode
from admission.values import Documents, Finding, Json
from admission.workloads.argo_pods import pod_of
from admission.workloads.argo_values import (
    Scope,
    filled,
    is_never,
    items_of,
    parameters,
    size_of,
    text_of,
)
from admission.workloads.fields import ONE, Amount, at, entries, mapping, sequence, text
from admission.workloads.kind import Pods
from admission.workloads.outside import body_of
from admission.workloads.patches import patched
from admission.workloads.units import MAX_TEMPLATES, Template

MAX_CALLS = 256
MAX_FILLED = 8 << 20
"""Bytes of all templates together, each counted as often as it is called. The largest object that
Kubernetes keeps is 1.5 MiB."""
MAX_DEPTH = 16


def read(obj: Json, documents: Documents) -> Pods:
    """Return a template for each different pod that the workflow may start."""
    return _read(at(obj, "", "spec"), "spec", documents)


def read_cron(obj: Json, documents: Documents) -> Pods:
    """Return the same of the workflow that is made at each time."""
    return _read(at(obj, "", "spec", "workflowSpec"), "spec.workflowSpec", documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Library:
    """Templates that can be called by name, and what their workflow says of all pods."""

    spec: Json
    templates: Mapping[str, tuple[Json, str]]


@dataclass(slots=True)
class _Walk:
    """One walk through the calls of a workflow."""

    documents: Documents
    found: list[tuple[str, Template]] = field(default_factory=list)
    """Step and pod."""
    problems: dict[Finding, None] = field(default_factory=dict)
    wanted: dict[str, None] = field(default_factory=dict)
    """ConfigMaps that parameters come from and nobody has fetched yet."""
    calls: int = 0
    num_filled: int = 0
    """Bytes of templates that parameters were put into."""


def _read(spec: Json, path: str, documents: Documents) -> Pods:
    reference = at(spec, path, "workflowTemplateRef")
    walk = _Walk(documents=documents)
    scope = dict(_arguments(spec, path, {}, walk, into="workflow"))
    if reference:
        name = _reference(reference, f"{path}.workflowTemplateRef")
        body = body_of(name, documents)
        if body is None:
            return Pods(skip=ReasonCode.DOCUMENT)
        inner = at(body, f"{name}: ", "spec")
        scope = {**_arguments(inner, f"{name}: spec", {}, walk, into="workflow"), **scope}
        spec, path = {**inner, **{key: spec[key] for key in spec if spec[key]}}, f"{name}: spec"
    library = _library(spec, path)
    for root in _roots(spec, path, library):
        _call(root, root, {}, scope, library, walk, depth=0)
    return Pods(
        templates=tuple(_distinct(walk.found)),
        problems=tuple(walk.problems),
        wanted=tuple(walk.wanted),
    )


def _library(spec: Json, path: str) -> _Library:
    """Return the templates of a workflow, over the defaults they share."""
    defaults = at(spec, path, "templateDefaults")
    found = {}
    for body, where in entries(spec.get("templates"), f"{path}.templates"):
        name = text(body.get("name"), f"{where}.name")
        found[name] = (patched(defaults, body) if defaults else body, where)
    return _Library(spec=spec, templates=found)


def _roots(spec: Json, path: str, library: _Library) -> Iterator[str]:
    """Yield where the workflow begins; one without a beginning lends all its templates."""
    entry = text(spec.get("entrypoint"), f"{path}.entrypoint")
    if not entry:
        yield from library.templates
        return
    yield entry
    last = text(spec.get("onExit"), f"{path}.onExit")
    if last:
        yield last


def _arguments(holder: Json, path: str, scope: Scope, walk: _Walk, *, into: str) -> dict[str, str]:
    """Return the values of `arguments.parameters`, as `{{<into>.parameters.…}}` names them."""
    found = {}
    for name, body in parameters(holder.get("arguments"), f"{path}.arguments"):
        value = _value(body, scope, walk)
        if value is not None:
            found[f"{into}.parameters.{name}"] = value
    return found


def _value(body: Json, scope: Scope, walk: _Walk) -> str | None:
    for key in ("value", "default"):
        value = text_of(body.get(key))
        if value is not None:
            return str(filled(value, scope))
    source = mapping(body.get("valueFrom"), "valueFrom")
    key_of = mapping(source.get("configMapKeyRef"), "valueFrom.configMapKeyRef")
    name = filled(text(key_of.get("name"), "valueFrom.configMapKeyRef.name"), scope)
    document = walk.documents.get(f"configmap/{name}")
    if name and document is None:
        walk.wanted[f"configmap/{name}"] = None
    value = document.files.get(str(key_of.get("key"))) if document is not None else None
    return value if value is not None else text_of(source.get("default"))


def _call(
    template: str,
    step: str,
    arguments: Scope,
    workflow: Scope,
    library: _Library,
    walk: _Walk,
    *,
    depth: int,
    inline: tuple[Json, str] | None = None,
) -> None:
    """Note the pods of one call of *template*, and of what it calls in turn."""
    body, where = inline or library.templates.get(template, ({}, ""))
    walk.calls += 1
    if not body or depth > MAX_DEPTH or walk.calls > MAX_CALLS:
        return
    scope = {**workflow, **_inputs(body, where, arguments, workflow, walk)}
    bare = {key: body[key] for key in body if key not in ("steps", "dag", "inputs")}
    walk.num_filled += size_of(bare)
    if walk.num_filled > MAX_FILLED:
        walk.problems[_too_long(where)] = None
        return
    pod, problems = pod_of(
        filled(bare, scope), where, library.spec, role=template or step, scope=scope
    )
    if pod is not None:
        walk.found.append((step, pod))
        walk.problems.update(dict.fromkeys(problems))
    for call, place in _calls(body, where):
        if is_never(filled(call.get("when"), scope)):
            continue
        filling = {**call, "withItems": filled(call.get("withItems"), scope)}
        filling["withParam"] = filled(call.get("withParam"), scope)
        for item in items_of(filling, place):
            given = _arguments(call, place, {**scope, **item}, walk, into="inputs")
            name, there = _target(call, place, library, walk)
            label = text(call.get("name"), f"{place}.name")
            inline = _inline(call, place)
            _call(name, label, given, workflow, there, walk, depth=depth + 1, inline=inline)


def _too_long(where: str) -> Finding:
    return Finding(
        code=ReasonCode.UNSUPPORTED,
        path=where,
        reason="the workflow's calls put parameters into too much text; the rest is not read",
    )


def _inputs(
    body: Json, where: str, arguments: Scope, workflow: Scope, walk: _Walk
) -> dict[str, str]:
    """Return a template's inputs: as it is called, or else its own values."""
    found = {}
    for name, declared in parameters(body.get("inputs"), f"{where}.inputs"):
        key = f"inputs.parameters.{name}"
        value = arguments.get(key)
        value = _value(declared, workflow, walk) if value is None else value
        if value is not None:
            found[key] = value
    return found


def _calls(body: Json, where: str) -> Iterator[tuple[Json, str]]:
    """Yield the steps and tasks of a template."""
    for index, group in enumerate(sequence(body.get("steps"), f"{where}.steps")):
        place = f"{where}.steps[{index}]"
        if isinstance(group, Mapping):
            yield mapping(group, place), place
        else:
            yield from entries(group, place)
    yield from entries(at(body, where, "dag").get("tasks"), f"{where}.dag.tasks")


def _inline(call: Json, place: str) -> tuple[Json, str] | None:
    if call.get("inline") is None:
        return None
    return mapping(call.get("inline"), f"{place}.inline"), f"{place}.inline"


def _target(call: Json, place: str, library: _Library, walk: _Walk) -> tuple[str, _Library]:
    """Return the name of the template that is called, and the library it is in."""
    reference = at(call, place, "templateRef")
    if not reference:
        return text(call.get("template"), f"{place}.template"), library
    source = _reference(reference, f"{place}.templateRef")
    body = body_of(source, walk.documents)
    name = text(reference.get("template"), f"{place}.templateRef.template")
    if body is None:
        return name, replace(library, templates={})
    return name, _library(at(body, f"{source}: ", "spec"), f"{source}: spec")


def _reference(reference: Json, path: str) -> str:
    kind = (
        "clusterworkflowtemplate" if reference.get("clusterScope") is True else "workflowtemplate"
    )
    return f"{kind}/{text(reference.get('name'), f'{path}.name')}"


def _distinct(found: list[tuple[str, Template]]) -> Iterator[Template]:
    """Yield each pod that differs from those before; equal ones run side by side."""
    groups: list[tuple[str, Template, int]] = []
    for step, template in found:
        for index, (_, other, number) in enumerate(groups):
            if other == template:
                groups[index] = (groups[index][0], other, number + 1)
                break
        else:
            if len(groups) < MAX_TEMPLATES:
                groups.append((step, template, 1))
    roles = [template.role for _, template, _ in groups]
    for step, template, number in groups:
        is_shared = roles.count(template.role) > 1 and step != template.role
        role = f"{template.role} ({step})" if is_shared else template.role
        yield replace(
            template,
            role=role,
            replicas=ONE if number == 1 else Amount(number=number),
        )
