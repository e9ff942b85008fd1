"""Values that the chart refuses, before anything is installed."""

from __future__ import annotations

import pytest

from tests.chart.rendering import RenderError, Values, rendered

pytestmark = pytest.mark.e2e


def test_schema_names_every_problem_of_the_values() -> None:
    """All at once, each with its path, as the settings file does."""
    values = {
        "replicas": 0,
        "replica": 3,
        "certificates": {"mode": "acme"},
        "config": {"policy": {"mode": "strict"}, "workers": {"threads": 4}},
    }
    with pytest.raises(RenderError) as caught:
        rendered(values)

    message = str(caught.value)
    for expected in (
        "'/replicas': minimum",
        "'replica' not allowed",
        "'/certificates/mode': value must be one of 'builtin', 'certManager', 'files'",
        "'/config/policy/mode': value must be one of 'enforce', 'warn', 'off'",
        "'/config/workers': additional properties 'threads' not allowed",
    ):
        assert expected in message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"certificates": {"mode": "files"}}, "/certificates/secretName"),
        ({"certificates": {"caBundle": "QUJD"}}, "/certificates/caBundle"),
        ({"config": {"server": {"port": 1}}}, "'port' not allowed"),
        ({"config": {"server": {"certFile": "/a"}}}, "'certFile' not allowed"),
        ({"config": {"certificates": {"mode": "files"}}}, "'mode' not allowed"),
        ({"config": {"nodes": {"classes": [{"selector": {"-": "a"}}]}}}, "selector"),
        ({"port": 443}, "/port"),
        ({"webhooks": {"timeoutSeconds": 31}}, "/webhooks/timeoutSeconds"),
    ],
)
def test_value_that_cannot_work_is_refused(values: Values, expected: str) -> None:
    """What the chart decides is not said twice; what is missing is asked for."""
    with pytest.raises(RenderError) as caught:
        rendered(values)

    assert expected in str(caught.value)
