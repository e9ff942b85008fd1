"""What the tests of FSDP2 run in a child process: torch's own on fake tensors, and ours.

torch's tracker of FSDP2 counts what its hooks see: shards, whole weights, gathered buffers. It
runs on a fake process group; nothing is sent, nothing computed.
"""

from __future__ import annotations

from typing import Any

from estimator.errors import UnsupportedJobError
from estimator.frontends import load
from estimator.sharding import RankFrontend, positions_of
from estimator.spec import parse_spec
from estimator.trace import EventKind, Phase, Trace
from tests.estimator.frontends.children import AMPERE, Refusal

BLOCK = 512
SIZES = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_hidden_layers": 4,
    "vocab_size": 4096,
}
"""Weights are most of it, so that a unit too many shows."""
RANKS, TOKENS = 8, 8
Peaks = dict[str, int]


def peaks_of_torch(mixed: bool) -> Peaks:
    """Return the most bytes in forward and backward of the second step, as torch counts them."""
    import torch
    import torch.distributed as dist
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers import LlamaConfig, LlamaForCausalLM

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,))
    policy = MixedPrecisionPolicy()
    if mixed:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    found: Peaks = {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        torch.set_default_dtype(torch.float32 if mixed else torch.bfloat16)
        model = LlamaForCausalLM(LlamaConfig(**SIZES))
        torch.set_default_dtype(torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        tracker: Any = FSDPMemTracker(model, optimizer)
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)
        tracker.track_inputs((tokens,))
        with tracker:
            for _ in range(2):
                tracker._peak_mem.clear()
                loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
                found["forward"] = _total(tracker)
                tracker._peak_mem.clear()
                loss.backward()
                del loss
                found["backward"] = _total(tracker)
                optimizer.step()
                optimizer.zero_grad()
                tracker.reset_mod_stats()
    dist.destroy_process_group()
    return found


def _total(tracker: Any) -> int:
    return sum(int(part["Total"]) for part in tracker.get_tracker_snapshot("peak").values())


def peaks_of_ours(mixed: bool) -> Peaks:
    """Return the same of our trace of one rank."""
    parallelism: dict[str, Any] = {
        "strategy": "fsdp",
        "implementation": "fsdp2",
        "dataParallel": RANKS,
    }
    if mixed:
        parallelism["mixedPrecision"] = {"param": "bf16", "reduce": "fp32"}
    spec = parse_spec(
        {
            "framework": "pytorch",
            "model": {
                "source": "huggingface",
                "name": "small-llama",
                "task": "causal-lm",
                "config": {"model_type": "llama", "tie_word_embeddings": False, **SIZES},
            },
            "input": {"batchSize": 1, "sequenceLength": TOKENS},
            "training": {
                "precision": "fp32" if mixed else "bf16",
                "optimizer": {"name": "adamw", "foreach": True},
                "useCache": False,
                "keepOutputs": False,
                "zeroGrad": {"position": "after-step"},
            },
            "parallelism": parallelism,
        }
    )
    trace = RankFrontend(load("pytorch")).trace_job(spec, traits=AMPERE)
    return {name.value: _peak(trace, name) for name in (Phase.FORWARD, Phase.BACKWARD)}


def _peak(trace: Trace, phase: Phase) -> int:
    live = most = 0
    for kind, tensor, place in zip(trace.kinds, trace.ids, trace.places, strict=True):
        size = -(-trace.sizes[tensor] // BLOCK) * BLOCK if kind <= EventKind.FREE else 0
        live += size if kind == EventKind.ALLOC else -size
        where = trace.place_table[place]
        if where.phase is phase and where.step == 2:
            most = max(most, live)
    return most


def ranks(document: dict[str, Any]) -> list[Trace]:
    """Return the trace of each distinct rank."""
    spec = parse_spec(document)
    return [
        RankFrontend(load("pytorch"), position).trace_job(spec, traits=AMPERE)
        for position in positions_of(spec)
    ]


def refused(document: dict[str, Any]) -> Refusal | None:
    """Return what the job is refused with, or None."""
    try:
        ranks(document)
    except UnsupportedJobError as error:
        return Refusal(
            kind=error.kind, message=error.message, code=error.code, path=error.path or ""
        )
    return None


def both_modes(document: dict[str, Any]) -> tuple[Trace, Trace]:
    """Return the trace of the first rank as usual, and with every layer traced."""
    spec, frontend = parse_spec(document), load("pytorch")
    usual, exact = RankFrontend(frontend), RankFrontend(frontend, is_exact=True)
    return usual.trace_job(spec, traits=AMPERE), exact.trace_job(spec, traits=AMPERE)
