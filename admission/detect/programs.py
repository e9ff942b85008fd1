"""The training program among a container's commands.

    Container, Commands, Unit, Workload -> Draft | nothing to estimate

One recognised script is read. Several that differ, or one that is not known, is a named gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from admission.codes import ReasonCode
from admission.detect import activity
from admission.detect.commands import SHELLS, Commands
from admission.detect.container import Container
from admission.detect.draft import Draft
from admission.detect.environment import read_environment
from admission.detect.flags import Flags
from admission.detect.invocation import Invocation
from admission.detect.launchers.wrappers import SUBCOMMANDS, WRAPPERS
from admission.detect.ranks import apply_parallelism, ranks_of, visible_gpus
from admission.detect.scripts import Call, Family, families_of
from admission.detect.shell import Command
from admission.detect.versions import put_versions
from admission.detect.words import Variables, Word
from admission.values import Json, Unit, Workload

_NEEDED = ("model.name", "input.batchSize")
HINT = (
    "state it in the annotation vramgate.dev/spec: "
    "{framework: pytorch, model: {source: …, name: …}, input: {batchSize: …}}"
)
_ENVIRONMENT = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_MODULE_LOADING",
)
"""Variables that change how much memory PyTorch takes."""


@dataclass(slots=True)
class _Sorted:
    """A container's commands by what they are."""

    known: list[tuple[Invocation, Family]] = field(default_factory=list)
    ambiguous: list[tuple[Invocation, tuple[Family, ...]]] = field(default_factory=list)
    unread: list[tuple[str, str, tuple[Word, ...]]] = field(default_factory=list)
    """Name, what it is, arguments."""
    opaque: list[str] = field(default_factory=list)
    """What is run and cannot be seen into."""
    launched: list[str] = field(default_factory=list)
    """Those of them that a launcher starts: trainings, surely."""
    templates: list[Word] = field(default_factory=list)
    """Commands that are not resolved."""
    idle: bool = False
    """A smoke test, a server, a notebook."""


def read_programs(
    container: Container, commands: Commands, unit: Unit, workload: Workload, *, given: Json
) -> Draft | None:
    """Return what is known of the training program, or None if there is none.

    *given* is what the owner states.
    """
    found = _sorted(container, commands)
    draft = Draft(given=given)
    if found.known:
        draft = _read_known(found, container, commands, unit, workload, draft)
    elif found.ambiguous:
        _ambiguous(container, found, draft)
    elif found.unread:
        _unread(container, found, draft)
    elif found.templates:
        word = found.templates[0]
        draft.gap(
            *_NEEDED,
            code=word.code,
            path=f"{container.path}.{word.origin or 'command'}",
            reason=f"the command {word.text:.80} is not resolved",
            hint="render the template before it is applied, or " + HINT,
        )
    elif (
        found.opaque
        or commands.problems
        or (not container.argv and not activity.is_smoke_image(container.image))
    ):
        _opaque(container, found, draft, unit)
    else:
        return None
    for problem in commands.problems:
        draft.gap(*_NEEDED, code=ReasonCode.UNSUPPORTED, path=container.path, reason=problem)
    if draft.get("framework") is not None and not found.known:
        _put_environment(draft, container.variables, container, commands)
    return draft


def _sorted(container: Container, commands: Commands) -> _Sorted:
    found = _Sorted()
    for invocation in commands.invocations:
        _sort_invocation(invocation, found)
    if commands.inline:
        found.opaque.append("Python code on the command line")
    for command in commands.others:
        _sort_command(command, container, found)
    return found


def _sort_invocation(invocation: Invocation, found: _Sorted) -> None:
    name = invocation.name
    if not invocation.program.is_known:
        found.templates.append(invocation.program)
        return
    if invocation.is_module:
        if activity.is_serving_module(name):
            found.idle = True
            return
        if name in activity.TOOLS:
            return
        for beginning, title in activity.UNREAD_MODULES.items():
            if name.startswith(beginning):
                found.unread.append((name, title, invocation.arguments))
                return
    families = families_of(invocation)
    if len(families) == 1:
        found.known.append((invocation, families[0]))
    elif families:
        found.ambiguous.append((invocation, families))
    else:
        found.opaque.append(name)
        if invocation.launch.is_distributed:
            found.launched.append(name)


def _sort_command(command: Command, container: Container, found: _Sorted) -> None:
    word = command.words[0]
    name = word.text.rpartition("/")[2]
    if not word.is_known and word.text in word.unresolved:
        found.templates.append(word)
    elif activity.is_no_training(name):
        found.idle = True
    elif name in activity.UNREAD:
        found.unread.append((name, activity.UNREAD[name], command.words[1:]))
    elif word.text.startswith("-"):
        if not activity.is_smoke_image(container.image):
            found.opaque.append("the image's own entry point")
    elif name in SHELLS:
        script = next((w.text for w in command.words[1:] if not w.text.startswith("-")), name)
        found.opaque.append(script.rpartition("/")[2])
    elif name not in activity.HARMLESS and name not in WRAPPERS and name not in SUBCOMMANDS:
        found.opaque.append(name)


def _read_known(
    found: _Sorted,
    container: Container,
    commands: Commands,
    unit: Unit,
    workload: Workload,
    draft: Draft,
) -> Draft:
    drafts = []
    for invocation, family in found.known:
        one = Draft(given=draft.given)
        _put_environment(one, invocation.variables, container, commands)
        ranks = ranks_of(invocation, unit, workload)
        call = Call(
            invocation=invocation,
            flags=family.flags(invocation),
            ranks=ranks,
            gpus=visible_gpus(invocation.variables, unit.gpus),
        )
        family.read(call, one)
        _written(commands, one, container)
        apply_parallelism(one, invocation, ranks)
        _hidden(call.flags, one, container)
        drafts.append(one)
    first = drafts[0]
    for name, title, _ in found.unread:
        first.gap(
            *_NEEDED,
            code=ReasonCode.UNSUPPORTED,
            path=container.path,
            reason=f"{title} ({name}) runs in the same container and is not read yet",
            hint=HINT,
        )
    if found.launched:
        names = ", ".join(dict.fromkeys(found.launched))
        first.warnings.append(f"{container.path}: {names:.120} is not read; it may use the GPU")
    if any(other.document != first.document for other in drafts[1:]):
        names = ", ".join(invocation.name for invocation, _ in found.known)
        first.gap(
            *_NEEDED,
            code=ReasonCode.UNSUPPORTED,
            path=container.path,
            reason=f"several training programs in one container ({names:.120})",
            hint=HINT,
        )
    return first


def _written(commands: Commands, draft: Draft, container: Container) -> None:
    """Note a configuration that the launcher will read from a file."""
    if not commands.writes_configuration:
        return
    draft.gap(
        "parallelism.strategy",
        "training.precision",
        code=ReasonCode.UNSUPPORTED,
        path=container.path,
        reason="the script writes accelerate's default configuration, which is not read yet",
        hint="state it in the annotation vramgate.dev/spec: "
        "{training: {precision: …}, parallelism: {strategy: …}}",
    )


def _hidden(flags: Flags, draft: Draft, container: Container) -> None:
    """Say so if an unresolved word may hold more flags."""
    word = flags.hidden
    if word is not None:
        draft.warnings.append(
            f"{container.path}.{word.origin or 'args'}: {word.text:.60} is not resolved; "
            "flags in it are not seen"
        )


def _ambiguous(container: Container, found: _Sorted, draft: Draft) -> None:
    invocation, families = found.ambiguous[0]
    names = " or ".join(family.name for family in families)
    draft.gap(
        *_NEEDED,
        code=ReasonCode.NO_MODEL,
        path=f"{container.path}.{invocation.program.origin or 'command'}",
        reason=f"{invocation.name} with these flags can be {names}",
        hint="run it from its own folder (workingDir or cd), or " + HINT,
    )


def _unread(container: Container, found: _Sorted, draft: Draft) -> None:
    name, title, _ = found.unread[0]
    draft.gap(
        *_NEEDED,
        code=ReasonCode.UNSUPPORTED,
        path=container.path,
        reason=f"{title} ({name}) is not read yet" if title != name else f"{title} is not read yet",
        hint=HINT,
    )


def _opaque(container: Container, found: _Sorted, draft: Draft, unit: Unit) -> None:
    """Read variable names, and say which of model and batch they leave open."""
    read_environment(container, draft, gpus=unit.gpus)
    if draft.get("model.name") is not None and draft.get("input.batchSize") is not None:
        return
    if not container.argv:
        code, reason = ReasonCode.NO_COMMAND, "no command: everything is inside the image"
    else:
        code = ReasonCode.NO_MODEL if draft.get("model.name") is None else ReasonCode.NO_BATCH
        names = ", ".join(dict.fromkeys(found.opaque))
        reason = f"{names:.120} is not a program that is known"
    draft.gap(*_NEEDED, code=code, path=container.path, reason=reason, hint=HINT)


def _put_environment(
    draft: Draft, variables: Variables, container: Container, commands: Commands
) -> None:
    """Set versions and the variables that move memory."""
    put_versions(draft, image=container.image, pins=commands.versions, where=container.where)
    for name in _ENVIRONMENT:
        for word in variables.get(name, ())[:1]:
            if word.is_known and word.text:
                draft.put(f"runtime.env.{name}", word.text[:4096], f"env {name}")
            elif not word.is_known:
                draft.warnings.append(f"{container.path}.env: {name} is not resolved")
