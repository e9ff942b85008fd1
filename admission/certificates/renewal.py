"""Decide what the Secret should hold.

    Kept, what was known before, now -> Kept to write and why, or nothing to do

Pure: the clock is an argument (the API server's, which judges the certificates), nothing is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from admission.certificate_settings import CertificateSettings
from admission.certificates.issuing import Authority, KeyPair, new_authority
from admission.certificates.kept import Kept, expires, has_names, is_signed_by, is_valid_at, merged


class Cause(StrEnum):
    """Why the Secret is written, in words for a log."""

    ABSENT = "there was none"
    DAMAGED = "it was damaged"
    AUTHORITY = "the CA is about to expire"
    TRUSTED = "the new CA is trusted by now"
    LEAF = "the certificate is about to expire"
    UNFIT = "the certificate has expired, or is not for these names"
    DROPPED = "a CA has expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which certificates are made, and how long before their end."""

    names: tuple[str, ...]
    renew: timedelta = timedelta(days=90)
    leaf: timedelta = timedelta(days=365)
    authority: timedelta = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """What to write, and why."""

    kept: Kept
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a decision rests on, beside what the Secret holds."""

    now: datetime
    before: Kept = field(default_factory=Kept)
    """What was served before the Secret was deleted or damaged."""
    is_trusted: bool
    """Whether every client has trusted the whole bundle for long enough."""


def rules_of(settings: CertificateSettings) -> Rules:
    """Return the rules of *settings*."""
    service = settings.service
    name = f"{service.name}.{service.namespace}.svc"
    return Rules(
        names=(name, f"{name}.cluster.local"),
        renew=timedelta(days=settings.renew_days),
        leaf=timedelta(days=settings.leaf_days),
        authority=timedelta(days=settings.authority_days),
    )


def renewed(kept: Kept, *, rules: Rules, known: Known) -> Renewal | None:
    """Return what the Secret should hold instead of *kept*, or None if that is well.

    A CA is replaced while it still outlasts one more leaf. The old CA stays in the bundle, and the
    old leaf is served until everybody trusts the new CA; only one that nobody can accept any more
    is replaced at once. A Secret that is gone is a new CA too: that is how to ask for one.
    """
    authority, cause = _authority(kept, rules=rules, now=known.now)
    is_new = authority is not kept.authority
    sources = (
        (authority.bundle,),
        kept.bundle,
        known.before.bundle if is_new else (),
    )
    bundle = merged(sources, now=known.now)
    leaf = _fit_leaf((kept.leaf, known.before.leaf), bundle, rules=rules, known=known)
    if leaf is None:
        leaf = _issued(authority, rules, known)
        cause = cause or (Cause.UNFIT if kept.leaf else Cause.DAMAGED)
    elif not is_signed_by(leaf.certificate, authority.bundle):
        if known.is_trusted and not is_new:
            leaf, cause = _issued(authority, rules, known), Cause.TRUSTED
    elif expires(leaf.certificate) - known.now < rules.renew:
        leaf, cause = _issued(authority, rules, known), cause or Cause.LEAF
    if cause is None and leaf is not kept.leaf:
        cause = Cause.DAMAGED
    if cause is None and bundle != kept.bundle:
        cause = Cause.DROPPED
    if cause is None and kept.flaws:
        cause = Cause.DAMAGED
    if cause is None:
        return None
    return Renewal(kept=Kept(authority=authority, bundle=bundle, leaf=leaf), cause=cause)


def awaits_trust(kept: Kept) -> bool:
    """Return whether the leaf of a new CA is to follow once that is trusted."""
    if kept.authority is None or kept.leaf is None:
        return False
    return not is_signed_by(kept.leaf.certificate, kept.authority.bundle)


def _authority(kept: Kept, *, rules: Rules, now: datetime) -> tuple[Authority, Cause | None]:
    """Return the CA that signs from now on, and why it is another."""
    found = kept.authority
    if found is None:
        is_empty = not (kept.bundle or kept.leaf or kept.flaws)
        cause = Cause.ABSENT if is_empty else Cause.DAMAGED
    elif is_valid_at(found.bundle, now) and expires(found.bundle) - now >= rules.leaf + rules.renew:
        return found, None
    else:
        cause = Cause.AUTHORITY
    return new_authority(lifetime=rules.authority, now=now), cause


def _fit_leaf(
    candidates: tuple[KeyPair | None, ...], bundle: tuple[bytes, ...], *, rules: Rules, known: Known
) -> KeyPair | None:
    """Return the first leaf that clients who trust *bundle* accept now, for all our names."""
    for leaf in candidates:
        if (
            leaf is not None
            and is_valid_at(leaf.certificate, known.now)
            and has_names(leaf.certificate, rules.names)
            and any(is_signed_by(leaf.certificate, authority) for authority in bundle)
        ):
            return leaf
    return None


def _issued(authority: Authority, rules: Rules, known: Known) -> KeyPair:
    return authority.issue(rules.names, lifetime=rules.leaf, now=known.now)
