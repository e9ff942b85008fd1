"""The flags of `accelerate launch`.

Source: huggingface/accelerate@16cb6eb `src/accelerate/commands/launch.py` `launch_command_parser`.
"""

from __future__ import annotations

from admission.detect.flags import Options, Takes
from admission.detect.words import words

_SWITCHES = words(
    "cpu multi_gpu tpu ipex use_xpu use_deepspeed use_fsdp use_megatron_lm quiet debug module "
    "no_python same_network use_parallelism_config enable_cpu_affinity dynamo_use_fullgraph "
    "dynamo_use_dynamic dynamo_use_regional_compilation"
)
_VALUES = words(
    "config_file num_processes num_machines machine_rank mixed_precision main_process_ip "
    "main_process_port rdzv_backend rdzv_conf max_restarts monitor_interval role log_dir tee "
    "num_cpu_threads_per_process gpu_ids dynamo_backend dynamo_mode zero_stage "
    "deepspeed_config_file offload_optimizer_device offload_param_device "
    "offload_optimizer_nvme_path offload_param_nvme_path gradient_accumulation_steps "
    "gradient_clipping zero3_init_flag zero3_save_16bit_model deepspeed_hostfile "
    "deepspeed_exclusion_filter deepspeed_inclusion_filter deepspeed_multinode_launcher "
    "deepspeed_moe_layer_cls_names fsdp_version fsdp_offload_params fsdp_min_num_params "
    "fsdp_sharding_strategy fsdp_reshard_after_forward fsdp_auto_wrap_policy "
    "fsdp_transformer_layer_cls_to_wrap fsdp_backward_prefetch fsdp_state_dict_type "
    "fsdp_forward_prefetch fsdp_use_orig_params fsdp_cpu_ram_efficient_loading "
    "fsdp_sync_module_states fsdp_activation_checkpointing megatron_lm_tp_degree "
    "megatron_lm_pp_degree megatron_lm_num_micro_batches megatron_lm_sequence_parallelism "
    "megatron_lm_recompute_activations megatron_lm_use_distributed_optimizer "
    "megatron_lm_gradient_clipping fp8_backend downcast_bf16 "
    "parallelism_config_dp_replicate_size parallelism_config_dp_shard_size "
    "parallelism_config_tp_size parallelism_config_cp_size parallelism_config_sp_size "
    "parallelism_config_cp_comm_strategy parallelism_config_sp_backend"
)

OPTIONS = Options(
    names={
        **dict.fromkeys(_SWITCHES, Takes.NOTHING),
        **dict.fromkeys(_VALUES, Takes.ONE),
    },
    short={"m": "module", "q": "quiet"},
)
