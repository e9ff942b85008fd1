"""What one review may cost: limits shared by the containers of a workload."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from admission.codes import ReasonCode
from admission.detect import read_unit
from admission.detect.budget import MAX_SCRIPT, MAX_WORDS
from admission.detect.words import words
from admission.values import Reading
from admission.workloads import read_workload
from admission.workloads.units import MAX_UNITS
from tests.admission.detect.jobs import codes, container, job, read_args, read_script

SPEC = "vramgate.dev/spec"
WHOLE = {"model": {"source": "timm", "name": "resnet50"}, "input": {"batchSize": 1}}
ENOUGH_SECONDS = 3.0
"""Of a processor's time: three times the worst that was measured, for slow machines."""


def _many(body: dict[str, Any], number: int, annotation: str = "") -> list[Reading]:
    obj = job(body, annotations={SPEC: annotation} if annotation else {})
    obj["spec"]["template"]["spec"]["containers"] = [body] * number
    workload = read_workload(obj)
    return [read_unit(unit, workload=workload) for unit in workload.units]


def test_at_most_32_gpu_containers_are_judged() -> None:
    """The rest of a workload is one unknown."""
    readings = _many(container(), MAX_UNITS + 9, json.dumps(WHOLE))

    assert len(readings) == MAX_UNITS + 1
    assert all(reading.spec is not None for reading in readings[:-1])
    assert codes(readings[-1]) == [ReasonCode.UNSUPPORTED]
    assert "more than 32 GPU containers" in readings[-1].unknowns[0].reason


@pytest.mark.parametrize(
    "reading",
    [
        lambda: read_args(env={f"N{index}": "x" for index in range(6_000)}),
        lambda: read_args("python", *("x" for _ in range(MAX_WORDS + 1))),
        lambda: read_script("#" * (MAX_SCRIPT + 1)),
        lambda: read_script("A=x;" + "A=$A$A;" * 40 + "python $A"),
        lambda: read_script("a;" * 3_000),
    ],
)
def test_what_is_too_long_is_unknown(reading: Any) -> None:
    """A limit ends in a finding that names it, and in nothing else."""
    result = reading()

    assert codes(result) == [ReasonCode.UNSUPPORTED]
    assert "too" in result.unknowns[0].reason or "more than" in result.unknowns[0].reason


def test_a_value_that_grows_too_long_is_not_known() -> None:
    """Where it is not needed, it does no harm."""
    env = {"A0": "xx", **{f"A{n}": f"$(A{n - 1})" * 2 for n in range(1, 60)}}

    assert read_args("python", "/imagenet/main.py", env=env).spec is not None
    assert read_args("python", "/imagenet/main.py", "-b", "$(A59)", env=env).spec is None


KEYS = json.dumps({**WHOLE, "runtime": {"env": {f"K{n}": "v" for n in range(9_000)}}})
LINES = "\n".join(f"python x{n}.py --a $A{n}" for n in range(600))
LOOPS = "while a; do B=1; " * 60 + "done; " * 60
HEREDOCS = "".join(f"cat <<EOF > f{n}\n$A ${{B}}\nEOF\n" for n in range(330))
TAGS = "cat " + "<<A " * 30_000
NESTED = 'a "$(echo "$(echo ' * 5_000
DOUBLING = (
    "echo " + "x" * 9_000 + " > f0;" + "".join(f"cat {f'f{n} ' * 9} > f{n + 1};" for n in range(90))
)
SUBSTITUTED = "A=" + "x" * 60_000 + "\ncat <<'EOF' | envsubst > f\n" + "$A " * 20_000 + "\nEOF\n"
UNRESOLVED = "echo " + " ".join(f"$A{n}" for n in range(5_000)) + " > f; cat f f f > g"
APPENDED = "echo x > f\n" + "echo " + "x" * 100 + " >> f\n" + "cat f >> g\n" * 400
CALLS = "f(){ g;g;g;}; g(){ h;h;h;}; h(){ i;i;i;}; i(){ j;j;j;}; j(){ :;:;}; f"


@pytest.mark.parametrize(
    ("body", "number", "annotation"),
    [
        (container(), 250, KEYS),
        (container("bash", "-c", LINES), 240, ""),
        (container("bash", "-c", LOOPS), 33, ""),
        (container("bash", "-c", CALLS), 33, ""),
        (container("bash", "-c", HEREDOCS), 33, ""),
        (container("bash", "-c", TAGS), 1, ""),
        (container("bash", "-c", NESTED), 1, ""),
        (container("bash", "-c", DOUBLING), 33, ""),
        (container("bash", "-c", SUBSTITUTED), 33, ""),
        (container("bash", "-c", UNRESOLVED), 33, ""),
        (container("bash", "-c", APPENDED), 33, ""),
        (container("bash", "-c", "$((" + "(" * 60_000), 1, ""),
        (container(*["env"] * 7_000), 1, ""),
        (container("mpirun", *["-x", "A=1"] * 3_900, "python", "x.py"), 33, ""),
        (container("bash", "-c", "x" * 5_000_000), 1, ""),
        (container("bash", "-c", "x" + "=" * 120_000), 1, ""),
        (container("python", "run_clm.py", *(f"--f{n}" for n in range(900))), 33, ""),
        (container("python", *(["$A" * 30_000] * 15)), 1, ""),
        (container(env={f"A{n}": f"$(A{n - 1})x" for n in range(10_000)}), 1, ""),
    ],
    ids=words(
        "keys lines loops calls heredocs tags nested doubling substituted unresolved appended "
        "arithmetic wrappers mpi long equals flags references chain"
    ),
)
def test_the_worst_reviews_are_read_quickly(
    body: dict[str, Any], number: int, annotation: str
) -> None:
    """Hostile objects end in time, whatever they repeat."""
    start = time.thread_time()

    _many(body, number, annotation)

    assert time.thread_time() - start < ENOUGH_SECONDS
