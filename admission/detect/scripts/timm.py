"""timm's train.py (pytorch-image-models).

Source: huggingface/pytorch-image-models@aa4b5850 train.py, and the switches of older ones.
`--config` is a YAML file with defaults.
The batch is one of a process.
Mixed precision is fp16 unless --amp-dtype says bfloat16. Image size: the model's own by default.
"""

from __future__ import annotations

from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import NULL, Flag, Flags, Options, Takes
from admission.detect.invocation import Invocation
from admission.detect.scripts.by_recipe import with_config
from admission.detect.scripts.family import Call, Family, Match, source_of_default
from admission.detect.scripts.images import (
    Zoo,
    is_on_cpu,
    note_call,
    put_batch,
    put_image_size,
    put_model,
    put_number,
    put_sgd,
)
from admission.detect.scripts.pictures import put_plain
from admission.detect.words import words

SCRIPT = "timm train.py"
ZOO = Zoo(source="timm", script=SCRIPT, model="resnet50", batch_size=128, weight_decay=2e-5)

_SWITCHES = words(
    "dataset_download dataset_trust_remote_code pretrained no_resume_opt channels_last "
    "grad_checkpointing fast_norm torchscript amp no_ddp_bb synchronize_step sched_on_updates "
    "no_aug jsd_loss bce_loss bce_sum resplit sync_bn split_bn model_ema model_ema_force_cpu "
    "model_ema_warmup save_images pin_mem no_prefetcher use_multi_epochs_loader log_wandb "
    "naflex_loader naflex_patchify_channels_first warmup_prefix apex_amp native_amp"
)
_VALUES = words(
    "config data data_dir dataset train_split val_split train_num_samples val_num_samples "
    "class_map input_img_mode input_key target_key model pretrained_path initial_checkpoint "
    "resume num_classes gp img_size in_chans crop_pct interpolation batch_size "
    "validation_batch_size fuser grad_accum_steps head_init_scale head_init_bias "
    "torchcompile_mode aot_autograd device amp_dtype amp_impl model_dtype local_rank opt "
    "opt_eps momentum weight_decay clip_grad clip_mode layer_decay layer_decay_min_scale "
    "layer_decay_no_opt_scale sched lr lr_base lr_base_size lr_base_scale lr_noise_pct "
    "lr_noise_std lr_cycle_mul lr_cycle_decay lr_cycle_limit lr_k_decay warmup_lr min_lr "
    "epochs epoch_repeats start_epoch decay_epochs warmup_epochs cooldown_epochs "
    "patience_epochs decay_rate dr hflip vflip color_jitter color_jitter_prob grayscale_prob "
    "gaussian_blur_prob aa aug_repeats aug_splits bce_target_thresh bce_pos_weight reprob "
    "remode recount mixup cutmix mixup_prob mixup_switch_prob mixup_mode mixup_off_epoch "
    "smoothing train_interpolation train_crop_mode drop drop_connect drop_path drop_block "
    "bn_momentum bn_eps dist_bn model_ema_decay seed worker_seeding log_interval val_interval "
    "recovery_interval checkpoint_hist workers output experiment eval_metric tta wandb_project "
    "wandb_resume_id train_size_schedule train_size_schedule_spread train_size_random_mix "
    "train_batches_per_epoch train_steps_per_epoch variable_batch_loss_scale "
    "naflex_max_seq_len naflex_loss_scale kd_model_name kd_distill_type kd_loss_type "
    "distill_loss_weight task_loss_weight kd_temperature kd_student_feature_dim "
    "kd_teacher_feature_dim kd_token_distill_type"
)
_SEVERAL = words(
    "input_size mean std opt_betas opt_kwargs lr_noise decay_milestones scale ratio "
    "cutmix_minmax model_kwargs device_modules wandb_tags train_img_sizes train_batch_sizes "
    "train_size_probs naflex_train_seq_lens naflex_patch_sizes naflex_patch_size_probs"
)
_OWN = words(
    "img_size input_size amp_dtype amp_impl grad_checkpointing channels_last num_classes "
    "data_dir sched warmup_lr aa reprob remode drop_path smoothing opt_eps initial_checkpoint "
    "clip_grad torchcompile grad_accum_steps model_ema_force_cpu native_amp pin_mem dataset "
    "train_split experiment log_interval warmup_epochs min_lr opt_betas mixup cutmix "
    "color_jitter"
)
"""Flags that torchvision's train.py does not have."""
_PLACES = ("pytorch-image-models", "timm")
OPTIONS = Options(
    names={
        **dict.fromkeys(_SWITCHES, Takes.NOTHING),
        **dict.fromkeys(_VALUES, Takes.ONE),
        **dict.fromkeys(_SEVERAL, Takes.SEVERAL),
        "torchcompile": Takes.MAYBE,
    },
    short={
        "b": "batch_size",
        "vb": "validation_batch_size",
        "j": "workers",
        "c": "config",
    },
)
_BRAIN_DTYPE = ("bfloat16", "bf16")
_UNREAD = (
    ("aug_splits", "input.batchSize", "multiplies the batch and is not read yet"),
    ("naflex_loader", "input.batchSize", "makes batches that vary, which are not read yet"),
    ("train_img_sizes", "input.imageSize", "makes images that vary, which are not read yet"),
    ("train_batch_sizes", "input.batchSize", "makes batches that vary, which are not read yet"),
    ("model_kwargs", "model.options", "changes the model and is not read yet"),
    ("in_chans", "input.imageSize", "changes the first layer and is not read yet"),
    ("kd_model_name", "model.companions", "puts a second model on the card, not read yet"),
)
"""Flag, the spec path it bears on, why it is a gap."""


def match(invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: `train.py` in its folder, or with flags that only it has."""
    if invocation.is_module or invocation.name != "train.py":
        return Match.NO
    if any(place in invocation.location for place in _PLACES):
        return Match.PLACE
    model = flags.get("model")
    name = model.value.text if model is not None and model.value is not None else ""
    is_file = name.endswith((".pt", ".pth", ".yaml"))
    is_own = flags.has(*_OWN) or "_patch" in name or ("." in name and not is_file)
    return Match.FLAGS if model is not None and not flags.foreign and is_own else Match.NO


def read(call: Call, draft: Draft) -> None:
    """Fill the draft. `--config` names a file with defaults of this run."""
    flags = _configured(call, draft)
    put_model(call, draft, ZOO, flags.get("model"))
    put_batch(draft, ZOO, flags.get("batch_size"))
    size = flags.get("input_size") or flags.get("img_size")
    put_image_size(draft, size, default=None, script=SCRIPT)
    if flags.has("num_classes"):
        draft.integer("model.numLabels", flags.get("num_classes"))
    _precision(flags, draft)
    put_plain(draft, source=source_of_default(SCRIPT))
    _optimizer(replace(call, flags=flags), draft)
    _switches(flags, draft)
    if flags.has("grad_accum_steps"):
        draft.integer("training.gradientAccumulationSteps", flags.get("grad_accum_steps"))
    put_number(draft, "training.labelSmoothing", flags.get("smoothing"), 0.1, ZOO)
    draft.put("runtime.cudnnBenchmark", True, source_of_default(SCRIPT))
    if not flags.has("no_prefetcher"):
        draft.put("input.prefetchBatches", 1, source_of_default(SCRIPT))
    _gaps(flags, draft)
    note_call(call, draft, match=match(call.invocation, flags), num_positional=1)


def _configured(call: Call, draft: Draft) -> Flags:
    """Return the flags over those of the file; a switch that is off there is none."""
    flags = with_config(call, draft, call.flags.get("config"))
    given = tuple(
        flag
        for flag in flags.given
        if not flag.told_by or flag.is_on or OPTIONS.names.get(flag.name) is not Takes.NOTHING
    )
    return replace(flags, given=tuple(f for f in given if not _is_null(f)))


def _is_null(flag: Flag) -> bool:
    return bool(flag.told_by) and flag.value is not None and flag.value.text == NULL


def _precision(flags: Flags, draft: Draft) -> None:
    amp = flags.get("amp", "native_amp", "apex_amp")
    dtype = flags.get("amp_dtype")
    weights = flags.get("model_dtype")
    if weights is not None and weights.value is not None:
        word = {"bfloat16": "bf16", "float16": "fp16"}.get(weights.value.text, "fp32")
        draft.put("training.precision", word, weights.source)
    elif amp is None:
        draft.put("training.precision", "fp32", source_of_default(SCRIPT))
    elif dtype is not None and draft.word("training.precision", dtype) in _BRAIN_DTYPE:
        draft.put("training.precision", "amp-bf16", dtype.source)
    else:
        draft.put("training.precision", "amp-fp16", amp.source)


def _optimizer(call: Call, draft: Draft) -> None:
    """Set the optimizer: timm's `sgd` is with Nesterov, `momentum` without."""
    flag = call.flags.get("opt")
    source = flag.source if flag is not None else source_of_default(SCRIPT)
    name = draft.word("training.optimizer", flag) if flag is not None else "sgd"
    if name is None:
        return
    name = name.lower()
    if name in ("sgd", "nesterov", "momentum"):
        put_sgd(draft, call, ZOO, nesterov=name != "momentum", source=source)
        return
    foreach = {"foreach": True} if call.flags.has("opt_foreach") else {}
    word = name if all(char.isalnum() or char in "_.+-" for char in name) else "other"
    draft.put("training.optimizer", {"name": word[:64], **foreach}, source)
    decay = call.flags.get("weight_decay")
    put_number(draft, "training.optimizer.weightDecay", decay, ZOO.weight_decay, ZOO)


def _switches(flags: Flags, draft: Draft) -> None:
    for name, path, value in (
        ("channels_last", "runtime.memoryFormat", "channels_last"),
        ("grad_checkpointing", "training.gradientCheckpointing", "full"),
        ("model_ema", "training.ema", True),
        ("clip_grad", "training.clipGradNorm", True),
        ("torchcompile", "training.compile", True),
        ("torchscript", "training.compile", True),
    ):
        flag = flags.get(name)
        if flag is not None and not (name == "model_ema" and flags.has("model_ema_force_cpu")):
            draft.put(path, value, flag.source)


def _gaps(flags: Flags, draft: Draft) -> None:
    """Note flags that change memory and have no place in a JobSpec."""
    for name, path, reason in _UNREAD:
        flag = flags.get(name)
        if flag is not None and (flag.value is None or flag.value.text != "0"):
            draft.gap(
                path,
                code=ReasonCode.UNSUPPORTED,
                path=flag.field,
                reason=f"timm's {flag.spelling} {reason}",
                hint=annotation_hint(path),
            )


FAMILY = Family(
    name=SCRIPT,
    flags=lambda invocation: invocation.flags(OPTIONS),
    match=match,
    read=read,
    is_on_cpu=is_on_cpu,
    may_claim=lambda invocation: invocation.name == "train.py",
)
