"""The Trainer's flags that matter to memory, and what adapters and sharding they ask for.

    flags -> adapter, quantization, parallelism, lengths in the draft

Source: transformers 5.24.0 `training_args.py`; trl `ModelConfig` for `--use_peft`, `--load_in_*`.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, integer_of
from admission.detect.flags import Flag, Flags, Options, Takes
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.tasks import LENGTH_FLAGS, Example
from admission.detect.words import words

_SWITCHES = words(
    "do_train do_eval do_predict bf16 fp16 tf32 bf16_full_eval fp16_full_eval "
    "gradient_checkpointing activation_checkpointing auto_find_batch_size torch_compile "
    "use_liger_kernel use_liger adafactor use_peft load_in_4bit load_in_8bit "
    "use_bnb_nested_quant pad_to_max_length line_by_line overwrite_output_dir overwrite_cache "
    "group_by_length remove_unused_columns push_to_hub trust_remote_code packing use_cache "
    "low_cpu_mem_usage load_best_model_at_end include_inputs_for_metrics "
    "ddp_find_unused_parameters streaming use_auth_token use_fast_tokenizer "
    "ignore_mismatched_sizes version_2_with_negative use_dora use_rslora optim_target_modules "
    "jit_mode_eval use_cpu no_cuda skip_memory_metrics dataloader_drop_last "
    "dataloader_pin_memory freeze_feature_encoder predict_with_generate with_tracking"
)
_VALUES = words(
    "model_name_or_path model_type config_name config_overrides tokenizer_name model_revision "
    "cache_dir token torch_dtype dtype attn_implementation per_device_train_batch_size "
    "per_gpu_train_batch_size per_device_eval_batch_size per_gpu_eval_batch_size "
    "gradient_accumulation_steps eval_accumulation_steps learning_rate weight_decay adam_beta1 "
    "adam_beta2 adam_epsilon max_grad_norm num_train_epochs max_steps lr_scheduler_type "
    "lr_scheduler_kwargs warmup_ratio warmup_steps logging_steps logging_dir logging_strategy "
    "save_steps save_strategy save_total_limit eval_steps eval_strategy evaluation_strategy "
    "seed data_seed optim optim_args fsdp_config fsdp_transformer_layer_cls_to_wrap deepspeed "
    "report_to run_name output_dir resume_from_checkpoint hub_model_id max_seq_length "
    "max_length block_size max_source_length max_target_length model_max_length cutoff_len "
    "dataset_name dataset_config_name train_file validation_file test_file task_name "
    "preprocessing_num_workers dataloader_num_workers label_smoothing_factor ddp_bucket_cap_mb "
    "mixed_precision half_precision_backend fp16_opt_level lora_r lora_rank lora_alpha "
    "lora_dropout lora_task_type lora_modules_to_save bnb_4bit_quant_type "
    "bnb_4bit_compute_dtype neftune_noise_alpha torch_compile_backend torch_compile_mode "
    "gradient_checkpointing_kwargs activation_checkpointing_kwargs doc_stride mlm_probability "
    "max_train_samples max_eval_samples num_labels teacher_model teacher_model_name_or_path "
    "reward_model_path ref_model beta num_generations max_prompt_length max_completion_length "
    "dataset_text_field reward_funcs loss_type completion_only_loss assistant_only_loss"
)
OPTIONS = Options(
    names={
        **dict.fromkeys(_SWITCHES, Takes.MAYBE),
        **dict.fromkeys(_VALUES, Takes.ONE),
        "fsdp": Takes.MAYBE,
        "lora_target_modules": Takes.SEVERAL,
    }
)
_LORA_RANK = 16
_LORA_ALPHA = 32
_LORA_DROPOUT = 0.05


def put_length(flags: Flags, draft: Draft, example: Example, script: str) -> None:
    """Set sequence and target length by flags, or the script's certain defaults."""
    names = example.length_flags or LENGTH_FLAGS
    if not draft.integer("input.sequenceLength", flags.get(*names)) and example.length is not None:
        draft.put("input.sequenceLength", example.length, source_of_default(script))
    if example.target_flags and not draft.integer(
        "input.targetLength", flags.get(*example.target_flags)
    ):
        draft.put("input.targetLength", example.target, source_of_default(script))
    padded = flags.get("pad_to_max_length")
    pads = padded is not None and not padded.is_on
    if draft.get("input.sequenceLength") is not None and (
        pads or (example.pads and not flags.is_on("pad_to_max_length"))
    ):
        source = padded.source if padded is not None else source_of_default(script)
        draft.put("input.padding", "longest", source)


def put_adapter(flags: Flags, draft: Draft) -> None:
    """Set adapter and quantization by TRL's names for them."""
    peft = flags.get("use_peft")
    if peft is not None and peft.is_on:
        draft.put("adapter", {"type": "dora" if flags.is_on("use_dora") else "lora"}, peft.source)
        source = source_of_default("trl ModelConfig")
        if not draft.integer("adapter.rank", flags.get("lora_r", "lora_rank")):
            draft.put("adapter.rank", _LORA_RANK, source)
        _number(draft, "adapter.alpha", flags.get("lora_alpha"), _LORA_ALPHA, source)
        _number(draft, "adapter.dropout", flags.get("lora_dropout"), _LORA_DROPOUT, source)
        modules = flags.get("lora_target_modules")
        if modules is not None:
            texts = [text for word in modules.values for text in word.text.split(",") if text]
            draft.put("adapter.targetModules", texts, modules.source)
    for name, bits, scheme in (("load_in_4bit", 4, "nf4"), ("load_in_8bit", 8, "int8")):
        flag = flags.get(name)
        if flag is None or not flag.is_on:
            continue
        draft.put("quantization", {"bits": bits, "scheme": scheme}, flag.source)
        nested = flags.get("use_bnb_nested_quant")
        if nested is not None and nested.is_on:
            draft.put("quantization.doubleQuant", True, nested.source)
        kind = flags.get("bnb_4bit_quant_type")
        if bits == 4 and kind is not None and kind.value is not None:
            draft.put(
                "quantization.scheme", "fp4" if kind.value.text == "fp4" else "nf4", kind.source
            )


def put_parallelism(call: Call, draft: Draft) -> None:
    """Set what `--fsdp`, `--deepspeed` and the Trainer's own habits say about sharing."""
    flags = call.flags
    config = flags.get("deepspeed")
    if config is not None and config.value is not None and config.value.text:
        draft.put("parallelism.implementation", "deepspeed", config.source)
        _unread(draft, config, "decides ZeRO stage, offload and precision and is not read yet")
        return
    fsdp = flags.get("fsdp")
    if fsdp is not None and fsdp.is_on and (fsdp.value is None or fsdp.value.text):
        _fsdp(draft, flags, fsdp)
        return
    if call.gpus > 1 and not call.ranks.is_distributed:
        source = "Trainer without a launcher: one process on all GPUs (DataParallel)"
        draft.put("parallelism.strategy", "dp", source)
        draft.put("parallelism.dataParallel", call.gpus, source)
    bucket = flags.get("ddp_bucket_cap_mb")
    size = integer_of(bucket.value.text) if bucket is not None and bucket.value else None
    if bucket is not None and size is not None:
        draft.put("parallelism.bucketBytes", size << 20, bucket.source)


def _fsdp(draft: Draft, flags: Flags, flag: Flag) -> None:
    """Set FSDP by the words after `--fsdp`; a config file beside it is not read."""
    words = flag.value.text.lower().replace(",", " ").split() if flag.value is not None else []
    strategy = "ddp" if "no_shard" in words else "fsdp"
    draft.put("parallelism.strategy", strategy, flag.source)
    if "shard_grad_op" in words or "hybrid_shard_zero2" in words:
        draft.put("parallelism.reshardAfterForward", False, flag.source)
    if "offload" in words:
        draft.put("parallelism.offload", "parameters", flag.source)
    if any(word.startswith("hybrid_shard") for word in words):
        _unread(draft, flag, "shards within a node only, which is not read yet")
    config = flags.get("fsdp_config")
    if config is not None and config.value is not None and config.value.text:
        _unread(draft, config, "names a file that is not read yet")


def _unread(draft: Draft, flag: Flag, reason: str) -> None:
    value = flag.value.text if flag.value is not None else ""
    draft.gap(
        "parallelism.strategy",
        code=ReasonCode.UNSUPPORTED,
        path=flag.field,
        reason=f"{flag.spelling} {value:.80} {reason}",
        hint="state it in the annotation vramgate.dev/spec: parallelism: {strategy: zero3}",
    )


def _number(draft: Draft, path: str, flag: Flag | None, default: float, source: str) -> None:
    text = flag.value.text if flag is not None and flag.value is not None else ""
    try:
        number = float(text)
    except ValueError:
        draft.put(path, default, source)
        return
    draft.put(path, number, flag.source if flag is not None else source)
