"""Scripts of names that nobody ships, with flags that tell programs apart."""

from __future__ import annotations

import pytest

from admission.detect.recipes.tables import load_table
from tests.admission.detect.jobs import read_args

RECIPES = {name: row["own"] for name, row in load_table("names").items() if isinstance(row, dict)}


@pytest.mark.parametrize("name", [name for name, own in RECIPES.items() if own])
def test_a_program_known_by_its_flags_may_have_any_name(name: str) -> None:
    """What a family knows of its scripts by name is not looked for under another name."""
    for flag in RECIPES[name]:
        for value in ("", "1", "x"):
            reading = read_args("python", "my_own.py", f"--{flag}", *([value] if value else []))
            assert (reading.spec, reading.skip, bool(reading.unknowns)) != (None, None, False)
