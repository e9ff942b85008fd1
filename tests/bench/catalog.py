"""Build every model of the catalog and count its weights.

    python -m tests.bench.catalog [part of an id …]

Prints what is not as the catalog says, and exits 1 if anything is. Models of other libraries,
those with code of their own and those in `OTHERWISE` are passed over.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from estimator.catalog.models import KnownModel, known_model, known_model_ids
from estimator.errors import EstimatorError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch import patches
from estimator.frontends.pytorch.build.huggingface import build_huggingface
from estimator.frontends.pytorch.standin import StandIn
from estimator.spec import parse_spec

OTHERWISE = {
    "MCG-NJU/videomae-base": "counted with the decoder it was pretrained with",
    "facebook/deit-base-distilled-patch16-224": "counted with both heads",
    "google/bigbird-roberta-base": "counted without the pooler",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": "the library's own step fails",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "the library's own step fails",
}
"""Models that the class of their task does not build as the catalog counts them."""


def counted(known: KnownModel) -> int:
    """Return the elements of the weights of *known* as it is built, tied ones once.

    Raises:
        EstimatorError: if it cannot be built.
    """
    spec = parse_spec(
        {
            "framework": "pytorch",
            "phase": "infer",
            "model": {"source": "huggingface", "name": known.id},
            "input": {"batchSize": 1},
        }
    )
    with patches.no_initialisation(), StandIn():
        model = build_huggingface(spec, Notebook()).model
    return sum(parameter.numel() for parameter in model.parameters())


def buildable(known: KnownModel) -> bool:
    """Return whether *known* can be built and counted."""
    has_class = known.library == "transformers" and not known.remote_code
    return has_class and known.id not in OTHERWISE


def main(parts: Sequence[str]) -> int:
    """Count the models whose ids have one of *parts* in them, all without any."""
    wrong = 0
    for name in known_model_ids():
        known = known_model(name)
        assert known is not None
        if (parts and not any(part in name for part in parts)) or not buildable(known):
            continue
        try:
            found = counted(known)
        except EstimatorError as error:
            print(f"{name}: {error.message}")
            wrong += 1
            continue
        if found != known.parameters:
            print(f"{name}: {found} weights, {known.parameters} in the catalog")
            wrong += 1
    print(f"{wrong} are not as the catalog says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
