"""Where the certificate comes from follows from what is said, and contradictions are problems."""

from __future__ import annotations

import pytest

from admission.certificate_settings import CertificateMode
from admission.config import parse_settings
from admission.errors import SettingsError

FILES, BUILTIN = CertificateMode.FILES, CertificateMode.BUILTIN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", BUILTIN),
        ("server: {port: 8443}", BUILTIN),
        ("server: {certFile: a.crt}", FILES),
        ("server: {keyFile: a.key}", FILES),
        ("certificates: {mode: files}", FILES),
        ("certificates: {mode: builtin}", BUILTIN),
        ("server: {certFile: a.crt}\ncertificates: {mode: files}", FILES),
    ],
)
def test_files_are_read_where_they_are_named(text: str, expected: CertificateMode) -> None:
    """Everybody else has certificates without asking for them."""
    assert parse_settings(text).certificate_mode is expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("certificates: {mode: builtin}\nserver: {certFile: a}", "mode builtin does not go with"),
        ("certificates: {mode: cert-manager}", "certificates.mode: 'cert-manager' is not one of"),
        ("certificates: {renewDays: 365}", "renewDays is less than leafDays"),
        ("certificates: {authorityDays: 455}", "authorityDays is more than leafDays and renewDays"),
        ("certificates: {secret: {name: a/b}}", "certificates.secret.name"),
        ("certificates: {service: {name: Upper}}", "certificates.service.name"),
        ("certificates: {webhooks: [vramgate, '']}", "certificates.webhooks[1]"),
        ("certificates: {webhooks: []}", "certificates.webhooks"),
        ("certificates: {propagationSeconds: -1}", "certificates.propagationSeconds"),
        ("certificates: {renew: 5}", "certificates.renew: unknown key"),
    ],
)
def test_contradictions_are_problems_with_their_path(text: str, problem: str) -> None:
    """Before anything is served, and before anything is written to the cluster."""
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)

    assert problem in str(caught.value)


def test_defaults_are_those_of_the_chart() -> None:
    """A year and a quarter of notice, ten years, a minute to be trusted."""
    settings = parse_settings("").certificates

    assert (settings.leaf_days, settings.renew_days, settings.authority_days) == (365, 90, 3650)
    assert settings.propagation_seconds == 60
    assert settings.webhooks == ("vramgate",)
    assert (settings.secret.namespace, settings.secret.name) == (
        "vramgate-system",
        "vramgate-certificates",
    )
    assert (settings.service.namespace, settings.service.name) == ("vramgate-system", "vramgate")
