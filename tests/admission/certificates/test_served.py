"""Certificates of our own are accepted by a real TLS client, and change while being served."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admission.certificates.issuing import Authority, KeyPair, expiry_of, new_authority
from admission.certificates.served import ServedCertificate, StoredCertificate, check_pair

NAMES = ("vramgate.vramgate-system.svc", "127.0.0.1")


def shake_hands(served: ssl.SSLContext, authority: Authority, *, name: str) -> bytes:
    """Return the certificate (DER) that a client who trusts *authority* gets for *name*."""
    ours, theirs = socket.socketpair()
    client = ssl.create_default_context(cadata=authority.bundle.decode())

    def answer() -> None:
        with ours, served.wrap_socket(ours, server_side=True) as secure:
            secure.recv(1)

    server = threading.Thread(target=answer)
    server.start()
    try:
        with theirs, client.wrap_socket(theirs, server_hostname=name) as secure:
            secure.sendall(b"x")
            return secure.getpeercert(binary_form=True) or b""
    finally:
        server.join(10)


@pytest.mark.parametrize("name", NAMES)
def test_issued_certificate_is_valid_for_each_of_its_names(tmp_path: Path, name: str) -> None:
    """A DNS name of a Service and an IP address, checked by OpenSSL."""
    authority = new_authority()
    served = ServedCertificate(*authority.issue(NAMES).write(tmp_path))

    served.refresh()

    assert shake_hands(served.context, authority, name=name)


def test_long_service_name_gets_a_certificate(tmp_path: Path) -> None:
    """A name over 64 characters does not fit a common name and needs none."""
    authority = new_authority()
    name = f"{'v' * 50}.{'n' * 50}.svc"
    served = ServedCertificate(*authority.issue([name]).write(tmp_path))

    served.refresh()

    assert shake_hands(served.context, authority, name=name)


def test_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    """0600, also where an older file was open to all."""
    (tmp_path / "tls.key").touch(mode=0o666)

    _, key = new_authority().issue(NAMES).write(tmp_path)

    assert key.stat().st_mode & 0o777 == 0o600


def test_key_is_not_shown_with_its_pair() -> None:
    """A pair that ends up in a log line or a failed assertion says nothing secret."""
    assert "key=" not in repr(KeyPair(certificate=b"public", key=b"secret"))


def test_expiry_is_read_from_the_certificate() -> None:
    """A leaf made on 1 May for 30 days expires on 31 May."""
    made = datetime(2030, 5, 1, tzinfo=UTC)
    pair = new_authority().issue(NAMES, lifetime=timedelta(days=30), now=made)

    assert expiry_of(pair.certificate) == datetime(2030, 5, 31, tzinfo=UTC)


def test_new_files_are_served_to_the_next_client(tmp_path: Path) -> None:
    """The same context presents the new certificate; nothing is read while nothing changes."""
    authority = new_authority()
    served = ServedCertificate(*authority.issue(NAMES).write(tmp_path))
    assert served.refresh()
    first = shake_hands(served.context, authority, name=NAMES[0])
    assert not served.refresh()

    authority.issue(NAMES).write(tmp_path)

    assert served.refresh()
    assert shake_hands(served.context, authority, name=NAMES[0]) != first


def test_swapped_link_of_a_mounted_secret_is_noticed(tmp_path: Path) -> None:
    """The kubelet swaps a link to a folder of files; their own times may be alike."""
    authority = new_authority()
    for version in ("1", "2"):
        for path in authority.issue(NAMES).write(tmp_path / version):
            os.utime(path, ns=(0, 0))
    link = tmp_path / "data"
    link.symlink_to("1")
    served = ServedCertificate(link / "tls.crt", link / "tls.key")
    served.refresh()

    swapped = tmp_path / "swapped"
    swapped.symlink_to("2")
    swapped.replace(link)

    assert served.refresh()


def test_half_written_pair_leaves_the_served_one(tmp_path: Path) -> None:
    """A certificate whose key has not arrived is refused, and the old pair goes on being served."""
    authority = new_authority()
    certificate, key = authority.issue(NAMES).write(tmp_path)
    served = ServedCertificate(certificate, key)
    served.refresh()
    first = shake_hands(served.context, authority, name=NAMES[0])
    other = authority.issue(NAMES)

    certificate.write_bytes(other.certificate)
    with pytest.raises(ssl.SSLError):
        served.refresh()

    assert shake_hands(served.context, authority, name=NAMES[0]) == first
    key.write_bytes(other.key)
    assert served.refresh()
    assert shake_hands(served.context, authority, name=NAMES[0]) != first


def test_old_tls_is_not_spoken(tmp_path: Path) -> None:
    """TLS 1.2 is the least."""
    served = ServedCertificate(*new_authority().issue(NAMES).write(tmp_path))

    assert served.context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_certificate_in_memory_is_served_to_the_next_client() -> None:
    """The same context presents one pair after the other; who asks is told once of each."""
    authority = new_authority()
    served = StoredCertificate(NAMES[0])
    first, second = authority.issue(NAMES), authority.issue(NAMES)
    found = [served.refresh()]

    served.serve(first)
    before = shake_hands(served.context, authority, name=NAMES[0])
    found += [served.refresh(), served.refresh()]
    served.serve(first)
    found.append(served.refresh())
    served.serve(second)
    after = shake_hands(served.context, authority, name=NAMES[0])
    found.append(served.refresh())

    assert found == [False, True, False, False, True]
    assert before != after
    assert served.expires == expiry_of(second.certificate)


def test_before_the_first_certificate_somebody_who_checks_nothing_is_answered() -> None:
    """The kubelet's probes check no certificate: the process is alive and says why it waits."""
    served = StoredCertificate(NAMES[0])
    ours, theirs = socket.socketpair()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE

    def answer() -> None:
        with ours, served.context.wrap_socket(ours, server_side=True) as secure:
            secure.sendall(b"alive")

    server = threading.Thread(target=answer)
    server.start()
    with theirs, client.wrap_socket(theirs) as secure:
        found = secure.recv(5)
    server.join(10)

    assert found == b"alive"
    assert served.expires is None


def test_pair_that_does_not_belong_together_cannot_be_served() -> None:
    """It is known before anything of what is served is touched."""
    authority = new_authority()
    one, other = authority.issue(NAMES), authority.issue(NAMES)

    check_pair(one)
    with pytest.raises(ssl.SSLError):
        check_pair(KeyPair(certificate=one.certificate, key=other.key))


def test_no_handshake_fails_while_certificates_change() -> None:
    """A thread that loads one after the other meets no client between certificate and key."""
    authority = new_authority()
    served = StoredCertificate(NAMES[0])
    pairs = [authority.issue(NAMES) for _ in range(2)]
    served.serve(pairs[0])
    ending = threading.Event()

    def change() -> None:
        while not ending.is_set():
            for pair in pairs:
                served.serve(pair)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        found = {shake_hands(served.context, authority, name=NAMES[0]) for _ in range(150)}
    finally:
        ending.set()
        changing.join()

    assert len(found) == 2
