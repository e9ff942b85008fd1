"""Write docs/programs.md: every launcher and program whose command lines are read, and where from.

    recipes, launchers -> a table

`python -m tools.programs_page`; a test compares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "programs.md"
RECIPES = ROOT / "admission" / "detect" / "recipes" / "data"
LAUNCHERS = ROOT / "admission" / "detect" / "launchers"
_HELPERS = {"__init__", "step", "programs"}
_PARTS = ("_config", "_flags", "_sharing")
MAX_SOURCE = 180

HEAD = """\
# Launchers and programs

What command lines are understood today, and which source that was read from.
`python -m tools.programs_page` writes this page from the recipes; \
[how a job is read](reading.md) says what is done with them, and how to teach another.

"""


def page() -> str:
    """Return the page."""
    lines = [HEAD, "## Launchers\n", "Taken off a command line until a program is left.\n"]
    lines += ["| launcher | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in launchers()]
    lines += ["", "## Programs\n", "Recognised by script, module, place or flags of their own."]
    lines += ["", "| program | framework | recognised by | read at |", "|---|---|---|---|"]
    lines += [_row(recipe) for recipe in recipes()]
    return "\n".join(lines) + "\n"


def launchers() -> list[tuple[str, str]]:
    """Return each launcher's module and the first line of what it says of itself."""
    found = []
    for path in sorted(LAUNCHERS.glob("*.py")):
        name = path.stem
        if name in _HELPERS or name.endswith(_PARTS):
            continue
        first = path.read_text(encoding="utf-8").split('"""')[1].strip().splitlines()[0]
        found.append((name, _cell(first)))
    return found


def recipes() -> list[dict[str, Any]]:
    """Return every recipe, by the program's name."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in RECIPES.glob("*.yaml")]
    named = [each for each in found if isinstance(each, dict) and "name" in each]
    return sorted(named, key=lambda each: str(each["name"]).lower())


def _row(recipe: dict[str, Any]) -> str:
    match = recipe.get("match") or {}
    words = [*(match.get("scripts") or ()), *(match.get("modules") or ())]
    shown = ", ".join(f"`{word}`" for word in words[:4]) + (", …" if len(words) > 4 else "")
    told = shown or ("flags of its own" if match.get("own") else "its place")
    source = " ".join(str(recipe.get("source") or "").split())
    source = source if len(source) <= MAX_SOURCE else f"{source[: MAX_SOURCE - 1].rstrip()}…"
    framework = recipe.get("framework") or "by its flags"
    return f"| {_cell(recipe['name'])} | {framework} | {_cell(told)} | {_cell(source)} |"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
