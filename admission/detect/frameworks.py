"""The framework that a job nobody can read seems to be of: a hint names it, a spec never does.

    image, calls, files -> `tensorflow`; `tensorflow` -> how to state the job

Launchers and imports tell; an image's name tells as much as a hint needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from admission.detect.files import Files
from admission.detect.invocation import Invocation

_LAUNCHERS = frozenset(
    {"torchrun", "accelerate", "deepspeed", "composer", "fabric", "lightning", "hyperpodrun"}
)
_IMPORT = re.compile(r"^\s*(?:import|from)\s+(tensorflow|keras|jax|flax|mxnet|torch)\b", re.M)
_IMPORTED = {"keras": "tensorflow", "flax": "jax", "torch": "pytorch"}
_IMAGE = re.compile(r"tensorflow|keras|mxnet|jax|maxtext|torch")
_IMAGES = {"keras": "tensorflow", "maxtext": "jax", "torch": "pytorch"}
_MAX_TEXT = 1 << 16


def framework_of(image: str, invocations: Sequence[Invocation], files: Files) -> str:
    """Return the framework, or nothing if nothing tells."""
    if torch_launcher(invocations):
        return "pytorch"
    for invocation in invocations:
        if invocation.is_module:
            continue
        file = files.look(invocation.program.text, directory=invocation.directory)
        found = _IMPORT.search((file.text or "")[:_MAX_TEXT])
        if found is not None:
            return _IMPORTED.get(found.group(1), found.group(1))
    named = _IMAGE.search(image.partition("@")[0].lower())
    return _IMAGES.get(named.group(), named.group()) if named is not None else ""


def torch_launcher(invocations: Sequence[Invocation]) -> str:
    """Return the launcher among those of *invocations* that starts nothing but PyTorch."""
    names = (invocation.launch.launcher.partition(" ")[0] for invocation in invocations)
    return next((name for name in names if name in _LAUNCHERS), "")


def spec_hint(framework: str) -> str:
    """Return the sentence that says how to state a whole job of *framework* by hand."""
    return (
        "state it in the annotation vramgate.dev/spec: "
        f"{{framework: {framework}, model: {{source: …, name: …}}, input: {{batchSize: …}}}}"
    )
