"""Make certificates: a CA of our own, and leaves signed by it.

    names, lifetime, now -> PEM

Serves the demo, the tests and the built-in rotation. Keys never leave their file's owner.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)
"""A certificate is valid from a little earlier, for clients whose clock is behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    def write(self, directory: Path) -> tuple[Path, Path]:
        """Write `tls.crt` and `tls.key` to *directory*, each replaced whole; return their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        certificate, key = directory / "tls.crt", directory / "tls.key"
        _replace(key, self.key, mode=0o600)
        _replace(certificate, self.certificate, mode=0o644)
        return certificate, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority: its certificate goes into the `caBundle`, its key stays."""

    pair: KeyPair

    @property
    def bundle(self) -> bytes:
        """Return the PEM that clients trust."""
        return self.pair.certificate

    def issue(
        self,
        names: Iterable[str],
        *,
        lifetime: timedelta = LEAF_LIFETIME,
        now: datetime | None = None,
    ) -> KeyPair:
        """Return a serving certificate for *names*: DNS names and IP addresses."""
        issuer = x509.load_pem_x509_certificate(self.pair.certificate)
        signer = serialization.load_pem_private_key(self.pair.key, password=None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        alternatives = [_alternative(name) for name in names]
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(str(alternatives[0].value), key=key, lifetime=lifetime, now=now)
            .issuer_name(issuer.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
        )
        return _signed(builder, key=key, signer=signer)


def new_authority(
    name: str = "vramgate",
    *,
    lifetime: timedelta = AUTHORITY_LIFETIME,
    now: datetime | None = None,
) -> Authority:
    """Return a certificate authority with a key of its own, never the cluster's."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, key=key, lifetime=lifetime, now=now)
    builder = (
        builder.issuer_name(_name(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
    )
    return Authority(pair=_signed(builder, key=key, signer=key))


def expiry_of(certificate: bytes) -> datetime:
    """Return when the first certificate of a PEM file (the served one) stops being valid.

    Raises:
        ValueError: if the PEM holds no certificate.
    """
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _builder(
    name: str, *, key: ec.EllipticCurvePrivateKey, lifetime: timedelta, now: datetime | None
) -> x509.CertificateBuilder:
    """Return what a CA and a leaf have in common."""
    now = datetime.now(UTC) if now is None else now
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    *,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    certificate = builder.sign(signer, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=private)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common: str) -> x509.Name:
    # X.509 ends a common name at 64 characters; clients read the alternative names.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _replace(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that is never seen half written, nor readable by others before it is."""
    made = path.with_name(f".{path.name}.new")
    made.unlink(missing_ok=True)
    made.touch(mode=mode, exist_ok=False)
    made.write_bytes(content)
    made.replace(path)
