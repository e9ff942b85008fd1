"""Volumes of a pod as folders.

    volumes, what the API server has -> folders of files, replaced whole when that changes

Files are behind a link `..data` that is swapped in one step, as a kubelet does it
(kubernetes@v1.36.3 pkg/volume/util/atomic_writer.go), so who watches them sees what it sees there.
Not modelled: subPath, modes and owners, `optional`, a token that is renewed.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from kubernetes import client

from tests.e2e.kubelet.pods import Json, PodError, field, uid

DATA = "..data"

Files = Mapping[str, bytes]


class Volumes:
    """The volumes of one pod."""

    def __init__(self, pod: Json, *, core: client.CoreV1Api, directory: Path) -> None:
        self._pod = pod
        self._core = core
        self._directory = directory
        self._written: dict[str, Files] = {}
        self._tokens: dict[str, bytes] = {}
        self._num_versions = 0
        self.is_complete = False
        """Whether everything was there at least once: containers wait for it."""

    def refresh(self) -> None:
        """Write what is not there yet or has changed.

        Raises:
            PodError: if a volume is of another kind than these, or what it names is not there.
        """
        for volume in self._pod["spec"].get("volumes") or ():
            folder = self.folder(volume["name"])
            folder.mkdir(parents=True, exist_ok=True)
            files = self._files(volume)
            if files is not None and files != self._written.get(volume["name"]):
                self._swap(folder, files)
                self._written[volume["name"]] = files
        self.is_complete = True

    def folder(self, name: str) -> Path:
        """Return where the volume *name* is."""
        return self._directory / name

    def mounts(self, container: Json) -> Iterator[tuple[str, Path]]:
        """Yield each path of *container* that is a volume, with its folder.

        Raises:
            PodError: if a part of a volume is mounted.
        """
        for mount in container.get("volumeMounts") or ():
            if mount.get("subPath") or mount.get("subPathExpr"):
                raise PodError(f"volumeMounts of {container['name']}: subPath is not modelled")
            yield mount["mountPath"], self.folder(mount["name"])

    def _files(self, volume: Json) -> Files | None:
        """Return the files of *volume*; None if it is for the container to fill."""
        if "emptyDir" in volume:
            return None
        if "projected" in volume:
            found: dict[str, bytes] = {}
            for source in volume["projected"]["sources"]:
                found |= self._source(source)
            return found
        return self._source({key: value for key, value in volume.items() if key != "name"})

    def _source(self, source: Json) -> Files:
        """Return the files of one source of a volume, in the words of projected ones."""
        ((kind, what),) = source.items()
        namespace = self._pod["metadata"]["namespace"]
        match kind:
            case "serviceAccountToken":
                return {what["path"]: self._token(what)}
            case "downwardAPI":
                paths = {item["path"]: item["fieldRef"]["fieldPath"] for item in what["items"]}
                return {name: field(self._pod, path).encode() for name, path in paths.items()}
            case "configMap":
                read = _found(self._core.read_namespaced_config_map, what["name"], namespace)
                data = {key: text.encode() for key, text in (read.data or {}).items()}
            case "secret":
                name = what.get("secretName") or what["name"]
                read = _found(self._core.read_namespaced_secret, name, namespace)
                data = {key: base64.b64decode(text) for key, text in (read.data or {}).items()}
            case _:
                raise PodError(f"volume of kind {kind} is not modelled")
        if "items" in what:
            return {item["path"]: data[item["key"]] for item in what["items"]}
        return data

    def _token(self, what: Json) -> bytes:
        """Return a token that the API server signs for this pod, asked for once."""
        if what["path"] not in self._tokens:
            metadata = self._pod["metadata"]
            reference = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"]}
            spec = {
                "audiences": [what["audience"]] if "audience" in what else [],
                "expirationSeconds": what.get("expirationSeconds", 3600),
                "boundObjectRef": {**reference, "uid": uid(self._pod)},
            }
            made = self._core.create_namespaced_service_account_token(
                self._pod["spec"]["serviceAccountName"], metadata["namespace"], {"spec": spec}
            )
            self._tokens[what["path"]] = made.status.token.encode()
        return self._tokens[what["path"]]

    def _swap(self, folder: Path, files: Files) -> None:
        """Replace all files of *folder* in one step."""
        self._num_versions += 1
        version = folder / f"..version-{self._num_versions}"
        version.mkdir()
        for name, content in files.items():
            (version / name).write_bytes(content)
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(Path(DATA) / name)
        before = (folder / DATA).resolve() if (folder / DATA).is_symlink() else None
        (folder / "..new").symlink_to(version.name)
        (folder / "..new").replace(folder / DATA)
        if before is not None:
            shutil.rmtree(before)


def _found(read: object, name: str, namespace: str) -> client.V1ConfigMap | client.V1Secret:
    """Return what *read* reads.

    Raises:
        PodError: if it is not there.
    """
    assert callable(read)
    try:
        return read(name, namespace)
    except client.ApiException as error:
        raise PodError(f"volume: {name}: {error.reason}") from error
