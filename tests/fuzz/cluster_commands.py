"""Command lines and shell scripts of containers, with everything a shell has in it.

bytes -> a script, or the arguments of a program or launcher we know -> Reading
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from admission.detect import read_unit
from admission.detect.launchers import LAUNCHERS, MODULES
from admission.detect.recipes.tables import load_table
from admission.detect.words import words
from admission.errors import RequestError
from admission.values import Document, Documents
from admission.workloads import read_workload
from tests.admission.detect.jobs import container, job
from tests.fuzz.choices import Choices
from tests.fuzz.hostile import NUMBERS, TEXTS
from tests.fuzz.objects import documents
from tests.fuzz.rules import check_line
from tests.fuzz.target import Broken, Target

_WORDS = tuple(
    word.encode()
    for word in (
        *words("if then elif else fi for do done while until case esac in function select { } ( )"),
        *words("(( )) [[ ]] [ ] && || ; ;; | & < > >> << <<- <<< >& 2>&1 $( ` ${ $(( $@ $* $# $?"),
        *words("$! ${A:-b} ${A:=b} ${A:?b} ${A:+b} ${A#b} ${A##b} ${A%b} ${A%%b} ${A/b/c} ${A^^}"),
        *words("${A,,} ${#A} ${A[@]} ${!A} ${A:1:2} A+=(x) declare -a export local readonly unset"),
        *words("shift eval exec source trap set -e -x wait exit return break continue cd pushd"),
        *words("printf echo cat sed tee envsubst xargs seq python -m torchrun --nproc_per_node"),
        *words("accelerate launch deepspeed --batch-size train.py main.py pip install git clone"),
        *words("EOF 0x10 010 1<<63 **"),
        "\\\n",
        "'",
        '"',
        "\x00",
        "\u202e",
    )
)

SCRIPTS = (
    "set -euo pipefail\nexport B=$((8*4))\npython /imagenet/main.py -a resnet50 -b ${B:-32}\n",
    "cat > c.yaml <<EOF\nmodel: ${M}\nEOF\naccelerate launch --config_file c.yaml run_clm.py\n",
    'for i in $(seq 3); do A+=("--x=$i"); done\ntorchrun --nproc_per_node=$N t.py "${A[@]}"\n',
    "f() { local b=${1:-4}; python main.py -b $b; }\nif [[ $X == a* ]]; then f 8; else f; fi\n",
    'case $A in a|b) B=1;; *) B=2;; esac; while read l; do echo $l; done <<< "$B"\n',
    "python train.py $(echo --batch-size 8 | tee x) && sed -i s/8/16/ x; wait; exit ${?}\n",
    "A=(1 2 3); echo ${#A[@]} ${A[-1]} ${A[@]:1:1}; (( A[0] += 1 << 62 )); let x=2**63\n",
    "eval \"python main.py -b $(printf '%d' 8)\" 2>&1 | tee log.txt || true\n",
)


def _read(body: dict[str, Any], files: Documents) -> None:
    """Read a job around the container *body*; what it says is held to lines.

    Raises: Broken.
    """
    obj = job(body)
    try:
        workload = read_workload(obj, documents=files)
        readings = [read_unit(unit, workload=workload, documents=files) for unit in workload.units]
    except RequestError as error:
        check_line(error.message, "what is refused")
        return
    for reading in readings:
        answers = (reading.spec is not None, reading.skip is not None, bool(reading.unknowns))
        if sum(answers) != 1:
            raise Broken(f"a reading has {sum(answers)} answers")


def _run_shell(data: bytes) -> None:
    """Read a script, by bash or by sh."""
    text = data.decode("utf-8", "replace")
    shell = ("bash", "sh")[len(data) % 2]
    script = Document(files={"run.sh": text, "a.yaml": "micro_batch_size: 2\n"})
    files: Documents = {"configmap/c": script}
    _read(container(shell, "-c", text, env={"N": "4", "M": "org/x", "X": "abc"}), files)


def _shell_seeds() -> Iterable[bytes]:
    yield from (script.encode() for script in SCRIPTS)
    yield from (text.encode() for text in _scripts())


@cache
def _scripts() -> tuple[str, ...]:
    """Return the scripts of the corpus: long texts in command lines."""
    found: list[str] = []
    waiting: list[Any] = list(documents())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and 40 < len(value) < 6000 and " " in value:
            found.append(value)
    return tuple(dict.fromkeys(found))


@cache
def _words() -> tuple[str, ...]:
    """Return words that stand in command lines of the corpus, and flags of programs."""
    found = [word for script in _scripts() for word in script.split() if len(word) < 60]
    return tuple(dict.fromkeys(found))


@cache
def _programs() -> tuple[str, ...]:
    """Return scripts, launchers and modules that are recognised."""
    known = [row for row in load_table("names").values() if isinstance(row, dict)]
    scripts = {name for row in known for name in row["scripts"]}
    modules = {*MODULES, *(name for row in known for name in row["modules"])}
    return (*sorted(scripts), *LAUNCHERS, *(f"-m {name}" for name in sorted(modules)))


@cache
def _flags() -> tuple[str, ...]:
    """Return the flags that tell programs apart."""
    known = [row for row in load_table("names").values() if isinstance(row, dict)]
    return tuple(sorted({f"--{name}" for row in known for name in row["own"]}))


def _run_arguments(data: bytes) -> None:
    """Read a program or a launcher that we know with odd arguments."""
    choices = Choices(data)
    argv: list[Any] = []
    for _ in range(1 + choices.below(2)):
        program = choices.pick(_programs())
        argv += program.split() if program.startswith("-m") else [program]
        if choices.chance(2):
            argv.insert(0, "python")
        for _ in range(choices.below(12)):
            argv.append(_argument(choices))
    files: Documents = {
        "configmap/c": Document(files={"a.yaml": choices.pick(TEXTS), "a.json": choices.text()}),
        "hf://org/x@main": Document(files={"config.json": choices.pick(TEXTS)}),
    }
    body = container(*argv, env={"N": choices.pick(TEXTS), "A": "8"})
    body["volumeMounts"] = [{"name": "v", "mountPath": "/c"}]
    _read(body, files)


def _argument(choices: Choices) -> Any:
    match choices.below(8):
        case 0:
            return choices.pick(TEXTS)
        case 1:
            return choices.pick(NUMBERS)
        case 2:
            return choices.text(20)
        case 3:
            return f"{choices.pick(_words())}={choices.pick(TEXTS)}"
        case 4:
            return choices.pick(("$N", "${A}", "$(A)", "/c/a.yaml", "/c/a.json", "org/x", "--"))
        case 5:
            return choices.pick(_flags())
        case _:
            return choices.pick(_words())


def _argument_seeds() -> Iterable[bytes]:
    for number in range(256):
        yield bytes((1, number, number, 1, 6, 5, number, 5, number * 3 % 256, 0, number % 50, 5, 9))


TARGETS = (
    Target(
        name="shell",
        run=_run_shell,
        seeds=_shell_seeds,
        dictionary=_WORDS,
        max_bytes=6000,
        seconds=3.0,
        begins=(b"", b"A="),
    ),
    Target(name="arguments", run=_run_arguments, seeds=_argument_seeds, max_bytes=300, seconds=3.0),
)
