"""`horovodrun`: processes over the hosts it is given.

Source: horovod/horovod@2626dc8 `horovod/runner/launch.py` `parse_args`.
"""

from __future__ import annotations

from admission.detect.invocation import Launch, Spawn
from admission.detect.launchers.mpi import hostfile_slots, slots_of
from admission.detect.launchers.step import Line, Step, options_of, split_options
from admission.detect.words import Word

OPTIONS = options_of(
    "np num_proc H hosts hostfile p ssh_port i ssh_identity_file start_timeout network_interfaces "
    "network_interface output_filename config_file fusion_threshold_mb cycle_time_ms "
    "cache_capacity compression min_np min_num_proc max_np max_num_proc slots_per_host slots "
    "elastic_timeout reset_limit cooldown_range host_discovery_script timeline_filename "
    "timeline_mark_cycles stall_check_warning_time_seconds stall_check_shutdown_time_seconds "
    "thread_affinity gloo_timeout_seconds mpi_args mpi_threads_disable num_nccl_streams "
    "log_level nics autotune_log_file autotune_warmup_samples autotune_steps_per_sample "
    "autotune_bayes_opt_max_samples autotune_gaussian_process_noise binding_args",
    "v version cb check_build disable_cache verbose prefix_output_with_timestamp "
    "hierarchical_allreduce no_hierarchical_allreduce hierarchical_allgather "
    "no_hierarchical_allgather autotune no_autotune no_stall_check stall_check gloo mpi jsrun tcp "
    "log_without_timestamp torus_allreduce",
    np="num_proc",
    H="hosts",
    hostfile="hostfile",
    p="ssh_port",
    i="ssh_identity_file",
)


def unwrap(line: Line) -> Step | None:
    """Return the command Horovod starts, and how many processes of it."""
    flags, rest = split_options(line, OPTIONS)
    if not rest:
        return None
    total = flags.get("min_np", "min_num_proc") or flags.get("num_proc", "np")
    hosts, hostfile = flags.get("hosts", "H"), flags.get("hostfile")
    if total is None and hosts is not None and hosts.value is not None and hosts.value.is_known:
        number = sum(slots_of(hosts.value.text.split(",")))
        total = line.flag(hosts.spelling, Word(text=str(number), origin=hosts.origin))
    if total is None and hostfile is not None and hostfile.value is not None:
        file = line.read_file(hostfile.value.text)
        found = hostfile_slots(file)
        if found:
            total = line.flag("slots", Word(text=str(sum(found.values()))), told_by=file.source)
    launch = Launch(
        launcher="horovodrun",
        is_distributed=True,
        spawn=Spawn.ALL,
        total=total,
        is_spread=True,
        parallelism={"parallelism.implementation": ("horovod", "horovodrun")},
    )
    return Step(rest=rest, launch=launch)
