"""`vramgate trace`: a module of the user's own, imported in a child process and nowhere else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from admission.cli import main
from admission.commands.trace import image_size_of
from tests.sweeping import spread

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


class Supervised(nn.Module):
    def __init__(self):
        super().__init__()
        import torchvision

        self.net = torchvision.models.resnet18()

    def forward(self, images, labels):
        logits = self.net(images)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def images(size):
    return torch.rand(size, 3, 224, 224), torch.randint(0, 1000, (size,))
"""

FIGURES = ("least", "enough", "peak", "most", "breakdown")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the current folder."""
    (tmp_path / "mynet.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return "mynet"


@pytest.mark.parametrize(
    ("given", "read"), [("224", [3, 224, 224]), ("20,10", [3, 20, 10]), ("1,8,8", [1, 8, 8])]
)
def test_images_have_three_channels_and_are_square_unless_told(given: str, read: list[int]) -> None:
    """`--image-size 224` is what everybody types."""
    assert image_size_of(given) == read


@pytest.mark.parametrize("name", spread(["make", "instance"], of=["instance"]))
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
    """The function for the loss gets the model and what the function for the inputs returned.

    The module is imported in a child process of the command only, as is every framework.
    """
    arguments = ["--inputs", f"{module}:batch", "--loss", f"{module}:loss", "--batch-size", "8"]

    status = main(["trace", f"{module}:Net", *arguments, "-o", "jsonl"])

    answer = json.loads(capfd.readouterr().out)
    assert (status, answer["id"]) == (0, f"{module}:Net")
    assert answer["estimate"]["breakdown"]["inputs"] >= 8 * 3 * 16 * 16 * 4
    assert module not in sys.modules
    assert "estimator.frontends.pytorch.user_module" not in sys.modules


@pytest.mark.parametrize(
    ("target", "message"),
    spread(
        [
            ("nowhere:Net", "import of 'nowhere' fails with ModuleNotFoundError"),
            ("mynet:Nett", "close matches: Net"),
            ("mynet:batch", "name a function without arguments that returns the model"),
            ("mynet:Net", "--image-size"),
        ],
        of=[("mynet:Nett", "close matches: Net"), ("mynet:Net", "--image-size")],
    ),
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


def test_a_module_of_the_zoo_needs_the_same_by_name(
    module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both commands ask the same cuDNN for each convolution's plans."""
    document = {
        "framework": "pytorch",
        "model": {"source": "torchvision", "name": "resnet18"},
        "input": {"batchSize": 32, "imageSize": [3, 224, 224]},
    }
    Path("spec.json").write_text(json.dumps(document))
    fed = ["--inputs", f"{module}:images", "--batch-size", "32"]

    assert main(["trace", f"{module}:Supervised", *fed, "--gpu", "t4", "-o", "json"]) == 0
    by_module = json.loads(capfd.readouterr().out)
    assert main(["estimate", "spec.json", "--gpu", "t4", "-o", "json"]) == 0
    by_name = json.loads(capfd.readouterr().out)

    assert {part: by_module[part] for part in FIGURES} == {part: by_name[part] for part in FIGURES}
    assert _about_cudnn(by_module) == _about_cudnn(by_name)


def _about_cudnn(estimate: dict[str, Any]) -> list[dict[str, str]]:
    """Return what the estimate says of who was asked about convolutions: something."""
    notes = [note for note in estimate["assumptions"] if "cuDNN" in note["reason"]]
    assert notes
    return notes


def test_a_trace_file_answers_what_the_command_did(
    module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--write` leaves a file whose estimate has the same figures, without the module."""
    arguments = ["--image-size", "3,16,16", "--batch-size", "4", "--gpu", "t4", "-o", "json"]
    assert main(["trace", f"{module}:Net", *arguments, "--write", "net.trace.gz"]) == 0
    traced = json.loads(capfd.readouterr().out)
    Path("mynet.py").unlink()

    assert main(["estimate", "net.trace.gz", "--gpu", "t4", "-o", "json"]) == 0

    found = json.loads(capfd.readouterr().out)
    assert {part: found[part] for part in FIGURES} == {part: traced[part] for part in FIGURES}
    assert found["spec"]["model"]["source"] == "trace"
    assert found["method"] == "trace"
    assert Path("net.trace.gz").stat().st_size < 4096


@pytest.mark.parametrize(
    "arguments", [["--gpu", "t4", "--gpu", "l4"], ["--gpu", "t4", "--image-size", "3,8,8"]]
)
def test_a_trace_file_that_cannot_be_written_is_bad_usage(
    module: str, arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """One file is of one kind of card, in a folder that is there."""
    status = main(["trace", f"{module}:Net", *arguments, "--write", "nowhere/net.trace.gz"])

    err = capfd.readouterr().err
    assert status == 2
    assert "one kind of card" in err or "nowhere/net.trace.gz: No such file" in err
    assert "Traceback" not in err
