"""One review on its way, and those it asks.

Review, moments -> Asked
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from admission.codes import Action, Mode, Steer, Verdict
from admission.estimates import AskingPool
from admission.metric_values import Admission
from admission.review import Review
from admission.values import NodeClass


class Cluster(Protocol):
    """What is known of the cluster: the inventory."""

    @property
    def classes(self) -> tuple[NodeClass, ...]:
        """Return the node classes."""
        ...

    def mode_of(self, namespace: str) -> Mode | None:
        """Return the mode that a namespace asks for."""
        ...

    def steer_of(self, namespace: str) -> Steer | None:
        """Return how hard a namespace wants its pods to be steered."""
        ...


class Counting(Protocol):
    """Who counts reviews: the metrics."""

    def reviews(
        self, *, kind: str, verdict: Verdict, action: Action, mode: Mode, cache: str
    ) -> Callable[[float], None]:
        """Return what counts one answered review of these, by the seconds that it took."""
        ...

    def read(self, source: str) -> None:
        """Count where a job's model was read from."""

    def unknown(self, code: str) -> None:
        """Count one reason for `unknown`."""

    def admitted(self, admission: Admission, *, name: str) -> None:
        """Count what a job that was admitted will take."""

    def steered(self, kind: str) -> None:
        """Count one object whose pods were steered."""

    def denial_withheld(self, kind: str, because: str) -> None:
        """Count one object that mode `warn` or an exemption alone kept from being denied."""

    def patch_dropped(self, kind: str) -> None:
        """Count one patch that was not sent."""


class NoBooks:
    """Counts nothing: what is judged is no review."""

    def reviews(
        self, *, kind: str, verdict: Verdict, action: Action, mode: Mode, cache: str
    ) -> Callable[[float], None]:
        """Count nothing."""
        del kind, verdict, action, mode, cache
        return lambda _: None

    def read(self, source: str) -> None:
        """Count nothing."""

    def unknown(self, code: str) -> None:
        """Count nothing."""

    def admitted(self, admission: Admission, *, name: str) -> None:
        """Count nothing."""

    def steered(self, kind: str) -> None:
        """Count nothing."""

    def denial_withheld(self, kind: str, because: str) -> None:
        """Count nothing."""

    def patch_dropped(self, kind: str) -> None:
        """Count nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One judgement being made: what every step of it needs."""

    review: Review
    estimator: AskingPool
    classes: tuple[NodeClass, ...]
    """Those of the cluster as it began: nodes that come or go meanwhile are the next review's."""
    started: float
    ends: float
    is_small: bool
    """The object is walked in an instant."""
    expands: bool = False
    """Its variables may take longer to read."""
    has_record: bool = False
    """Somewhere it says that we steered it at an earlier time."""
    renews: bool = False
    """Terms of an earlier time give way to those of the cards that there are now."""
    relaxes: bool = False
    """The next smaller card, which may hold it, counts as one that does."""
    missing: set[str] = field(default_factory=set)
    """Documents that the object refers to and that could not be had, by reference."""
    passing: set[str] = field(default_factory=set)
    """Why the same object may be answered otherwise in a moment; empty: nothing says that."""
    is_again: bool = False
    """`/mutate` had the object before: what it said is not said twice."""
