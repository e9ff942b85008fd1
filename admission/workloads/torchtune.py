"""What a TrainJob makes of the command `tune run`: the recipe and config are chosen for it.

runtime, TrainJob's spec -> the runtime with the whole command

Source: kubeflow/trainer 8c0f5059, `pkg/runtime/framework/plugins/torch/torchtune.go`
(`getRecipeAndConfig`, `getModelFromRuntimeRef`, `extractOverridesFromRuntime`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.values import Json
from admission.workloads.fields import amount, at, entries, sequence, text
from admission.workloads.idle import words_of
from admission.workloads.resources import gpu_request
from admission.workloads.trainingruntime import NODE, STEP, TRAINER, Scale

_ENTRY = ["tune", "run"]
_FIXED = (
    "output_dir",
    "tokenizer.path",
    "tokenizer.merges_file",
    "checkpointer.checkpoint_dir",
)
"""What the runtime's own command keeps deciding."""


def with_recipe(runtime: Json, original: Json, prefix: str, spec: Json, scale: Scale) -> Json:
    """Return *runtime* with the recipe in the command of its container `node`.

    *original* is the runtime before the job's own command was put over its.
    """
    trainer = at(spec, "spec", "trainer")
    if list(sequence(trainer.get("command"), "spec.trainer.command")) != _ENTRY:
        return runtime
    if "torch" not in at(runtime, prefix, "spec", "mlPolicy"):
        return runtime
    kept = [
        word
        for container in _nodes(original, prefix)
        for word in words_of(container)
        if word.partition("=")[0] in _FIXED
    ]
    result: dict[str, Any] = _copied(runtime)
    for container in _nodes(result, prefix):
        words = _command(container, runtime, prefix, spec, scale)
        if isinstance(container, dict):
            container["command"] = [*_ENTRY, *words, *kept]
    return result


def _command(
    container: Json, runtime: Json, prefix: str, spec: Json, scale: Scale
) -> tuple[str, ...]:
    policy = at(runtime, prefix, "spec", "mlPolicy")
    nodes = scale.nodes or amount(policy.get("numNodes"), f"{prefix}spec.mlPolicy.numNodes")
    request = gpu_request(container, "spec.trainer", claims={})
    gpus = request.count if request else 0
    processes = scale.processes if isinstance(scale.processes, int) else None
    trainer = at(spec, "spec", "trainer")
    args = words_of({"args": list(sequence(trainer.get("args"), "spec.trainer.args"))})
    is_single = nodes.number == 1 and (processes == 1 or (processes is None and gpus == 1))
    recipe, suffix = _recipe(args, is_single=is_single, is_one_node=nodes.number == 1)
    name = text(at(spec, "spec", "runtimeRef").get("name"), "spec.runtimeRef.name")
    rendezvous = () if is_single else ("--rdzv_endpoint=localhost:29500",)
    return (*rendezvous, recipe, "--config", f"{_model(name)}{suffix}")


def _recipe(args: tuple[str, ...], *, is_single: bool, is_one_node: bool) -> tuple[str, str]:
    """Return torchtune's recipe and the ending of its config."""
    is_lora = any("model.lora_attn_modules" in word for word in args)
    is_quantized = _is_on(args, "model.quantize_base") and not _is_on(args, "model.use_dora")
    ending = "_single_device" if is_single else ""
    which = "single_device" if is_single else "distributed"
    if is_one_node and is_quantized:
        return f"lora_finetune_{which}", f"_qlora{ending}"
    if is_one_node and is_lora:
        return f"lora_finetune_{which}", f"_lora{ending}"
    return f"full_finetune_{which}", f"_full{ending}" if is_one_node else "_full_multinode"


def _is_on(args: tuple[str, ...], key: str) -> bool:
    parts = (word.partition("=") for word in args)
    return any(key in name and value.strip().lower() == "true" for name, _, value in parts)


def _model(runtime: str) -> str:
    """Return `llama3_2/1B` for the runtime `torchtune-llama3.2-1b`."""
    words = runtime.split("-")
    return f"{words[1].replace('.', '_')}/{words[2].upper()}" if len(words) == 3 else ""


def _nodes(runtime: Json, prefix: str) -> Iterator[Json]:
    """Yield the containers that train."""
    jobs = at(runtime, prefix, "spec", "template", "spec")
    for job, where in entries(jobs.get("replicatedJobs"), f"{prefix}replicatedJobs"):
        labels = at(job, where, "template", "metadata", "labels")
        if labels.get(STEP) != TRAINER:
            continue
        pod = at(job, where, "template", "spec", "template", "spec")
        for container, _ in entries(pod.get("containers"), f"{where}.containers"):
            if container.get("name") == NODE:
                yield container


def _copied(value: Any) -> Any:
    """Return *value* with mappings and lists of its own."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
