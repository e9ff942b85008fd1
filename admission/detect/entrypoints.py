"""What an image starts by itself, where its variables or arguments say which image it is.

    Container -> words of the command line, the entry point's in front

Only for published images whose configuration comes from variables or flags that nobody else has:
never by the image's name.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.container import Container
from admission.detect.words import Word, words

_BY_VARIABLE: Mapping[str, tuple[str, ...]] = {
    "SFT_TRAINER_CONFIG_JSON_PATH": ("accelerate_launch.py",),
    "SFT_TRAINER_CONFIG_JSON_ENV_VAR": ("accelerate_launch.py",),
}
"""Variable -> what the image that reads it starts: foundation-model-stack/fms-hf-tuning@d3c30a03
build/Dockerfile."""
_BY_FLAGS: Mapping[frozenset[str], tuple[str, ...]] = {
    frozenset(words("--model_uri --transformer_type --training_parameters")): (
        "torchrun",
        "hf_llm_training.py",
    ),
}
"""Flags -> the entry point that takes them: kubeflow/training-operator@v1.9.0
sdk/python/kubeflow/trainer/Dockerfile."""


def whole_command(container: Container) -> tuple[Word, ...]:
    """Return the command line of *container*, with the image's entry point if that is known."""
    argv = container.argv
    if not argv:
        for name, started in _BY_VARIABLE.items():
            if container.variables.get(name):
                return tuple(Word(text=text, origin=f"env {name}") for text in started)
    elif argv[0].text.startswith("--"):
        given = {word.text.partition("=")[0] for word in argv}
        for flags, started in _BY_FLAGS.items():
            if flags <= given:
                return (*(Word(text=text, origin="args") for text in started), *argv)
    return argv
