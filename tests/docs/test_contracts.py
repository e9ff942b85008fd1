"""What the pages call settings, reasons and Events is what the code calls so, and all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from admission.codes import ReasonCode
from admission.config import Settings
from admission.controller.acts import Reason
from admission.decision import Cause
from admission.learning import corrections
from estimator.notes import AssumptionCode, UnknownCode
from tests.docs.pages import DOCS, ROOT

CONTRACTS = (DOCS / "contracts.md").read_text(encoding="utf-8")
PAGES = {page.name: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}
_WORD = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")
_LABELS = {"reason", "code", "unknowns", "skipped"}
"""Words in the list of reasons that are none."""


def settings(model: type[BaseModel] = Settings, above: str = "") -> Iterator[str]:
    """Yield the key of every setting, with the sections above it."""
    for name, field in model.model_fields.items():
        key = f"{above}{field.alias or name}"
        yield key
        for below in _models(field.annotation):
            yield from settings(below, f"{key}.")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def values(tree: Any, above: str = "") -> Iterator[str]:
    """Yield the key of every value of the chart."""
    for name, value in tree.items() if isinstance(tree, dict) else ():
        yield f"{above}{name}"
        yield from values(value, f"{above}{name}.")


def paragraph(start: str, end: str) -> str:
    """Return what the contract says between *start* and *end*."""
    return CONTRACTS.split(start)[1].split(end)[0]


def test_reasons_of_the_contract_are_those_of_the_code() -> None:
    """Labels of a metric and codes of an answer: others filter by them."""
    text = paragraph("**Reasons** ", "The controller takes").replace("`vramgate_unknown_total`", "")

    named = set(_WORD.findall(text)) - _LABELS

    assert named == {code.value for kind in (ReasonCode, UnknownCode, Cause) for code in kind}


def test_assumptions_of_the_contract_are_those_of_the_code() -> None:
    """The same of what an estimate takes for granted."""
    named = set(_WORD.findall(paragraph("those of `assumptions` are ", "\n")))

    assert named == {*(code.value for code in AssumptionCode), corrections.CODE}


def test_events_of_the_contract_are_those_of_the_code() -> None:
    """By their reasons, which people wait for."""
    named = set(re.findall(r"`(Gpu\w+)`", paragraph("**Events** ", "\n\n")))

    assert named == {reason.value for reason in Reason}


@pytest.mark.parametrize("page", PAGES)
def test_settings_that_a_page_names_exist(page: str) -> None:
    """In the settings file, or among the values of the chart."""
    chart = yaml.safe_load((ROOT / "charts/vramgate/values.yaml").read_text(encoding="utf-8"))
    known = {*settings(), *values(chart)}
    sections = "|".join({key.partition(".")[0] for key in settings()})
    named = re.findall(rf"`(?:config\.)?((?:{sections})\.[A-Za-z.]+)(?::[^`]*)?`", PAGES[page])

    assert {name for name in named if not name.endswith(".py")} <= known


def test_every_setting_is_on_a_page() -> None:
    """By its name at least; `vramgate schema settings` says what it means."""
    words = set(re.findall(r"\w+", "\n".join(PAGES.values())))

    assert {key for key in settings() if key.rpartition(".")[2] not in words} == set()
