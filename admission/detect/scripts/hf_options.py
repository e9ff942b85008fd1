"""The lengths that the Trainer's scripts are asked for.

    flags -> sequenceLength, targetLength, padding in the draft

Source: huggingface/transformers@00d481d1 examples/pytorch.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.scripts.family import source_of_default
from admission.detect.scripts.tasks import LENGTH_FLAGS, Example


def put_length(flags: Flags, draft: Draft, example: Example, script: str) -> None:
    """Set sequence and target length by flags, or the script's certain defaults."""
    names = example.length_flags or LENGTH_FLAGS
    if not draft.integer("input.sequenceLength", flags.get(*names)) and example.length is not None:
        draft.put("input.sequenceLength", example.length, source_of_default(script))
    if example.target_flags and not draft.integer(
        "input.targetLength", flags.get(*example.target_flags)
    ):
        draft.put("input.targetLength", example.target, source_of_default(script))
    padded = flags.get("pad_to_max_length")
    pads = padded is not None and not padded.is_on
    if draft.get("input.sequenceLength") is not None and (
        pads or (example.pads and not flags.is_on("pad_to_max_length"))
    ):
        source = padded.source if padded is not None else source_of_default(script)
        draft.put("input.padding", "longest", source)
