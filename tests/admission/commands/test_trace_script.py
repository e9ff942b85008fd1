"""`vramgate trace train.py`: a script in its sandbox, and the Trace file it leaves."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from textwrap import dedent

import pytest

from admission.cli import main
from admission.commands.trace import is_script

pytestmark = [pytest.mark.torch, pytest.mark.slow]

TRAINING = """
    import json
    import os
    import sys
    import torch
    import torchvision

    batch = int(sys.argv[1])
    os.makedirs("runs/first", exist_ok=True)
    with open("runs/first/log.json", "w") as file:
        json.dump({"batch": batch}, file)
    assert json.load(open("runs/first/log.json")) == {"batch": batch}
    assert os.listdir("runs") == ["first"]
    print(torch.cuda.get_device_name())
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1000):
        images = torch.rand(batch, 3, 64, 64).cuda()
        labels = torch.randint(0, 10, (batch,)).cuda()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.save(model.state_dict(), "runs/first/model.pt")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> None:
    """Leave a script in *folder*."""
    (folder / "train.py").write_text(dedent(text))


def test_a_script_is_a_file_and_a_module_is_not(tmp_path: Path) -> None:
    """So both have the same command."""
    (tmp_path / "job").write_text("")

    assert is_script("train.py")
    assert is_script(str(tmp_path / "job"))
    assert not is_script("package.module:name")


def test_the_trace_file_has_the_estimate_of_the_script(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """On each card; what it writes is found again and is gone with the trace."""
    write(folder, TRAINING)
    options = ["--gpu", "t4", "--write", "job.trace.gz", "-o", "json"]

    status = main(["trace", "train.py", *options, "--", "16"])

    out, err = capfd.readouterr()
    assert status == 0, err
    estimate = json.loads(out)
    assert estimate["spec"]["input"]["batchSize"] == 16
    assert estimate["spec"]["training"]["optimizer"]["name"] == "adamw"
    assert "t4" in err.lower()  # what the script prints
    assert sorted(path.name for path in folder.iterdir()) == ["job.trace.gz", "train.py"]
    main(["estimate", "job.trace.gz", "--gpu", "t4", "-o", "json"])
    recorded = json.loads(capfd.readouterr().out)
    for figure in ("least", "enough", "peak", "most", "breakdown"):
        assert recorded[figure] == estimate[figure]


def test_cards_of_two_kinds_are_two_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A T4 has no flash kernels; the answers come in the order of the cards."""
    write(folder, TRAINING)

    status = main(
        ["trace", "train.py", *("--gpu", "t4", "--gpu", "h100-sxm5-80gb"), "-o", "json", "4"]
    )

    names = [each["device"]["name"] for each in json.loads(capfd.readouterr().out)]
    assert (status, names) == (0, ["t4", "h100-sxm5-80gb"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import os; os.remove('data.bin')", "train.py:1: the script changes data.bin"),
        ("import os; os.system('true')", "train.py:1: the script starts"),
    ],
)
def test_what_a_trace_does_not_let_is_named_with_what_lets_it(
    folder: Path, line: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files and programs."""
    write(folder, line)
    (folder / "data.bin").write_bytes(b"mine")

    status = main(["trace", "train.py"])

    err = capfd.readouterr().err
    assert status == 2
    assert message in err
    assert "--allow" in err
    assert "Traceback" not in err
    assert (folder / "data.bin").read_bytes() == b"mine"


def test_a_script_reaches_no_server(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not even one of this machine, unless it is let."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        write(folder, f"import socket; socket.create_connection(('127.0.0.1', {port}))")

        status = main(["trace", "train.py"])

        err = capfd.readouterr().err
        assert status == 2
        assert "--allow network" in err
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_script_that_takes_too_long_or_too_much_is_ended(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the option that gives it more."""
    write(folder, "blocks = []\nwhile True: blocks.append(bytes(1 << 28))\n")
    assert main(["trace", "train.py", "--memory-limit", "1"]) != 0
    assert "--memory-limit" in capfd.readouterr().err

    write(folder, "while True:\n    try: open('/dev/null').close()\n    except: pass\n")
    assert main(["trace", "train.py", "--time-limit", "1"]) != 0
    assert "--time-limit" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train.py", "--batch-size", "4"], "--batch-size"),
        (["mynet:Net", "--steps", "3"], "--steps"),
        (["mynet:Net", "--", "--epochs"], "ARGUMENTS"),
    ],
)
def test_options_of_the_other_kind_are_refused(
    arguments: list[str], named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A script says its own batch, a module has no steps."""
    assert main(["trace", *arguments]) == 2
    assert named in capfd.readouterr().err


def test_a_script_that_is_not_there_is_named(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before anything is started."""
    assert main(["trace", "train.py"]) == 2
    assert "train.py" in capfd.readouterr().err
    assert not list(folder.iterdir())
