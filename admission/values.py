"""The values that travel from a manifest to a verdict.

    object -> Workload(units) -> Reading -> Estimates -> UnitJudgement -> Judgement

Frozen; Kubernetes objects are plain mappings, read and never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from admission.codes import Action, Mode, ReasonCode, Verdict
from admission.exemption import Exemption
from admission.floor import Floor
from admission.share import Declared, Share
from estimator.device import Device

if TYPE_CHECKING:
    from estimator.result import Estimate, Fit
    from estimator.spec import JobSpec
    from estimator.tracefile import Recording

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRef:
    """Which object a verdict is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    """Empty while the API server has not generated it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Something that stands outside the object: a ConfigMap, a model's files, another object."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Key or file name -> text. A single text is under the empty name."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The same of what is no text: a Trace file."""
    problem: str = ""
    """Why there is nothing: `is not there`, `forbidden`, `took longer than 2 s`."""


Documents = Mapping[str, Document]
"""What was fetched, by reference:

* `configmap/NAME`, of the job's own namespace
* `hf://ORG/MODEL@REVISION`: `config.json`, `adapter_config.json`, …
* `https://…`: one text
* `trainingruntime/NAME`, `clustertrainingruntime/NAME`: the object as JSON; among manifests also
  `workflowtemplate/NAME`, `clusterworkflowtemplate/NAME`, `resourceclaimtemplate/NAME` and
  `resourceclaim/NAME`
"""

NO_DOCUMENTS: Documents = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The container whose command line a unit is read by.

    Its own as a rule; the launcher's where another pod starts what runs on the GPUs.
    """

    container: Json
    path: str
    """Field path of the container within the object."""
    pod: Json
    """The pod spec whose volumes it mounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One GPU container of one role: compared with one card."""

    role: str
    """`Worker`, `Master`, `main`, …"""
    template: str
    """Field path of the pod template, `spec.template`; empty for a Pod."""
    container: str
    container_path: str
    """Field path of the container within the object, `spec.template.spec.containers[0]`."""
    replicas: int
    gpus: int
    """GPUs of the container."""
    pod_gpus: int
    """Effective GPU count of the pod: decides which nodes are eligible."""
    gpu_resource: str
    pod: Json
    """The pod spec."""
    pod_metadata: Json
    container_spec: Json
    program: Program
    injected: Json = field(default_factory=dict)
    """Variables that the kind's controller sets in the container: name -> text."""
    are_gpus_known: bool = True
    """False: their number was left to be filled in; `gpus` is then one."""
    are_replicas_known: bool = True
    steering: str = ""
    """Field path that a nodeSelector is set below; empty: only on the pods themselves."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Models of the Hugging Face Hub fetched before it starts: folder in the container -> id."""
    share: Share | None = None
    """What it declares of each card; None: it has them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Why something could not be read, where, and what would have let us read it."""

    code: str
    """A `ReasonCode` or an estimator `UnknownCode` value."""
    path: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A root object with its GPU units. `skip` is set when there is nothing to judge."""

    ref: WorkloadRef
    units: tuple[Unit, ...]
    metadata: Json
    controlled: bool
    """Has a controller owner: never denied."""
    started: bool
    """Has started already (a Job with status.startTime, …)."""
    skip: ReasonCode | None = None
    framework: str = ""
    """The framework that the kind is made for: `pytorch` for a PyTorchJob. Empty: any."""
    framework_source: str = ""
    """What says so: `kind PyTorchJob`."""
    observe_only: bool = False
    """Interactive or serving: counted, never warned or denied."""
    explain_only: bool = False
    """A template that others start jobs from: never sent to the webhook's judgement."""
    wanted: tuple[str, ...] = ()
    """Documents that would tell more of its pods: a TrainJob's runtime."""
    problems: tuple[Finding, ...] = ()
    """What of its pods could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was understood of one unit.

    Exactly one of: `spec` is there; `skip` says why there is nothing to estimate; `unknowns`
    says what is missing.
    """

    spec: JobSpec | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """Spec path -> where the value came from: `containers[0].args --batch-size`."""
    unknowns: tuple[Finding, ...] = ()
    skip: ReasonCode | None = None
    warnings: tuple[str, ...] = ()
    """Conflicts between annotation and flags, requests without limits."""
    is_certain: bool = True
    """False: the program itself was not seen, so what it does by default may be other. A verdict
    on it warns and never denies."""
    partial: Json = field(default_factory=dict)
    """The spec document as far as it was understood, for `unknown`."""
    wanted: tuple[str, ...] = ()
    """Documents that may tell more, by reference, once somebody has fetched them."""
    recording: Recording | None = None
    """The Trace file that the owner refers to; its spec is `spec`."""

    @property
    def job(self) -> JobSpec | Recording | None:
        """Return what is to be estimated."""
        return self.recording or self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a pod's selectors and tolerations are compared with on one node."""

    name: str
    labels: Json
    taints: tuple[Json, ...] = ()

    @property
    def taint_key(self) -> tuple[tuple[str, str, str], ...]:
        """Return the taints as something two nodes can be compared by."""
        return tuple(
            (str(taint.get("key")), str(taint.get("value")), str(taint.get("effect")))
            for taint in self.taints
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """Nodes that give a pod the same card: same memory, sharing, GPU count and resource.

    Labels and taints may differ within a class: eligibility is asked of each member.
    """

    name: str
    """`NVIDIA-A100-SXM4-40GB`, with the slice or share if any."""
    product: str
    count: int
    gpus_per_node: int
    gpu_resource: str
    device: Device | None
    """None: the card's memory is not known; `unknown_reason` says why."""
    sharing: str
    """none, mig, mps, time-slicing, …"""
    nodes: tuple[str, ...]
    labels: Json
    """Labels of one member."""
    taints: tuple[Json, ...] = ()
    """Taints of that member."""
    unknown_reason: str | None = None
    members: tuple[NodeFacts, ...] = ()
    """Empty for a card that was declared (`--gpu`): every pod may go there."""
    divided_bytes: int | None = None
    """What percentages of a card are of, where its scheduler counts more than the card has."""
    declared: Declared | None = None
    """Set for one unit that declares less than the card gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """One unit against one node class."""

    node_class: NodeClass
    verdict: Verdict
    estimate: Estimate | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJudgement:
    """The verdict of one unit."""

    unit: Unit
    reading: Reading
    verdict: Verdict
    classes: tuple[ClassVerdict, ...]
    estimate: Estimate | None
    """The estimate of the deciding class."""
    reason: str = ""
    """One word: a `Cause`, or the code of the first finding."""
    findings: tuple[Finding, ...] = ()
    fits: tuple[Fit, ...] = ()
    """What would fit, searched only for `oom` and only in the time left."""
    elsewhere: tuple[ClassVerdict, ...] = ()
    """Classes the pod may not go to today that would hold it."""
    floor: Floor | None = None
    """What an earlier run of the same container taught: the estimates count it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict of a workload and what to do about it."""

    workload: Workload
    verdict: Verdict
    action: Action
    mode: Mode
    units: tuple[UnitJudgement, ...]
    reason: str
    message: str
    hints: tuple[str, ...]
    warnings: tuple[str, ...]
    cache: str = "none"
    """hit, miss, late or none: for metrics."""
    is_spared: bool = False
    """In mode `enforce`, and without the exemption, it would have been denied."""
    exemption: Exemption | None = None
    """What spared it, where it was not the mode alone."""
    steered: str = ""
    """The terms that its pods were given, as JSON by pod template."""
