"""The table of families: it names all of them, and leaves out none that would claim a call."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest

from admission.detect import scripts
from admission.detect.invocation import Invocation, Launch
from admission.detect.recipes import Recipe, load_recipe
from admission.detect.recipes.tables import load_table
from admission.detect.scripts import families_in, families_of
from admission.detect.scripts.diffusion_scripts import SCRIPTS
from admission.detect.scripts.index import NAMES, entries_for
from admission.detect.scripts.table import ENTRIES
from admission.detect.scripts.tasks import EXAMPLES
from admission.detect.words import Word
from tools.recipe_names import names as recipe_names

RECIPES = tuple(load_recipe(name) for entry in ENTRIES for name in entry.recipes)
OTHERS = (
    *(f"{name}.py" for name in (*EXAMPLES, *SCRIPTS)),
    *(f"{name}_no_trainer.py" for name in EXAMPLES),
    *(f"{kind}.py" for kind in (*load_recipe("trl").modules, "reward_modeling", "sft_vlm")),
    *("main.py", "imagenet.py", "train.py", "model_main_tf2.py"),
)


def call(
    program: str,
    *flags: str,
    is_module: bool = False,
    launcher: str = "python",
    image: str = "",
    versions: tuple[str, ...] = (),
    variables: tuple[str, ...] = (),
) -> Invocation:
    """Return the call of *program* with *flags*."""
    return Invocation(
        program=Word(text=program),
        is_module=is_module,
        arguments=tuple(Word(text=flag) for flag in flags),
        variables=dict.fromkeys(variables, (Word(text="x"),)),
        directory="/workspace",
        where="containers[0]",
        path="spec.containers[0]",
        launch=Launch(launcher=launcher),
        versions=dict.fromkeys(versions, "1"),
        image=image,
    )


def calls() -> Iterator[Invocation]:
    """Yield calls by all that recipes and tables recognise a family by."""
    for recipe in RECIPES:
        yield from _calls_of(recipe)
    for name in OTHERS:
        yield call(name)
        yield call(name, "--per_device_train_batch_size=8")
    for kind in load_recipe("trl").modules:
        yield call(kind, is_module=True, launcher="trl")
        yield call(f"trl.scripts.{kind}", is_module=True)
    yield call("train.py", "x.yaml", launcher="composer")
    yield call("main.py", "fit", "--config=x.yaml")
    yield call("any.py", "--per_gpu_train_batch_size=8")
    for package in ("tensorflow", "tensorflow-gpu", "keras", "tf-nightly"):
        yield call("any.py", versions=(package,))
        yield call("any.py", image=f"example.com/{package}:2@sha256:0")
    yield call("any.py", variables=("TF_CONFIG",))


def _calls_of(recipe: Recipe) -> Iterator[Invocation]:
    for name in recipe.scripts | recipe.unique:
        yield call(name)
        for place in recipe.places:
            yield call(f"/{place.strip('/')}/{name}")
            yield call(f"{place}{name}", *(f"--{flag}" for flag in recipe.own))
    for module in recipe.modules:
        yield call(f"{module}x" if module.endswith(".") else module, is_module=True)
    for flag in recipe.own:
        yield call("any.py", f"--{flag}=1")
        yield call("any.py", "fit", f"--{flag}=1")


def test_every_module_with_a_family_is_in_the_table() -> None:
    """A family that is forgotten would never be asked."""
    found = set()
    for module in iter_modules(scripts.__path__):
        loaded = import_module(f"{scripts.__name__}.{module.name}")
        if hasattr(loaded, "FAMILY") or hasattr(loaded, "FAMILIES"):
            found.add(module.name)

    assert found == {entry.module for entry in ENTRIES}


def test_a_family_that_may_claim_a_call_is_among_its_entries() -> None:
    """The index never says no for a family that would say yes."""
    missed = [
        (entry.module, invocation.program.text)
        for invocation in calls()
        for entry in ENTRIES
        for family in families_in(entry.module)
        if family.may_claim(invocation) and entry not in entries_for(invocation)
    ]

    assert missed == []


def test_a_script_that_nobody_knows_asks_no_family() -> None:
    """Nothing is imported for it."""
    assert entries_for(call("count_words.py", "--lines")) == ()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: str(recipe.name))
def test_a_script_of_its_own_leads_to_its_family(recipe: Recipe) -> None:
    """What only one program has is found whatever else stands on the command line."""
    for name in recipe.unique:
        assert families_of(call(name, "--lr=1")), name


def test_no_recipe_is_read_to_find_that_it_is_not_meant() -> None:
    """The table of names tells: a script of nobody's opens none of sixty files."""
    load_recipe.cache_clear()

    entries = entries_for(call("serve_my_model"))

    assert not entries
    assert load_recipe.cache_info().currsize == 0


def test_the_table_of_names_is_what_the_recipes_say() -> None:
    """`python -m tools.recipe_names` was run after the last change of a recipe."""
    assert load_table(NAMES) == recipe_names()
