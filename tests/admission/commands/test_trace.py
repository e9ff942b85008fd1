"""`vramgate trace`: a module of the user's own, imported in a child process and nowhere else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from admission.cli import main

pytestmark = [pytest.mark.torch, pytest.mark.slow]

MODULE = """
import torch
from torch import nn

print("imported")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def make():
    return Net().cuda()


def batch(size):
    return torch.rand(size, 3, 16, 16), torch.randint(0, 10, (size,))


def loss(model, batch):
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


instance = Net()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the current folder."""
    (tmp_path / "mynet.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "mynet"


@pytest.mark.parametrize("name", ["make", "instance"])
def test_what_builds_a_module_and_an_instance_are_traced(
    module: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The answer is that of `vramgate estimate`; what the module prints goes to stderr."""
    arguments = ["--image-size", "3,16,16", "--batch-size", "4", "--gpu", "t4", "-o", "json"]

    status = main(["trace", f"{module}:{name}", *arguments])

    out, err = capfd.readouterr()
    estimate = json.loads(out)
    assert (status, estimate["kind"]) == (0, "Estimate")
    assert estimate["spec"]["model"]["name"] == f"{module}:{name}"
    weights = 4 * (8 * 3 * 9 + 8 + 8 * 10 + 10)
    assert weights <= estimate["breakdown"]["parameters"] <= weights + 4 * 512
    assert "imported" in err


def test_inputs_and_loss_are_the_users_own(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The function for the loss gets the model and what the function for the inputs returned."""
    arguments = ["--inputs", f"{module}:batch", "--loss", f"{module}:loss", "--batch-size", "8"]

    status = main(["trace", f"{module}:Net", *arguments, "-o", "jsonl"])

    answer = json.loads(capfd.readouterr().out)
    assert (status, answer["id"]) == (0, f"{module}:Net")
    assert answer["estimate"]["breakdown"]["inputs"] >= 8 * 3 * 16 * 16 * 4


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere:Net", "import of 'nowhere' fails with ModuleNotFoundError"),
        ("mynet:Nett", "close matches: Net"),
        ("mynet:batch", "name a function without arguments that returns the model"),
        ("mynet:Net", "--image-size"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_give(
    module: str, target: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each way to name no module, and a module nobody feeds, is one message and exit status 2."""
    status = main(["trace", target])

    err = capfd.readouterr().err
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_this_process_imports_neither_the_module_nor_a_framework(
    module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The module is imported in a child process of the command only."""
    main(["trace", f"{module}:Net", "--image-size", "3,16,16"])

    capfd.readouterr()
    assert module not in sys.modules
    assert "estimator.frontends.pytorch.user_module" not in sys.modules
