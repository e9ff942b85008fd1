"""Which cluster a command asks: the one named by its options, or kubectl's own inside kubectl.

    options -> Access

Imports no client: `Access` is a name until a command opens it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from estimator.deferred import Deferred

if TYPE_CHECKING:
    from admission import listing
    from admission.listing import Connection
else:
    listing = Deferred("admission.listing")

PLUGIN = "kubectl vramgate"
"""The program's name where kubectl runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A cluster that a command may ask."""

    kubeconfig: Path | None
    """None: the cluster this process runs in."""
    context: str | None = None
    namespace: str | None = None

    def connect(self) -> Connection:
        """Return the connection.

        Raises:
            SettingsError: if the kubeconfig cannot be used.
        """
        return listing.connection(self.kubeconfig, context=self.context, namespace=self.namespace)


def access_of(
    program: object,
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    has_cards: bool,
) -> Access | None:
    """Return which cluster to ask; None if the cards come from somewhere else.

    A kubeconfig or a context asks for it; inside kubectl it is asked unless cards are given.
    """
    is_named = kubeconfig is not None or context is not None
    if not is_named and (has_cards or program != PLUGIN):
        return None
    return Access(kubeconfig=kubeconfig or usual_kubeconfig(), context=context, namespace=namespace)


def usual_kubeconfig() -> Path | None:
    """Return the kubeconfig that kubectl takes: `$KUBECONFIG`, or the one at home.

    None where there is neither and Kubernetes runs this process, as kubectl does it.
    """
    if named := os.environ.get("KUBECONFIG"):
        return Path(named)
    usual = Path.home() / ".kube" / "config"
    return None if os.environ.get("KUBERNETES_SERVICE_HOST") and not usual.exists() else usual
