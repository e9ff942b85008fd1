"""Training steps of small transformers in plain JAX.

    Transformer -> a step, lowered for cards

Plain functions of trees of arrays, as people write them without a library of layers. Nothing runs:
weights and batches are shapes. JAX is imported here, so a command imports its frontend first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tests.bench.xla_transformer_cases import CLASSES, PATCH, Kind, Precision, Transformer


def lowered_step(model: Transformer) -> Any:
    """Return one training step of *model*, its state donated, lowered for cards."""
    weights = _weights(model)
    moment = jax.tree.map(lambda each: _array(*each.shape), weights)
    moments = () if model.is_sgd else (moment, moment)
    state = (weights, moments, _array(), _array(2, dtype=jnp.uint32))
    step = jax.jit(partial(_step, model), donate_argnums=(0,))
    return step.trace(state, _batch(model)).lower(lowering_platforms=("cuda",))


def _array(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _batch(model: Transformer) -> dict[str, Any]:
    words = _array(model.batch, model.tokens, dtype=jnp.int32)
    if model.kind is Kind.VIT:
        side = math.isqrt(model.tokens) * PATCH
        images = _array(model.batch, side, side, 3)
        return {"inputs": images, "labels": _array(model.batch, dtype=jnp.int32)}
    batch = {"inputs": words, "labels": words}
    return {**batch, "outputs": words} if model.kind is Kind.T5 else batch


def _weights(model: Transformer) -> dict[str, Any]:
    """Return the tree of weights, as shapes."""
    array = partial(_array, dtype=model.kept_in)
    layers: Any = [_layer_weights(model) for _ in range(model.layers)]
    if model.is_scanned:
        layers = jax.tree.map(lambda each: array(model.layers, *each.shape), _layer_weights(model))
    rows = PATCH * PATCH * 3 if model.kind is Kind.VIT else model.vocabulary
    weights = {
        "embedding": array(rows, model.width),
        "norm": _norm_weights(model),
        "layers": layers,
    }
    if model.kind in (Kind.GPT, Kind.BERT, Kind.VIT):
        weights["positions"] = array(model.tokens, model.width)
    if model.kind is Kind.BERT:
        weights["transform"] = array(model.width, model.width)
    if model.kind is Kind.VIT:
        weights["head"] = array(model.width, CLASSES)
    if model.kind is Kind.LLAMA:
        weights["head"] = array(model.width, model.vocabulary)
    if model.kind is Kind.T5:
        weights["encoder"] = [_layer_weights(model, crosses=False) for _ in range(model.layers)]
    return weights


def _layer_weights(model: Transformer, *, crosses: bool = True) -> dict[str, Any]:
    """Return those of one layer; a decoder's *crosses* over to the encoder."""
    array = partial(_array, dtype=model.kept_in)
    width, hidden = model.width, model.hidden
    keys = model.key_heads * (width // model.heads)
    attention = {
        "query": array(width, width),
        "key": array(width, keys),
        "value": array(width, keys),
        "out": array(width, width),
    }
    dense = {"up": array(width, hidden), "down": array(hidden, width)}
    if model.kind is Kind.LLAMA:
        dense["gate"] = array(width, hidden)
    else:
        dense |= {"up_bias": array(hidden), "down_bias": array(width)}
    layer = {
        "attention": attention,
        "dense": dense,
        "norms": [_norm_weights(model) for _ in range(2)],
    }
    if model.kind is Kind.T5 and crosses:
        layer |= {"cross": attention, "cross_norm": _norm_weights(model)}
    return layer


def _norm_weights(model: Transformer) -> dict[str, Any]:
    scale = _array(model.width, dtype=model.kept_in)
    return {"scale": scale} if model.kind is Kind.LLAMA else {"scale": scale, "shift": scale}


def _step(model: Transformer, state: Any, batch: Any) -> Any:
    """Return the next state and the loss."""
    weights, moments, count, key = state
    key, own = jax.random.split(key)
    loss, gradients = jax.value_and_grad(partial(_loss, model))(weights, batch, own)
    count = count + 1
    if model.is_sgd:
        moved = jax.tree.map(lambda w, g: (w - 1e-2 * g).astype(w.dtype), weights, gradients)
        return (moved, moments, count, key), loss

    def moved_by(weight: Any, first: Any, second: Any) -> Any:
        root = jnp.sqrt(second / (1 - 0.999**count)) + 1e-8
        return (weight - 1e-3 * (first / (1 - 0.9**count)) / root).astype(weight.dtype)

    gradients = jax.tree.map(lambda gradient: gradient.astype(jnp.float32), gradients)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], gradients)
    return (jax.tree.map(moved_by, weights, first, second), (first, second), count, key), loss


def _loss(model: Transformer, weights: Any, batch: Any, key: Any) -> Any:
    """Return the cross entropy, computed in 32 bits."""
    if model.precision is Precision.MIXED:
        weights = jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), weights)
    logits = _logits(model, weights, batch, key).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, batch["labels"][..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def _logits(model: Transformer, weights: Any, batch: Any, key: Any) -> Any:
    embedding = weights["embedding"]
    if model.kind is Kind.VIT:
        x = _patches(model, batch["inputs"]) @ embedding
    else:
        x = embedding[batch["inputs"]].astype(model.computed_in)
    if "positions" in weights:
        x = x + weights["positions"]
    if model.kind is Kind.T5:
        encode = partial(_layer, model, is_causal=False)
        encoded = _through(encode, weights["encoder"], x, key)
        x = embedding[batch["outputs"]].astype(model.computed_in)
        decode = partial(_layer, model, is_causal=True, encoded=encoded)
        x = _through(decode, weights["layers"], x, jax.random.fold_in(key, 100))
    else:
        layer = partial(_layer, model, is_causal=model.kind in (Kind.GPT, Kind.LLAMA))
        if model.is_checkpointed:
            layer = jax.checkpoint(layer)
        if model.is_scanned:
            x, _ = jax.lax.scan(lambda x, own: (layer(own, x, key), None), x, weights["layers"])
        else:
            x = _through(layer, weights["layers"], x, key)
    x = _norm(model, weights["norm"], x)
    if model.kind is Kind.VIT:
        x = x.mean(1)
    if model.kind is Kind.BERT:
        x = jax.nn.gelu(x @ weights["transform"])
    return x @ weights.get("head", embedding.T)


def _through(layer: Callable[..., Any], layers: Any, x: Any, key: Any) -> Any:
    for index, own in enumerate(layers):
        x = layer(own, x, jax.random.fold_in(key, index))
    return x


def _patches(model: Transformer, images: Any) -> Any:
    side = math.isqrt(model.tokens)
    cut = images.reshape(model.batch, side, PATCH, side, PATCH, 3).transpose(0, 1, 3, 2, 4, 5)
    return cut.reshape(model.batch, model.tokens, -1).astype(model.computed_in)


def _layer(
    model: Transformer, weights: Any, x: Any, key: Any, *, is_causal: bool, encoded: Any = None
) -> Any:
    keys = jax.random.split(key, 3)
    first, second = weights["norms"]
    attend = partial(_attention, model, weights["attention"], key=keys[0], is_causal=is_causal)
    if model.kind is Kind.BERT:
        x = _norm(model, first, x + _dropped(model, attend(x, x), keys[1]))
        return _norm(model, second, x + _dropped(model, _dense(model, weights, x), keys[2]))
    normed = _norm(model, first, x)
    x = x + _dropped(model, attend(normed, normed), keys[1])
    if encoded is not None:
        normed = _norm(model, weights["cross_norm"], x)
        x = x + _attention(model, weights["cross"], normed, encoded, key=keys[0], is_causal=False)
    return x + _dropped(model, _dense(model, weights, _norm(model, second, x)), keys[2])


def _attention(
    model: Transformer, weights: Any, x: Any, source: Any, *, key: Any, is_causal: bool
) -> Any:
    batch, tokens, width = x.shape
    size = width // model.heads
    query = (x @ weights["query"]).reshape(batch, tokens, model.heads, size)
    keys = (source @ weights["key"]).reshape(batch, tokens, model.key_heads, size)
    values = (source @ weights["value"]).reshape(batch, tokens, model.key_heads, size)
    if model.kind is Kind.LLAMA:
        query, keys = _rotated(query), _rotated(keys)
    if model.key_heads != model.heads:
        times = model.heads // model.key_heads
        keys, values = jnp.repeat(keys, times, 2), jnp.repeat(values, times, 2)
    scores = jnp.einsum("bthd,bshd->bhts", query, keys).astype(jnp.float32) / math.sqrt(size)
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
    shares = _dropped(model, jax.nn.softmax(scores, -1).astype(x.dtype), key)
    mixed = jnp.einsum("bhts,bshd->bthd", shares, values)
    return mixed.reshape(batch, tokens, width) @ weights["out"]


def _rotated(x: Any) -> Any:
    """Return *x* with rotary positions."""
    tokens, size = x.shape[1], x.shape[-1]
    angles = jnp.arange(tokens)[:, None] / 10_000 ** (jnp.arange(0, size, 2) / size)
    cosine, sine = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    even, odd = x[..., ::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
    turned = jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1)
    return turned.reshape(x.shape).astype(x.dtype)


def _dense(model: Transformer, weights: Any, x: Any) -> Any:
    own = weights["dense"]
    if model.kind is Kind.LLAMA:
        return (jax.nn.silu(x @ own["gate"]) * (x @ own["up"])) @ own["down"]
    inner = jax.nn.gelu(x @ own["up"] + own["up_bias"], approximate=model.kind is not Kind.BERT)
    return inner @ own["down"] + own["down_bias"]


def _norm(model: Transformer, weights: Any, x: Any) -> Any:
    """Return *x* normed in 32 bits: by its root mean square for Llama, else its mean too."""
    wide = x.astype(jnp.float32)
    if model.kind is Kind.LLAMA:
        root = jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)
        return (wide * root * weights["scale"]).astype(x.dtype)
    centred = wide - wide.mean(-1, keepdims=True)
    root = jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return (centred * root * weights["scale"] + weights["shift"]).astype(x.dtype)


def _dropped(model: Transformer, x: Any, key: Any) -> Any:
    if not model.dropout:
        return x
    kept = 1 - model.dropout
    return jnp.where(jax.random.bernoulli(key, kept, x.shape), x / kept, 0).astype(x.dtype)
