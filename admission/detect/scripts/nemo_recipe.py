"""A NeMo 2 recipe: by its name, or as a Python file that sets one up.

factory, file -> values by NeMo's own keys (`trainer.strategy.tensor_model_parallel_size`)

Source: the recipe `nemo`. Only literals are read; see `python_literals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from admission.detect.flags import Flag
from admission.detect.python_literals import (
    UNKNOWN,
    Event,
    Module,
    call_of,
    events_of,
    parameters_of,
    read_module,
)
from admission.detect.recipes.tables import load_table, row_of
from admission.detect.words import Word, literal

_TABLE = "nemo_recipes"
_STRATEGY = "trainer.strategy"
_KEYWORDS: Mapping[str, str] = {
    "mbs": "data.micro_batch_size",
    "micro_batch_size": "data.micro_batch_size",
    "gbs": "data.global_batch_size",
    "global_batch_size": "data.global_batch_size",
    "seq_length": "data.seq_length",
    "num_nodes": "trainer.num_nodes",
    "num_gpus_per_node": "trainer.devices",
    "tp_size": f"{_STRATEGY}.tensor_model_parallel_size",
    "tensor_parallelism": f"{_STRATEGY}.tensor_model_parallel_size",
    "pp_size": f"{_STRATEGY}.pipeline_model_parallel_size",
    "pipeline_parallelism": f"{_STRATEGY}.pipeline_model_parallel_size",
    "cp_size": f"{_STRATEGY}.context_parallel_size",
    "context_parallelism": f"{_STRATEGY}.context_parallel_size",
    "vp_size": f"{_STRATEGY}.virtual_pipeline_model_parallel_size",
    "virtual_pipeline_parallelism": f"{_STRATEGY}.virtual_pipeline_model_parallel_size",
    "ep_size": f"{_STRATEGY}.expert_model_parallel_size",
    "expert_parallelism": f"{_STRATEGY}.expert_model_parallel_size",
    "use_mcore_fsdp": "use_mcore_fsdp",
    "compute_dtype": "compute_dtype",
    "recompute_layers": "model.config.recompute_num_layers",
    "recompute_modules": "model.config.recompute_modules",
    "activation_offload_layers": "model.config.cpu_offloading_num_layers",
    "peft_scheme": "peft_scheme",
}
"""Parameters of recipes and of `set_primary_perf_configs` -> the key that they set."""
_SETTERS = ("set_primary_perf_configs", "set_perf_optimization_configs")
_RECIPES = ("pretrain_recipe", "finetune_recipe")


@dataclass(slots=True)
class Setup:
    """What a recipe sets."""

    model: str = ""
    """Name of the recipe in NeMo's collection."""
    is_tuning: bool = False
    values: dict[str, object] = field(default_factory=dict)
    problem: str = ""

    def flags(self, *, told_by: str, beside: Flag) -> tuple[Flag, ...]:
        """Return the values as flags; what is not known is a word that nothing resolves.

        *beside* is the flag that names the factory.
        """
        return tuple(
            Flag(
                name=name,
                spelling=name,
                values=_words(value),
                where="",
                path=beside.path,
                origin=beside.origin,
                told_by=told_by,
            )
            for name, value in self.values.items()
        )


def named_setup(text: str, version: str | None) -> Setup:
    """Return the setup of `llama3_8b` or `llama3_8b(num_nodes=2)`, by NeMo's own table."""
    call = call_of(text)
    if call is None:
        return Setup(problem="is no recipe that can be read")
    name, keywords = call
    setup = Setup(model=name.rpartition(".")[2])
    _base(setup, version)
    _apply(setup, keywords)
    return setup


def written_setup(text: str, source: str, version: str | None) -> Setup:
    """Return the setup that the factory *text*, `recipe()`, of the file *source* makes."""
    call = call_of(text)
    module = read_module(source)
    if call is None or module is None:
        return Setup(problem="cannot be read as Python" if module is None else "is no factory")
    name, keywords = call
    events_of(module, [node for node in module.tree.body if not hasattr(node, "body")])
    function = module.function(name)
    if function is None:
        return named_setup(text, version)
    module.names |= parameters_of(module, function) | dict(keywords)
    setup = Setup()
    for event in events_of(module, function.body):
        _take(setup, event, module, version)
    if not setup.model:
        setup.problem = "names no recipe of NeMo's"
    return setup


def _take(setup: Setup, event: Event, module: Module, version: str | None) -> None:
    """Add one statement of the factory to *setup*."""
    *parents, last = event.function.split(".") if event.function else [""]
    if last in _RECIPES and parents:
        setup.model = parents[-1]
        setup.is_tuning = last == "finetune_recipe"
        _base(setup, version)
        _apply(setup, event.keywords)
    elif last in _SETTERS:
        _apply(setup, event.keywords)
    elif event.target and not event.function:
        root, _, key = event.target.partition(".")
        if key and root in module.names:
            setup.values[key] = event.value
    elif event.target and event.function and last not in ("Config", "Partial"):
        _, _, key = event.target.partition(".")
        if key:
            setup.values[key] = UNKNOWN


def _base(setup: Setup, version: str | None) -> None:
    rows = load_table(_TABLE)["recipes"].get(setup.model)
    values = row_of(rows, version) if rows else None
    setup.values |= dict(values or {})


def _apply(setup: Setup, keywords: Mapping[str, object]) -> None:
    for name, value in keywords.items():
        if name in _KEYWORDS:
            setup.values[_KEYWORDS[name]] = value


def _words(value: object) -> tuple[Word, ...]:
    if value is UNKNOWN:
        return (Word(text="an expression", unresolved=("an expression",)),)
    if isinstance(value, list):
        return tuple(literal(str(item)) for item in value)
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return (literal(text),)
