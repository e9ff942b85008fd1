"""The chart says what the code says: kinds, owners, resources, names, settings, and made files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from admission.config import Settings
from admission.detect.annotation import SPEC, SPEC_REF
from admission.inventory import MODE_LABEL, STEER_LABEL
from admission.steer.permission import FIXED_OWNERS
from admission.workloads import KINDS
from admission.workloads.annotated import FRACTION, MEMORY
from admission.workloads.resources import (
    DEVICE_CLASS,
    GPU,
    MIG_PREFIX,
    OTHER_VENDORS,
    SHARED,
    WHOLE_GPUS,
)
from admission.workloads.shares import _FAMILIES
from tests.chart.generating import INSTALL, SCHEMA, install, schema
from tests.chart.rendering import CHART, Document, documents, of_kind
from tests.chart.samples import SAMPLES
from tests.e2e.rest import plural

pytestmark = pytest.mark.e2e

VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"


def resources_of(configuration: Document) -> set[tuple[str, str]]:
    """Return the group and resource of every rule."""
    return {
        (group, resource)
        for webhook in configuration["webhooks"]
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def expression(configuration: Document, name: str) -> str:
    """Return the first condition of that *name*."""
    return next(
        str(condition["expression"])
        for webhook in configuration["webhooks"]
        for condition in webhook["matchConditions"]
        if condition["name"] == name
    )


def test_install_yaml_is_what_the_chart_renders() -> None:
    """`make chart` writes it; nobody edits it."""
    assert INSTALL.read_text() == install()


def test_schema_of_config_is_that_of_the_settings() -> None:
    """A new setting is a new value, and an unknown one is refused by both."""
    assert SCHEMA.read_text() == schema()


def test_every_value_has_a_default_and_a_schema() -> None:
    """What values.yaml lists and what the schema allows are the same keys."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    properties: dict[str, Any] = json.loads(SCHEMA.read_text())["properties"]

    assert values.keys() == properties.keys() - {"global"}
    for section in ("image", "agent", "webhooks", "certificates", "networkPolicy", "metrics"):
        assert values[section].keys() == properties[section]["properties"].keys()
    Settings.model_validate(values["config"])


def test_every_kind_that_is_read_is_sent() -> None:
    """But for templates of others, which only `explain` judges."""
    found = documents()
    named = {
        (group, plural(kind)): handling
        for (group, kind), handling in KINDS.items()
        if not handling.explain_only
    }

    assert resources_of(of_kind(found, VALIDATING)) == named.keys()
    assert resources_of(of_kind(found, MUTATING)) == {
        name for name, handling in named.items() if not handling.observe_only
    }


def test_there_is_a_sample_of_every_kind_that_is_sent() -> None:
    """So that every condition is tried."""
    sampled = {(each.group, plural(each.kind)) for each in SAMPLES}

    assert sampled == resources_of(of_kind(documents(), VALIDATING))


def test_owners_whose_pods_are_steered_are_those_of_the_code() -> None:
    """`/mutate` is asked about pods that it may steer, and about no others."""
    condition = expression(of_kind(documents(), MUTATING), "not-steered-by-its-owner")
    owners = set(re.findall(r"'([\w.-]+/\w+)'", condition))

    assert owners == {"/".join(owner) for owner in FIXED_OWNERS}


def test_every_resource_that_means_a_gpu_is_looked_for() -> None:
    """Those of each scheduler and vendor that the reader knows."""
    condition = expression(of_kind(documents(), VALIDATING), "asks-for-gpu")
    (pattern,) = re.findall(r"k\.matches\('([^']+)'\)", condition)
    known = [GPU, SHARED, f"{MIG_PREFIX}1g.10gb", *OTHER_VENDORS, *_FAMILIES]
    known += [WHOLE_GPUS, f"{DEVICE_CLASS}mig.nvidia.com"]
    known += [name for names in _FAMILIES.values() for name in names]

    looked_for = re.compile(pattern.replace(r"\\", "\\"))
    assert [name for name in known if not looked_for.match(name)] == []
    assert not looked_for.match("cpu")
    assert not looked_for.match("rdma/hca")
    assert not looked_for.match(f"{DEVICE_CLASS}rdma.example.com")
    for annotation in (FRACTION, MEMORY):
        assert f"'{annotation}'" in condition


def test_changes_of_our_names_are_looked_for() -> None:
    """The annotations and labels that the code reads from an object."""
    condition = expression(of_kind(documents(), VALIDATING), "something-we-read-changed")

    for name in (SPEC, SPEC_REF, MODE_LABEL, STEER_LABEL):
        assert f"'{name}'" in condition
