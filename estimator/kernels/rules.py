"""The table: which operator needs which scratch.

    operator -> Rule

Matrix products and convolutions have files of their own (`matmul.py`, `convolution.py`).
An operator that is in none of them is reported as unknown, never taken for zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from estimator.kernels import attention, native
from estimator.kernels.scratch import Rule

RULES: Mapping[str, Rule] = {
    "aten._scaled_dot_product_flash_attention": attention.no_scratch,
    "aten._scaled_dot_product_flash_attention_backward": attention.flash_backward,
    "aten._flash_attention_forward": attention.no_scratch,
    "aten._flash_attention_backward": attention.flash_backward,
    "aten._scaled_dot_product_efficient_attention": attention.no_scratch,
    "aten._scaled_dot_product_efficient_attention_backward": attention.efficient_backward,
    "aten._efficient_attention_forward": attention.no_scratch,
    "aten._efficient_attention_backward": attention.efficient_backward,
    "aten._scaled_dot_product_cudnn_attention": attention.no_scratch,
    "aten._scaled_dot_product_cudnn_attention_backward": attention.cudnn_backward,
    "aten._cudnn_attention_forward": attention.no_scratch,
    "aten._cudnn_attention_backward": attention.cudnn_backward,
    "aten._fft_r2c": native.fourier,
    "aten._fft_c2r": native.fourier,
    "aten._fft_c2c": native.fourier,
    "aten.sort": native.sort,
    "aten.argsort": native.sort,
    "aten.topk": native.largest,
    "aten.msort": native.sort,
    "aten.kthvalue": native.sort,
    "aten.median": native.sort,
    "aten.unique": native.unique,
    "aten._unique2": native.unique,
    "aten.embedding_dense_backward": native.embedding_backward,
    "aten.index_put": native.scattered_sums,
    "aten.index_put_": native.scattered_sums,
    "aten._unsafe_index_put": native.scattered_sums,
    "aten.index_add": native.no_scratch,
    "aten.native_batch_norm": native.no_scratch,
    "aten.native_batch_norm_backward": native.no_scratch,
    "aten._native_batch_norm_legit": native.no_scratch,
    "aten._batch_norm_with_update": native.no_scratch,
    "aten.batch_norm_backward": native.no_scratch,
    "aten.cudnn_batch_norm": native.no_scratch,
    "aten.cudnn_batch_norm_backward": native.no_scratch,
    "aten.native_layer_norm": native.no_scratch,
    "aten.native_layer_norm_backward": native.no_scratch,
    "aten.native_group_norm": native.no_scratch,
    "aten.native_group_norm_backward": native.no_scratch,
    "aten.cumsum": native.no_scratch,
    "aten.logsumexp": native.one_input,
    "aten._euclidean_dist": native.distances,
    "aten.dist": native.one_input,
    "aten.soft_margin_loss": native.one_input,
    "aten.binary_cross_entropy_with_logits": native.two_inputs,
    "aten._cudnn_rnn": native.recurrent,
    "aten._cudnn_rnn_backward": native.recurrent,
}
