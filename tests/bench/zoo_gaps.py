"""What default configurations of transformers leave out and every published one has.

    model type or class -> keys of its configuration

A value is that of a published checkpoint where there is one; of the others only the names are
needed, and the sizes are small. Parts are merged into what the cases set themselves.
"""

from __future__ import annotations

from typing import Any

MROPE_HALF = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "mrope_section": [8, 12, 12],
}
"""GLM-4.1V: half of a head is rotated."""

CROSS = {
    "reduce_channel": [1, 1, 0],
    "return_channel": [1, 1, 0],
    "vertical_long_to_small_conv_longratio": [[7, 1], 1, [3, 0]],
    "vertical_long_to_small_conv_midratio": [[5, 1], 1, [2, 0]],
    "vertical_long_to_small_conv_shortratio": [[3, 1], 1, [1, 0]],
    "horizontal_small_to_long_conv_longratio": [[1, 7], 1, [0, 3]],
    "horizontal_small_to_long_conv_midratio": [[1, 5], 1, [0, 2]],
    "horizontal_small_to_long_conv_shortratio": [[1, 3], 1, [0, 1]],
    "symmetric_conv_long_longratio": [[7, 7], 1, [3, 3]],
    "symmetric_conv_long_midratio": [[5, 5], 1, [2, 2]],
    "symmetric_conv_long_shortratio": [[3, 3], 1, [1, 1]],
}
"""PaddleOCR's block of crossed filters, as in its PP-OCRv5 server detector."""

STAGES = {
    "model_type": "pp_lcnet_v4",
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
    "block_configs": [
        [[3, 96, 96, 1, True]],
        *([[3, before, after, 2, False]] for before, after in ((96, 96), (96, 192), (192, 384))),
    ],
}
"""The four feature maps a text detector joins, each half of the one before."""

GRANITE_PROJECTOR = {
    "model_type": "blip_2_qformer",
    "encoder_hidden_size": 1024,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "cross_attention_frequency": 1,
}

GAPS: dict[str, dict[str, Any]] = {
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "xmod": {"languages": ["en_XX"]},
    "nemotron": {"num_key_value_heads": 8},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "hunyuan_vl": {
        "text_config": {
            "head_dim": 128,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [16, 16, 16, 16],
            },
        }
    },
    "ministral": {"head_dim": 128},
    "reformer": {"is_decoder": True},
    "ReformerForMaskedLM": {"is_decoder": False},
    "beit": {"out_indices": [3, 5, 7, 11]},
    "wav2vec2-bert": {"vocab_size": 32},
    "wav2vec2-conformer": {"vocab_size": 32},
    "deepseek_v2": {"num_experts_per_tok": 6, "moe_intermediate_size": 1408},
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"], "num_hidden_layers": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2},
    "dbrx": {"attn_config": {"clip_qkv": 8, "kv_n_heads": 8, "rope_theta": 500000}},
    "dots1": {
        "n_routed_experts": 128,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
    },
    "gemma4_assistant": {
        "text_config": {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    },
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 256,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 16,
    },
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    },
    "deepseek_ocr2": {
        "text_config": {
            "mlp_layer_types": ["dense", "sparse"],
            "num_hidden_layers": 2,
            "num_experts_per_tok": 6,
            "moe_intermediate_size": 896,
        },
        "vision_config": {
            "encoder_config": {
                "model_type": "deepseek_ocr2_encoder",
                "hidden_size": 896,
                "intermediate_size": 4864,
                "num_attention_heads": 14,
                "num_key_value_heads": 2,
            }
        },
    },
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 5},
    "diffusion_gemma": {
        "text_config": {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704}
    },
    "granite4_vision": {
        "deepstack_layer_map": [[-1, 0]],
        "downsample_rate": "4/8",
        "vision_feature_select_strategy": "full",
        "image_grid_pinpoints": [[384, 768], [768, 384], [768, 768]],
        "vision_config": {
            "model_type": "siglip_vision_model",
            "image_size": 384,
            "patch_size": 16,
        },
    },
    "step3p7": {"text_config": {"sliding_window": 512}},
    "moonshine_streaming": {"num_key_value_heads": 8},
    "hiera": {"decoder_hidden_size": 512, "decoder_depth": 8, "decoder_num_heads": 16},
    "glm4v": {"text_config": {"rope_parameters": MROPE_HALF}},
    "glm46v": {"text_config": {"rope_parameters": MROPE_HALF}},
    "glmga": {"text_config": {"rope_parameters": MROPE_HALF}},
    "glm4v_moe": {"text_config": {"rope_parameters": MROPE_HALF, "head_dim": 128}},
    "qwen3_omni_moe_thinker": {
        "text_config": {"head_dim": 128},
        "vision_config": {"out_hidden_size": 2048},
    },
    "qwen3_vl": {"vision_config": {"out_hidden_size": 4096}},
    "qwen3_vl_moe": {"vision_config": {"out_hidden_size": 2048}},
    "cosmos3_omni": {"vision_config": {"out_hidden_size": 4096}},
    "granite_speech": {"projector_config": GRANITE_PROJECTOR},
    "granite_speech_plus": {"projector_config": GRANITE_PROJECTOR},
    "chameleon": {"vocabulary_map": {"<image>": 8711, "IMGIMGAZ": 4}},
    "emu3": {
        "vocabulary_map": {
            "<image>": 151851,
            "<|extra_200|>": 151846,
            "<|visual token 000000|>": 151854,
        }
    },
    "lw_detr": {"projector_scale_factors": [1.0]},
    "pp_doclayout_v2": {"class_thresholds": [0.5] * 25, "class_order": [*range(25)]},
    "pp_ocrv5_server_det": {
        "intraclass_block_config": CROSS,
        "kernel_list": [3, 2, 2],
        "scale_factor_list": [1, 2, 4, 8],
    },
    "pp_ocrv6_medium_det": {
        "backbone_config": STAGES,
        "intraclass_block_config": CROSS,
        "kernel_list": [3, 2, 2],
        "scale_factor_list": [1, 2, 4, 8],
    },
    "pp_ocrv6_small_det": {
        "backbone_config": STAGES,
        "layer_list_out_channels": [96, 96, 192, 384],
    },
    "sapiens2": {
        "head_config": {
            "upsample_out_channels": [768, 768],
            "upsample_kernel_sizes": [4, 4],
            "conv_out_channels": [768, 768],
            "conv_kernel_sizes": [1, 1],
        }
    },
    "perception_lm": {
        "vision_config": {
            "model_type": "timm_wrapper",
            "architecture": "vit_pe_core_large_patch14_336",
            "model_args": {
                "depth": 2,
                "embed_dim": 1024,
                "global_pool": "",
                "img_size": [448, 448],
                "init_values": 0.1,
                "ref_feat_shape": [32, 32],
                "use_post_transformer_norm": False,
            },
        }
    },
    "pi0": {
        "vlm_config": {
            "text_config": {
                "model_type": "gemma",
                "hidden_size": 2048,
                "intermediate_size": 16384,
                "num_attention_heads": 8,
                "num_key_value_heads": 1,
            }
        },
        "dit_config": {
            "model_type": "gemma",
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
        },
    },
    "Blip2ForImageTextRetrieval": {"qformer_config": {"use_qformer_text_input": True}},
    "colmodernvbert": {"vlm_config": {"vision_config": {"image_size": 512}}},
    "aria": {
        "vision_config": {
            "model_type": "idefics3_vision",
            "image_size": 980,
            "patch_size": 14,
            "hidden_size": 1152,
            "num_attention_heads": 16,
        }
    },
    "llama4": {
        "vision_config": {
            "hidden_size": 1408,
            "image_size": 336,
            "vision_output_dim": 4096,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
        }
    },
    "llava_onevision": {
        "vision_config": {
            "model_type": "siglip_vision_model",
            "image_size": 384,
            "patch_size": 14,
        }
    },
    "t5gemma2": {"encoder": {"vision_config": {"image_size": 896, "patch_size": 14}}},
    **{
        name: {"vision_config": {"model_type": "siglip_vision_model", "image_size": 896}}
        for name in ("gemma3", "shieldgemma2")
    },
    **{
        name: {
            "vision_config": {
                "model_type": "clip_vision_model",
                "image_size": 336,
                "patch_size": 14,
            }
        }
        for name in ("llava_next", "llava_next_video")
    },
}
GAPS["qwen4_exp"] = {"text_config": GAPS["qwen4_exp_text"]}
GAPS["gemma3n"] = {"text_config": GAPS["gemma3n_text"]}
GAPS["cohere_compass"] = {
    "text_config": GAPS["cohere_compass_text"],
    "vision_config": {"out_hidden_size": 8192},
}

LENGTHS = {"kosmos-2.5": 2048, "perceiver": 2048, "reformer": 4096}
"""Models that take one length only in training, or whose image has more tokens."""

PARTS: dict[str, dict[str, Any]] = {
    "encoder-decoder": {
        "encoder": {"model_type": "bert", "num_hidden_layers": 2},
        "decoder": {
            "model_type": "bert",
            "num_hidden_layers": 2,
            "is_decoder": True,
            "add_cross_attention": True,
        },
    },
    "vision-encoder-decoder": {
        "encoder": {"model_type": "vit", "num_hidden_layers": 2},
        "decoder": {
            "model_type": "gpt2",
            "n_layer": 2,
            "add_cross_attention": True,
        },
    },
    "speech-encoder-decoder": {
        "encoder": {"model_type": "wav2vec2", "num_hidden_layers": 2},
        "decoder": {
            "model_type": "bert",
            "num_hidden_layers": 2,
            "is_decoder": True,
            "add_cross_attention": True,
        },
    },
    "vision-text-dual-encoder": {
        "vision_config": {"model_type": "vit", "num_hidden_layers": 2},
        "text_config": {"model_type": "bert", "num_hidden_layers": 2},
    },
}
"""Models that are made of others and have no defaults."""
