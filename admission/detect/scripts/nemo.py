"""NeMo 2: `nemo llm pretrain --factory NAME`, or a recipe file run with `--factory "recipe()"`.

factory, overrides `trainer.devices=8` -> the draft

Source: the recipe `nemo`, the table `nemo_recipes`. Not modelled: CUDA graphs, the communication
overlap's user buffers.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.recipes import load_recipe
from admission.detect.recipes.tables import load_table
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.megatron_split import (
    Split,
    put_micro_batches,
    put_mixed_bf16,
    put_recomputation,
    put_split,
)
from admission.detect.scripts.nemo_recipe import Setup, named_setup, written_setup
from admission.detect.scripts.verbs import number_of

_NAME = "NeMo"
_EXPORTS = ("to_yaml", "to_json", "to_toml", "dryrun")


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    draft.put("framework", load_recipe("nemo").framework, _NAME)
    flag = call.flags.get("factory")
    text = draft.word("model.name", flag)
    if flag is None or text is None:
        if flag is None:
            _unnamed(call, draft)
        return
    setup, told_by = _setup(call, text)
    model = load_table("nemo_recipes")["models"].get(setup.model)
    if setup.problem or model is None:
        _unread(call, draft, flag, text, setup)
        if setup.problem:
            return
    else:
        draft.put("model.source", "huggingface", f"{told_by} {setup.model}")
        draft.put("model.name", model, f"{told_by} {setup.model}")
    below = Flags(given=setup.flags(told_by=told_by, beside=flag))
    flags = call.flags.over(below)
    _split(call, draft, flags)
    length = flags.setting("data.seq_length") or flags.setting("model.config.seq_length")
    draft.integer("input.sequenceLength", length)
    _training(draft, flags)
    if setup.is_tuning or call.invocation.name.endswith(".finetune"):
        _tuning(draft, flags, flag)


def _setup(call: Call, text: str) -> tuple[Setup, str]:
    version = call.invocation.versions.get("nemo-toolkit")
    if call.invocation.is_module:
        return named_setup(text, version), _NAME
    file = call.read_file(call.invocation.program.text)
    if file.text is None:
        return Setup(problem=file.problem or "is not seen"), file.source
    return written_setup(text, file.text, version), file.source


def _unnamed(call: Call, draft: Draft) -> None:
    draft.gap(
        "model.name",
        "input.batchSize",
        code=ReasonCode.NO_MODEL,
        path=call.origin,
        reason=f"{call.invocation.name} is given no --factory",
        hint=annotation_hint("model.name"),
    )


def _unread(call: Call, draft: Draft, flag: Flag, text: str, setup: Setup) -> None:
    is_batch_open = bool(setup.problem)
    subject = call.invocation.name if not call.invocation.is_module else text
    reason = setup.problem or f"names {setup.model:.60}, a recipe whose model is not known"
    draft.gap(
        *(("model.name", "input.batchSize") if is_batch_open else ("model.name",)),
        code=ReasonCode.DOCUMENT if is_batch_open else ReasonCode.NO_MODEL,
        path=flag.field,
        reason=f"{subject:.80} {reason}",
        hint="put the recipe in a ConfigMap that the pod mounts, or "
        + annotation_hint("model.name"),
    )


def _split(call: Call, draft: Draft, flags: Flags) -> None:
    prefix = "trainer.strategy."
    sharded = flags.setting("use_mcore_fsdp")
    is_sharded = sharded is not None and sharded.is_on
    split = Split(
        tensor=flags.setting(f"{prefix}tensor_model_parallel_size"),
        pipeline=flags.setting(f"{prefix}pipeline_model_parallel_size"),
        context=flags.setting(f"{prefix}context_parallel_size"),
        expert=flags.setting(f"{prefix}expert_model_parallel_size"),
        virtual=flags.setting(f"{prefix}virtual_pipeline_model_parallel_size"),
        nodes=flags.setting("trainer.num_nodes"),
        devices=flags.setting("trainer.devices"),
    )
    replicas = put_split(call, draft, split, strategy="fsdp" if is_sharded else "ddp")
    if not is_sharded:
        draft.put("parallelism.distributedOptimizer", True, source_of_default(_NAME))
    put_micro_batches(
        draft,
        micro=flags.setting("data.micro_batch_size"),
        total=flags.setting("data.global_batch_size"),
        replicas=replicas,
    )
    sequence = flags.setting(f"{prefix}sequence_parallel")
    tensor = number_of(split.tensor) or 1
    if tensor > 1 and sequence is not None:
        draft.put("parallelism.sequenceParallel", sequence.is_on, sequence.source)


def _training(draft: Draft, flags: Flags) -> None:
    source = source_of_default(_NAME)
    draft.put("training.optimizer", {"name": "adam"}, source)
    put_mixed_bf16(draft, source=source)
    dtype = flags.setting("compute_dtype")
    if dtype is not None and dtype.value is not None and "fp8" in dtype.value.text.lower():
        recipe = flags.setting("fp8_recipe")
        name = recipe.value.text if recipe is not None and recipe.value is not None else "delayed"
        draft.put("training.float8", {"recipe": name[:64] or "delayed"}, dtype.source)
    layers = flags.setting("model.config.recompute_num_layers")
    granularity = flags.setting("model.config.recompute_granularity")
    modules = flags.setting("model.config.recompute_modules")
    is_layered = bool(number_of(layers))
    if granularity is not None or modules is not None or is_layered:
        put_recomputation(
            draft, granularity=granularity, modules=modules, layers=layers if is_layered else None
        )
    else:
        draft.put("training.gradientCheckpointing", "none", source)
    offloaded = flags.setting("model.config.cpu_offloading_num_layers")
    if offloaded is not None and number_of(offloaded):
        draft.put("training.activationOffload", True, offloaded.source)


def _tuning(draft: Draft, flags: Flags, flag: Flag) -> None:
    """Note that tuning attaches an adapter unless it is told `peft_scheme=none`."""
    scheme = flags.setting("peft_scheme", "peft")
    text = scheme.value.text.lower() if scheme is not None and scheme.value is not None else ""
    if text == "none":
        return
    draft.gap(
        "adapter",
        "input.batchSize",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason="what a NeMo recipe for fine-tuning trains is not read yet",
        hint=annotation_hint("adapter.rank"),
    )


FAMILY = replace(
    family_of("nemo", read, is_closed=False, is_on_cpu=lambda flags: flags.has(*_EXPORTS)),
    read=read,
)
