"""The Hugging Face Hub, asked through huggingface_hub: a real HTTP server stands in for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from admission.errors import SettingsError
from admission.source_settings import HubSettings, SourceSettings
from admission.sources.references import parse_reference
from admission.sources.setup import fetcher_of
from admission.values import Document
from tests.admission.sources.servers import Answer, body, endless, held, redirect, serving

CONFIG = json.dumps({"model_type": "llama", "hidden_size": 8, "torch_dtype": "bfloat16"})
RESOLVE = "/org/model/resolve/main/config.json"


async def ask(
    answers: Mapping[str, Answer],
    reference: str = "hf://org/model",
    *,
    token_file: Path | None = None,
    seconds: float = 2.0,
) -> Document:
    """Return what a Hub with *answers* says of *reference*."""
    with serving(dict(answers)) as (base, _):
        hub = HubSettings(endpoint=base, token_file=token_file)
        fetcher = fetcher_of(SourceSettings(hub=hub, seconds=seconds), client=None)
        found = await fetcher.fetch([reference], namespace="default")
    return found[reference]


async def test_configuration_is_fetched() -> None:
    """By its address on the Hub, and by that of a revision."""
    found = await ask({RESOLVE: body(CONFIG)})
    assert found == Document(files={"config.json": CONFIG})

    at = await ask({"/org/model/resolve/v2/config.json": body(CONFIG)}, "hf://org/model@v2")
    assert at.files == {"config.json": CONFIG}


async def test_hub_that_no_resolver_knows_says_so() -> None:
    """DNS that fails costs the document, not the review."""
    hub = HubSettings(endpoint="https://hub.invalid")
    fetcher = fetcher_of(SourceSettings(hub=hub), client=None)

    found = await fetcher.fetch(["hf://org/model"], namespace="default")

    assert "has no address" in (found["hf://org/model"].problem or "")


async def test_repository_of_an_adapter_says_so() -> None:
    """It has no configuration of its own; what it adapts is in another file."""
    adapter = json.dumps({"base_model_name_or_path": "org/base"})
    found = await ask({"/org/model/resolve/main/adapter_config.json": body(adapter)})
    assert found == Document(files={"adapter_config.json": adapter})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (body("", status=404), "is not there"),
        (body("", status=401), "needs a token"),
        (body("", status=403), "may not be read"),
        (body("", status=429), "too often"),
        (body("", status=500), "status 500"),
        (body(b"\xff\xfe"), "no text in UTF-8"),
        (endless(b"x" * 65536), "longer than"),
        (redirect("https://169.254.169.254/latest"), "never asked"),
        (redirect("http://169.254.169.254/latest"), "not https"),
        (body("x", length=10**12), "peer closed"),
    ],
)
async def test_what_cannot_be_had_says_why(answer: Answer, problem: str) -> None:
    """A reading goes on without it, with the reason."""
    found = await ask({RESOLVE: answer})
    assert found.files == {}
    assert problem in found.problem


async def test_slow_hub_is_given_up_in_time() -> None:
    """Its answer may come for the next job; this one goes on."""
    released = threading.Event()
    try:
        found = await ask({RESOLVE: held(released)}, seconds=0.3)
    finally:
        released.set()
    assert "in time" in found.problem or "took longer" in found.problem


async def test_token_is_sent_and_nobody_else_sees_it(tmp_path: Path) -> None:
    """Private models are read with the operator's token, which redirects do not carry on."""
    seen: list[str | None] = []
    token = tmp_path / "token"
    token.write_text("hf_secret\n", "utf-8")

    def note(handler: object) -> None:
        seen.append(handler.headers.get("Authorization"))  # type: ignore[attr-defined]
        body(CONFIG)(handler)  # type: ignore[arg-type]

    await ask({RESOLVE: note}, token_file=token)
    await ask({RESOLVE: note})
    assert seen == ["Bearer hf_secret", None]


async def test_token_is_not_carried_elsewhere(tmp_path: Path) -> None:
    """A redirect to another origin, a port is enough, is followed without it."""
    seen: list[str | None] = []
    token = tmp_path / "token"
    token.write_text("hf_secret", "utf-8")

    def note(handler: object) -> None:
        seen.append(handler.headers.get("Authorization"))  # type: ignore[attr-defined]
        body(CONFIG)(handler)  # type: ignore[arg-type]

    with serving({"/there": note}) as (other, _):
        found = await ask({RESOLVE: redirect(f"{other}/there")}, token_file=token)

    assert found.files == {"config.json": CONFIG}
    assert seen == [None]


@pytest.mark.parametrize("content", ["hf_one\nhf_two", "hf_ä", "hf one"])
def test_token_that_is_no_header_is_a_settings_error(tmp_path: Path, content: str) -> None:
    """Libraries quote a header they refuse: the token would stand in a message."""
    token = tmp_path / "token"
    token.write_text(content, "utf-8")
    with pytest.raises(SettingsError, match="one word") as caught:
        fetcher_of(SourceSettings(hub=HubSettings(token_file=token)), client=None)
    assert "hf" not in str(caught.value).replace(str(token), "")


UNTYPED = json.dumps({"model_type": "llama"})
SUMMARY = "/api/models/org/model/revision/main?expand=safetensors"


async def test_stored_types_are_asked_of_the_hub() -> None:
    """Where the configuration tells no dtype: in one small answer, whatever the number of files."""
    summary = json.dumps({"safetensors": {"parameters": {"BF16": 12, "F32": 1}, "total": 13}})
    found = await ask({RESOLVE: body(UNTYPED), SUMMARY: body(summary)})
    assert json.loads(found.files["safetensors"]) == {"parameters": {"BF16": 12, "F32": 1}}


@pytest.mark.parametrize(
    "answer",
    [
        body("", status=500),
        body('{"a":' * 100_000),
        body('{"safetensors": {"parameters": {"BF16": "many"}}}'),
        body('{"safetensors": [1]}'),
        body("[]"),
        body(b"\xff"),
        endless(b"x" * 65536),
        redirect("https://169.254.169.254/"),
    ],
)
async def test_configuration_counts_without_its_summary(answer: Answer) -> None:
    """What came before a failure is kept."""
    found = await ask({RESOLVE: body(UNTYPED), SUMMARY: answer})
    assert found == Document(files={"config.json": UNTYPED})


async def test_answers_are_remembered() -> None:
    """A gang of jobs asks the Hub once."""
    with serving({RESOLVE: body(CONFIG)}) as (base, asked):
        settings = SourceSettings(hub=HubSettings(endpoint=base))
        fetcher = fetcher_of(settings, client=None)
        for _ in range(3):
            await fetcher.fetch(["hf://org/model"], namespace="default")
    assert asked == [RESOLVE]


def test_token_that_cannot_be_read_is_a_settings_error(tmp_path: Path) -> None:
    """Said at the start, not at the first private model."""
    hub = HubSettings(token_file=tmp_path / "none")
    with pytest.raises(SettingsError, match=r"sources\.hub\.tokenFile"):
        fetcher_of(SourceSettings(hub=hub), client=None)


@pytest.mark.parametrize(
    "text",
    [
        "hf://../etc/passwd",
        "hf://a/b/c",
        "hf://",
        "hf://org/model@../../x",
        "configmap/UPPER",
        "configmap/a/../b",
        "secret/x",
        "http://example.org/x",
        "https://user:password@example.org/",
        "https://",
        "https://exa mple.org/",
        "file:///etc/passwd",
        "hf://" + "x" * 2000,
    ],
)
def test_references_that_are_none(text: str) -> None:
    """Nobody is asked for what Kubernetes and the Hub would not accept."""
    with pytest.raises(ValueError, match=r"."):
        parse_reference(text)
