"""Frozen models on the same card that a spec lists: teachers, encoders, judges.

    JobSpec, Built -> Built with its companions

Each is built as a model of its own and runs once a micro-step without gradients, fed with the job's
own sizes, before the trained model does.
Not modelled: what the trained model takes from them (its inputs are made anew), companions that run
after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from estimator.errors import EstimatorError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built, Shapes, run_forward
from estimator.notes import UnknownCode
from estimator.spec import JobPhase, JobSpec
from estimator.spec.model import Companion


def with_companions(
    spec: JobSpec,
    built: Built,
    notebook: Notebook,
    build: Callable[[JobSpec, Notebook], Built],
) -> Built:
    """Return *built* with the companions of *spec*, which *build* makes.

    Raises:
        UnsupportedJobError: for a companion that cannot be built, by its place in the spec.
    """
    if not spec.model.companions:
        return built
    made = [
        companion_of(spec, companion, f"model.companions[{index}]", notebook, build)
        for index, companion in enumerate(spec.model.companions)
    ]

    def run(shapes: Shapes) -> None:
        built.run_companions(shapes)
        for each in made:
            batch = each.make_batch(shapes)
            for name in each.targets:
                batch.pop(name, None)
            run_forward(each, batch)

    models = (*built.companions, *(each.model for each in made))
    return replace(built, companions=models, run_companions=run)


def companion_of(
    spec: JobSpec,
    companion: Companion,
    path: str,
    notebook: Notebook,
    build: Callable[[JobSpec, Notebook], Built],
) -> Built:
    """Return *companion*, which the spec has at *path*, frozen.

    Raises:
        UnsupportedJobError: if it cannot be built.
    """
    model = spec.model.model_copy(
        update={
            "source": companion.source,
            "name": companion.name,
            "config": companion.config,
            "task": None,
            "attention": None,
            "num_labels": None,
            "options": {},
            "companions": (),
        }
    )
    alone = spec.model_copy(
        update={
            "phase": JobPhase.INFER,
            "model": model,
            "adapter": None,
            "quantization": None,
            "training": spec.training.model_copy(
                update={"precision": companion.precision, "use_cache": False}
            ),
        }
    )
    try:
        made = build(alone, notebook)
    except EstimatorError as error:
        raise UnsupportedJobError(
            f"{path}: {error.message}", code=UnknownCode.MODEL, path=path, hint=error.hint
        ) from error
    made.model.eval().requires_grad_(False)
    return made
