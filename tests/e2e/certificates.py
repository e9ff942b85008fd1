"""Make the certificates and keys that the servers of a test run need.

    a folder -> a CA of our own, leaf certificates for 127.0.0.1, a service account key pair

Never reuses a key: every run has its own, in its own folder.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=1)
CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two PEM files: a certificate and its private key, or a public and a private key."""

    public: Path
    private: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that lives as long as a test run."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    path: Path

    @property
    def pem(self) -> bytes:
        """Return the certificate, for a CA bundle."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *, directory: Path) -> KeyPair:
        """Return a server certificate for 127.0.0.1 and localhost, written to *directory*."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        signer = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        certificate = (
            _certificate(_name(name), issuer=self.certificate.subject, key=key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        pair = KeyPair(directory / f"{name}.crt", directory / f"{name}.key")
        pair.public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_private(pair.private, key)
        return pair


def authority(directory: Path) -> Authority:
    """Return a new certificate authority, its certificate written to `ca.crt`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("vramgate-e2e")
    certificate = (
        _certificate(name, issuer=name, key=key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Authority(certificate, key, directory / "ca.crt")
    made.path.write_bytes(made.pem)
    return made


def service_account_keys(directory: Path) -> KeyPair:
    """Return the keys that sign and check service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(directory / "service-account.pub", directory / "service-account.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pair.public.write_bytes(public)
    _write_private(pair.private, key)
    return pair


def _certificate(
    subject: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    """Return what a CA and a leaf have in common, still without extensions of their own."""
    now = datetime.datetime.now(datetime.UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write *key* so that only its owner can read it; etcd's and Go's parsers take SEC 1."""
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)
