"""What all tests share: nothing they assert may depend on how fast the machine is.

A test marked `sweep` is one of many that say the same. It is left out unless it is asked for, by
`-m sweep` or by its own name; `make soak` runs them all.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the sweeps out where nobody asks for them."""
    if "sweep" in config.option.markexpr or any("::" in name for name in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("sweep")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
