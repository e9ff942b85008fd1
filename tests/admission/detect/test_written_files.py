"""What a script writes is seen by what runs after it."""

from __future__ import annotations

from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect.budget import budget_for
from admission.detect.files import File, Files
from admission.detect.shell import read_script as read_shell
from admission.detect.words import Word
from admission.values import Document
from tests.admission.detect.jobs import (
    codes,
    config_map,
    container,
    found,
    job,
    read,
    read_args,
    read_script,
)

SCRIPT = "python /imagenet/main.py -a resnet18 -b 32"
MODEL, BATCH = "model.name", "input.batchSize"
READ = {MODEL: "resnet18", BATCH: 32}


def _file(script: str, path: str = "f", **variables: str) -> File:
    files = Files()
    read_shell(
        Word(text=script, origin="args"),
        variables={name: (Word(text=value),) for name, value in variables.items()},
        budget=budget_for(1),
        files=files,
    )
    return files.read(path, directory="")


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo a b > f", "a b\n"),
        ("echo -n a > f; echo b >> f", "ab\n"),
        ("echo -e 'a\\n b' > f", "a\n b\n"),
        ("printf 'n: %s\\n' 1 2 > f", "n: 1\nn: 2\n"),
        ("cat <<EOF > f\na $E\n\\$E `x` \n", "a env\n$E $(x) \n"),
        ("cat > f <<'EOF'\na $E\nEOF", "a $E\n"),
        ("cat <<-EOF > f\n\ta\n\tEOF\n", "a\n"),
        ("tee f <<EOF\na\nEOF", "a\n"),
        ("cat <<EOF | tee d f >/dev/null\na\nEOF", "a\n"),
        ('T=$(cat <<EOF\nit\'s $E (\nEOF\n); echo "$T" > f', "it's env (\n"),
        ("echo '$E' | envsubst > f", "env\n"),
        ("echo a > g; cp g f", "a\n"),
        ("echo a > g; cat g > f", "a\n"),
        ("echo a > f; sed -i s/a/b/ f", None),
        ("echo a > f; echo b > f", None),
        ("python make.py > f", None),
        ("for i in 1 2; do echo a >> f; done", None),
        ("{ echo a; echo b; } > f", "a\nb\n"),
        ("(echo a; cat <<EOF\nb\nEOF\n) | tee f", "a\nb\n"),
        ("{ echo a; python x.py; } > f", None),
        ("{ echo a; [ -d x ] && echo b; } > f", None),
        ("for i in 1 2; do echo a; done > f", None),
        ("echo a > f &> f", None),
    ],
)
def test_files_hold_what_is_known(script: str, text: str | None) -> None:
    """The text as the shell writes it, and nothing where something else writes it."""
    assert _file(script, E="env").text == text


def test_a_file_that_may_not_be_written_is_doubted() -> None:
    """What stands under a condition is read, and said to be."""
    script = f"if test_something; then echo '{SCRIPT}' > x.sh; fi; bash x.sh"
    reading = read_script(script)

    assert found(reading, MODEL, BATCH) == READ
    assert not reading.is_certain
    assert any("x.sh is written under a condition only" in text for text in reading.warnings)


def test_what_was_not_resolved_when_it_was_written_stays_so() -> None:
    """A variable set later is not what the file holds."""
    script = f'if c; then B=1; else B=2; fi\necho "{SCRIPT} -b $B" > x.sh\nB=3\nsh x.sh'
    reading = read_script(script)

    assert codes(reading) == [ReasonCode.UNRESOLVED_VARIABLE]
    assert found(reading, MODEL) == {MODEL: "resnet18"}


@pytest.mark.parametrize(
    "run",
    [
        "bash x.sh",
        "sh -e ./x.sh",
        "bash -x -o pipefail x.sh",
        "chmod +x x.sh && ./x.sh",
        "source x.sh",
        ". ./x.sh",
        "exec bash x.sh",
        "nice -n 5 bash x.sh",
        "cat x.sh | bash",
        "bash < x.sh",
        "bash -s < x.sh",
        "torchrun --nproc_per_node=1 --no-python bash x.sh",
        "script -c 'bash x.sh' log",
    ],
)
def test_scripts_that_are_written_are_run(run: str) -> None:
    """However they are called."""
    assert found(read_script(f"cat > x.sh <<'EOF'\n{SCRIPT}\nEOF\n{run}"), MODEL, BATCH) == READ


def test_a_here_document_may_be_the_script() -> None:
    """`bash <<EOF` runs what follows."""
    assert found(read_script(f"bash <<EOF\n{SCRIPT}\nEOF\n"), MODEL, BATCH) == READ


def test_python_on_standard_input_is_not_read() -> None:
    """It is code, and named so."""
    reading = read_script("python - <<EOF\nimport torch\nEOF\n")

    assert codes(reading) == [ReasonCode.NO_MODEL]
    assert "Python code on the command line" in reading.unknowns[0].reason


def _mounted(*argv: str, gpus: int = 1, **files: str) -> dict[str, Any]:
    mounts = [{"name": "v", "mountPath": "/mnt"}]
    obj = job(container(*argv, gpus=gpus, volumeMounts=mounts))
    obj["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
    return obj


LAUNCH = 'while [ "$1" != "" ]; do more+=("$1"); shift; done\n'


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("bash", "/mnt/run.sh"), SCRIPT),
        (("sh", "-e", "/mnt/run.sh", "resnet18", "32"), "exec python main.py -a $1 -b ${2:-64}"),
        (("/mnt/run.sh",), f'#!/bin/bash\n{LAUNCH}{SCRIPT} "${{more[@]}}"\n'),
        (("/mnt/run.sh",), f"#!/usr/bin/env bash\n[ $# -eq 0 ] || exit 1\n{SCRIPT}"),
        (("bash", "-c", ". /mnt/run.sh; $CALL"), f'export CALL="{SCRIPT}"'),
        (("bash", "-c", "cp /mnt/run.sh /tmp/a.sh; bash /tmp/a.sh"), SCRIPT),
        (("bash", "-c", "source /mnt/run.sh; go 32"), "go() { python main.py -a resnet18 -b $1; }"),
    ],
)
def test_scripts_of_a_config_map_are_run(argv: tuple[str, ...], text: str) -> None:
    """With their arguments, and with what they set where they are sourced."""
    env = {"workingDir": "/imagenet"}
    obj = _mounted(*argv)
    obj["spec"]["template"]["spec"]["containers"][0].update(env)
    reading = read(obj, documents=config_map("c", run__sh=text))

    assert found(reading, MODEL, BATCH) == READ
    assert reading.unknowns == ()


def test_a_script_that_is_not_fetched_yet_is_wanted() -> None:
    """The reading names the ConfigMap; somebody fetches it and reads again."""
    reading = read(_mounted("bash", "/mnt/run.sh"))

    assert reading.wanted == ("configmap/c",)
    assert reading.spec is None


def test_a_script_that_cannot_be_fetched_says_why() -> None:
    """The one thing that would have let us read it."""
    documents = {"configmap/c": Document(problem="is not there")}
    reading = read(_mounted("bash", "/mnt/run.sh"), documents=documents)

    missing, script = reading.unknowns
    assert missing.code == ReasonCode.DOCUMENT
    assert missing.reason == "the ConfigMap c, which it refers to, is not there"
    assert "run.sh (is in the ConfigMap c, which is not there)" in script.reason


def test_variables_that_cannot_be_fetched_say_why() -> None:
    """What they would have filled in is asked of nobody else, beside the line that needs it."""
    documents = {"configmap/c": Document(problem="is not there")}
    argv = ("bash", "-c", "python main.py -a $MODEL -b 32")
    sources = [{"configMapRef": {"name": "c"}}]
    reading = read(
        job(container(*argv, workingDir="/imagenet", envFrom=sources)), documents=documents
    )

    assert codes(reading)[:2] == [ReasonCode.DOCUMENT, ReasonCode.UNRESOLVED_VARIABLE]


def test_config_map_that_is_not_there_is_no_reason_where_it_would_not_help() -> None:
    """A program that is not read stays so, whatever its variables say."""
    documents = {"configmap/c": Document(problem="is not there")}
    sources = [{"configMapRef": {"name": "c"}}]
    argv = ("python", "run_clm.py", "--model_name_or_path", "gpt2", "--do_eval")
    reading = read(job(container(*argv, envFrom=sources)), documents=documents)

    assert codes(reading) == [ReasonCode.UNSUPPORTED]


@pytest.mark.parametrize(("shell", "is_known"), [("bash", True), ("sh", False), ("ash", False)])
def test_what_echo_makes_of_a_backslash_is_the_shell_s(shell: str, is_known: bool) -> None:
    """dash breaks the line at `\\n`, bash does not, and `sh` may be either."""
    script = "echo 'python main.py -a resnet18 -b 32 # \\n' > x.sh; bash x.sh"
    reading = read_args(shell, "-c", script, workingDir="/imagenet")

    assert (found(reading, MODEL) == {MODEL: "resnet18"}) is is_known


def test_where_a_flag_of_a_script_stands_is_said() -> None:
    """The source names the ConfigMap, the path the field that runs it."""
    documents = config_map("c", run__sh=f"{SCRIPT} --batch-size x")
    reading = read(_mounted("bash", "/mnt/run.sh"), documents=documents)

    assert reading.unknowns[0].path == "spec.template.spec.containers[0].args"
    assert reading.sources[MODEL] == "containers[0].args (configmap c/run.sh) -a"


def test_a_python_script_is_not_read_as_a_shell_s() -> None:
    """A shebang of another interpreter, or a name that ends in .py."""
    documents = config_map("c", run="#!/usr/bin/python3\nimport torch", run__py="import torch")

    for path in ("/mnt/run", "/mnt/run.py"):
        assert read(_mounted(path), documents=documents).spec is None


@pytest.mark.parametrize(
    "text",
    [
        "bash /mnt/run.sh",
        "/mnt/run.sh\n" * 9,
        "source /mnt/run.sh",
        "f() { . /mnt/run.sh; }; f",
        "echo x\n" * 100_000,
        "cat <<EOF\n",
        "\udcff \ud800 <<\udc00",
        "",
        "\0",
    ],
)
def test_hostile_scripts_end_with_a_reason(text: str) -> None:
    """Scripts that run themselves, never end or are no text."""
    reading = read(_mounted("bash", "/mnt/run.sh"), documents=config_map("c", run__sh=text))

    assert reading.spec is None
    for finding in reading.unknowns:
        assert finding.reason
        finding.reason.encode()


def test_surrogates_are_replaced() -> None:
    """What is no character cannot be printed."""
    reading = read_args("python", "\ud800.py", "--a=\udfff")

    reading.unknowns[0].reason.encode()
