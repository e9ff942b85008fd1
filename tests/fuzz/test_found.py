"""Inputs that fuzzing found once are given to their targets again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.parent import FOUND
from tests.fuzz.table import targets

INPUTS = sorted(path for path in FOUND.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_broke_something_once_does_no_more(path: Path) -> None:
    """What was found is mended: the target takes the input and says nothing."""
    targets()[path.parent.name].run(path.read_bytes())


def test_every_target_takes_its_own_seeds() -> None:
    """A target that cannot take what it begins with fuzzes nothing."""
    for target in targets().values():
        for seed in list(target.seeds())[:2]:
            target.run(seed)
