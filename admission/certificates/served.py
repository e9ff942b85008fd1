"""What a server presents to its clients, changed while it serves.

    PEM files, or a pair in memory -> a live TLS context, and when its certificate expires

New connections get the new certificate from the same context; open ones keep theirs.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from admission.certificates.issuing import KeyPair, expiry_of, new_authority


class Certificate(Protocol):
    """What the server asks of the certificate that it presents."""

    context: ssl.SSLContext
    expires: datetime | None
    """When the served certificate stops being valid; None while none is loaded."""

    def refresh(self) -> bool:
        """Return whether another certificate is served than when this was last asked."""
        ...


class _Choice:
    """A context for a server that, at each handshake, presents what is loaded then.

    A certificate that were loaded into the server's own context would be without its key for a
    moment, and a handshake in another thread would fail (OpenSSL drops the old key when it takes
    the new certificate: `ssl_set_cert` in OpenSSL 3.0 `ssl/ssl_rsa.c`).
    """

    def __init__(self) -> None:
        self.loaded: ssl.SSLContext | None = None
        self.context = _new_context()
        # Called for every handshake, also for a client that names no server.
        self.context.sni_callback = self._present

    def _present(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext
    ) -> None:
        if self.loaded is not None:
            connection.context = self.loaded


class ServedCertificate:
    """A certificate in files, read again when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._seen: _Stamp | None = None
        self._choice = _Choice()
        self.context = self._choice.context
        self.expires: datetime | None = None

    def refresh(self) -> bool:
        """Load the files if they are others than those that are served; return whether it did.

        A half-written pair, or a key that does not belong to the certificate, leaves the served
        one as it is, and is an error each time until it is mended.

        Raises:
            OSError: if a file cannot be read, or (`ssl.SSLError`) the pair is not valid.
            ValueError: if the certificate file holds no certificate.
        """
        stamp = (_stamp(self._certificate), _stamp(self._key))
        if stamp == self._seen:
            return False
        expires = expiry_of(self._certificate.read_bytes())
        loaded = _new_context()
        # Without a password an encrypted key would ask for one on the terminal.
        loaded.load_cert_chain(self._certificate, self._key, password="")
        self._choice.loaded = loaded
        self.expires = expires
        self._seen = stamp
        return True


class StoredCertificate:
    """A certificate handed over in memory: no key of it is ever on a disk.

    Until the first comes, one that nobody trusts is presented: health and metrics are answered.
    """

    def __init__(self, name: str) -> None:
        self._choice = _Choice()
        self._choice.loaded = _loaded(new_authority().issue([name]))
        self.context = self._choice.context
        self.expires: datetime | None = None
        self.served: bytes | None = None
        """The certificate (PEM) that was handed over last."""
        self._is_new = False

    def serve(self, pair: KeyPair) -> None:
        """Present *pair* from now on. It is one that `check_pair` has nothing against."""
        if pair.certificate == self.served:
            return
        self._choice.loaded = _loaded(pair)
        self.expires = expiry_of(pair.certificate)
        self.served, self._is_new = pair.certificate, True

    def refresh(self) -> bool:
        """Return whether another certificate is served than when this was last asked."""
        was_new, self._is_new = self._is_new, False
        return was_new


def check_pair(pair: KeyPair) -> None:
    """Return if a server can present *pair*.

    Raises:
        ssl.SSLError: if the PEM is broken, or the key does not belong to the certificate.
    """
    _loaded(pair)


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _loaded(pair: KeyPair) -> ssl.SSLContext:
    context = _new_context()
    with _in_memory(pair.certificate + b"\n" + pair.key) as path:
        # Without a password an encrypted key would ask for one on the terminal.
        context.load_cert_chain(path, password="")
    return context


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Yield the path of a file that is on no disk: OpenSSL's loader takes nothing but paths.

    Linux only, as is the image that serves.
    """
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


_Stamp = tuple[tuple[int, int, int], tuple[int, int, int]]


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written or, as in a mounted Secret, swapped."""
    found = path.stat()
    return (found.st_mtime_ns, found.st_ino, found.st_size)
