"""A module of the user's own code, imported and built on stand-ins: for `vramgate trace` only.

    package.module:name, JobSpec -> Built -> Trace

This is the one file that imports code a person names. Nothing that answers a review may import it
(`lint-imports`), and it runs in a child process of the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from estimator.errors import Problem, SpecError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch import FRAMEWORK
from estimator.frontends.pytorch.build.heads import head_of
from estimator.frontends.pytorch.build.huggingface import built_transformer
from estimator.frontends.pytorch.build.job import Batch, Built, Shapes, short, stand_in
from estimator.frontends.pytorch.dtypes import WEIGHTS
from estimator.frontends.pytorch.patches import replaced
from estimator.frontends.pytorch.tracing import trace
from estimator.notes import AssumptionCode
from estimator.spec import JobSpec
from estimator.trace import Trace
from estimator.traits import Traits

BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserModule:
    """What a person named: the frontend that traces it (`estimator.frontends.Frontend`)."""

    target: str
    """`package.module:name` of a module, or of what returns one without arguments."""
    inputs: str | None = None
    """`package.module:name` of a function: batch size -> what the model is called with."""
    loss: str | None = None
    """`package.module:name` of a function: model, inputs -> the scalar to call backward on."""

    FRAMEWORK = FRAMEWORK

    def trace_job(self, spec: JobSpec, *, traits: Traits) -> Trace:
        """Return the trace of the module under the settings of *spec*.

        Raises:
            SpecError: if the module cannot be imported, built or fed.
        """
        return trace(spec, traits=traits, framework=FRAMEWORK, build=self._build)

    def _build(self, spec: JobSpec, notebook: Notebook) -> Built:
        make_inputs = None if self.inputs is None else _imported(self.inputs, "--inputs")
        loss = None if self.loss is None else _imported(self.loss, "--loss")
        model = _model(_imported(self.target, "TARGET"), self.target, spec)
        if isinstance(model, PreTrainedModel) and make_inputs is None and loss is None:
            return built_transformer(spec, model, head_of(type(model), spec.model.task), notebook)
        make_batch = _maker(spec, make_inputs)

        def forward(module: nn.Module, batch: Batch) -> Any:
            if loss is not None and module.training:
                return loss(module, batch[BATCH])
            return _called(module, batch[BATCH])

        def scalar(outputs: Any, _: Batch) -> torch.Tensor:
            return outputs if loss is not None else _loss_of(outputs, spec, notebook)

        return Built(
            model=model,
            make_batch=make_batch,
            forward=forward,
            loss=scalar,
            library="user",
            changes=card_is_here,
        )


@contextmanager
def card_is_here() -> Iterator[None]:
    """Let `.cuda()` return the module or tensor as it is: it stands for one on the card."""

    def same(self: Any, *_: Any, **__: Any) -> Any:
        return self

    with replaced((nn.Module, "cuda", same), (torch.Tensor, "cuda", same)):
        yield


def _imported(path: str, what: str) -> Any:
    """Return the object *path* names.

    Raises:
        SpecError: if it is no such path, or its import fails.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise _problem(what, f"'{path:.200}' is not of the form package.module:name")
    try:
        found: Any = import_module(module_name)
    except Exception as error:
        kind = type(error).__name__
        hint = "run from the folder that holds the module, or install it into this environment"
        raise _problem(
            what, f"import of '{module_name}' fails with {kind}: {short(error)}", hint=hint
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            close = get_close_matches(part, dir(found), n=3)
            raise _problem(
                what,
                f"'{module_name}' has no '{part}'",
                hint=f"close matches: {', '.join(close)}" if close else None,
            )
        found = getattr(found, part)
    return found


def _model(found: Any, target: str, spec: JobSpec) -> nn.Module:
    """Return *found*, or what it returns, as a module on stand-ins.

    Raises:
        SpecError: if that is no module.
    """
    if not isinstance(found, nn.Module):
        if not callable(found):
            raise _problem("TARGET", f"'{target}' is a {type(found).__name__}, not a module")
        try:
            with card_is_here():
                found = found()
        except Exception as error:
            kind = type(error).__name__
            hint = "name a function without arguments that returns the model"
            raise _problem(
                "TARGET", f"{target}() fails with {kind}: {short(error)}", hint=hint
            ) from error
    if not isinstance(found, nn.Module):
        raise _problem(
            "TARGET", f"{target}() returns a {type(found).__name__}, not a torch.nn.Module"
        )
    dtype = WEIGHTS[spec.training.precision]
    return found if dtype is torch.float32 else found.to(dtype)


def _maker(spec: JobSpec, make_inputs: Callable[[int], Any] | None) -> Callable[[Shapes], Batch]:
    """Return what makes a batch: the user's function, or floats or tokens of the size given.

    Raises:
        SpecError: if nothing says what the model is fed.
    """
    sizes = spec.input
    if make_inputs is not None:
        return lambda shapes: {BATCH: make_inputs(shapes.batch_size)}
    dtype = WEIGHTS[spec.training.precision]
    shape = sizes.image_size or sizes.shape
    if shape is not None:
        return lambda shapes: {BATCH: stand_in(shapes.batch_size, *shape, dtype=dtype)}
    length = sizes.sequence_length
    if length is not None:
        return lambda shapes: {
            BATCH: stand_in(shapes.batch_size, shapes.sequence_length or length, dtype=torch.int64)
        }
    raise _problem(
        "input",
        "nothing says what the model is fed",
        hint="give --image-size, --sequence-length or --shape, or --inputs package.module:name: "
        "a function of the batch size that returns what the model is called with",
    )


def _called(module: nn.Module, batch: Any) -> Any:
    """Return the outputs for *batch*: keywords, positional arguments, or one argument."""
    if isinstance(batch, dict):
        return module(**batch)
    if isinstance(batch, (tuple, list)):
        return module(*batch)
    return module(batch)


def _loss_of(outputs: Any, spec: JobSpec, notebook: Notebook) -> torch.Tensor:
    """Return the loss among the outputs, or a usual one, noted as assumed.

    Raises:
        SpecError: if there is nothing to train on.
    """
    own = outputs.get("loss") if isinstance(outputs, dict) else getattr(outputs, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    values = outputs.values() if isinstance(outputs, dict) else outputs
    tensors = [outputs] if isinstance(outputs, torch.Tensor) else [*values]
    found = [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad]
    if not found:
        raise _problem(
            "--loss",
            "no output of the model has a gradient",
            hint="give --loss package.module:name: a function of model and inputs",
        )
    output = found[0]
    if not output.dim():
        return output
    if output.dim() == 2 and spec.input.image_size is not None:
        notebook.assume(
            AssumptionCode.DEFAULT, "--loss", "cross entropy", "absent: of a classifier"
        )
        return functional.cross_entropy(output, stand_in(len(output), dtype=torch.int64))
    notebook.assume(AssumptionCode.DEFAULT, "--loss", "mean of the output", "absent: no loss known")
    return output.float().mean()


def _problem(path: str, message: str, *, hint: str | None = None) -> SpecError:
    return SpecError([Problem(path=path, message=message)], hint=hint)
