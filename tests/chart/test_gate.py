"""Pods that a controller looks after: sent to the webhook whoever made them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.rendering import Document, RenderError, Values, documents, of_kind

pytestmark = pytest.mark.e2e

GATING: Values = {"config": {"steering": {"gate": True}}, "controller": {"enabled": True}}


def conditions(found: tuple[Document, ...]) -> dict[str, Any]:
    """Return the conditions under which `/mutate` is asked of pods."""
    webhooks = of_kind(found, "MutatingWebhookConfiguration")["webhooks"]
    (pods,) = (each for each in webhooks if each["name"] == "pods.vramgate.dev")
    return {each["name"]: each["expression"] for each in pods["matchConditions"]}


def test_pods_of_every_owner_are_sent_where_a_controller_looks_after_them() -> None:
    """Most owners' pods were steered by their template; one may be held, or its like have died."""
    assert "not-steered-by-its-owner" in conditions(documents())
    assert "not-steered-by-its-owner" not in conditions(documents(GATING))


def test_nobody_is_held_where_nobody_lets_go() -> None:
    """Without the controller the gate would stay on for ever."""
    with pytest.raises(RenderError, match=r"set controller\.enabled too"):
        documents({"config": {"steering": {"gate": True}}})
