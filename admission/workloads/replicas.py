"""Kinds of the training operator (kubeflow.org/v1): one template a role.

`spec.<x>ReplicaSpecs.<Role>.{replicas, template}`. Roles may be written in any case.
Source: kubeflow/training-operator v1.9.0 and, for MXJob, v1.7.0, `pkg/apis/kubeflow.org/v1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from admission.codes import ReasonCode
from admission.values import Documents, Finding, Json
from admission.workloads.fields import Amount, amount, at, mapping
from admission.workloads.kind import Pods
from admission.workloads.units import Template, limited, template_of

Roles = Mapping[str, Amount]
Injector = Callable[[Json, str, Roles], Json]
"""Spec, role, all roles with their replicas -> the variables that the operator sets."""


def no_variables(_spec: Json, _role: str, _roles: Roles) -> Json:
    """Return no variables."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaKind:
    """A kind whose roles are under `spec.<key>`."""

    key: str
    framework: str = ""
    variables: Injector = no_variables
    unmodelled: str = ""
    """A framework whose memory is not modelled."""

    def read(self, obj: Json, _documents: Documents) -> Pods:
        """Return a template for each role, in the order they are written."""
        problem = Finding(
            code=ReasonCode.UNSUPPORTED, path="kind", reason=f"{self.unmodelled} is not modelled"
        )
        return Pods(
            templates=replica_templates(obj, self.key, self.variables),
            framework=self.framework,
            problems=(problem,) if self.unmodelled else (),
        )


def replica_templates(
    obj: Json, key: str, variables: Injector = no_variables, *, default: int = 1
) -> tuple[Template, ...]:
    """Return the templates of the roles under `spec.<key>`.

    Raises:
        RequestError: if there are more roles than any job has.
    """
    spec = at(obj, "", "spec")
    path = f"spec.{key}"
    bodies = mapping(spec.get(key), path)
    limited(bodies, path, what="roles")
    roles = {
        role: amount(
            mapping(body, f"{path}.{role}").get("replicas"),
            f"{path}.{role}.replicas",
            default=default,
        )
        for role, body in bodies.items()
    }
    return tuple(
        template_of(
            mapping(body, f"{path}.{role}").get("template"),
            f"{path}.{role}.template",
            role=role,
            replicas=roles[role],
            injected=variables(spec, role, roles),
        )
        for role, body in bodies.items()
    )


def named(roles: Roles, name: str) -> Amount | None:
    """Return the replicas of the role *name* in any case, None if there is no such role."""
    return next((found for role, found in roles.items() if role.lower() == name), None)


def together(roles: Roles) -> Amount:
    """Return the number of pods of all roles."""
    return Amount(
        number=sum(found.number for found in roles.values()),
        is_known=all(found.is_known for found in roles.values()),
    )


def numbers(**counts: Amount | None) -> dict[str, str]:
    """Return those variables whose numbers are known."""
    return {
        name: str(found.number)
        for name, found in counts.items()
        if found is not None and found.is_known
    }
