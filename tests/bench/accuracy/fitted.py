"""Which cases a constant of the estimator was fitted on.

    data/fitted.yaml, cases -> ids

A figure is quoted over the cases that are left: the held-out ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.bench.accuracy.cases import DATA, Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The cases of one group that one constant rests on: every `step`-th from `start` on."""

    constant: str
    where: str
    group: str
    start: int = 0
    step: int = 1
    models: tuple[str, ...] = ()
    largest_batch: int | None = None
    tested: str = ""
    """Where it was tested, in words."""

    @property
    def words(self) -> str:
        """Return which cases of the group it takes, in words."""
        every = "all" if self.step == 1 else f"one of {self.step}, from number {self.start + 1} on"
        batch = "" if self.largest_batch is None else f", batch up to {self.largest_batch}"
        patterns = " ".join(f"`{pattern}`" for pattern in self.models)
        models = f", models {patterns}" if patterns else ""
        return f"{every}{batch}{models}"

    def takes(self, cases: Sequence[Case]) -> tuple[Case, ...]:
        """Return which of *cases*, all there are and in order, it was fitted on."""
        of_group = [case for case in cases if case.group == self.group]
        return tuple(case for case in of_group[self.start :: self.step] if self._names(case))

    def _names(self, case: Case) -> bool:
        batch = case.spec["input"]["batchSize"]
        if self.largest_batch is not None and batch > self.largest_batch:
            return False
        name = case.spec["model"].get("name", "")
        return not self.models or any(fnmatchcase(name, pattern) for pattern in self.models)


def read_rules(path: Path = DATA / "fitted.yaml") -> tuple[Rule, ...]:
    """Return the rules, in the order of the file."""
    return tuple(_rule(item) for item in yaml.safe_load(path.read_text("utf-8")))


def fitted_ids(rules: Sequence[Rule], cases: Sequence[Case]) -> frozenset[str]:
    """Return the ids of *cases* that at least one constant was fitted on."""
    return frozenset(case.id for rule in rules for case in rule.takes(cases))


def _rule(item: dict[str, Any]) -> Rule:
    cases = item["cases"]
    return Rule(
        constant=item["constant"],
        where=item["where"],
        group=cases["group"],
        start=cases.get("start", 0),
        step=cases.get("step", 1),
        models=tuple(cases.get("models", ())),
        largest_batch=cases.get("largestBatch"),
        tested=item.get("tested", ""),
    )
