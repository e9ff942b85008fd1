"""Every right that the chart gives, one by one, and the accounts that lack one.

rendered roles -> Rights; a Right -> roles with all but that one
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.chart.rendering import Document, Values, all_of_kind, documents

VALUES: Values = {
    "controller": {"enabled": True},
    "agent": {"enabled": True},
    "webhooks": {"failClosed": True},
}
"""With everything that has rights."""
RELEASE = "rights"
PROCESSES = {"webhook": "serve", "controller": "controller", "agent": "agent"}
"""Component -> command."""
ROLES = ("ClusterRole", "Role")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """One verb on one kind of objects, for one process."""

    process: str
    role: str
    """`ClusterRole`, or `Role` in the release's own namespace."""
    group: str
    resource: str
    names: tuple[str, ...]
    """The objects it is for; none means all of them."""
    verb: str

    @property
    def kind(self) -> str:
        """Return the kind of objects as people write it: `jobs.batch`, `secrets`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def place(self) -> str:
        """Return what it is for, as the table of the docs says it."""
        names = ",".join(name.removeprefix(f"{RELEASE}-") for name in self.names)
        return f"{self.kind}/{names}" if names else self.kind

    def __str__(self) -> str:
        return f"{self.process} {self.verb} {self.place}"


def rights(values: Values = VALUES) -> tuple[Right, ...]:
    """Return every right of every process, as the chart renders them."""
    return tuple(sorted(right for role in _roles(values) for right in _of_role(role)))


def without(lacking: Right | None, *, process: str, values: Values = VALUES) -> list[Document]:
    """Return the roles of *process* with all rights but *lacking*."""
    return [
        {**role, "rules": [_rule(right) for right in _of_role(role) if right != lacking]}
        for role in _roles(values)
        if _process(role) == process
    ]


def _roles(values: Values) -> tuple[Document, ...]:
    return _rendered(json.dumps(values))


@cache
def _rendered(values: str) -> tuple[Document, ...]:
    """Return the roles; reading them takes a while, and every account asks for them."""
    found = documents(json.loads(values), release=RELEASE)
    return tuple(role for kind in ROLES for role in all_of_kind(found, kind))


def _process(role: Document) -> str:
    return PROCESSES[role["metadata"]["labels"]["app.kubernetes.io/component"]]


def _of_role(role: Document) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(
                        process=_process(role),
                        role=role["kind"],
                        group=group,
                        resource=resource,
                        names=tuple(rule.get("resourceNames", ())),
                        verb=verb,
                    )


def _rule(right: Right) -> Document:
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
    return rule | ({"resourceNames": list(right.names)} if right.names else {})
