"""What transformers did before the release that traces, family by family.

    family, release -> does it attend by SDPA, does its loss upcast, ...

A family is the part of a module's name after `modeling_` and `configuration_`.
Source: the wheels of transformers 2.11.0-5.24.0, all minor releases from 4.35 on but 5.17, 5.21;
`_supports_sdpa`, `get_extended_attention_mask`, `.float()` and `shift_logits` in
transformers/models/*/modeling_*.py. Families that had SDPA from their first release are in no row.
"""

from __future__ import annotations

from estimator.frontends.pytorch.build.releases import Release


def _families(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _by_family(rows: tuple[tuple[Release, str], ...]) -> dict[str, Release]:
    return {family: release for release, families in rows for family in families.split()}


SDPA_SINCE = _by_family(
    (
        ((4, 36), "bart gpt_bigcode llama whisper"),
        ((4, 37), "mistral mixtral"),
        ((4, 39), "phi stablelm"),
        ((4, 41), "audio_spectrogram_transformer bert data2vec_audio deit dpr hubert sew"),
        ((4, 41), "unispeech unispeech_sat videomae vit vit_mae vit_msn wav2vec2 yolos"),
        ((4, 42), "gpt2 gpt_neox"),
        ((4, 43), "clip siglip"),
        ((4, 45), "albert biogpt camembert dinov2 m2m_100 mbart phi3 roberta xlm_roberta"),
        ((4, 45), "xlm_roberta_xl"),
        ((4, 46), "distilbert opt vivit"),
        ((4, 48), "beit data2vec_vision sam"),
        ((4, 50), "dpt vitpose_backbone"),
        ((4, 52), "blip_2 instructblip instructblipvideo kosmos2 pixtral"),
        ((4, 53), "blenderbot blenderbot_small marian pegasus persimmon plbart"),
        ((4, 56), "esm modernbert_decoder"),
        ((5, 0), "bert_generation data2vec_text electra ernie mobilebert patchtst"),
        ((5, 0), "roberta_prelayernorm roc_bert xmod"),
        ((5, 1), "conditional_detr d_fine deformable_detr detr rt_detr rt_detr_v2"),
        ((5, 4), "maskformer owlv2 owlvit"),
        ((5, 6), "altclip chinese_clip clipseg x_clip"),
        ((5, 9), "segformer swin"),
        ((5, 10), "zamba"),
        ((5, 13), "ctrl recurrent_gemma"),
        ((5, 15), "mt5 pix2struct pop2piano t5 udop umt5"),
        ((5, 16), "seamless_m4t seamless_m4t_v2 wav2vec2_bert wav2vec2_conformer"),
        ((5, 19), "decision_transformer layoutlm"),
        ((5, 24), "codegen gptj layoutlmv3"),
    )
)
"""Family -> first release that attends by `scaled_dot_product_attention` by default."""

FIRST = _by_family(
    (
        ((4, 37), "qwen2"),
        ((4, 38), "gemma stablelm"),
        ((4, 39), "cohere starcoder2"),
        ((4, 40), "dbrx jamba olmo qwen2_moe recurrent_gemma"),
        ((4, 41), "jetmoe phi3"),
        ((4, 42), "gemma2"),
        ((4, 44), "nemotron"),
        ((4, 45), "granite granitemoe olmoe qwen2_vl"),
        ((4, 46), "glm phimoe zamba"),
        ((4, 47), "olmo2"),
        ((4, 48), "bamba cohere2 diffllama emu3"),
        ((4, 49), "granitemoeshared helium qwen2_5_vl zamba2"),
        ((4, 50), "aya_vision gemma3 mistral3 smolvlm"),
        ((4, 51), "deepseek_v3 glm4 llama4 phi4_multimodal qwen3 qwen3_moe"),
        ((4, 52), "bitnet csm granitemoehybrid internvl janus qwen2_5_omni"),
        ((4, 53), "arcee dia dots1 falcon_h1 gemma3n glm4v minimax smollm3 t5gemma"),
        ((4, 54), "deepseek_v2 doge ernie4_5 ernie4_5_moe exaone4 glm4_moe lfm2"),
        ((4, 54), "modernbert_decoder perception_lm voxtral xlstm"),
        ((4, 55), "cohere2_vision gpt_oss"),
        ((4, 56), "apertus hunyuan_v1_dense hunyuan_v1_moe ovis2 seed_oss"),
        ((4, 57), "blt flex_olmo lfm2_vl longcat_flash ministral olmo3 qwen3_next qwen3_vl"),
        ((4, 57), "qwen3_omni_moe qwen3_vl_moe vaultgemma"),
    )
)
"""Family of language models -> first release that has it: a job that trains it runs no older."""

PADS_LABELS_SINCE: Release = (4, 49)
"""First release whose causal loss shifts labels; before, it copies the logits without the last."""

SHARED_LOSS_SINCE = _by_family(
    (
        ((4, 47), "starcoder2"),
        ((4, 48), "bloom codegen ctrl dbrx falcon gpt_bigcode gpt_neo gpt_neox_japanese gptj"),
        ((4, 48), "granite mistral mpt opt persimmon reformer rwkv stablelm"),
        ((4, 49), "gpt_neox"),
    )
)
"""Family -> first release whose loss is the library's (which computes in fp32); others: 4.46."""
SHARED_LOSS: Release = (4, 46)

WIDE_LOGITS_UNTIL = _by_family(
    (
        ((4, 46), "cohere gemma gemma2 jamba llama mixtral nemotron olmo olmoe phi phi3 qwen2"),
        ((4, 46), "qwen2_moe"),
        ((4, 47), "starcoder2"),
        ((4, 48), "granite mistral"),
        ((4, 52), "chameleon paligemma qwen2_5_vl qwen2_vl"),
        ((4, 54), "jetmoe"),
        ((5, 0), "codegen gptj granitemoe granitemoehybrid granitemoeshared recurrent_gemma"),
    )
)
"""Family -> first release that leaves the logits it returns in the model's own dtype, not fp32."""

CACHE_COPIES_SINCE: Release = (4, 56)
"""First release whose cache copies the keys and values of a first forward.

Source: `DynamicLayer.update` in transformers/cache_utils.py; 4.55.4 keeps what it is given.
"""

SHARED_SDPA_SINCE = _by_family(
    (
        ((4, 50), "audio_spectrogram_transformer deit dinov2 dpt videomae vit vit_mae vit_msn"),
        ((4, 50), "vitpose_backbone vivit yolos"),
        ((4, 51), "idefics2 idefics3 siglip"),
        ((4, 52), "chameleon clip granitemoe granitemoeshared idefics mllama opt"),
        ((4, 53), "bart biogpt data2vec_audio hubert m2m_100 mbart persimmon qwen2_5_vl qwen2_vl"),
        ((4, 53), "sew unispeech unispeech_sat wav2vec2 whisper"),
        ((4, 54), "gpt_bigcode"),
        ((4, 56), "albert beit bert camembert data2vec_vision dbrx diffllama distilbert falcon"),
        ((4, 56), "jamba jetmoe nemotron olmoe phimoe qwen2_moe recurrent_gemma roberta sam"),
        ((4, 56), "stablelm xlm_roberta xlm_roberta_xl"),
    )
)
"""Family -> first release that attends by the library's own call of SDPA; others: 4.48."""
SHARED_SDPA: Release = (4, 48)
SDPA_TAKES_VIEWS_SINCE: Release = (4, 56)
"""First release whose call of SDPA makes no contiguous copies of queries, keys and values.

Source: `sdpa_attention_forward` in transformers/integrations/sdpa_attention.py.
"""
GROUPED_SDPA_SINCE: Release = (4, 54)
"""First release that lets SDPA group queries; before, keys and values are repeated for it."""
GROUPED_SDPA_NEEDS = (2, 5)
"""First PyTorch it does that with (`use_gqa_in_sdpa`)."""

SKIPS_MASKS_SINCE: Release = (5, 0)
"""First release that adds no mask to eager scores where nothing is padded."""

ALWAYS_MASKED = _families(
    "align altclip bert bert_generation big_bird blip_2 blip_text bridgetower bros camembert "
    "canine chinese_clip clap convbert data2vec_text electra ernie esm flava ibert "
    "instructblip layoutlmv3 lilt longt5 luke megatron_bert mobilebert mpnet mt5 nystromformer "
    "pix2struct pop2piano rembert roberta roberta_prelayernorm roc_bert roformer splinter "
    "squeezebert switch_transformers t5 tapas tvp udop umt5 vilt visual_bert xlm_roberta "
    "xlm_roberta_xl xmod"
)
"""Families that made a mask of their own where none was given (`get_extended_attention_mask`)."""

WIDE_SOFTMAX_UNTIL: Release = (5, 15)
WIDE_SOFTMAX = _families("t5 mt5 umt5 udop pop2piano longt5 switch_transformers")
"""Families whose eager softmax was in fp32 (`scores.float()`) until then."""
