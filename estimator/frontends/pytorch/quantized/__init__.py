"""Bases stored in fewer bits: what a quantised linear layer holds, and what it takes to use it.

    Built, Quantization -> Built

A linear layer of the built model becomes bitsandbytes' own module with packed weights and their
statistics on stand-ins (4 bits, int8), or one that holds what GPTQ and AWQ hold. Products follow
the library's autograd functions (`products.py`), by its release.
Source: bitsandbytes 0.50.2 (installed) `nn/modules.py`, `functional.py`; which layers are left
alone: transformers 5.24.0 `quantizers/base.py` (`get_keys_to_not_convert`: the head and what is
tied to it).
Not modelled: peaks while a checkpoint is quantised on the card, embeddings in fewer bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bitsandbytes
import torch
from torch import nn

from estimator.errors import Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.build.job import Built
from estimator.frontends.pytorch.build.releases import release_of
from estimator.frontends.pytorch.dtypes import DTYPES, WEIGHTS
from estimator.frontends.pytorch.quantized.layers import FourBit, Packed, four_bit, int8, packed
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import JobSpec, Quantization
from estimator.spec.vocabulary import QuantizationPrepare, QuantizationScheme

LIBRARY = "bitsandbytes"

PACKED_AS_GIVEN_SINCE = (0, 43)
"""Releases of bitsandbytes before made every weight fp16 first (`Params4bit.cuda`)."""

BITS = {
    QuantizationScheme.NF4: (4,),
    QuantizationScheme.FP4: (4,),
    QuantizationScheme.INT8: (8,),
    QuantizationScheme.GPTQ: (2, 3, 4, 8),
    QuantizationScheme.AWQ: (4,),
}
"""Bits each scheme stores a weight in."""


def with_quantization(spec: JobSpec, built: Built, notebook: Notebook) -> Built:
    """Return *built* with its linear layers stored as *spec* says, or as it is.

    Raises:
        SpecError: for bits the scheme does not have, and modules the model does not have.
        UnsupportedJobError: if the model has no linear layer to store so.
    """
    quantization = spec.quantization
    if quantization is None:
        return built
    _check(quantization)
    model = built.model
    skipped = _skipped(model, quantization, notebook)
    make = _maker(spec, quantization, notebook)
    changed = 0
    for path, module in list(model.named_modules()):
        parent, _, name = path.rpartition(".")
        is_kept = any(part in skipped for part in (name, path)) or not isinstance(module, nn.Linear)
        if not is_kept:
            setattr(model.get_submodule(parent), name, make(module))
            changed += 1
    if not changed:
        raise UnsupportedJobError(
            "quantization: the model has no linear layer to store in fewer bits",
            code=UnknownCode.QUANTIZATION,
            path="quantization",
        )
    if quantization.prepare is not QuantizationPrepare.NONE:
        _recast(model, lambda _: torch.float32)
    if quantization.prepare is QuantizationPrepare.CAST_BACK:
        _cast_back(model, DTYPES[quantization.compute_dtype])
    _mark(model, quantization.scheme)
    return built


def _check(quantization: Quantization) -> None:
    accepted = BITS[quantization.scheme]
    if quantization.bits not in accepted:
        known = " or ".join(str(bits) for bits in accepted)
        message = f"{quantization.bits}: {quantization.scheme.value} stores {known} bits"
        raise SpecError([Problem(path="quantization.bits", message=message)])


def _maker(
    spec: JobSpec, quantization: Quantization, notebook: Notebook
) -> Callable[[nn.Linear], nn.Module]:
    """Return what makes a layer of the scheme from a plain one."""
    compute = DTYPES[quantization.compute_dtype]
    weights = WEIGHTS[spec.training.precision]
    scheme = quantization.scheme
    if scheme in (QuantizationScheme.NF4, QuantizationScheme.FP4):
        release = release_of(spec, notebook, LIBRARY, installed=bitsandbytes.__version__)
        form = FourBit(
            scheme=scheme.value,
            is_nested=quantization.double_quant,
            compute=compute,
            stored_from=_stored_from(release, compute, weights),
            release=release,
        )
        return lambda layer: four_bit(layer, form)
    if scheme is QuantizationScheme.INT8:
        notebook.unknown(
            UnknownCode.QUANTIZATION,
            "quantization",
            "how many columns of an input are outliers depends on values; none is charged",
        )
        return lambda layer: int8(layer, compute)
    form_of_file = Packed(scheme=scheme.value, bits=quantization.bits, compute=compute)
    notebook.assume(
        AssumptionCode.DEFAULT,
        "quantization",
        "group of 128",
        "statistics of GPTQ and AWQ checkpoints are one a group; most have 128 weights in one",
    )
    return lambda layer: packed(layer, form_of_file)


def _stored_from(
    release: tuple[int, ...], compute: torch.dtype, weights: torch.dtype
) -> torch.dtype:
    """Return the dtype weights had when they were packed, which they are opened in."""
    if release < PACKED_AS_GIVEN_SINCE:
        return torch.float16
    return compute if weights is torch.float32 else weights


def _skipped(model: Any, quantization: Quantization, notebook: Notebook) -> frozenset[str]:
    """Return names and paths of the modules that are left alone."""
    if "skip_modules" in quantization.model_fields_set:
        names = {path for path, _ in model.named_modules()}
        ends = {path.rpartition(".")[2] for path in names}
        wrong = [each for each in quantization.skip_modules if each not in names | ends]
        if wrong and any(isinstance(module, nn.Linear) for module in model.modules()):
            notebook.warn(f"quantization.skipModules: the model has no {', '.join(wrong)}")
        return frozenset(quantization.skip_modules)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    heads = [path for path, module in model.named_modules() if module is head and head is not None]
    last = [path for path, module in model.named_modules() if isinstance(module, nn.Linear)][-1:]
    return frozenset(heads or last)


def _cast_back(model: nn.Module, dtype: torch.dtype) -> None:
    """Put embeddings and heads back into *dtype*; norms stay fp32, as TRL's trainer leaves them."""
    _recast(model, lambda module: dtype if isinstance(module, nn.Embedding | nn.Linear) else None)


def _recast(model: nn.Module, dtype_of: Callable[[nn.Module], torch.dtype | None]) -> None:
    """Put the floating weights of each module into the dtype *dtype_of* it, tied ones once."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, tensor in module._parameters.items():
            if tensor is None or not tensor.is_floating_point():
                continue
            dtype = dtype_of(module)
            if dtype is None or dtype == tensor.dtype:
                continue
            if id(tensor) not in made:
                empty = torch.empty(tensor.shape, dtype=dtype, device="meta")
                made[id(tensor)] = nn.Parameter(empty, requires_grad=tensor.requires_grad)
            module._parameters[name] = made[id(tensor)]


def _mark(model: Any, scheme: QuantizationScheme) -> None:
    """Tell peft what it asks of a model (`is_loaded_in_4bit`): its layers differ."""
    model.is_loaded_in_4bit = scheme in (QuantizationScheme.NF4, QuantizationScheme.FP4)
    model.is_loaded_in_8bit = scheme is QuantizationScheme.INT8
    for parameter in model.parameters():
        parameter.requires_grad_(False)
