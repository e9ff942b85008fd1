"""What the Secret holds: a CA and its key, every CA to trust, the serving certificate.

    data of a Secret -> Kept, and back

A part that is missing or broken is absent: what is whole of a damaged Secret is still used.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from admission.certificates.issuing import Authority, KeyPair
from admission.certificates.served import check_pair

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""The keys that a Secret of the type `kubernetes.io/tls` must have."""
BUNDLE, AUTHORITY_KEY = "ca.crt", "ca.key"
MAX_AUTHORITIES = 8
"""Of a bundle, newest first: a Secret that is deleted every day must not fill the registration."""
MAX_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of the certificates. Any part may be absent, until it is made."""

    authority: Authority | None = None
    """The CA that signs from now on."""
    bundle: tuple[bytes, ...] = ()
    """Certificates (PEM) of every CA to trust, the newest first: what `caBundle` is."""
    leaf: KeyPair | None = None
    """The serving certificate."""
    flaws: tuple[str, ...] = ()
    """What of the Secret is there and broken, in words without a secret."""

    @property
    def pem(self) -> bytes:
        """Return the bundle as one document."""
        return b"".join(self.bundle)

    def data(self) -> dict[str, str]:
        """Return the data of the Secret. It is a secret: not for a log."""
        assert self.authority is not None
        assert self.leaf is not None
        parts = {
            CERTIFICATE: self.leaf.certificate,
            KEY: self.leaf.key,
            BUNDLE: self.pem,
            AUTHORITY_KEY: self.authority.pair.key,
        }
        return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def read_kept(data: Mapping[str, object]) -> Kept:
    """Return what the data of a Secret holds. Never raises: what is broken is a flaw."""
    flaws: list[str] = []
    parts = {name: _decoded(data, name, flaws) for name in (CERTIFICATE, KEY, BUNDLE)}
    key = _decoded(data, AUTHORITY_KEY, flaws)
    bundle = _bundle(parts[BUNDLE], flaws)
    leaf = _leaf(parts[CERTIFICATE], parts[KEY], flaws)
    authority = _authority(bundle, key, flaws)
    return Kept(authority=authority, bundle=bundle, leaf=leaf, flaws=tuple(flaws))


def merged(bundles: Iterable[Iterable[bytes]], *, now: datetime) -> tuple[bytes, ...]:
    """Return the CAs of *bundles* that have not expired, each once, in their order, so many."""
    certificates = dict.fromkeys(pem for bundle in bundles for pem in bundle)
    lasting = [pem for pem in certificates if expires(pem) > now]
    return tuple(lasting[:MAX_AUTHORITIES])


def expires(certificate: bytes) -> datetime:
    """Return when a certificate (PEM) stops being valid."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def is_valid_at(certificate: bytes, now: datetime) -> bool:
    """Return whether a certificate (PEM) is valid at *now*."""
    found = x509.load_pem_x509_certificate(certificate)
    return found.not_valid_before_utc <= now < found.not_valid_after_utc


def is_signed_by(leaf: bytes, authority: bytes) -> bool:
    """Return whether the CA *authority* signed the certificate *leaf* (both PEM)."""
    issuer = x509.load_pem_x509_certificate(authority)
    try:
        x509.load_pem_x509_certificate(leaf).verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def has_names(leaf: bytes, names: Iterable[str]) -> bool:
    """Return whether a certificate (PEM) is for each of the DNS *names*."""
    try:
        found = x509.load_pem_x509_certificate(leaf).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except (x509.ExtensionNotFound, ValueError):
        return False
    return set(names) <= set(found.value.get_values_for_type(x509.DNSName))


def _decoded(data: Mapping[str, object], name: str, flaws: list[str]) -> bytes:
    value = data.get(name)
    if not value:
        return b""
    if not isinstance(value, str) or len(value) > 2 * MAX_BYTES:
        flaws.append(f"{name} is too long or no text")
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        flaws.append(f"{name} is not base64")
        return b""


def _bundle(content: bytes, flaws: list[str]) -> tuple[bytes, ...]:
    """Return the certificates of CAs in *content*, each alone and written one way."""
    if not content:
        return ()
    try:
        found = x509.load_pem_x509_certificates(content)
        authorities = [one for one in found if _is_authority(one)]
    except ValueError:
        flaws.append(f"{BUNDLE} holds no certificates")
        return ()
    if len(authorities) < len(found):
        flaws.append(f"{BUNDLE} holds a certificate that is no CA")
    return tuple(one.public_bytes(serialization.Encoding.PEM) for one in authorities)


def _is_authority(certificate: x509.Certificate) -> bool:
    """Return whether a certificate is a CA's, with a key of a kind that is known."""
    try:
        certificate.public_key()
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, UnsupportedAlgorithm):
        return False


def _authority(bundle: tuple[bytes, ...], key: bytes, flaws: list[str]) -> Authority | None:
    if not key:
        return None
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        flaws.append(f"{AUTHORITY_KEY} is no private key")
        return None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        flaws.append(f"{AUTHORITY_KEY} is not one of ours")
        return None
    for pem in bundle:
        if x509.load_pem_x509_certificate(pem).public_key() == private.public_key():
            return Authority(pair=KeyPair(certificate=pem, key=key))
    flaws.append(f"{AUTHORITY_KEY} belongs to no certificate of {BUNDLE}")
    return None


def _leaf(certificate: bytes, key: bytes, flaws: list[str]) -> KeyPair | None:
    if not certificate and not key:
        return None
    pair = KeyPair(certificate=certificate, key=key)
    try:
        check_pair(pair)
        expires(certificate)
    except (OSError, ValueError):
        flaws.append(f"{CERTIFICATE} and {KEY} are no pair that can be served")
        return None
    return pair
