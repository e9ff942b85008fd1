"""A controller with which all is well, and one change to it for each of its alerts.

series that differ, minutes -> the one alert that must fire
"""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from admission.controller.duties import NAMES
from admission.controller.exposition import Exposition
from tests.e2e.prometheus.cases import CASES, MINUTES, Case, Series, always, growing, warned

CONTROLLER = {
    "namespace": "vramgate-system",
    "pod": "vramgate-controller-0",
    "instance": "10.0.1.1:8080",
}


def of_controller(name: str, **labels: str) -> str:
    """Return a series of the controller."""
    text = ",".join(f'{label}="{value}"' for label, value in {**CONTROLLER, **labels}.items())
    return f"vramgate_{name}{{{text}}}"


def at_work() -> Series:
    """Return every series of a controller that leads, as it shows them at its start."""
    exposition = Exposition(duties=NAMES, queued=lambda: 0)
    exposition.leads(True)
    text = exposition.text().decode()
    return {
        of_controller(sample.name.removeprefix("vramgate_"), **sample.labels): always(sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


LEADS = of_controller("controller_leads")
QUEUE = of_controller("controller_queue")
CASES_AFTER = (
    warned("VramgateControllerAbsent", 30, {LEADS: f"1x9 0x{MINUTES}"}),
    Case(
        alert="VramgateControllerQueueGrows",
        severity="warning",
        minutes=13 * 60 + 40,
        changed={LEADS: always(1), QUEUE: growing(2)},
        labels=CONTROLLER,
    ),
    warned(
        "VramgateActsRefused",
        10,
        {of_controller("controller_acts_total", duty="moves", outcome="refused"): growing(1)},
        duty="moves",
    ),
    Case(
        alert="VramgateWrongCard",
        severity="info",
        minutes=10,
        changed={of_controller("wrong_card_total", state="running"): growing(1)},
    ),
    Case(
        alert="VramgateManyMoves",
        severity="info",
        minutes=15,
        changed={of_controller("rescheduled_total", reason="out-of-memory"): growing(1)},
        labels={"reason": "out-of-memory"},
    ),
)
ALL = (*CASES, *CASES_AFTER)
