"""Every layout of control groups that runtimes make leads to the container."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.agent.cgroup import MAX_BYTES, container_ids, containers_of

ONE, TWO = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970", "9ec39b91" * 8
UID = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa"
SLICE = UID.replace("-", "_")
BURSTABLE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice"
CONTROLLERS = ("name=systemd", "cpu,cpuacct", "memory", "devices", "pids")


def v1(path: str) -> str:
    """Return the file of a process that is at *path* in every hierarchy of version 1."""
    lines = [f"{number}:{name}:{path}" for number, name in enumerate(CONTROLLERS, start=1)]
    return "\n".join(reversed(lines)) + "\n"


FOUND = {
    "v2 systemd containerd": (f"0::{BURSTABLE}/cri-containerd-{ONE}.scope\n", (ONE,)),
    "v2 systemd cri-o": (f"0::{BURSTABLE}/crio-{ONE}.scope\n", (ONE,)),
    "v2 systemd cri-o, crun": (f"0::{BURSTABLE}/crio-{ONE}.scope/container\n", (ONE,)),
    "v2 systemd docker": (f"0::{BURSTABLE}/docker-{ONE}.scope\n", (ONE,)),
    "v2 systemd guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{SLICE}.slice/cri-containerd-{ONE}.scope\n",
        (ONE,),
    ),
    "v2 cgroupfs": (f"0::/kubepods/burstable/pod{UID}/{ONE}\n", (ONE,)),
    "v2 cgroupfs cri-o": (f"0::/kubepods/besteffort/pod{UID}/crio-{ONE}\n", (ONE,)),
    "v2 from a namespace of one's own": (f"0::/../cri-containerd-{ONE}.scope\n", (ONE,)),
    "v2 from another pod's": (f"0::/../../..{BURSTABLE}/crio-{ONE}.scope\n", (ONE,)),
    "v1 systemd containerd": (v1(f"{BURSTABLE}/cri-containerd-{ONE}.scope"), (ONE,)),
    "v1 systemd docker": (v1(f"{BURSTABLE}/docker-{ONE}.scope"), (ONE,)),
    "v1 cgroupfs containerd": (v1(f"/kubepods/besteffort/pod{UID}/{ONE}"), (ONE,)),
    "v1 and v2 at once": ("0::/\n" + v1(f"/kubepods/pod{UID}/{ONE}"), (ONE,)),
    "two drivers at once": (
        v1(f"/system.slice/containerd.service/kubepods-pod{SLICE}.slice:cri-containerd:{ONE}"),
        (ONE,),
    ),
    "a kubelet in a container (kind)": (
        f"0::/system.slice/docker-{TWO}.scope/kubelet.slice/kubelet-kubepods.slice/"
        f"kubelet-kubepods-pod{SLICE}.slice/cri-containerd-{ONE}.scope\n",
        (TWO, ONE),
    ),
    "docker in a pod": (f"0::{BURSTABLE}/cri-containerd-{ONE}.scope/docker/{TWO}\n", (ONE, TWO)),
    "podman in a pod": (f"0::{BURSTABLE}/crio-{ONE}.scope/libpod-{TWO}.scope\n", (ONE, TWO)),
    "systemd in a pod": (
        f"0::{BURSTABLE}/cri-containerd-{ONE}.scope/system.slice/sshd.service\n",
        (ONE,),
    ),
    "a pod of the kubelet's own": (
        f"0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/{ONE}\n",
        (ONE,),
    ),
    "docker without Kubernetes": (f"0::/system.slice/docker-{ONE}.scope\n", (ONE,)),
    "the process beside a container": (f"0::{BURSTABLE}/crio-conmon-{ONE}.scope\n", ()),
    "a service": ("0::/system.slice/sshd.service\n", ()),
    "a person": ("0::/user.slice/user-1000.slice/session-3.scope\n", ()),
    "nothing": ("", ()),
    "longer than an id": (f"0::/kubepods/pod{UID}/{ONE}0\n", ()),
}


@pytest.mark.parametrize(("text", "expected"), FOUND.values(), ids=FOUND)
def test_container_is_found_in(text: str, expected: tuple[str, ...]) -> None:
    """Outermost first where there are several."""
    assert container_ids(text) == expected


def test_process_that_is_gone_is_no_container(tmp_path: Path) -> None:
    """One without containers is another thing."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text("0::/\n")

    assert containers_of(7, proc=tmp_path) == ()
    assert containers_of(8, proc=tmp_path) is None


def test_reading_ends(tmp_path: Path) -> None:
    """However long the file is."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(" " * MAX_BYTES + ONE)

    assert containers_of(7, proc=tmp_path) == ()
