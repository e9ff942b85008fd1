"""Run controllers of other projects against a control plane.

    control plane, Operators -> processes on loopback, their webhooks registered -> nothing left

Kueue makes and registers its own certificate, as installed. The others' ways of doing so want a
path below /tmp that all of a machine share: they take a certificate of the control plane's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests import gobuild
from tests.e2e.cluster import ControlPlane
from tests.e2e.operators import kueue_install
from tests.e2e.operators.catalog import KUEUE
from tests.e2e.operators.operator import Document, Operator, Place
from tests.e2e.processes import Server, answers, free_ports, retrying_ports, start, wait_until_ready
from tests.e2e.rest import ApiServer
from tests.e2e.webhook import calling


@contextmanager
def running(
    operators: Iterable[Operator], plane: ControlPlane, api: ApiServer, *, directory: Path
) -> Iterator[None]:
    """Run *operators*, whose kinds are known by then; their logs stay below *directory*.

    Raises:
        BuildError: if a program cannot be built.
        ServerError: if one does not come up; the message ends with its log.
    """
    programs = [(each, gobuild.build(each.module) / each.name) for each in operators]
    with retrying_ports(partial(_begun, programs, plane, api, directory)):
        yield


def _begun(
    programs: Iterable[tuple[Operator, Path]],
    plane: ControlPlane,
    api: ApiServer,
    directory: Path,
) -> ExitStack:
    """Return what ends the ready processes; nothing of them is left if this raises."""
    with ExitStack() as stack:
        started = []
        for operator, program in programs:
            place = Place(directory / operator.name, *free_ports(2))
            place.serving.mkdir(parents=True, exist_ok=True)
            started.append((operator, place, _start(operator, program, place, plane, api, stack)))
        # All come up at once: together they take as long as the slowest.
        for operator, place, server in started:
            wait_until_ready(server, partial(_is_ready, operator, place, api))
            if operator is KUEUE:
                continue
            for document in operator.webhooks():
                url = f"https://127.0.0.1:{place.webhooks}"
                _make(api, calling(document, url=url, ca_bundle=plane.authority.pem), stack)
        return stack.pop_all()


def _start(
    operator: Operator,
    program: Path,
    place: Place,
    plane: ControlPlane,
    api: ApiServer,
    stack: ExitStack,
) -> Server:
    if operator is KUEUE:
        _install_kueue(api, place, stack)
    else:
        pair = plane.authority.issue("serving", directory=place.directory)
        for file, source in (("tls.crt", pair.public), ("tls.key", pair.private)):
            (place.serving / file).write_bytes(source.read_bytes())
    environment = {
        **os.environ,
        "KUBECONFIG": str(plane.credentials.kubeconfig),
        "TMPDIR": str(place.directory),
    }
    argv = [str(program), *operator.flags(place)]
    server = start(operator.name, argv, directory=place.directory, environment=environment)
    stack.callback(server.stop)
    return server


def _is_ready(operator: Operator, place: Place, api: ApiServer) -> bool:
    if operator is KUEUE and not kueue_install.is_mounted(api, place):
        return False
    return answers(f"http://127.0.0.1:{place.probes}/readyz")


def _install_kueue(api: ApiServer, place: Place, stack: ExitStack) -> None:
    for document in kueue_install.objects(place):
        _make(api, document, stack)
    for kind in KUEUE.definitions(*kueue_install.CONVERTED):
        answer = api.patch(kind, kueue_install.conversion(place))
        assert answer.status == 200, answer.message


def _make(api: ApiServer, document: Document, stack: ExitStack) -> None:
    """Create *document*, to be deleted again."""
    answer = api.create(document)
    assert answer.status == 201, answer.message
    stack.callback(api.delete, document)
