"""How TRL's command spreads a job: accelerate's ways, or one of the configurations it brings.

    --accelerate_config, --num_processes -> parallelism in the draft

Source: huggingface/trl@v1.9.0 trl/accelerate_configs/*.yaml, trl/cli/accelerate_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_sharing import note_unread, put_sharing, settle_precision
from admission.detect.scripts.verbs import number_of

_PROCESSES = 8
"""In every one of the configurations but `single_gpu`."""
_CONFIGURATIONS: Mapping[str, Mapping[str, object]] = {
    "single_gpu": {"strategy": "none"},
    "multi_gpu": {"strategy": "ddp"},
    "zero1": {"strategy": "zero1", "implementation": "deepspeed"},
    "zero2": {"strategy": "zero2", "implementation": "deepspeed"},
    "zero3": {"strategy": "zero3", "implementation": "deepspeed"},
    "fsdp1": {"strategy": "fsdp", "implementation": "fsdp1"},
    "fsdp2": {"strategy": "fsdp", "implementation": "fsdp2"},
}


def put_launch(call: Call, draft: Draft, *, spreads: bool) -> None:
    """Set how the cards share the work.

    *spreads*: a release whose trainers put the layers on all cards that one process sees.
    """
    put_sharing(call, draft, has_data_parallel=not spreads)
    if spreads and call.gpus > 1 and not call.ranks.is_distributed:
        draft.put("parallelism.deviceMap", "auto", "default of trl: one process on all GPUs")
    flag = call.flags.setting("accelerate_config")
    if flag is None or flag.value is None:
        _put_told_processes(call, draft)
        _note_unseen(call, draft)
        return
    name = flag.value.text.removesuffix(".yaml")
    known = _CONFIGURATIONS.get(name)
    if known is None or not flag.value.is_known:
        note_unread(draft, flag, "is no configuration that TRL brings, and is not read")
        return
    for key, value in known.items():
        draft.put(f"parallelism.{key}", value, flag.source)
    if known["strategy"] != "none":
        _put_processes(call, draft, flag)
    settle_precision(call, draft)


def _put_processes(call: Call, draft: Draft, configuration: Flag) -> None:
    """Set how many processes there are: as told, else as many as the configuration says."""
    told = call.flags.setting("num_processes")
    number = number_of(told) or _PROCESSES
    source = told.source if told is not None else f"default of {configuration.source}"
    draft.put("parallelism.dataParallel", number, source)
    if number > call.gpus:
        draft.doubt(
            f"{configuration.field}: {source} starts {number} processes, more than the "
            f"{call.gpus} GPUs of one pod",
            "parallelism",
        )


def _put_told_processes(call: Call, draft: Draft) -> None:
    """Set the processes that TRL's own file tells its launcher."""
    told = call.flags.setting("num_processes")
    number = number_of(told)
    if told is None or not told.told_by or not number or call.invocation.launch.launcher != "trl":
        return
    if draft.get("parallelism.strategy") is None:
        draft.put("parallelism.strategy", "ddp" if number > 1 else "none", told.source)
    if number > 1:
        draft.put("parallelism.dataParallel", number, told.source)


def _note_unseen(call: Call, draft: Draft) -> None:
    """Note that accelerate's default configuration may decide otherwise."""
    launch = call.invocation.launch
    is_open = not (launch.unseen or launch.is_configured)
    if launch.launcher == "trl" and call.gpus > 1 and is_open:
        draft.doubt(
            f"{call.origin}: accelerate's default configuration inside the image, if there is "
            "one, is not seen",
            "parallelism.strategy",
        )
