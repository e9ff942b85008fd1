"""The five controllers, as their projects configure them, on ports of loopback.

    ports -> flags, configuration

Metrics are off, nobody is elected: there is one of each.
"""

from __future__ import annotations

from tests.e2e.operators.build import CURRENT, EARLIER
from tests.e2e.operators.operator import Operator, Place

ELECTION = {"leaderElect": False}
HOST = "127.0.0.1"

OWN_PODS = {
    "objectSelector": {
        "matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]
    }
}
"""JobSet's `config/components/webhook/patches`: pods of others are none of its business."""

KUEUE_NAMESPACE = "kueue-system"

QUEUED = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/pytorchjob",
    "ray.io/rayjob",
    "trainer.kubeflow.org/trainjob",
)
"""Kinds that Kueue looks after; its webhooks let the others pass."""


def _jobset(place: Place) -> tuple[str, ...]:
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": HOST, "port": place.webhooks, "certDir": str(place.serving)},
        "metrics": {"bindAddress": "0", "certDir": str(place.serving)},
        "health": {"healthProbeBindAddress": f"{HOST}:{place.probes}"},
        "leaderElection": ELECTION,
        "internalCertManagement": {"enable": False},
    }
    return (place.configured(configuration),)


def _trainer(place: Place) -> tuple[str, ...]:
    configuration = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": HOST, "port": place.webhooks},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{HOST}:{place.probes}"},
        "leaderElection": ELECTION,
        "certManagement": {"enable": False},
    }
    return (place.configured(configuration),)


def _kueue(place: Place) -> tuple[str, ...]:
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": KUEUE_NAMESPACE,
        "webhook": {"host": HOST, "port": place.webhooks, "certDir": str(place.serving)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{HOST}:{place.probes}"},
        "leaderElection": ELECTION,
        "integrations": {"frameworks": list(QUEUED)},
    }
    # Its visibility server wants a certificate at a fixed path.
    return (place.configured(configuration), "--feature-gates=VisibilityOnDemand=false")


def _kuberay(place: Place) -> tuple[str, ...]:
    return (
        "--metrics-addr=0",
        f"--health-probe-bind-address={HOST}:{place.probes}",
        "--enable-leader-election=false",
    )


def _training(place: Place) -> tuple[str, ...]:
    return (
        f"--webhook-port={place.webhooks}",
        f"--health-probe-bind-address={HOST}:{place.probes}",
        f"--certificates={place.serving}",
    )


JOBSET = Operator(
    name="jobset",
    module=CURRENT,
    path="sigs.k8s.io/jobset",
    kinds="config/components/crd/bases",
    registrations="config/components/webhook/manifests.yaml",
    selectors={"mpod.kb.io": OWN_PODS, "vpod.kb.io": OWN_PODS},
    flags=_jobset,
)

KUEUE = Operator(
    name="kueue",
    module=CURRENT,
    path="sigs.k8s.io/kueue",
    kinds="config/components/crd/bases",
    registrations="config/components/webhook/manifests.yaml",
    flags=_kueue,
)

TRAINER = Operator(
    name="trainer",
    module=CURRENT,
    path="github.com/kubeflow/trainer/v2",
    kinds="manifests/base/crds",
    registrations="manifests/base/webhook/manifests.yaml",
    flags=_trainer,
)

KUBERAY = Operator(
    name="kuberay",
    module=EARLIER,
    path="github.com/ray-project/kuberay/ray-operator",
    kinds="config/crd/bases",
    flags=_kuberay,
)
"""Without webhooks, as it comes."""

TRAINING = Operator(
    name="training-operator",
    module=EARLIER,
    path="github.com/kubeflow/training-operator",
    kinds="manifests/base/crds",
    registrations="manifests/base/webhook/manifests.yaml",
    flags=_training,
)

OPERATORS = (JOBSET, KUEUE, TRAINER, KUBERAY, TRAINING)
