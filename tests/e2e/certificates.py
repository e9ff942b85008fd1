"""The keys and certificates of a test run, made by the product's own code.

    a folder -> a CA, server certificates for loopback, a service account key pair

Never reuses a key: every run has its own, in its own folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from admission.certificates import issuing

LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two PEM files: a certificate and its private key, or a public and a private key."""

    public: Path
    private: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that lives as long as a test run."""

    authority: issuing.Authority
    path: Path

    @property
    def pem(self) -> bytes:
        """Return the certificate, for a CA bundle."""
        return self.authority.bundle

    def issue(self, name: str, *, directory: Path) -> KeyPair:
        """Return a server certificate for loopback, written below *directory*."""
        return KeyPair(*self.authority.issue(LOOPBACK).write(directory / name))


def authority(directory: Path) -> Authority:
    """Return a new certificate authority, its certificate written to `ca.crt`."""
    made = Authority(issuing.new_authority("vramgate-e2e"), directory / "ca.crt")
    made.path.write_bytes(made.pem)
    return made


def service_account_keys(directory: Path) -> KeyPair:
    """Return the keys that sign and check service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(directory / "service-account.pub", directory / "service-account.key")
    pair.public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    pair.private.touch(mode=0o600)
    pair.private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            # The API server takes SEC 1, not PKCS 8, for elliptic-curve keys.
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return pair
