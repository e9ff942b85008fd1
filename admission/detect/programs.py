"""The training program among a container's commands.

    Container, Commands, Unit, Workload -> Draft | nothing to estimate

One recognised script is read. Several that differ, or one that is not known, is a named gap.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect import activity
from admission.detect.assumed import note_assumed
from admission.detect.clones import fork_of
from admission.detect.commands import Commands
from admission.detect.container import Container
from admission.detect.deepspeed import OPTIMIZER
from admission.detect.draft import Draft
from admission.detect.environment import read_environment
from admission.detect.frameworks import framework_of, spec_hint, torch_launcher
from admission.detect.ranks import (
    VISIBLE,
    apply_parallelism,
    ranks_of,
    visible_gpus,
)
from admission.detect.rewritten import rewritten
from admission.detect.scripts import Call
from admission.detect.sorting import Programs, sorted_programs
from admission.detect.versions import put_versions
from admission.detect.words import Variables
from admission.values import Json, Unit, Workload

_NEEDED = ("model.name", "input.batchSize")
MAX_PROGRAMS = 16
"""Trainings of one container that are compared."""
HINT = spec_hint("pytorch")
_DEVICES = "NVIDIA_VISIBLE_DEVICES"
_HIDDEN = ("none", "void")
"""The container toolkit's words for no device; where devices are injected otherwise (CDI, volume
mounts), they say nothing."""
_ENVIRONMENT = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_MODULE_LOADING",
)
"""Variables that change how much memory PyTorch takes."""


def read_programs(
    container: Container, commands: Commands, unit: Unit, workload: Workload, *, given: Json
) -> Draft | None:
    """Return what is known of the training program, or None if there is none.

    *given* is what the owner states.
    """
    found = sorted_programs(container, commands)
    draft = Draft(given=given, models=unit.models)
    if found.known:
        draft = _read_known(found, container, commands, unit, workload, draft)
    elif found.ambiguous:
        _ambiguous(container, found, draft)
    elif found.unread:
        _unread(container, found, draft, hint=_hint(container, commands))
    elif found.templates:
        word = found.templates[0]
        draft.gap(
            *_NEEDED,
            code=word.code,
            path=f"{container.path}.{word.origin.partition(' ')[0] or 'command'}",
            reason=f"the command {word.text:.80} is not resolved",
            hint=f"render the template before it is applied, or {_hint(container, commands)}",
        )
    elif commands.problems:
        pass
    elif found.opaque or (not container.argv and not activity.is_smoke_image(container.image)):
        hint = _hint(container, commands, workload)
        _opaque(container, found, draft, unit, commands, hint=hint)
    elif found.on_cpu:
        draft.is_idle = True
        names = ", ".join(dict.fromkeys(found.on_cpu))
        draft.warnings.append(f"{container.path}: {names:.120} runs on the CPU")
    else:
        return None
    for problem in commands.problems:
        draft.gap(*_NEEDED, code=ReasonCode.UNSUPPORTED, path=container.path, reason=problem)
    if draft.get("framework") is not None and not found.known:
        _put_environment(draft, container.variables, container, commands)
    return draft


def _read_known(
    found: Programs,
    container: Container,
    commands: Commands,
    unit: Unit,
    workload: Workload,
    draft: Draft,
) -> Draft:
    drafts = []
    for invocation, family in found.known[:MAX_PROGRAMS]:
        one = Draft(given=draft.given, models=draft.models)
        _put_environment(one, invocation.variables, container, commands)
        ranks = ranks_of(invocation, unit, workload)
        call = Call(
            invocation=invocation,
            flags=family.flags(invocation),
            ranks=ranks,
            gpus=visible_gpus(invocation.variables, unit.gpus),
            files=commands.files,
        )
        family.read(call, one)
        if one.is_open:
            one.forget_defaults()
        apply_parallelism(one, invocation, ranks)
        built = invocation.launch.parallelism.get(OPTIMIZER)
        if built is not None:  # by the launcher, whatever the script would have
            one.put(OPTIMIZER, *built)
        _hidden(call, one)
        changed = rewritten(invocation, commands)
        if changed is not None:
            one.doubt(f"{invocation.path}: {changed}")
        if not unit.are_gpus_known and not invocation.launch.is_distributed:
            _open_gpus(unit, one)
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
    for other in drafts[1:]:
        first.doubts.extend(doubt for doubt in other.doubts if doubt not in first.doubts)
        first.gaps.extend(gap for gap in other.gaps if gap not in first.gaps)
    if not any(invocation.is_sure for invocation, _ in found.known):
        first.doubt(f"{container.path}: {found.known[0][0].name:.80} runs under a condition only")
    if len(found.known) > len(drafts) or any(
        other.document != first.document for other in drafts[1:]
    ):
        names = ", ".join(invocation.name for invocation, _ in found.known)
        first.gap(
            *_NEEDED,
            code=ReasonCode.UNSUPPORTED,
            path=container.path,
            reason=f"several training programs in one container ({names:.120})",
            hint=HINT,
        )
    return first


def _hidden(call: Call, draft: Draft) -> None:
    """Note what may decide otherwise and is not seen: the last flag counts, wherever it is."""
    invocation = call.invocation
    word = call.flags.hidden
    if word is not None:
        draft.doubt(
            f"{invocation.path}.{word.origin or 'args'}: {word.text:.60} is not resolved; "
            "flags in it are not seen"
        )
    fork = fork_of(invocation.repository)
    if fork:
        draft.doubt(f"{call.origin}: {invocation.name:.80} {fork}")
    note_assumed(call, draft)
    if any(word.text in _HIDDEN for word in invocation.variables.get(_DEVICES, ())):
        draft.doubt(
            f"{invocation.path}.env: {_DEVICES} hides the GPUs from the container where its "
            "runtime goes by it"
        )
    for name in call.files.unsure:
        draft.doubt(f"{invocation.path}: {name:.120} is written under a condition only")
    for reason in invocation.launch.doubts:
        draft.doubt(f"{invocation.path}: {reason}", "parallelism.strategy")
    if invocation.launch.unseen:
        draft.doubt(f"{invocation.path}: {invocation.launch.unseen}", "parallelism.strategy")
    if any(not value.is_known for value in invocation.variables.get(VISIBLE, ())):
        draft.doubt(f"{invocation.path}.env: {VISIBLE} is not resolved")


def _open_gpus(unit: Unit, draft: Draft) -> None:
    """Note that one process sees a number of GPUs that nobody has filled in.

    It may put a copy of the model on each, and give each a part of the batch.
    """
    resources = unit.container_spec.get("resources") or {}
    amounts = resources.get("limits") or resources.get("requests") or {}
    draft.gap(
        "input.batchSize",
        "parallelism.strategy",
        code=ReasonCode.TEMPLATE,
        path=f"{unit.container_path}.resources",
        reason=f"the number of GPUs {amounts.get(unit.gpu_resource)!s:.60} is not resolved",
        hint="render the template before it is applied",
    )


def _ambiguous(container: Container, found: Programs, draft: Draft) -> None:
    invocation, families = found.ambiguous[0]
    names = " or ".join(family.name for family in families)
    draft.gap(
        *_NEEDED,
        code=ReasonCode.NO_MODEL,
        path=f"{container.path}.{invocation.program.origin or 'command'}",
        reason=f"{invocation.name} with these flags can be {names}",
        hint="run it from its own folder (workingDir or cd), or " + HINT,
    )


def _hint(container: Container, commands: Commands, workload: Workload | None = None) -> str:
    """Return how to state the job, with the framework that it seems to be of."""
    told = workload.framework if workload is not None else ""
    name = framework_of(container.image, commands.invocations, commands.files) or told
    return spec_hint(name or "pytorch")


def _unread(container: Container, found: Programs, draft: Draft, *, hint: str) -> None:
    name, title, _ = found.unread[0]
    draft.gap(
        *_NEEDED,
        code=ReasonCode.UNSUPPORTED,
        path=container.path,
        reason=f"{title} ({name}) is not read yet" if title != name else f"{title} is not read yet",
        hint=hint,
    )


def _opaque(
    container: Container,
    found: Programs,
    draft: Draft,
    unit: Unit,
    commands: Commands,
    *,
    hint: str,
) -> None:
    """Read variable names, and say which of model and batch they leave open."""
    read_environment(container, draft, gpus=unit.gpus)
    if draft.get("framework") is None and (launcher := torch_launcher(commands.invocations)):
        draft.put("framework", "pytorch", launcher)
    if draft.get("model.name") is not None and draft.get("input.batchSize") is not None:
        return
    if not container.argv:
        code, reason = ReasonCode.NO_COMMAND, "no command: everything is inside the image"
    else:
        code = ReasonCode.NO_MODEL if draft.get("model.name") is None else ReasonCode.NO_BATCH
        names = ", ".join(dict.fromkeys(found.opaque))
        reason = f"{names:.120} is not a program that is known"
    draft.gap(*_NEEDED, code=code, path=container.path, reason=reason, hint=hint)


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
