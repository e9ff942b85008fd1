"""Values that are a shell's default for a variable that the image may set.

    Call, draft -> doubts

`${BATCH:-8}` is 8 where nobody sets BATCH. The object does not; an image's ENV is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call

_PUBLISHED = re.compile(
    r"(?:(?:docker\.io|index\.docker\.io|registry\.hub\.docker\.com|mirror\.gcr\.io)/)?"
    r"(?:library/)?(?:python|ubuntu|debian|alpine|(?:pytorch|tensorflow|huggingface|rayproject|"
    r"ultralytics|nvidia|mxnet|horovod|continuumio)/[\w.-]+)(?:[:@]|$)|nvcr\.io/nvidia/"
)
"""Images that projects publish: none of them sets a variable of somebody's training script."""
_SETTLING = ("model", "input", "training", "adapter", "quantization", "parallelism")


def note_assumed(call: Call, draft: Draft) -> None:
    """Doubt every value of the spec that stands for such a default."""
    if _PUBLISHED.match(call.invocation.image):
        return
    for flag in _flags(call):
        names = [name for word in flag.values for name in word.assumed]
        if not names:
            continue
        paths = [path for path, source in draft.sources.items() if flag.source in source]
        paths = [path for path in paths if path.startswith(_SETTLING)]
        if paths:
            draft.doubt(
                f"{flag.field}: {flag.spelling:.60} is the default of ${names[0]:.60}, which the "
                "image may set; set it in env",
                *paths,
            )


def _flags(call: Call) -> Iterator[Flag]:
    yield from call.flags.given
    launch = call.invocation.launch
    for flag in (launch.processes, launch.total, launch.nodes, launch.precision):
        if flag is not None:
            yield flag
