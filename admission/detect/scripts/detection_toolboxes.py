"""OpenMMLab's toolboxes and detectron2: what their command lines tell beside the configuration.

flags, `key=value` or KEY VALUE -> batch and precision in the draft; the model is a named gap

Source: the recipes `openmmlab` and `detectron2`. Models are in configuration files of the image,
and made of the toolboxes' own parts, which no source of a JobSpec has.
"""

from __future__ import annotations

from dataclasses import replace

from admission.detect.draft import Draft
from admission.detect.flags import Flag, Flags
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call
from admission.detect.scripts.pictures import put_replicas, unsupported_model
from admission.detect.scripts.verbs import number_of, put_batch

_BATCH_MM = ("train_dataloader.batch_size", "data.samples_per_gpu")
_BATCH_D2 = "solver.ims_per_batch"
_MIXED_D2 = "solver.amp.enabled"


def _read_openmmlab(call: Call, draft: Draft) -> None:
    flags = call.flags
    name = flags.positional[0].text if flags.positional else "the configuration"
    options = _options(flags.get("cfg_options", "options"))
    batch = next((options[key] for key in _BATCH_MM if key in options), None)
    _no_model(call, draft, name, has_batch=batch is not None)
    put_batch(call, draft, batch)
    mixed = flags.get("amp")
    if mixed is not None:
        draft.put("training.precision", "amp-fp16", mixed.source)


def _read_detectron(call: Call, draft: Draft) -> None:
    flags = call.flags
    file = flags.get("config_file")
    name = file.value.text if file is not None and file.value is not None else "the configuration"
    options = {flag.name.lower(): flag for flag in flags.given if "." in flag.name}
    options |= _pairs(flags, file)
    batch = options.get(_BATCH_D2)
    _no_model(call, draft, name, has_batch=batch is not None)
    cards = number_of(flags.setting("num_gpus")) or 1
    machines = number_of(flags.setting("num_machines")) or 1
    put_batch(call, draft, batch, accumulation=cards * machines)
    given = flags.get("num_gpus")
    if given is not None:
        put_replicas(draft, cards * machines, source=given.source)
    mixed = options.get(_MIXED_D2)
    if mixed is not None and mixed.is_on:
        draft.put("training.precision", "amp-fp16", mixed.source)


def _no_model(call: Call, draft: Draft, name: str, *, has_batch: bool) -> None:
    unsupported_model(
        draft,
        call.origin,
        f"the model is in {name:.120}, in the image, and made of the toolbox's own parts",
        *(() if has_batch else ("input.batchSize",)),
    )


def _options(flag: Flag | None) -> dict[str, Flag]:
    """Return the `key=value` of a flag with several."""
    found = {}
    for word in flag.values if flag is not None else ():
        key, equals, value = word.text.partition("=")
        if flag is not None and equals:
            found[key] = replace(flag, spelling=key, values=(word.part(value),))
    return found


def _pairs(flags: Flags, like: Flag | None) -> dict[str, Flag]:
    """Return the KEY VALUE at the end of the command line."""
    words = flags.positional
    found = {}
    for key, value in zip(words[::2], words[1::2], strict=False):
        if like is not None and "." in key.text:
            found[key.text.lower()] = replace(like, spelling=key.text, values=(value,))
    return found


FAMILIES = (
    family_of("openmmlab", _read_openmmlab, is_closed=False),
    family_of("detectron2", _read_detectron, is_closed=False),
)
