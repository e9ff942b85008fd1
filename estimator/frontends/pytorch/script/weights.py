"""Pretrained weights and checkpoints of a script: their shapes, without their values.

    from_pretrained, create_model(pretrained=True), torch.load, torch.save, … -> no download

A configuration is read from the script's folder, from this machine's cache of the Hub, or from
the catalog by its name; nothing is downloaded. What is saved is not written.
Not modelled: the peak of a checkpoint that is read straight onto the card piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import timm.models._builder
import torch
import torchvision.models._api
from torch import nn
from torch.nn.modules.module import _IncompatibleKeys
from torch.utils._pytree import tree_map_only
from transformers import AutoConfig, PreTrainedModel
from transformers.configuration_utils import PreTrainedConfig
from transformers.generation.stopping_criteria import MaxLengthCriteria
from transformers.generation.utils import GenerationMixin

from estimator.catalog.models import known_model
from estimator.frontends.pytorch.patches import no_initialisation, no_packed_sequences, replaced
from estimator.frontends.pytorch.script.tensors import CARD
from estimator.frontends.pytorch.script.watch import Watch

Note = Callable[[str, str], None]
_LOADING = frozenset(
    (
        *("low_cpu_mem_usage", "use_safetensors", "variant", "weights_only", "state_dict"),
        *("ignore_mismatched_sizes", "output_loading_info", "max_memory", "offload_folder"),
        *("key_mapping", "quantization_config", "load_in_8bit", "load_in_4bit", "tp_plan"),
        "local_files_only",
    )
)
"""Keywords of `from_pretrained` that say how weights are read, and nothing of the model."""


_HUB = frozenset(["cache_dir", "force_download", "proxies", "token", "revision", "subfolder"])


class CannotFakeError(Exception):
    """A part of a script that has no stand-in: what it is, and what to do instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


class NoWeights(dict[str, Any]):
    """The state of a model that was not downloaded: every key is in it and changes nothing."""


@contextmanager
def weights_of(watch: Watch, note: Note) -> Iterator[None]:
    """Let weights be read and written without values inside the block; *note* hears of it."""
    load: Any = nn.Module.load_state_dict
    generate: Any = GenerationMixin.generate
    get_config: Any = PreTrainedConfig.get_config_dict.__func__

    def load_state(self: nn.Module, state: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state, NoWeights):
            return _IncompatibleKeys([], [])
        return load(self, state, *args, **kwargs)

    def no_weights(*_: Any, **__: Any) -> NoWeights:
        note("weights", "not downloaded: their shapes are the model's")
        return NoWeights()

    def saved(*_: Any, **__: Any) -> None:
        note("save", "nothing is written; what is saved is taken to be on the host")

    def config_of(cls: Any, name: Any, /, **kwargs: Any) -> Any:
        return _config_dict(get_config, cls, name, **kwargs)

    length: Any = MaxLengthCriteria.__call__
    unfinished: Any = GenerationMixin._has_unfinished_sequences
    is_full = [False]

    def generated(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_full[0] = False
        return watch.generated(generate, self, *args, **kwargs)

    def at_length(self: Any, ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        is_full[0] = ids.shape[-1] >= self.max_length
        return length(self, ids, *args, **kwargs)

    def is_unfinished(self: Any, *args: Any, **kwargs: Any) -> bool:
        # Which token ends a text nobody knows: each is as long as it may be.
        return not is_full[0] and bool(unfinished(self, *args, **kwargs))

    save: list[tuple[Any, str, Any]] = [(torch, "save", saved)]
    save += [(PreTrainedModel, "save_pretrained", saved)]
    for module in ("safetensors.torch", "transformers.modeling_utils", "accelerate.accelerator"):
        found = import_module(module)
        save += [
            (found, name, saved)
            for name in ("save_file", "save_model", "safe_save_file")
            if hasattr(found, name)
        ]
    with ExitStack() as stack:
        stack.enter_context(no_initialisation())
        stack.enter_context(no_packed_sequences())
        stack.enter_context(
            replaced(
                *save,
                (nn.Module, "load_state_dict", load_state),
                (torch, "load", _loader(torch.load)),
                (torch.hub, "load_state_dict_from_url", no_weights),
                (torchvision.models._api.WeightsEnum, "get_state_dict", no_weights),
                (timm.models._builder, "load_pretrained", no_weights),
                (PreTrainedModel, "from_pretrained", classmethod(_from_pretrained)),
                (PreTrainedConfig, "get_config_dict", classmethod(config_of)),
                (GenerationMixin, "generate", generated),
                (GenerationMixin, "_has_unfinished_sequences", is_unfinished),
                (MaxLengthCriteria, "__call__", at_length),
            )
        )
        yield


def _config_dict(own: Any, cls: Any, name: Any, **kwargs: Any) -> Any:
    """Return what `get_config_dict` does, from this machine or from the catalog.

    Raises:
        CannotFakeError: if neither has it.
    """
    words = {each: value for each, value in kwargs.items() if each != "local_files_only"}
    if Path(str(name)).exists():
        return own(cls, name, **kwargs)
    known = known_model(str(name))
    try:
        return own(cls, name, local_files_only=True, **words)
    except (OSError, ValueError) as error:
        if known is None:
            raise CannotFakeError(
                f"the configuration of '{name}' is not on this machine",
                f"put its config.json into a folder and name that, or download it once: "
                f"hf download {name} config.json",
            ) from error
    return dict(known.config), {each: value for each, value in words.items() if not _is_hub(each)}


def _from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the model of a configuration, as `from_pretrained` would without its weights.

    Raises:
        CannotFakeError: for weights that are stored packed.
    """
    for packed in ("quantization_config", "load_in_8bit", "load_in_4bit"):
        if kwargs.get(packed):
            raise CannotFakeError(
                f"from_pretrained({packed}=…): packed weights need their library's CUDA kernels",
                "write a JobSpec with `quantization`: `vramgate estimate` has a model of them",
            )
    config, device_map = kwargs.pop("config", None), kwargs.pop("device_map", None)
    dtype = kwargs.pop("dtype", kwargs.pop("torch_dtype", "auto"))
    attention = kwargs.pop("attn_implementation", None)
    tells = bool(kwargs.get("output_loading_info"))
    words = {each: value for each, value in kwargs.items() if each not in _LOADING}
    if config is None:
        reader = cls.config_class or AutoConfig
        config, words = reader.from_pretrained(name, return_unused_kwargs=True, **words)
    words = {each: value for each, value in words.items() if not _is_hub(each)}
    if attention is not None:
        words["attn_implementation"] = attention
    dtype = _dtype_of(config) if dtype in ("auto", None) else dtype
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model = cls(config, *args) if not words else cls._from_config(config, dtype=dtype, **words)
    finally:
        torch.set_default_dtype(before)
    model.eval()
    if device_map is not None:
        model.to(CARD if device_map != "cpu" else "cpu")
    return (model, {}) if tells else model


def _is_hub(keyword: str) -> bool:
    """Return whether *keyword* says where and how to download, and nothing of the model."""
    return keyword in _HUB or keyword.startswith(("_", "adapter", "trust", "resume", "code"))


def _dtype_of(config: Any) -> torch.dtype:
    """Return the dtype a checkpoint of *config* is taken to be in."""
    known = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    if isinstance(known, str):
        known = getattr(torch, known, None)
    return known if isinstance(known, torch.dtype) else torch.float32


def _loader(own: Any) -> Any:
    """Return *own*, `torch.load`, which reads to the host; what was on the card goes there."""

    def load(file: Any, map_location: Any = None, **kwargs: Any) -> Any:
        card = [False]
        place = torch.device(map_location) if isinstance(map_location, str) else map_location

        def to_host(storage: Any, location: str) -> Any:
            named = place.type if isinstance(place, torch.device) else location
            if isinstance(map_location, dict):
                named = str(map_location.get(location, location))
            card[0] |= str(named).startswith("cuda")
            return storage

        value = own(file, map_location=to_host, **kwargs)
        if not card[0]:
            return value
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(CARD), value)

    return load
