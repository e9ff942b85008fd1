"""Install and forget: certificates that are made, registered, renewed and mended under load."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from kubernetes import client

from admission.certificates.issuing import Authority, KeyPair
from admission.cluster import connect
from admission.errors import ClusterError
from admission.objects import ClusterObjects
from tests.e2e.builtin import (
    KINDS,
    NAME,
    NAMESPACE,
    SECRET,
    SERVER_NAME,
    Replica,
    bundles,
    registration,
    roles,
    service,
    service_account,
    stored,
    write_kubeconfig,
)
from tests.e2e.cluster import ControlPlane
from tests.e2e.forwarder import Forwarder
from tests.e2e.nodes import T4
from tests.e2e.processes import free_ports, poll_until
from tests.e2e.rest import ApiServer, collection
from tests.e2e.stream import Stream
from tests.e2e.workloads import unreadable_job

pytestmark = pytest.mark.e2e

Replicas = tuple[Replica, Replica]


@pytest.fixture(scope="module")
def replicas(
    plane: ControlPlane,
    api: ApiServer,
    core: client.CoreV1Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Replicas]:
    """Start two replicas at once where there is no Secret; the Service leads to the first."""
    directory = tmp_path_factory.mktemp("certificates")
    kubeconfig = directory / "kubeconfig"
    pair = (
        Replica("first", directory=directory, kubeconfig=kubeconfig),
        Replica("second", directory=directory, kubeconfig=kubeconfig),
    )
    port = pair[0].port
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    registrations = [registration(kind, port=port) for kind in KINDS]
    for document in (namespace, service_account(), *roles(), service(port), *registrations):
        answer = api.create(document)
        assert answer.status == 201, answer.message
    write_kubeconfig(kubeconfig, credentials=plane.credentials, core=core)
    try:
        for replica in pair:
            replica.start()
        yield pair
    finally:
        for replica in pair:
            replica.stop()
        for document in registrations:
            api.delete(document)


@pytest.fixture
def ready(replicas: Replicas) -> Replicas:
    """Return the replicas once both are ready."""
    for replica in replicas:
        poll_until(partial(is_ready, replica), what=f"{replica.name} to be ready")
    return replicas


def test_webhook_without_a_certificate_is_called_by_the_api_server(
    api: ApiServer, ready: Replicas
) -> None:
    """Two start at once: one Secret, one CA in both registrations, and reviews are answered."""
    first, second = ready

    answer = api.create(unreadable_job(NAMESPACE, card=T4), dry_run=True)

    assert answer.status == 201, answer.message
    assert answer.warnings
    assert first.served() == second.served() == stored(api, "tls.crt")
    assert bundles(api, port=first.port) == {stored(api, "ca.crt")}
    assert stored(api, "ca.crt").count(b"BEGIN CERTIFICATE") == 1
    assert api.get(SECRET).body["type"] == "kubernetes.io/tls"


def test_write_to_an_old_version_is_refused(
    plane: ControlPlane, api: ApiServer, ready: Replicas
) -> None:
    """Of two who read the same, the API server lets one write: all else rests on that."""
    objects = ClusterObjects(connect(plane.credentials.kubeconfig))
    secret = f"{collection(SECRET)}/{SECRET['metadata']['name']}"
    validating = registration("ValidatingWebhookConfiguration", port=ready[0].port)
    before = stored(api, "tls.crt")

    for path, changes in (
        (secret, {"data": {"tls.crt": ""}}),
        (f"{collection(validating)}/{NAME}", {"webhooks": []}),
    ):
        with pytest.raises(ClusterError) as caught:
            objects.patch(path, {"metadata": {"resourceVersion": "1"}, **changes})
        assert caught.value.status == 409
    with pytest.raises(ClusterError) as caught:
        objects.create(collection(SECRET), {**SECRET, "type": "Opaque"})
    assert caught.value.status == 409
    assert stored(api, "tls.crt") == before


@pytest.mark.parametrize("kind", KINDS)
def test_wiped_ca_bundle_is_back_within_seconds(api: ApiServer, ready: Replicas, kind: str) -> None:
    """Somebody applies the registration as it was."""
    port = ready[0].port
    bundle = bundles(api, port=port)
    document = registration(kind, port=port)

    answer = api.patch(document, {"webhooks": document["webhooks"]})

    assert "caBundle" not in answer.body["webhooks"][0]["clientConfig"]
    poll_until(lambda: bundles(api, port=port) == bundle, what="the CA put back", seconds=10)
    poll_until(lambda: is_reviewed(api), what="a review", seconds=10)


def test_outage_of_the_api_server_is_waited_out(
    plane: ControlPlane, api: ApiServer, core: client.CoreV1Api, ready: Replicas, tmp_path: Path
) -> None:
    """A replica that starts without one is named, not ready and alive; later it catches up."""
    (port,) = free_ports(1)
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, credentials=plane.credentials, core=core, port=port)
    late = Replica("late", directory=tmp_path, kubeconfig=kubeconfig)
    way = Forwarder(port, target=plane.ports.apiserver)
    late.start()
    try:
        poll_until(lambda: late.is_alive, what="an answer without the API server")
        poll_until(lambda: late.num_problems("api-server-away") == 1, what="the problem named")
        assert not late.is_ready

        way.open()
        poll_until(lambda: late.is_ready, what="a replica that is ready by itself")
        assert late.num_problems("api-server-away") == 0
        way.cut()
        renewed = after_renewal(api)
        assert late.is_ready
        assert late.served() != renewed

        way.open()
        poll_until(lambda: late.served() == renewed, what="the renewal of another replica")
    finally:
        late.stop()
        way.cut()


def test_renewal_and_a_new_ca_lose_no_review(
    plane: ControlPlane, api: ApiServer, ready: Replicas
) -> None:
    """A leaf at its end, then a Secret that is deleted, under a constant stream of reviews."""
    first, _ = ready
    old_authority = stored(api, "ca.crt")

    with Stream(plane, port=first.port) as stream:
        renewed = after_renewal(api)
        for replica in ready:
            poll_until(partial(serves_stored, replica, api), what="it to be served")
        reviewed = stream.num_reviewed

        assert api.delete(SECRET).status == 200
        poll_until(
            lambda: stored(api, "tls.crt") not in (b"", renewed), what="a leaf of the new CA"
        )
        for replica in ready:
            poll_until(partial(serves_stored, replica, api), what="it to be served")
        between, reviewed_then = stream.num_reviewed - reviewed, stream.num_reviewed
        poll_until(lambda: stream.num_reviewed > reviewed_then + 20, what="reviews after all that")

    assert stream.failures == []
    assert between > 0
    assert stream.num_handshakes > 20
    assert stored(api, "ca.crt").count(b"BEGIN CERTIFICATE") == 2
    assert stored(api, "ca.crt").endswith(old_authority)
    assert bundles(api, port=first.port) == {stored(api, "ca.crt")}


def test_certificate_that_expired_while_nobody_ran_is_replaced_at_the_start(
    api: ApiServer, ready: Replicas
) -> None:
    """A cluster that slept for a year: one new certificate for both, of the CA there was."""
    old_authority = stored(api, "ca.crt")
    for replica in ready:
        replica.stop()
    expired = put_leaf(api, left=timedelta(days=-1))

    for replica in ready:
        replica.start()

    for replica in ready:
        poll_until(partial(is_ready, replica), what=f"{replica.name} to be ready")
        assert replica.served() == stored(api, "tls.crt") != expired
    assert stored(api, "ca.crt") == old_authority
    poll_until(lambda: is_reviewed(api), what="a review")


def test_missing_role_is_named_and_reviews_go_on(
    api: ApiServer, core: client.CoreV1Api, ready: Replicas
) -> None:
    """Who takes the rights on the Secret away sees which; given back, they are taken up."""
    first, _ = ready
    binding = next(role for role in roles() if role["kind"] == "RoleBinding")
    assert api.delete(binding).status == 200
    poll_until(lambda: not may_read_secret(core), what="the API server to know of it")

    validating = registration("ValidatingWebhookConfiguration", port=first.port)
    api.patch(validating, {"webhooks": validating["webhooks"]})

    poll_until(
        lambda: first.num_problems("secret-forbidden") == 1, what="the problem in the metrics"
    )
    poll_until(lambda: is_reviewed(api), what="a review without the role")
    assert first.is_ready
    assert first.log().count('"problem":"secret-forbidden"') == 1

    assert api.create(binding).status == 201
    poll_until(lambda: first.num_problems("secret-forbidden") == 0, what="the role to be taken up")
    assert "certificate problem over" in first.log()


def test_no_key_is_logged(ready: Replicas) -> None:
    """Not in all that these tests made them write."""
    for replica in ready:
        assert "certificate" in replica.log()
        assert "PRIVATE" not in replica.log()
        assert "ca.key" not in replica.log()


def is_reviewed(api: ApiServer) -> bool:
    """Return whether the API server calls the webhook and believes it."""
    answer = api.create(unreadable_job(NAMESPACE, card=T4), dry_run=True)
    return answer.status == 201 and bool(answer.warnings)


def after_renewal(api: ApiServer) -> bytes:
    """Return the certificate that replaced one with a day to live, which is put there first."""
    old = put_leaf(api, left=timedelta(days=1))
    poll_until(
        lambda: stored(api, "tls.crt") not in (b"", old),
        what="a renewed certificate in the Secret",
    )
    return stored(api, "tls.crt")


def put_leaf(api: ApiServer, *, left: timedelta) -> bytes:
    """Put a certificate of the CA that has *left* to live into the Secret, and return it."""
    authority = Authority(
        pair=KeyPair(certificate=stored(api, "ca.crt"), key=stored(api, "ca.key"))
    )
    names = [SERVER_NAME, f"{SERVER_NAME}.cluster.local"]
    day = timedelta(days=1)
    old = authority.issue(names, lifetime=day, now=datetime.now(UTC) + left - day)
    data = {"tls.crt": old.certificate, "tls.key": old.key}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    assert api.patch(SECRET, {"data": encoded}).status == 200
    return old.certificate


def is_ready(replica: Replica) -> bool:
    """Return whether *replica* says that it is."""
    return replica.is_ready


def serves_stored(replica: Replica, api: ApiServer) -> bool:
    """Return whether *replica* presents the certificate that the Secret has."""
    return replica.served() == stored(api, "tls.crt")


def may_read_secret(core: client.CoreV1Api) -> bool:
    """Return whether the API server would let the replicas read their Secret."""
    place = {"namespace": NAMESPACE, "resource": "secrets", "verb": "get"}
    place |= {"name": SECRET["metadata"]["name"]}
    user = f"system:serviceaccount:{NAMESPACE}:{NAME}"
    review = {"spec": {"user": user, "resourceAttributes": place}}
    access = client.AuthorizationV1Api(core.api_client).create_subject_access_review(review)
    return bool(access.status.allowed)
