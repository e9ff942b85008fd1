"""Every flag of transformers' Trainer, of the library's examples, and some that others borrow.

A table: flags that are not in it are somebody else's.
Source: transformers 4.30.2, 4.44.2, 4.57.1 and 5.24.0 `training_args.py` and
`training_args_seq2seq.py`; huggingface/transformers examples/pytorch; trl `ModelConfig`.
"""

from __future__ import annotations

from admission.detect.flags import Flags, Options, Takes
from admission.detect.words import words

_SWITCHES = words(
    "activation_checkpointing adafactor auto_find_batch_size average_tokens_across_devices "
    "batch_eval_metrics bf16 bf16_full_eval dataloader_drop_last dataloader_in_order "
    "dataloader_persistent_workers dataloader_pin_memory ddp_broadcast_buffers "
    "ddp_find_unused_parameters ddp_static_graph disable_tqdm dispatch_batches do_eval "
    "do_predict do_train predict_with_generate sortish_sampler enable_jit_checkpoint "
    "eval_do_concat_batches eval_on_start "
    "eval_use_gather_object fp16 fp16_full_eval full_determinism gradient_checkpointing "
    "greater_is_better group_by_length hub_always_push hub_private_repo ignore_data_skip "
    "include_inputs_for_metrics include_num_input_tokens_seen include_tokens_per_second "
    "jit_mode_eval liger_kernel_config load_best_model_at_end log_on_each_node "
    "logging_first_step logging_nan_inf_filter no_cuda overwrite_output_dir "
    "prediction_loss_only push_to_hub remove_unused_columns "
    "restore_callback_states_from_checkpoint save_on_each_node save_only_model save_safetensors "
    "skip_memory_metrics split_batches tf32 torch_compile tpu_metrics_debug use_cache use_cpu "
    "use_ipex use_legacy_prediction_loop use_liger_kernel use_mps_device"
)
_VALUES = words(
    "accelerator_config activation_checkpointing_kwargs adam_beta1 adam_beta2 adam_epsilon "
    "data_seed dataloader_multiprocessing_context dataloader_num_workers "
    "dataloader_prefetch_factor ddp_backend ddp_bucket_cap_mb ddp_timeout deepspeed "
    "eval_accumulation_steps eval_delay eval_steps eval_strategy evaluation_strategy "
    "fp16_backend fp16_opt_level fsdp_config fsdp_min_num_params "
    "fsdp_transformer_layer_cls_to_wrap generation_config generation_max_length "
    "generation_num_beams gradient_accumulation_steps gradient_checkpointing_kwargs "
    "half_precision_backend hub_model_id hub_revision hub_strategy hub_token "
    "label_smoothing_factor learning_rate length_column_name local_rank log_level "
    "log_level_replica logging_dir logging_steps logging_strategy lr_scheduler_kwargs "
    "lr_scheduler_type max_grad_norm max_steps metric_for_best_model mp_parameters "
    "neftune_noise_alpha num_train_epochs optim optim_args output_dir parallelism_config "
    "past_index per_device_eval_batch_size per_device_train_batch_size per_gpu_eval_batch_size "
    "per_gpu_train_batch_size project push_to_hub_model_id "
    "push_to_hub_organization push_to_hub_token ray_scope resume_from_checkpoint run_name "
    "save_steps save_strategy save_total_limit seed sharded_ddp "
    "torch_compile_backend torch_compile_mode torch_empty_cache_steps torchdynamo tpu_num_cores "
    "trackio_bucket_id trackio_space_id trackio_static_space_id train_sampling_strategy "
    "warmup_ratio warmup_steps weight_decay xpu_backend"
)
_EXAMPLE_SWITCHES = words(
    "add_adapter apply_spec_augment ctc_zero_infinity do_lower_case do_normalize "
    "do_reduce_labels do_regression freeze_encoder freeze_feature_encoder "
    "ignore_mismatched_sizes ignore_pad_token_for_loss keep_linebreaks label_all_tokens "
    "line_by_line low_cpu_mem_usage no_keep_linebreaks norm_pix_loss overwrite_cache "
    "pad_to_max_length preprocessing_only reduce_labels resize_position_embeddings "
    "return_entity_level_metrics shuffle_train_dataset streaming trust_remote_code "
    "use_auth_token use_fast use_fast_tokenizer use_slow_tokenizer version_2_with_negative "
    "with_tracking"
)
_EXAMPLE_VALUES = words(
    "activation_dropout answer_column attention_dropout audio_column_name base_learning_rate "
    "block_size cache_dir chars_to_ignore checkpointing_steps config_name config_overrides "
    "context_column ctc_loss_reduction dataset_config_name dataset_name doc_stride dtype "
    "encoder_stride eval_metrics eval_split_name feat_proj_dropout feature_extractor_name "
    "final_dropout forced_bos_token forced_decoder_ids hidden_dropout image_column_name "
    "image_height image_processor_name image_size image_square_size image_width "
    "label_column_name lang language layerdrop mask_feature_length mask_feature_prob "
    "mask_patch_size mask_ratio mask_time_length mask_time_prob max_answer_length "
    "max_duration_in_seconds max_eval_samples max_length max_predict_samples max_seq_length "
    "max_source_length max_target_length max_train_samples max_train_steps metric_name "
    "min_duration_in_seconds mlm_probability model_max_length model_name_or_path model_revision "
    "model_type n_best_size null_score_diff_threshold num_beams num_labels num_warmup_steps "
    "pad_token patch_size phoneme_language preprocessing_num_workers processor_name "
    "question_column remove_columns remove_splits server_ip server_port shuffle_seed "
    "source_lang source_prefix summary_column suppress_tokens target_lang task task_name "
    "test_file test_split_name text_column_delimiter text_column_name text_column_names token "
    "tokenizer_name torch_dtype train_dir train_file train_language train_split_name "
    "train_val_split unk_token val_max_target_length validation_dir validation_file "
    "validation_split_name validation_split_percentage word_delimiter_token"
)
_BORROWED_SWITCHES = words(
    "packing use_peft load_in_4bit load_in_8bit use_bnb_nested_quant use_dora use_rslora use_liger"
)
_BORROWED_VALUES = words(
    "assistant_only_loss attn_implementation beta bnb_4bit_compute_dtype bnb_4bit_quant_type "
    "completion_only_loss cutoff_len dataset_text_field lora_alpha lora_dropout "
    "lora_modules_to_save lora_r lora_rank lora_task_type loss_type max_completion_length "
    "max_prompt_length mixed_precision num_generations ref_model reward_funcs reward_model_path "
    "teacher_model teacher_model_name_or_path"
)
_MAYBE = ("fsdp", "debug")
_SEVERAL = ("label_names", "include_for_metrics", "report_to", "optim_target_modules")
OPTIONS = Options(
    names={
        **dict.fromkeys(
            (*_SWITCHES, *_EXAMPLE_SWITCHES, *_BORROWED_SWITCHES, *_MAYBE), Takes.MAYBE
        ),
        **dict.fromkeys((*_VALUES, *_EXAMPLE_VALUES, *_BORROWED_VALUES), Takes.ONE),
        **dict.fromkeys((*_SEVERAL, "lora_target_modules"), Takes.SEVERAL),
    }
)
BORROWED = frozenset((*_BORROWED_SWITCHES, *_BORROWED_VALUES, "lora_target_modules"))
"""Read where they are given, though no example of the library has them."""
FREEZING = ("freeze_encoder", "freeze_feature_encoder", "add_adapter")
"""Flags of examples that leave a part of the model untrained."""
RESIZING = words("image_size patch_size encoder_stride image_height image_width image_square_size")
"""Flags of examples that change the model or its input and are not read."""


def is_on_cpu(flags: Flags) -> bool:
    """Return whether the Trainer is told to leave the GPU alone."""
    return flags.is_on("use_cpu", "no_cuda")
