"""Write the table of torchtune's shipped configurations: run by hand for another release.

python -m tools.torchtune_configs REPOSITORY

a clone of pytorch/torchtune -> `configs` of admission/detect/recipes/data/torchtune_configs.json

A release is listed where a configuration is another than in the one before, with null where it is
gone. `models` is kept as it is: whose weights a model has is prose in the head of each file.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

import admission.detect.recipes

TABLE = Path(admission.detect.recipes.__file__).with_name("data") / "torchtune_configs.json"
RELEASES = {"0.3.1": "48a6c75f", "0.4.0": "03a4b1e4", "0.5.0": "0bb00a47", "0.6.1": "a6290a5b"}
"""Release -> commit."""
KEYS = (
    "model._component_",
    "model.lora_attn_modules",
    "model.apply_lora_to_mlp",
    "model.apply_lora_to_output",
    "model.lora_rank",
    "model.lora_alpha",
    "model.use_dora",
    "model.quantize_base",
    "teacher_model._component_",
    "batch_size",
    "gradient_accumulation_steps",
    "enable_activation_checkpointing",
    "enable_activation_offloading",
    "optimizer._component_",
    "optimizer.fused",
    "optimizer_in_bwd",
    "loss._component_",
    "tokenizer.max_seq_len",
    "dataset.packed",
    "compile",
    "clip_grad_norm",
    "fsdp_cpu_offload",
    "tensor_parallel_dim",
)
"""What the reader asks for. `false` and null are as good as nothing."""
_MODELS = "torchtune.models."
_CHUNKED = "CEWithChunkedOutputLoss"
"""The one loss that the reader tells from others."""


def registered(source: str) -> Iterator[tuple[str, str]]:
    """Yield name and file of each `Config(…)` in the registry's *source*; nothing is executed."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Config":
            given = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            yield given["name"], given["file_path"]


def kept(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the reader asks for of *document*, or None if it trains nothing."""
    found: dict[str, Any] = {}
    for key in KEYS:
        part: Any = document
        for step in key.split("."):
            part = part.get(step) if isinstance(part, Mapping) else None
        if key == "loss._component_":
            part = _CHUNKED if str(part).endswith(_CHUNKED) else None
        if part is not None and part is not False:
            found[key] = part.removeprefix(_MODELS) if isinstance(part, str) else part
    return found if "batch_size" in found and "optimizer._component_" in found else None


def configs(repository: str) -> dict[str, list[tuple[str, dict[str, Any] | None]]]:
    """Return the configurations of *repository* by name, with the release each begins in."""
    found: dict[str, list[tuple[str, dict[str, Any] | None]]] = {}
    for release, commit in RELEASES.items():
        names = dict(registered(_show(repository, commit, "torchtune/_recipe_registry.py")))
        there = _git(repository, "ls-tree", "-r", "--name-only", commit, "recipes/configs").split()
        values = {}
        for name, path in names.items():
            if f"recipes/configs/{path}" not in there:
                continue  # some names lead nowhere in a release
            document = yaml.safe_load(_show(repository, commit, f"recipes/configs/{path}"))
            if (value := kept(document)) is not None:
                values[name] = value
        for name in sorted({*found, *values}):
            history = found.setdefault(name, [])
            if (history[-1][1] if history else None) != values.get(name):
                history.append((release, values.get(name)))
    return dict(sorted(found.items()))


def _show(repository: str, commit: str, path: str) -> str:
    return _git(repository, "show", f"{commit}:{path}")


def _git(repository: str, *words: str) -> str:
    command = ["git", "-C", repository, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(repository: str) -> None:
    """Write the table, a configuration a line."""
    table = json.loads(TABLE.read_text("utf-8"))
    parts = (("models", table["models"]), ("configs", configs(repository)))
    text = f'{{"source": {json.dumps(table["source"])}'
    for name, part in parts:
        lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items())
        text += f',\n"{name}": {{\n' + ",\n".join(lines) + "\n}"
    TABLE.write_text(text + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
