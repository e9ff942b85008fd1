"""Scripts that cannot be traced: where, what, and what to change."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from estimator.errors import EstimateTimeoutError, EstimatorError, SpecError, UnsupportedJobError
from tests.estimator.frontends.script.scripts import run, script_at

pytestmark = [pytest.mark.torch, pytest.mark.slow]

MODEL = """
import torch
model = torch.nn.Linear(8, 8).cuda()
x = torch.rand(4, 8, device="cuda")
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "kind", "message", "hint"),
    [
        ("scale = 1 / model(x).sum().item()", SpecError, "ZeroDivisionError", "train.py:5"),
        (
            "torch.bincount(model(x).long().flatten())",
            UnsupportedJobError,
            "'aten.bincount' depends on values",
            "bound them",
        ),
        (
            "from torch.distributed.fsdp import FullyShardedDataParallel as F; F(model)",
            UnsupportedJobError,
            "FSDP has no stand-in",
            "JobSpec",
        ),
        (
            "import transformers; transformers.AutoModel.from_pretrained('nobody/nothing')",
            UnsupportedJobError,
            "configuration of 'nobody/nothing'",
            "config.json",
        ),
        ("import nowhere_to_be_found", SpecError, "ModuleNotFoundError", "install it"),
        ("open('images.bin')", SpecError, "FileNotFoundError", "data"),
    ],
)
def test_the_line_the_operation_and_what_to_change_are_named(
    tmp_path: Path, line: str, kind: type[EstimatorError], message: str, hint: str
) -> None:
    """The place is in the person's own file, whoever raised."""
    with pytest.raises(kind) as raised:
        run(script_at(tmp_path, MODEL + line))

    assert raised.value.message.startswith("train.py:5: ")
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")


def test_a_script_that_never_steps_is_ended_with_where_it_was(tmp_path: Path) -> None:
    """Loops that go on after errors do not hold it."""
    loop = "while True:\n    try:\n        model = model\n    except Exception:\n        pass\n"

    with pytest.raises(EstimateTimeoutError, match=r"train.py:\d+: no step .* within 1 s"):
        run(script_at(tmp_path, MODEL + loop), seconds=1.0)


@pytest.mark.parametrize(
    ("line", "message"),
    [("", "ended before it called a model"), ("import sys; sys.exit(3)", "status 3")],
)
def test_a_script_that_calls_no_model_says_so(tmp_path: Path, line: str, message: str) -> None:
    """With how its arguments are given."""
    with pytest.raises(SpecError, match=message) as raised:
        run(script_at(tmp_path, MODEL + line))

    assert "--" in (raised.value.hint or "")


def test_torch_is_as_it_was_afterwards(tmp_path: Path) -> None:
    """Nothing of the card that looked present stays, whatever the script did."""
    before = (
        torch.Tensor.to,
        torch.Tensor.device,
        torch.cuda.is_available,
        torch.load,
        torch.tensor,
    )

    with pytest.raises(SpecError):
        run(script_at(tmp_path, MODEL + "raise ValueError('mine')"))

    after = (
        torch.Tensor.to,
        torch.Tensor.device,
        torch.cuda.is_available,
        torch.load,
        torch.tensor,
    )
    assert before == after
    assert torch.zeros(2).device.type == "cpu"
