"""Write what every recipe is recognised by into one table: run by hand once a recipe has changed.

python -m tools.recipe_names

admission/detect/recipes/data/*.yaml -> names.json beside them
"""

from __future__ import annotations

import json
from pathlib import Path

import admission.detect.recipes
from admission.detect.recipes import load_recipe
from admission.detect.scripts.index import NAMES

DATA = Path(admission.detect.recipes.__file__).with_name("data")


def names() -> dict[str, dict[str, list[str]]]:
    """Return file names, modules and own flags by recipe."""
    recipes = {path.stem: load_recipe(path.stem) for path in sorted(DATA.glob("*.yaml"))}
    return {
        name: {
            "scripts": sorted(recipe.scripts | recipe.unique),
            "modules": sorted(recipe.modules),
            "own": sorted(recipe.own),
        }
        for name, recipe in recipes.items()
    }


def main() -> None:
    """Write the table, a recipe a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(table)}" for name, table in names().items())
    text = ",\n  ".join(lines)
    (DATA / f"{NAMES}.json").write_text(f"{{\n  {text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
