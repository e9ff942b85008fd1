"""Job (batch.volcano.sh): `spec.tasks`, with what its plugins set in every container.

Its template cannot be changed after it was made: `admit_job.go` allows replicas and little else.
Source: volcano-sh/volcano ed72c7c8, `pkg/controllers/job/plugins` (`svc`, `env`,
`distributed-framework/{pytorch,tensorflow,mpi}`), `pkg/webhooks/admission/jobs/mutate`.
Not set here: a pod's own index and rank, files below /etc/volcano.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.values import Documents, Json
from admission.workloads.fields import Amount, amount, at, entries, mapping, sequence, text
from admission.workloads.kind import Pods
from admission.workloads.replicas import numbers
from admission.workloads.units import limited, template_of

MAX_HOSTS = 1024
"""Host names of one task that a variable lists."""
_PORT = "23456"
"""The PyTorch plugin's default."""

Tasks = Mapping[str, Amount]


def read(obj: Json, _documents: Documents) -> Pods:
    """Return a template for each task."""
    spec = at(obj, "", "spec")
    name = text(at(obj, "", "metadata").get("name"), "metadata.name")
    plugins = mapping(spec.get("plugins"), "spec.plugins")
    bodies = {}
    for index, (task, where) in enumerate(entries(spec.get("tasks"), "spec.tasks")):
        role = text(task.get("name"), f"{where}.name") or f"default{index}"
        bodies[role] = (task, where)
    limited(bodies, "spec.tasks", what="tasks")
    tasks = {
        role: amount(task.get("replicas"), f"{where}.replicas")
        for role, (task, where) in bodies.items()
    }
    variables = _variables(name, plugins, tasks)
    return Pods(
        templates=tuple(
            template_of(
                task.get("template"),
                f"{where}.template",
                role=role,
                replicas=tasks[role],
                injected=variables,
                steering="",
            )
            for role, (task, where) in bodies.items()
        ),
        launcher=_launcher(plugins, tasks),
        framework=_framework(plugins),
        framework_source="spec.plugins",
    )


def _framework(plugins: Json) -> str:
    return next((name for name in ("pytorch", "tensorflow") if name in plugins), "")


def _launcher(plugins: Json, tasks: Tasks) -> str:
    """Return the task that the MPI plugin calls the master."""
    if "mpi" not in plugins:
        return ""
    name = _argument(plugins, "mpi", "master", default="master")
    return name if name in tasks else ""


def _variables(job: str, plugins: Json, tasks: Tasks) -> Json:
    found: dict[str, str] = {}
    others = any(name in plugins for name in ("pytorch", "tensorflow", "mpi", "ray"))
    hosts_wanted = _argument(plugins, "svc", "inject-hosts-env", default="true") != "false"
    if ("svc" in plugins or others) and hosts_wanted:
        for task, number in tasks.items():
            key = task.replace("-", "_").upper()
            found |= numbers(**{f"VC_{key}_NUM": number})
            if job and number.is_known:
                found[f"VC_{key}_HOSTS"] = ",".join(_hosts(job, task, number.number))
    if "pytorch" in plugins:
        found |= _pytorch(job, plugins, tasks)
    if "mpi" in plugins and job:
        worker = _argument(plugins, "mpi", "worker", default="worker")
        if worker in tasks and tasks[worker].is_known:
            found["MPI_HOST"] = ",".join(_hosts(job, worker, tasks[worker].number))
    return found


def _pytorch(job: str, plugins: Json, tasks: Tasks) -> dict[str, str]:
    """Return what init_process_group reads. The plugin does nothing without its master."""
    master = _argument(plugins, "pytorch", "master", default="master")
    worker = _argument(plugins, "pytorch", "worker", default="worker")
    if master not in tasks:
        return {}
    pods = [tasks[name] for name in (master, worker) if name in tasks]
    total = Amount(
        number=sum(found.number for found in pods), is_known=all(found.is_known for found in pods)
    )
    found = {"MASTER_PORT": _argument(plugins, "pytorch", "port", default=_PORT)}
    if job:
        found["MASTER_ADDR"] = _hosts(job, master, 1)[0]
    return found | numbers(WORLD_SIZE=total)


def _hosts(job: str, task: str, number: int) -> list[str]:
    return [f"{job}-{task}-{index}.{job}" for index in range(min(number, MAX_HOSTS))]


def _argument(plugins: Json, plugin: str, name: str, *, default: str) -> str:
    """Return the value of `--name=value` (or `-name value`) among a plugin's arguments."""
    path = f"spec.plugins.{plugin}"
    words = [
        text(word, f"{path}[{index}]")
        for index, word in enumerate(sequence(plugins.get(plugin), path))
    ]
    for index, word in enumerate(words):
        key, is_joined, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key == name:
            following = words[index + 1] if index + 1 < len(words) else ""
            return value if is_joined else following or default
    return default


def has_started(obj: Json) -> bool:
    """Return whether the job is past waiting for its pods."""
    status = at(obj, "", "status")
    phase = text(at(status, "status", "state").get("phase"), "status.state.phase")
    return phase not in ("", "Pending") or bool(status.get("running"))
