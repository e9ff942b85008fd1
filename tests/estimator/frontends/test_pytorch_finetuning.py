"""Adapters, quantised bases and lean losses: what is stored, what is trained, what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.trace import AT_MOST, MANAGED_STREAM, Role, Trace
from tests.estimator.frontends import children
from tests.estimator.frontends.conftest import InChild
from tests.estimator.frontends.reading import by_role, fault, job, llama, peak

pytestmark = pytest.mark.torch

HIDDEN, KEYS, LAYERS = 256, 64, 4
LORA_ELEMENTS = LAYERS * 8 * ((HIDDEN + HIDDEN) + (HIDDEN + KEYS))
"""Of rank 8 on the query and value projections of the small Llama."""
LINEAR = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS + 3 * HIDDEN * 512)
"""Weights in linear layers, the head aside."""
EMBEDDINGS = 1000 * HIDDEN


def tuned(**rest: Any) -> dict[str, Any]:
    """Return a LoRA job on the small Llama in bf16."""
    adapter = {"type": "lora", "targetModules": ["q_proj", "v_proj"], **rest.pop("adapter", {})}
    training = {"precision": "bf16", **rest.pop("training", {})}
    sizes = {"sequenceLength": 64}
    return job(llama(), training=training, adapter=adapter, input=sizes, **rest)


def loaded(trace: Trace) -> int:
    """Return the bytes of everything that was put on the card before the first step."""
    return by_role(trace)[Role.PARAMETER]


def test_only_the_adapter_has_gradients_and_states(in_child: InChild) -> None:
    """Adapters of 16-bit models are fp32: four bytes of gradient, eight of Adam's state."""
    trace = in_child(children.trace, tuned(training={"optimizer": {"name": "adamw"}}))

    assert fault(trace) is None
    roles = by_role(trace)
    assert roles[Role.GRADIENT] == 2 * 4 * LORA_ELEMENTS  # made anew in each of two steps
    assert roles[Role.OPTIMIZER] == 2 * 4 * LORA_ELEMENTS


def test_an_adapter_in_16_bits_takes_half(in_child: InChild) -> None:
    """`dtype` is the owner's word."""
    wide, narrow = (
        in_child(children.trace, tuned(adapter={"dtype": dtype})) for dtype in ("fp32", "bf16")
    )
    assert loaded(wide) - loaded(narrow) == 2 * LORA_ELEMENTS
    assert peak(narrow) < peak(wide)


def test_modules_that_are_not_there_are_named_with_those_that_are(in_child: InChild) -> None:
    """A typo in targetModules is the user's to mend."""
    refusal = in_child(children.refusal, tuned(adapter={"targetModules": ["query"]}))

    assert refusal.kind == "spec"
    (path, message), *_ = refusal.problems
    assert path == "adapter.targetModules"
    assert "q_proj" in message


@pytest.mark.parametrize(
    ("adapter", "path"),
    [
        ({"options": {"no_such_option": 1}}, "adapter.options.no_such_option"),
        ({"type": "oft", "options": {"lora_dropout": 0.1}}, "adapter.options.lora_dropout"),
    ],
    ids=str,
)
def test_an_option_of_another_method_is_refused(
    in_child: InChild, adapter: dict[str, Any], path: str
) -> None:
    """Options are those of the method's own configuration."""
    refusal = in_child(children.refusal, tuned(adapter=adapter))

    assert refusal.kind == "spec"
    assert refusal.problems[0][0] == path


@pytest.mark.parametrize(
    "adapter",
    [
        {"type": "dora"},
        {"type": "adalora"},
        {"type": "ia3", "options": {"feedforward_modules": []}},
        {"type": "loha"},
        {"type": "lokr"},
        {"type": "vera"},
        {"type": "oft"},
        {"type": "shira"},
        {"type": "frod"},
        {"type": "waveft", "options": {"n_frequency": 100}},
        {"type": "osf"},
        {"type": "psoft"},
        {"type": "c3a", "options": {"block_size": 64}},
        {"type": "prefix_tuning", "virtualTokens": 20, "targetModules": []},
        {"type": "prompt_tuning", "virtualTokens": 20, "targetModules": []},
        {"type": "p_tuning", "virtualTokens": 20, "targetModules": []},
        {"type": "adaption_prompt", "virtualTokens": 10, "targetModules": []},
    ],
    ids=lambda adapter: adapter["type"],
)
def test_methods_of_peft_have_an_answer(in_child: InChild, adapter: dict[str, Any]) -> None:
    """Something is trained, and it is less than the model."""
    trace = in_child(children.trace, tuned(adapter=adapter))

    assert fault(trace) is None
    assert 0 < by_role(trace)[Role.GRADIENT] < loaded(trace)


def test_an_adaption_prompt_on_gpt_neox_is_litgpts(in_child: InChild) -> None:
    """Ten embeddings and a gate a head in every layer but the first two; v2 would train more."""
    config = {
        "model_type": "gpt_neox",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 8,
        "intermediate_size": 512,
        "vocab_size": 1000,
    }
    model = {"source": "huggingface", "name": "neox", "task": "causal-lm", "config": config}
    document = job(model, training={"precision": "bf16"}, adapter={"type": "adaption_prompt"})
    document["input"]["sequenceLength"] = 64

    trace = in_child(children.trace, document)

    assert fault(trace) is None
    trained = (LAYERS - 2) * (10 * HIDDEN + 8)
    assert by_role(trace)[Role.GRADIENT] == 2 * 2 * trained
    assert any(note.path == "adapter" for note in trace.unknowns)


def test_an_osf_that_does_not_say_its_rank_is_at_most_that(in_child: InChild) -> None:
    """How much of a matrix is kept is the job's choice: no rejection rests on the default."""
    silent, told = (
        in_child(children.trace, tuned(adapter={"type": "osf", "options": options}))
        for options in ({}, {"effective_rank": 8})
    )
    assert AT_MOST in silent.facts
    assert AT_MOST not in told.facts


def test_dropout_keeps_its_masks(in_child: InChild) -> None:
    """A mask of one byte and what is left of the input, for every adapted layer."""
    without, with_dropout = (
        in_child(children.trace, tuned(adapter={"dropout": dropout})) for dropout in (0.0, 0.1)
    )
    tokens = 2 * 64
    assert peak(with_dropout) - peak(without) > LAYERS * tokens * HIDDEN


@pytest.mark.parametrize(
    ("quantization", "bytes_a_weight"),
    [
        ({"bits": 4, "scheme": "nf4"}, 0.5 + 4 / 64),
        ({"bits": 4, "scheme": "fp4", "doubleQuant": True}, 0.5 + 1 / 64 + 4 / (64 * 256)),
        ({"bits": 8, "scheme": "int8"}, 1.0),
        ({"bits": 4, "scheme": "gptq"}, 0.5),
        ({"bits": 4, "scheme": "awq"}, 0.5),
    ],
    ids=str,
)
def test_a_quantised_base_takes_its_published_bytes(
    in_child: InChild, quantization: dict[str, Any], bytes_a_weight: float
) -> None:
    """Linear layers are packed, with their statistics; embeddings and head stay as they are."""
    plain = loaded(in_child(children.trace, tuned()))

    packed = loaded(in_child(children.trace, tuned(quantization=quantization)))

    linear = packed - (plain - 2 * LINEAR)
    assert linear == pytest.approx(bytes_a_weight * LINEAR, rel=0.08)


SKIPS: tuple[dict[str, Any], ...] = ({"skipModules": []}, {})


def test_a_head_that_is_not_skipped_is_packed_too(in_child: InChild) -> None:
    """`skipModules: []` leaves nothing out; absent, the head is left out as transformers does."""
    packed, whole = (
        loaded(in_child(children.trace, tuned(quantization={"bits": 4, "scheme": "nf4", **skip})))
        for skip in SKIPS
    )
    assert whole - packed == pytest.approx((2 - 0.5625) * EMBEDDINGS, rel=0.01)


def test_preparation_for_training_puts_the_rest_into_fp32(in_child: InChild) -> None:
    """peft's prepare_model_for_kbit_training: embeddings, head and norms double."""
    base = {"bits": 4, "scheme": "nf4"}
    as_is, prepared, back = (
        loaded(in_child(children.trace, tuned(quantization={**base, "prepare": prepare})))
        for prepare in ("none", "kbit", "castBack")
    )
    norms = (2 * LAYERS + 1) * HIDDEN
    assert prepared - as_is == 2 * (2 * EMBEDDINGS + norms)
    assert back - as_is == 2 * norms


def test_old_bitsandbytes_keeps_the_inputs_of_its_products(in_child: InChild) -> None:
    """Before 0.43.2 the input was an attribute of the graph."""
    quantization = {"bits": 4, "scheme": "nf4"}
    old, new = (
        in_child(
            children.trace,
            tuned(quantization=quantization, runtime={"libraries": {"bitsandbytes": release}}),
        )
        for release in ("0.43.1", "0.43.2")
    )
    assert peak(old) > peak(new)


@pytest.mark.parametrize(
    ("quantization", "path"),
    [
        ({"bits": 8, "scheme": "nf4"}, "quantization.bits"),
        ({"bits": 4, "scheme": "int8"}, "quantization.bits"),
    ],
    ids=str,
)
def test_bits_a_scheme_does_not_have_are_refused(
    in_child: InChild, quantization: dict[str, Any], path: str
) -> None:
    """The message says what the scheme stores."""
    refusal = in_child(children.refusal, tuned(quantization=quantization))

    assert refusal.kind == "spec"
    assert refusal.problems[0][0] == path


def wordy(**training: Any) -> dict[str, Any]:
    """Return a full training of a small Llama with so many words that logits decide."""
    model = llama(vocab_size=50000)
    return job(model, training={"precision": "bf16", **training}, input={"sequenceLength": 256})


def test_lean_losses_keep_less_and_the_fused_one_least(in_child: InChild) -> None:
    """All logits in fp32, then chunks whose softmax is kept, then gradients made on the way."""
    plain, chunked, fused = (
        peak(in_child(children.trace, wordy(loss=loss))) for loss in ("default", "chunked", "fused")
    )
    logits = 2 * 256 * 50000
    assert plain - chunked > 4 * logits
    assert chunked - fused > 2 * logits


def test_a_chunked_loss_is_the_one_of_its_time(in_child: InChild) -> None:
    """Before torch 2.4 chunks stayed in 16 bits."""
    document = wordy(loss="chunked")
    old, new = (
        in_child(children.trace, {**document, "frameworkVersion": version})
        for version in ("2.1.0", "2.5.0")
    )
    assert "128 tokens" in said_of_loss(old)
    assert "fp32" in said_of_loss(new)


def said_of_loss(trace: Trace) -> str:
    return next(note.value for note in trace.assumptions if note.path == "training.loss")


def test_liger_keeps_less_in_norms_and_gated_products(in_child: InChild) -> None:
    """Neither the fp32 copies of a norm nor the activated gate live until backward."""
    plain, liger = (
        in_child(children.trace, wordy(kernels=kernels)) for kernels in ("default", "liger")
    )
    tokens = 2 * 256
    assert peak(plain) - peak(liger) > LAYERS * tokens * 512 * 2
    assert fault(liger) is None


def test_lora_fa_trains_the_second_matrix_only(in_child: InChild) -> None:
    """Gradients and states are of the matrices that start at zero."""
    trace = in_child(children.trace, tuned(training={"optimizer": {"name": "lora-fa"}}))

    second = LAYERS * 8 * (HIDDEN + KEYS)
    assert by_role(trace)[Role.GRADIENT] == 2 * 4 * second
    assert by_role(trace)[Role.OPTIMIZER] == 2 * 4 * second


def test_states_of_embeddings_stay_in_32_bits(in_child: InChild) -> None:
    """As transformers' Trainer tells bitsandbytes."""
    model = job(llama(), training={"precision": "bf16", "optimizer": {"name": "adamw", "bits": 8}})
    states = by_role(in_child(children.trace, model))[Role.OPTIMIZER]

    others = LINEAR + EMBEDDINGS
    assert states == pytest.approx(8 * EMBEDDINGS + 2.03 * others, rel=0.01)


def test_galore_keeps_less_than_adam(in_child: InChild) -> None:
    """Moments of projected gradients, and the projections."""
    adam, galore = (
        by_role(
            in_child(
                children.trace,
                job(llama(), training={"precision": "bf16", "optimizer": {"name": name}}),
            )
        )[Role.OPTIMIZER]
        for name in ("adamw", "galore")
    )
    assert 0 < galore < adam


def test_tokens_before_the_text_need_no_task_in_words(in_child: InChild) -> None:
    """Where the job does not say what the model is for, its class does."""
    adapter = {"type": "prefix_tuning", "virtualTokens": 20}
    model = {key: value for key, value in llama().items() if key != "task"}
    model["config"]["architectures"] = ["LlamaForCausalLM"]
    document = job(model, adapter=adapter, input={"sequenceLength": 64})

    trace = in_child(children.trace, document)

    assert 0 < by_role(trace)[Role.GRADIENT] < loaded(trace)


@pytest.mark.parametrize("method", ["prefix_tuning", "prompt_tuning", "p_tuning"])
def test_tokens_that_are_trained_have_to_be_counted(in_child: InChild, method: str) -> None:
    """peft has no number of its own for them."""
    refusal = in_child(children.refusal, tuned(adapter={"type": method, "targetModules": []}))

    assert [path for path, _ in refusal.problems] == ["adapter.virtualTokens"]


def test_large_states_of_a_paged_optimizer_are_no_allocators(in_child: InChild) -> None:
    """From 100,000 elements on they are in memory the driver moves; their scales are not."""
    optimizer = {"name": "adamw", "bits": 8, "paged": True}
    trace = in_child(
        children.trace, job(llama(), training={"precision": "bf16", "optimizer": optimizer})
    )

    def states(*, managed: bool) -> int:
        columns = zip(trace.sizes, trace.roles, trace.streams, strict=True)
        return sum(
            size
            for size, role, stream in columns
            if role == Role.OPTIMIZER and (stream == MANAGED_STREAM) is managed
        )

    in_8_bits = LAYERS * 3 * HIDDEN * 512 + EMBEDDINGS  # the head
    assert states(managed=True) == 8 * EMBEDDINGS + 2 * in_8_bits
    small = LAYERS * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KEYS)
    assert states(managed=False) == pytest.approx(2.03 * small + 0.03 * in_8_bits, rel=0.1)
