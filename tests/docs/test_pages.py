"""The pages: links that lead somewhere, specs that are read, a tutorial that can be followed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from estimator.spec import parse_spec
from tests.docs.pages import DOCS, ROOT, blocks, steps
from tools.programs_page import page

SECONDS = 900.0
DONE_BEFORE = ("make demo", ". .venv/bin/activate")
"""Commands of the tutorial that a test run has behind it."""


def test_site_builds_strictly(tmp_path: Path) -> None:
    """A page in no menu, a dead link or anchor, a name that the API lost: each is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    index = (tmp_path / "site" / "index.html").read_text()
    assert "fonts.googleapis.com" not in index


def test_programs_page_is_what_the_recipes_say() -> None:
    """`python -m tools.programs_page` writes it."""
    assert (DOCS / "programs.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    "text", [each.text for each in blocks("jobspec.md") if each.language == "yaml"]
)
def test_every_spec_of_the_page_is_one(text: str) -> None:
    """A reader copies them."""
    parse_spec(yaml.safe_load(text))


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.sweep  # five commands that each import PyTorch; each has a test of its own
def test_tutorial_can_be_followed(tmp_path: Path) -> None:
    """Word by word: its files are saved, its commands run and end as it says."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    followed = 0
    for step in steps("tutorial.md"):
        if step.file:
            (tmp_path / step.file).write_text(step.text)
        elif step.command not in DONE_BEFORE:
            done = subprocess.run(
                ["bash", "-c", step.command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == step.status, (step.command, done.stdout, done.stderr)
            followed += 1

    assert followed >= 5
