"""A judgement as the JSON that other tools read.

    Judgement -> JSON types (docs/contracts.md, section 4)

The top level repeats the unit that decided. `steer` is what would be added to the affinity of its
pods; where their GPUs are claimed, the claim templates beside them with a selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from admission.decision import budget_of
from admission.judge.conclusion import deciding_unit
from admission.values import (
    ClassVerdict,
    Finding,
    Json,
    Judgement,
    UnitJudgement,
    WorkloadRef,
)

NOT_STEERED: Mapping[str, Json] = MappingProxyType({})


def explanation_of(judgement: Judgement, steer: Mapping[str, Json] = NOT_STEERED) -> dict[str, Any]:
    """Return the entry of one workload. What is not known is an empty mapping or left out.

    *steer* is what would be added to the affinity of each pod template, by its field path.
    """
    unit = deciding_unit(judgement)
    return {
        "workload": _workload(judgement.workload.ref),
        "verdict": str(judgement.verdict),
        "action": str(judgement.action),
        "mode": str(judgement.mode),
        **_exemption(judgement),
        "reason": judgement.reason,
        "message": judgement.message,
        "hints": list(judgement.hints),
        "spec": _spec(unit),
        "sources": dict(unit.reading.sources) if unit else {},
        "estimate": _estimate(unit),
        "nodes": _nodes(unit.classes) if unit else [],
        "steer": _steer(unit, steer),
        "unknowns": _unknowns(unit.findings if unit else judgement.workload.problems),
        "units": [_unit(judged, steer) for judged in judgement.units],
    }


def _exemption(judgement: Judgement) -> dict[str, Any]:
    """Return why it is not denied, if that is an exemption alone."""
    found = judgement.exemption
    if found is None:
        return {}
    why = {"reason": found.reason} if found.reason else {}
    return {"exemption": {"until": found.until_text, "by": found.source, **why}}


def _workload(ref: WorkloadRef) -> dict[str, str]:
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
    }


def _unit(judged: UnitJudgement, steer: Mapping[str, Json]) -> dict[str, Any]:
    unit = judged.unit
    return {
        "role": unit.role,
        "template": unit.template,
        "container": unit.container,
        "replicas": unit.replicas,
        "gpus": unit.gpus,
        "gpuResource": unit.gpu_resource,
        "spec": _spec(judged),
        "sources": dict(judged.reading.sources),
        "estimate": _estimate(judged),
        "verdict": str(judged.verdict),
        "steer": _steer(judged, steer),
        "nodes": _nodes(judged.classes),
    }


def _steer(judged: UnitJudgement | None, steer: Mapping[str, Json]) -> dict[str, Any]:
    """Return `{nodeAffinity: …}`, nothing for pods that go where they go."""
    return dict(steer.get(judged.unit.template, {})) if judged else {}


def _spec(judged: UnitJudgement | None) -> dict[str, Any]:
    """Return the spec as it was understood, in part if it was not understood whole."""
    if judged is None:
        return {}
    spec = judged.reading.spec
    return spec.document() if spec else dict(judged.reading.partial)


def _estimate(judged: UnitJudgement | None) -> dict[str, Any]:
    return judged.estimate.document() if judged and judged.estimate else {}


def _nodes(classes: Iterable[ClassVerdict]) -> list[dict[str, Any]]:
    return [_node(found) for found in classes]


def _node(found: ClassVerdict) -> dict[str, Any]:
    node: dict[str, Any] = {"class": found.node_class.name, "count": found.node_class.count}
    budget = budget_of(found.node_class)
    if budget is not None:
        node["budgetBytes"] = budget
    if found.estimate is not None:
        node["least"] = found.estimate.least.device_bytes
        node["enough"] = found.estimate.enough.device_bytes
        node["most"] = found.estimate.most.device_bytes
    return {**node, "verdict": str(found.verdict)}


def _unknowns(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [_unknown(finding) for finding in findings]


def _unknown(finding: Finding) -> dict[str, str]:
    unknown = {"code": str(finding.code), "path": finding.path, "reason": finding.reason}
    return {**unknown, "hint": finding.hint} if finding.hint else unknown
