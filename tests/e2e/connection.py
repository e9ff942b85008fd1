"""Talk to an API server with the official client.

credentials -> a client, for the length of a `with` block
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client, config

from tests.e2e.cluster import Credentials


@contextmanager
def connected(credentials: Credentials) -> Iterator[client.CoreV1Api]:
    """Return the official client for the API server of *credentials*."""
    settings = client.Configuration()
    config.load_kube_config(str(credentials.kubeconfig), client_configuration=settings)
    settings.proxy = None  # the client takes the machine's proxy even for loopback
    with client.ApiClient(settings) as connection:
        yield client.CoreV1Api(connection)
