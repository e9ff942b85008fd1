"""Parameter-efficient training: small trained weights on a frozen base, by the real `peft`.

    Built, Adapter -> Built

peft's own modules run on stand-ins, so casts, copies of dropout and extra paths are those of a run.
Source of the rules: huggingface/peft 0.21.2 (installed), `mapping_func.get_peft_model`.
Not modelled: what other releases of peft do otherwise, merging, several adapters at once, values
that an initialisation reads (singular value decompositions are taken by shape).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import peft
import torch

from estimator.errors import EstimatorError, Problem, SpecError, UnsupportedJobError
from estimator.frontends.notebook import Notebook
from estimator.frontends.pytorch.adapters.methods import config_of
from estimator.frontends.pytorch.adapters.prompts import MODEL_TYPE, with_prompts
from estimator.frontends.pytorch.adapters.sparse import drawn_without_values, with_sparse_parts
from estimator.frontends.pytorch.build.job import Built, short
from estimator.frontends.pytorch.dtypes import DTYPES
from estimator.frontends.pytorch.load import on_stand_ins
from estimator.frontends.pytorch.optimizers import require_known
from estimator.notes import AssumptionCode, UnknownCode
from estimator.spec import Adapter, JobPhase, JobSpec, ModelSource

SHOWN = 12
"""Module names an error lists."""


def with_adapter(spec: JobSpec, built: Built, notebook: Notebook) -> Built:
    """Return *built* with the adapter of *spec*, or as it is if there is none.

    Raises:
        SpecError: for options the method does not have, and modules the model does not have.
        UnsupportedJobError: for methods that are not known or do not work on this model.
    """
    adapter = spec.adapter
    if adapter is None:
        return built
    config = config_of(adapter, spec.model.task, built.model)
    if is_ours(adapter, built.model):
        prompted = with_prompts(built.model, config.adapter_len)
        _cast(prompted, adapter, notebook)
        notebook.unknown(
            UnknownCode.ADAPTER,
            "adapter",
            "traced as litgpt's adapter: its second version trains more and needs more",
        )
        return replace(built, model=prompted)
    is_cast = adapter.dtype is None
    try:
        with drawn_without_values():
            model = peft.get_peft_model(built.model, config, autocast_adapter_dtype=is_cast)
    except EstimatorError:
        raise
    except ValueError as error:
        raise _misfit(adapter, built, error) from error
    except Exception as error:
        raise _refused(adapter, short(error)) from error
    on_stand_ins(model)
    with_sparse_parts(model)
    if spec.model.source is ModelSource.DIFFUSERS:
        _unpin(model)
    if spec.phase is JobPhase.TRAIN and require_known(spec.training.optimizer).name == "lora-fa":
        _freeze_first(model)
    _cast(model, adapter, notebook)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise _refused(adapter, "nothing of the model would be trained")
    is_open = _is_open(adapter)
    if is_open:
        notebook.unknown(
            UnknownCode.ADAPTER,
            "adapter.options.effective_rank",
            "absent: peft keeps half of each matrix's rank, a job may keep nearly all of it",
        )
    return replace(built, model=model, is_at_most=built.is_at_most or is_open)


def _is_open(adapter: Adapter) -> bool:
    """Return whether the method's size hangs on what the spec leaves out: OSF's preserved rank.

    Published runs of OSF take less than half of what peft's own default takes.
    """
    known = {"effective_rank", "rank_pattern"} & set(adapter.options)
    return adapter.type.lower() == "osf" and not known


def is_ours(adapter: Adapter, model: Any) -> bool:
    """Return whether the method is one that peft does not have for this model, and we do."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    return adapter.type.lower() == "adaption_prompt" and kind == MODEL_TYPE


def _unpin(model: Any) -> None:
    """Give every tensor memory of its own, as on the way from the host to the card.

    Part of a decomposition holds all of it where it was computed. Pipelines of diffusers are loaded
    and adapted on the host; models of transformers are taken to be adapted on the card, as in
    peft's examples (`device_map`).
    Source: huggingface/peft@10794ab9 `method_comparison/image-gen/run.py`, `utils.py`.
    """
    for module in model.modules():
        stores: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for store in stores:
            for name, tensor in store.items():
                if tensor is None or tensor.untyped_storage().nbytes() <= tensor.nbytes:
                    continue
                own = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
                if isinstance(tensor, torch.nn.Parameter):
                    own = torch.nn.Parameter(own, requires_grad=tensor.requires_grad)
                store[name] = own


def _freeze_first(model: Any) -> None:
    """Freeze the first of each pair of LoRA's matrices (peft's `create_lorafa_optimizer`)."""
    for name, parameter in model.named_parameters():
        if "lora_A" in name:
            parameter.requires_grad_(False)


def _cast(model: Any, adapter: Adapter, notebook: Notebook) -> None:
    """Put the trained weights into the adapter's dtype, or note which they have."""
    if adapter.dtype is None:
        notebook.assume(
            AssumptionCode.DEFAULT,
            "adapter.dtype",
            "fp32",
            "absent: peft keeps adapters of 16-bit models in fp32 (autocast_adapter_dtype)",
        )
        return
    dtype = DTYPES[adapter.dtype]
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and parameter.requires_grad and parameter.dtype != dtype:
                made = torch.empty(parameter.shape, dtype=dtype, device="meta")
                module._parameters[name] = torch.nn.Parameter(made)


def _misfit(adapter: Adapter, built: Built, error: ValueError) -> EstimatorError:
    """Return the error of a model that lacks what the method is to be put on."""
    text = str(error)
    if "arget" not in text or "module" not in text:
        return _refused(adapter, short(error))
    names = {
        path.rpartition(".")[2]
        for path, module in built.model.named_modules()
        if any(
            parameter.dim() > 1
            for parameter in module._parameters.values()
            if parameter is not None
        )
    }
    accepted = ", ".join(sorted(name for name in names if not name.isdigit())[:SHOWN])
    wanted = ", ".join(adapter.target_modules) or "none given"
    return SpecError(
        [
            Problem(
                path="adapter.targetModules",
                message=f"{wanted}: no such modules; the model has {accepted}, …",
            )
        ]
    )


def _refused(adapter: Adapter, reason: str) -> UnsupportedJobError:
    return UnsupportedJobError(
        f"adapter: '{adapter.type}' does not work on this model: {reason}",
        code=UnknownCode.ADAPTER,
        path="adapter",
    )
