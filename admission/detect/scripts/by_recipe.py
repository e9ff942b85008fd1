"""A family whose scripts, flags and defaults are in a recipe.

recipe, reader of its flags -> Family

The recipe says how its scripts are recognised: a module or command of its own, a file name nobody
else has, a file name in a folder or URL of its own, or flags that hardly any other program has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from admission.codes import ReasonCode
from admission.detect.configs import document_flags, read_config
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags, Options
from admission.detect.invocation import Invocation
from admission.detect.recipes import Recipe, load_recipe
from admission.detect.scripts.family import Call, Family, Match, never
from admission.detect.scripts.strangers import note_subject

_NEEDED = ("model.name", "input.batchSize")

Reader = Callable[[Call, Draft], None]


def family_of(
    name: str, read: Reader, *, is_on_cpu: Callable[[Flags], bool] = never, is_closed: bool = True
) -> Family:
    """Return the family of the recipe *name*, whose flags *read* understands.

    *is_closed*: the recipe lists all flags, so that another one means a changed script.
    """

    def flags(invocation: Invocation) -> Flags:
        return flags_of(invocation, name, load_recipe(name).options)

    def match(invocation: Invocation, _flags: Flags) -> Match:
        return match_of(invocation, load_recipe(name))

    def whole(call: Call, draft: Draft) -> None:
        recipe = load_recipe(name)
        draft.put("framework", recipe.framework, recipe.name)
        read(call, draft)
        _note(call, draft, recipe, is_closed=is_closed)

    return Family(
        name=name,
        flags=flags,
        match=match,
        read=whole,
        is_on_cpu=is_on_cpu,
        may_claim=lambda invocation: match_of(invocation, load_recipe(name)) is not Match.NO,
    )


def flags_of(invocation: Invocation, name: str, options: Options) -> Flags:
    """Return the flags of a program read with *options*, over what the recipe *name* takes."""
    version = invocation.versions.get(load_recipe(name).package)
    return replace(invocation.flags(options), defaults=_defaults(name, version))


@lru_cache(maxsize=512)
def _defaults(name: str, version: str | None) -> Mapping[str, Flag]:
    return load_recipe(name).defaults_for(version)


def match_of(invocation: Invocation, recipe: Recipe) -> Match:
    """Return how sure it is that *invocation* is of *recipe*."""
    name = invocation.name
    if invocation.is_module:
        is_own = any(
            name.startswith(module) if module.endswith(".") else name == module
            for module in recipe.modules
        )
        return Match.PLACE if is_own else Match.NO
    if recipe.foreign and recipe.foreign & invocation.spellings:
        return Match.NO
    if name in recipe.unique:
        return Match.PLACE
    if name in recipe.scripts and any(place in invocation.location for place in recipe.places):
        return Match.PLACE
    return Match.FLAGS if recipe.own and recipe.own & invocation.spellings else Match.NO


def with_config(call: Call, draft: Draft, flag: Flag | None, *, path: str | None = None) -> Flags:
    """Return the call's flags over those of the configuration file that *flag* names, or *path*.

    A file that is not seen is a gap: everything may be in it.
    """
    word = flag.value if flag is not None else None
    name = path if path is not None else word.text if word is not None else ""
    if not name:
        return call.flags
    if word is not None and path is None and not word.is_known:
        _gap(call, draft, flag, code=word.code, reason=f"{name:.120} is not resolved")
        return call.flags
    config = read_config(call.read_file(name))
    if config.problem:
        _gap(call, draft, flag, code=ReasonCode.DOCUMENT, reason=f"{name:.120} {config.problem}")
        return call.flags
    where = flag.field if flag is not None else call.origin
    return call.flags.over(document_flags(config.document, told_by=config.source, path=where))


def _gap(call: Call, draft: Draft, flag: Flag | None, *, code: str, reason: str) -> None:
    draft.is_open = True
    draft.gap(
        *_NEEDED,
        code=code,
        path=flag.field if flag is not None else call.origin,
        reason=reason,
        hint="put the file in a ConfigMap that the pod mounts, or "
        + annotation_hint("input.batchSize").replace("input: {batchSize: …}", "{…}"),
    )


def _note(call: Call, draft: Draft, recipe: Recipe, *, is_closed: bool) -> None:
    """Note what on the command line is not the program's own."""
    script = call.invocation.name
    if match_of(call.invocation, recipe) is Match.FLAGS:
        draft.doubt(
            f"{call.origin}: {script:.80} is read by the flags it shares with {recipe.name}; "
            "its folder does not tell whether it is that program"
        )
    if not is_closed:
        return
    foreign = tuple(flag for flag in call.flags.foreign if not flag.told_by)
    for flag in foreign:
        note_subject(flag, draft)
    names = ", ".join(tuple(dict.fromkeys(flag.spelling for flag in foreign))[:3])
    if names:
        draft.doubt(
            f"{call.origin}: {script:.80} does not have the flags {names:.120} where it comes "
            "from; it was changed, and what else it does is not seen"
        )
