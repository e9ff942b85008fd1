"""Which container a process is in, by the control groups it is in.

/proc/PID/cgroup -> ids of containers, outermost first

A container's id is 64 hexadecimal digits in every layout there is: a folder of its own with the
driver cgroupfs (`/kubepods/burstable/podUID/ID`), a scope with systemd (`cri-containerd-ID.scope`,
`crio-ID.scope`, `docker-ID.scope`), behind colons where containerd has the one driver and the
kubelet the other (`…slice:cri-containerd:ID`). A reader in a cgroup namespace sees the path from
its own root (`/../cri-containerd-ID.scope`): the id is in it all the same. Pods of the kubelet's
own have 32 digits for a UID, which is no id.

Sources: cgroup_namespaces(7); the layouts in falcosecurity/libs `userspace/libsinsp/runc.cpp`;
files of version 1 as they are found in neuvector/neuvector `share/system/cgroup_test.go`.
Not modelled: containers in virtual machines (Kata), whose processes the driver does not see.
"""

from __future__ import annotations

import re
from pathlib import Path

MAX_BYTES = 16 << 10
"""Version 1 has a dozen lines of at most a few hundred bytes."""

_CONTAINER = re.compile(r"(?<![0-9a-f])(?<!conmon-)[0-9a-f]{64}(?![0-9a-f])")
"""The process that CRI-O puts beside a container is in `crio-conmon-ID.scope`."""


def container_ids(text: str) -> tuple[str, ...]:
    """Return every container id in *text*, which is the content of a cgroup file.

    Of nested containers the outermost comes first: a pod may run Docker, and a node may be a
    container of somebody else's.
    """
    return tuple(dict.fromkeys(_CONTAINER.findall(text)))


def containers_of(pid: int, *, proc: Path) -> tuple[str, ...] | None:
    """Return the ids of the containers that process *pid* is in; None if there is no such process.

    *proc* is where the processes of the host's namespace are shown.
    """
    try:
        with (proc / str(pid) / "cgroup").open("rb") as file:
            text = file.read(MAX_BYTES)
    except OSError:
        return None
    return container_ids(text.decode("ascii", errors="replace"))
