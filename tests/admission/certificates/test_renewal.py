"""What the Secret should hold, by a clock that is moved by hand."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.certificates.issuing import new_authority
from admission.certificates.kept import (
    MAX_AUTHORITIES,
    Kept,
    expires,
    has_names,
    is_signed_by,
    is_valid_at,
    read_kept,
)
from admission.certificates.renewal import Cause, Known, Renewal, Rules, awaits_trust, renewed

NAME = "vramgate.vramgate-system.svc"
RULES = Rules(names=(NAME,))
START = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = Kept()


def look(
    kept: Kept, *, days: float = 0, trusted: bool = True, before: Kept = NOTHING
) -> Renewal | None:
    """Return what is done about *kept* so many days after the start."""
    known = Known(now=START + timedelta(days=days), before=before, is_trusted=trusted)
    return renewed(kept, rules=RULES, known=known)


def done(kept: Kept, *, days: float = 0, trusted: bool = True, before: Kept = NOTHING) -> Renewal:
    """Return what is done about *kept*, which is something."""
    renewal = look(kept, days=days, trusted=trusted, before=before)
    assert renewal is not None
    return renewal


def fresh() -> Kept:
    """Return what an install makes on its first day."""
    return done(NOTHING).kept


def test_first_install_makes_a_ca_for_ten_years_and_a_leaf_for_one() -> None:
    """Both are valid from an hour earlier, for API servers whose clock is behind."""
    renewal = done(NOTHING)

    authority, leaf = renewal.kept.authority, renewal.kept.leaf
    assert authority is not None
    assert leaf is not None
    assert renewal.cause is Cause.ABSENT
    assert renewal.kept.bundle == (authority.bundle,)
    for pem, days in ((authority.bundle, 3650), (leaf.certificate, 365)):
        certificate = x509.load_pem_x509_certificate(pem)
        assert certificate.not_valid_before_utc == START - timedelta(hours=1)
        assert certificate.not_valid_after_utc == START + timedelta(days=days)
    assert is_signed_by(leaf.certificate, authority.bundle)
    assert has_names(leaf.certificate, [NAME])


@pytest.mark.parametrize("days", [0, 100, 274.9])
def test_young_certificates_are_left_alone(days: float) -> None:
    """Of 365 days, 90 are for renewing: nothing is done before day 275."""
    assert look(fresh(), days=days) is None


def test_leaf_is_renewed_ninety_days_before_its_end_by_the_same_ca() -> None:
    """Nobody has to trust anything new."""
    kept = fresh()

    renewal = done(kept, days=275.1)

    assert renewal.cause is Cause.LEAF
    assert (renewal.kept.authority, renewal.kept.bundle) == (kept.authority, kept.bundle)
    assert renewal.kept.leaf is not None
    assert expires(renewal.kept.leaf.certificate) == START + timedelta(days=275.1 + 365)


def test_new_ca_is_trusted_before_a_leaf_of_it_is_served() -> None:
    """Old and new CA with the old leaf, then both with the new leaf, then the new CA alone."""
    authority = new_authority(lifetime=timedelta(days=500), now=START)
    old = Kept(
        authority=authority,
        bundle=(authority.bundle,),
        leaf=authority.issue([NAME], now=START),
    )

    first = done(old, days=50)  # 450 days are left, and a leaf and its renewal take 455
    second = look(first.kept, days=50, trusted=False)
    third = done(first.kept, days=51, trusted=True)
    fourth = done(third.kept, days=501)

    assert (first.cause, third.cause) == (Cause.AUTHORITY, Cause.TRUSTED)
    assert first.kept.authority is not None
    new = first.kept.authority.bundle
    assert first.kept.bundle == (new, authority.bundle)
    assert first.kept.leaf == old.leaf
    assert awaits_trust(first.kept)
    assert second is None
    assert third.kept.bundle == (new, authority.bundle)
    assert third.kept.leaf is not None
    assert is_signed_by(third.kept.leaf.certificate, new)
    assert not awaits_trust(third.kept)
    assert fourth.kept.bundle == (new,)


def test_leaf_that_nobody_accepts_is_replaced_at_once() -> None:
    """Expired, or of a Service with another name: waiting would help nobody."""
    kept = fresh()
    renamed = Rules(names=("other.vramgate-system.svc",))
    known = Known(now=START, is_trusted=False)

    expired = done(kept, days=366, trusted=False)
    other = renewed(kept, rules=renamed, known=known)

    assert other is not None
    assert (expired.cause, other.cause) == (Cause.UNFIT, Cause.UNFIT)
    for renewal, name in ((expired, NAME), (other, renamed.names[0])):
        assert renewal.kept.authority == kept.authority
        assert renewal.kept.leaf is not None
        assert has_names(renewal.kept.leaf.certificate, [name])


def test_everything_expired_is_made_anew_at_once() -> None:
    """A cluster that slept for eleven years wakes up with a CA and a leaf of today."""
    kept = fresh()

    renewal = done(kept, days=11 * 365, trusted=False)

    assert renewal.kept.authority != kept.authority
    assert len(renewal.kept.bundle) == 1
    assert renewal.kept.leaf is not None
    assert is_valid_at(renewal.kept.leaf.certificate, START + timedelta(days=11 * 365))
    assert not awaits_trust(renewal.kept)


def test_certificates_of_tomorrow_are_made_anew() -> None:
    """A clock that was far ahead when they were made, and was set right."""
    kept = fresh()

    renewal = done(kept, days=-2)

    assert renewal.kept.leaf is not None
    assert is_valid_at(renewal.kept.leaf.certificate, START - timedelta(days=2))


def test_deleted_secret_is_a_new_ca_while_the_old_leaf_is_served() -> None:
    """Deleting it is how a person asks for a new CA: no review is lost for it."""
    before = fresh()

    renewal = done(NOTHING, days=1, trusted=False, before=before)

    assert renewal.cause is Cause.ABSENT
    assert renewal.kept.authority not in (None, before.authority)
    assert renewal.kept.bundle[1:] == before.bundle
    assert renewal.kept.leaf == before.leaf
    assert done(renewal.kept, days=1).cause is Cause.TRUSTED


def test_bundle_does_not_grow_without_end() -> None:
    """A Secret that is deleted every day leaves the newest few CAs in the registration."""
    kept = fresh()
    for day in range(MAX_AUTHORITIES + 3):
        kept = done(NOTHING, days=day, before=kept).kept
        kept = done(kept, days=day).kept

    assert len(kept.bundle) == MAX_AUTHORITIES
    assert kept.authority is not None
    assert kept.bundle[0] == kept.authority.bundle


def rsa_key() -> bytes:
    """Return the key of somebody else's CA."""
    return rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def encoded(content: bytes) -> str:
    """Return *content* as the data of a Secret has it."""
    return base64.b64encode(content).decode()


STRANGER = new_authority(now=START)
DAMAGE: Mapping[str, Mapping[str, object]] = {
    "no leaf": {"tls.crt": "", "tls.key": ""},
    "half of the keys": {"tls.key": "", "ca.key": ""},
    "the other half": {"tls.crt": "", "ca.crt": ""},
    "half of a certificate": {
        "tls.crt": encoded(STRANGER.issue([NAME], now=START).certificate[:200])
    },
    "no base64": {"tls.crt": "%%%"},
    "no certificate": {"tls.crt": encoded(b"rubbish")},
    "key of another leaf": {"tls.key": encoded(STRANGER.issue([NAME], now=START).key)},
    "leaf of another CA": {
        "tls.crt": encoded((leaf := STRANGER.issue([NAME], now=START)).certificate),
        "tls.key": encoded(leaf.key),
    },
    "no CA": {"ca.crt": ""},
    "CA is rubbish": {"ca.crt": encoded(b"-----BEGIN CERTIFICATE-----\nAAAA\n")},
    "CA is no CA": {"ca.crt": encoded(STRANGER.issue([NAME], now=START).certificate)},
    "no key of the CA": {"ca.key": ""},
    "key of another CA": {"ca.key": encoded(STRANGER.pair.key)},
    "RSA key": {"ca.key": encoded(rsa_key())},
    "too long": {"ca.key": "A" * (1 << 20)},
    "not text": {"ca.key": 7},
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("remembers", [True, False])
def test_damaged_secret_is_mended_in_one_step(name: str, remembers: bool) -> None:
    """Afterwards a client accepts the leaf, and nothing is left to do but to wait for trust."""
    kept = fresh()
    damaged = read_kept({**kept.data(), **DAMAGE[name]})
    before = kept if remembers else NOTHING

    renewal = look(damaged, trusted=False, before=before)
    mended = kept if renewal is None else read_kept(renewal.kept.data())

    assert look(mended, trusted=False, before=before) is None
    assert mended.leaf is not None
    assert not mended.flaws
    assert any(is_signed_by(mended.leaf.certificate, one) for one in mended.bundle)
    if renewal is not None:
        assert renewal.cause in (Cause.DAMAGED, Cause.UNFIT)
    if remembers:
        assert mended.leaf == kept.leaf or mended.authority == kept.authority


def test_what_is_kept_shows_no_key() -> None:
    """Neither a log line nor a failed assertion may hold one."""
    kept = fresh()

    assert "PRIVATE" not in repr(kept)
    assert kept.leaf is not None
    assert kept.leaf.key.decode()[40:80] not in repr(kept)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.floats(min_value=0.01, max_value=80), min_size=30, max_size=120))
def test_every_client_accepts_the_served_leaf_at_all_times(steps: list[float]) -> None:
    """Whenever somebody looks in, the registration's CAs are those of the look before or now."""
    rules = Rules(
        names=(NAME,),
        renew=timedelta(days=90),
        leaf=timedelta(days=365),
        authority=timedelta(days=1000),
    )
    now, kept = START, NOTHING
    injected: tuple[bytes, ...] = ()
    for step in steps:
        now += timedelta(days=step)
        known = Known(now=now, is_trusted=injected == kept.bundle)
        renewal = renewed(kept, rules=rules, known=known)
        trusted_before, kept = injected, renewal.kept if renewal else kept
        injected = kept.bundle
        assert kept.leaf is not None
        for bundle in (trusted_before or injected, injected):
            lasting = [one for one in bundle if is_valid_at(one, now)]
            assert any(is_signed_by(kept.leaf.certificate, one) for one in lasting)
        assert is_valid_at(kept.leaf.certificate, now)
