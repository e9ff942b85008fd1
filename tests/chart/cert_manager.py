"""cert-manager's own kinds, and somebody who does by hand what its controllers do.

    a Go module -> CustomResourceDefinitions; Certificates -> Secrets, caBundles, mounted files

None of its controllers runs. What they do with an object of the chart is written down here:
`pkg/controller/cainjector` (annotation `cert-manager.io/inject-ca-from`: the `ca.crt` of the
Certificate's Secret goes into every webhook) and `pkg/issuer/ca` (`ca.crt` is the issuer's own).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from admission.certificates.issuing import Authority, KeyPair
from tests import gobuild
from tests.chart.rendering import Document, all_of_kind
from tests.e2e.rest import ApiServer

MODULE = "github.com/cert-manager/cert-manager"
VERSION = "v1.21.2"
CHECKSUM = "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="
FILES = ("cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml")
INJECT = "cert-manager.io/inject-ca-from"
REGISTRATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def definitions() -> Iterator[Document]:
    """Return the definitions of the kinds that the chart makes, with their whole schemas.

    Raises:
        BuildError: if the module cannot be had.
    """
    folder = gobuild.downloaded(MODULE, version=VERSION, checksum=CHECKSUM) / "deploy" / "crds"
    for file in FILES:
        yield yaml.load((folder / file).read_bytes(), Loader=yaml.CSafeLoader)


@dataclass(frozen=True, slots=True)
class CertManager:
    """Issues what a rendered chart asks for, from one CA."""

    api: ApiServer
    authority: Authority

    def issue(self, certificate: Document) -> KeyPair:
        """Fill the Secret of a Certificate as its issuer would; return the new leaf."""
        spec, metadata = certificate["spec"], certificate["metadata"]
        leaf = self.authority.issue(spec["dnsNames"])
        data = {
            "tls.crt": leaf.certificate,
            "tls.key": leaf.key,
            "ca.crt": self.authority.bundle,
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": metadata["namespace"], "name": spec["secretName"]},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        if self.api.create(secret).status == 409:
            assert self.api.patch(secret, {"data": secret["data"]}).status == 200
        return leaf

    def inject(self, found: tuple[Document, ...]) -> int:
        """Give each annotated registration its CA; return how many there are."""
        secrets = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["spec"][
                "secretName"
            ]
            for each in all_of_kind(found, "Certificate")
        }
        annotated = [
            each
            for kind in REGISTRATIONS
            for each in all_of_kind(found, kind)
            if INJECT in (each["metadata"].get("annotations") or {})
        ]
        for registration in annotated:
            certificate = registration["metadata"]["annotations"][INJECT]
            namespace = certificate.partition("/")[0]
            metadata = {"namespace": namespace, "name": secrets[certificate]}
            secret = self.api.get({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
            bundle = secret.body["data"]["ca.crt"]
            webhooks = self.api.get(registration).body["webhooks"]
            for webhook in webhooks:
                webhook["clientConfig"]["caBundle"] = bundle
            assert self.api.patch(registration, {"webhooks": webhooks}).status == 200
        return len(annotated)


def mount(pair: KeyPair, directory: Path) -> None:
    """Show *pair* in *directory* as the kubelet shows a Secret: a link that is swapped."""
    content = directory / f"..{len(list(directory.glob('..*')))}"
    content.mkdir(parents=True)
    (content / "tls.crt").write_bytes(pair.certificate)
    (content / "tls.key").write_bytes(pair.key)
    new = directory / "..new"
    new.symlink_to(content.name)
    new.replace(directory / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
