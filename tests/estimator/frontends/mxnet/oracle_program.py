"""Bind symbols with MXNet itself and say what it planned. Runs in the oracle's environment.

    a line of JSON a question on standard input -> a line of JSON an answer on standard output

A question: `symbol` (JSON text), `shapes`, `types`, `trained` (whether parameters get gradients).
Arguments are arrays that are never allocated, so a bind costs no memory whatever the batch.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
os.environ["MXNET_MEM_PLAN_VERBOSE_LOGGING"] = "1"

import mxnet as mx
from mxnet.ndarray.ndarray import NDArray, _new_alloc_handle


def unallocated(shape: Sequence[int], dtype: Any) -> Any:
    """Return an array whose memory is never asked for."""
    return NDArray(_new_alloc_handle(tuple(shape), mx.cpu(), True, dtype))


def captured(call: Callable[[], Any]) -> tuple[Any, str]:
    """Return what *call* returns, and what it wrote to standard error, from C++ too."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            result = call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return result, file.read().decode(errors="replace")


def ordered(log: str) -> list[list[Any]]:
    """Return the logged graph: operator, entries read, shapes written, a node a row."""
    nodes: list[list[Any]] = []
    for line in log.splitlines():
        text = line.partition("exec_utils.h:")[2].partition(": ")[2].strip()
        words = text.split()
        if not words:
            continue
        if words[0] == "node":
            nodes.append([words[2], [], []])
        elif words[0] == "input":
            nodes[-1][1].append(int(words[1].rstrip(":")))
        elif words[0] == "output":
            shape = text.partition("[")[2].partition("]")[0]
            nodes[-1][2].append([int(size) for size in shape.split(",") if size])
    return nodes


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return what MXNet plans for one question."""
    symbol = mx.sym.load_json(question["symbol"])
    shapes = {name: tuple(shape) for name, shape in question["shapes"].items()}
    types = {name: "float32" for name in shapes} | question.get("types", {})
    argument_shapes, _, state_shapes = symbol.infer_shape(**shapes)
    argument_types, _, state_types = symbol.infer_type(**types)
    arguments: list[Any] = []
    gradients: list[Any] = []
    requests: list[str] = []
    for name, shape, dtype in zip(
        symbol.list_arguments(), argument_shapes, argument_types, strict=True
    ):
        fed = name in shapes or not question.get("trained", True)
        arguments.append(unallocated(shape, dtype))
        gradients.append(None if fed else unallocated(shape, dtype))
        requests.append("null" if fed else "write")
    states = [unallocated(*each) for each in zip(state_shapes, state_types, strict=True)]

    def bind() -> Any:
        return symbol.bind(
            mx.cpu(), arguments, args_grad=gradients, grad_req=requests, aux_states=states
        )

    executor, log = captured(bind)
    lines = executor.debug_str().splitlines()
    total = next(line for line in lines if line.startswith("Total"))
    return {"megabytes": int(total.split()[1]), "nodes": ordered(log)}


def main() -> None:
    """Answer until standard input ends."""
    for line in sys.stdin:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # MXNet prints what it cannot infer
                found = answer(json.loads(line))
        except Exception as error:  # a question that MXNet refuses is an answer too
            found = {"error": str(error)[:2000]}
        print(json.dumps(found), flush=True)


main()
