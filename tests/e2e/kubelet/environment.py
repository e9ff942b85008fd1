"""What a container is told: environment and command.

    container, pod, image, volumes -> argv and environment

Nothing of this process's own environment is in it. Not modelled: resourceFieldRef, Services'
variables other than the API server's.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes import client

from tests.e2e.kubelet import inside
from tests.e2e.kubelet.pods import Json, PodError
from tests.e2e.kubelet.pods import field as pod_field

ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TEMPORARY_PATH = "/tmp"
REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")


@dataclass(frozen=True, slots=True)
class Image:
    """What stands for an image: a command of this machine."""

    entrypoint: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def command(
    container: Json,
    *,
    image: Image,
    environment: Mapping[str, str],
    mounts: Mapping[str, Path],
) -> list[str]:
    """Return the argv of *container*, with `$(NAME)` filled in and paths below mounts placed.

    The image's own program is of this machine: it may lie where a container mounts something.
    """
    own = () if container.get("command") else image.entrypoint
    stated = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [*own, *placed([expanded(each, environment) for each in stated], mounts)]


def placed(argv: list[str], mounts: Mapping[str, Path]) -> list[str]:
    """Return *argv* with each path below a mount where it is on this machine."""

    def place(word: str) -> str:
        for path, folder in mounts.items():
            if word == path or word.startswith(f"{path}/"):
                return f"{folder}{word.removeprefix(path)}"
        return word

    return [place(word) for word in argv]


def variables(
    container: Json,
    pod: Json,
    *,
    core: client.CoreV1Api,
    image: Image,
    address: str,
    mounts: Mapping[str, Path],
) -> dict[str, str]:
    """Return the environment of *container* in *pod*, which is at *address* of this machine.

    Raises:
        PodError: if something that is referred to is not there, or a source is not known.
    """
    host, _, port = core.api_client.configuration.host.rpartition(":")
    found = {
        "PATH": os.environ["PATH"],
        "HOME": str(mounts.get(TEMPORARY_PATH, "/nonexistent")),
        "HOSTNAME": pod["metadata"]["name"],
        "KUBERNETES_SERVICE_HOST": host.removeprefix("https://"),
        "KUBERNETES_SERVICE_PORT": port,
        inside.ADDRESS: address,
        **image.environment,
    }
    if ACCOUNT_PATH in mounts:
        found[inside.ACCOUNT] = str(mounts[ACCOUNT_PATH])
    if TEMPORARY_PATH in mounts:
        found["TMPDIR"] = str(mounts[TEMPORARY_PATH])
    if container.get("envFrom"):
        raise PodError(f"{container['name']}: envFrom is not modelled")
    for name, text in _own(container, pod, core):
        found[name] = expanded(text, found)
    return found


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return *text* with `$(NAME)` filled in where the name is known, and `$$` as `$`."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else environment.get(name, match[0])

    return REFERENCE.sub(value, text)


def _own(container: Json, pod: Json, core: client.CoreV1Api) -> Iterator[tuple[str, str]]:
    """Yield what *container* itself says, in its order."""
    namespace = pod["metadata"]["namespace"]
    for each in container.get("env") or ():
        source = each.get("valueFrom")
        if source is None:
            yield each["name"], each.get("value", "")
            continue
        ((kind, what),) = source.items()
        try:
            match kind:
                case "fieldRef":
                    yield each["name"], pod_field(pod, what["fieldPath"])
                case "configMapKeyRef":
                    data = core.read_namespaced_config_map(what["name"], namespace).data
                    yield each["name"], data[what["key"]]
                case "secretKeyRef":
                    data = core.read_namespaced_secret(what["name"], namespace).data
                    yield each["name"], base64.b64decode(data[what["key"]]).decode()
                case _:
                    raise PodError(f"env {each['name']}: {kind} is not modelled")
        except client.ApiException as error:
            raise PodError(f"env {each['name']}: {what['name']}: {error.reason}") from error
