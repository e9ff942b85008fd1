"""Whose command line a GPU pod is read by."""

from __future__ import annotations

from typing import Any

import pytest

from admission.values import Unit
from admission.workloads import read_workload
from admission.workloads.idle import only_waits
from tests.admission.workloads.objects import GPU

MPIRUN = ("mpirun", "-np", "4", "python", "train.py")


def _template(*command: str, gpus: int = 0) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c"}
    if command:
        container["command"] = list(command)
    if gpus:
        container["resources"] = {"limits": {GPU: gpus}}
    return {"spec": {"containers": [container]}}


def _mpijob(launcher: dict[str, Any], worker: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "spec": {
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {
                "Launcher": {"template": launcher},
                "Worker": {"replicas": 2, "template": worker},
            },
        },
    }


def _volcano(plugins: dict[str, Any] | None = None, **tasks: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "spec": {
            "plugins": plugins or {},
            "tasks": [{"name": name, "template": body} for name, body in tasks.items()],
        },
    }


def _unit(obj: dict[str, Any], role: str = "Worker") -> Unit:
    return next(unit for unit in read_workload(obj).units if unit.role == role)


@pytest.mark.parametrize("command", [(), ("/usr/sbin/sshd", "-De"), ("sleep", "infinity")])
def test_workers_of_an_mpijob_run_what_the_launcher_says(command: tuple[str, ...]) -> None:
    """Its command stands on the launcher, and the GPUs on the workers that wait for it."""
    unit = _unit(_mpijob(_template(*MPIRUN), _template(*command, gpus=2)))

    assert unit.container_path == "spec.mpiReplicaSpecs.Worker.template.spec.containers[0]"
    assert unit.program.path == "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"
    assert unit.program.container["command"] == list(MPIRUN)
    assert unit.injected == {"OMPI_MCA_orte_set_default_slots": "2"}


def test_worker_with_a_command_of_its_own_is_read_by_it() -> None:
    """Nobody knows whether a launcher's program matters then."""
    unit = _unit(_mpijob(_template(*MPIRUN), _template("python", "own.py", gpus=2)))

    assert unit.program.path == unit.container_path


def test_launcher_that_has_gpus_is_read_by_itself() -> None:
    """`runLauncherAsWorker`: both are units, of one program."""
    workload = read_workload(_mpijob(_template(*MPIRUN, gpus=2), _template(gpus=2)))

    assert [unit.role for unit in workload.units] == ["Launcher", "Worker"]
    assert len({unit.program.path for unit in workload.units}) == 1


def test_volcano_tasks_that_wait_are_started_by_the_one_that_starts_others() -> None:
    """A name is no reason: `mpimaster` is found by what it runs."""
    script = "HOSTS=`cat /etc/volcano/w.host`; mpiexec --host ${HOSTS} -np 2 python x.py; sleep 60"
    obj = _volcano(
        head=_template("bash", "-c", script),
        extra=_template("python", "monitor.py"),
        w=_template("bash", "-c", "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;", gpus=1),
    )

    unit = _unit(obj, "w")

    assert unit.program.path == "spec.tasks[0].template.spec.containers[0]"


def test_the_mpi_plugin_names_its_master() -> None:
    """Then a worker without any command is started by it, too."""
    obj = _volcano(
        {"mpi": ["--master=boss", "--worker=hand"]},
        boss=_template("mpirun", "x"),
        hand=_template(gpus=1),
    )

    unit = _unit(obj, "hand")

    assert unit.program.path == "spec.tasks[0].template.spec.containers[0]"


@pytest.mark.parametrize(
    "others",
    [
        {"a": _template("python", "a.py"), "b": _template("python", "b.py")},
        {"a": _template("mpirun", "a"), "b": _template("mpirun", "b")},
        {"a": _template("sleep", "5")},
    ],
    ids=["two-programs", "two-launchers", "none"],
)
def test_a_starter_that_is_not_certain_is_none(others: dict[str, Any]) -> None:
    """A waiting pod is then read as what it is."""
    unit = _unit(_volcano(**others, w=_template("sleep", "inf", gpus=1)), "w")

    assert unit.program.path == unit.container_path


def test_empty_command_waits_only_where_the_kind_has_a_launcher() -> None:
    """Elsewhere it is the image's own entry point."""
    obj = _volcano(a=_template(*MPIRUN), w=_template(gpus=1))

    unit = _unit(obj, "w")

    assert unit.program.path == unit.container_path


def test_ray_workers_are_started_from_the_head() -> None:
    """A cluster made by hand: `ray start --block` beside a driver."""
    head = _template("bash", "-c", "ray start --head && python train.py")
    worker = _template("bash", "-c", "ray start --address=head:6379 --block", gpus=1)

    unit = _unit(_volcano(head=head, w=worker), "w")

    assert unit.program.container == head["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        (("/usr/sbin/sshd", "-De"), True),
        (("sh", "-c", "service ssh start; sleep infinity"), True),
        (("bash", "-lc", "mkdir -p /run/sshd && exec /usr/sbin/sshd -D"), True),
        (("tini", "--", "sleep", "365d"), True),
        (("sh", "-c", "while true; do sleep 30; done"), True),
        (("sh", "-c", "# wait\nA=1 tail -f /dev/null"), True),
        (("sh", "-c", "/etc/init.d/ssh start\nsleep inf"), True),
        (("ray", "start", "--block"), True),
        ((), False),
        (("mkdir", "-p", "x"), False),
        (("sh", "-c", "sleep 5; python train.py"), False),
        (("ray", "job", "submit"), False),
        (("sh", "-c", "sleep 1; " + "x" * 5000), False),
    ],
)
def test_what_only_waits(command: tuple[str, ...], waits: bool) -> None:
    """Nothing in it may use a GPU; what is not known may."""
    assert only_waits({"command": list(command)}) is waits


@pytest.mark.parametrize("container", [{"command": 3}, {"args": [None, 3]}, {"command": "sleep"}])
def test_commands_of_wrong_types_wait_for_nothing(container: dict[str, Any]) -> None:
    """Their reader says what is wrong with them."""
    assert not only_waits(container)
