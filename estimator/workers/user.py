"""The child process of `vramgate trace`: the only one that imports code a person names.

    python -m estimator.workers.user --answer FD --parent PID [--cudnn FD] < request

    request on standard input -> estimates and the Trace file, or an error, on the descriptor

What the user's code prints goes to standard error. A module has no limits: it is their code on
their machine. A script runs in the sandbox of `user_sandbox.py`: it would write and connect.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import orjson

from estimator.cudnn import Edition
from estimator.cudnn.client import Plans
from estimator.errors import EstimatorError, TraceError
from estimator.frontends import Frontend
from estimator.frontends.pytorch.script.card import Shown
from estimator.frontends.pytorch.script.run import UserScript
from estimator.frontends.pytorch.script.stops import Extent
from estimator.frontends.pytorch.user_module import UserModule
from estimator.pipeline import Job
from estimator.processes.jail import die_with_parent
from estimator.tracefile import recorded
from estimator.traits import traits_of
from estimator.workers.answer import plans_of
from estimator.workers.limits import Limits
from estimator.workers.user_sandbox import Leave, confine_script
from estimator.workers.wire import Ask, answers_document, ask_of, encode_error


def main() -> NoReturn:
    """Answer the one request on standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--answer", type=int, required=True)
    parser.add_argument("--cudnn", type=int)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    request = sys.stdin.buffer.read()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a script that asks gets no answer
    os.dup2(2, 1)
    with os.fdopen(options.answer, "wb") as answer:
        answer.write(respond(request, connected(options.cudnn)))
    sys.stderr.flush()
    os._exit(0)  # threads and exit handlers of the person's code have nothing to wait for


def connected(descriptor: int | None) -> Edition | None:
    """Return the cuDNN at the other end of *descriptor*, which no child of ours inherits."""
    if descriptor is None:
        return None
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    return Plans(connection, limit_seconds=Limits().plans_seconds)


def respond(request: bytes, live: Edition | None) -> bytes:
    """Return the estimates that *request* asks for, or the reason why there are none."""
    try:
        document = orjson.loads(request)
        ask = ask_of(document["ask"])
        frontend, ask = _frontend(document, ask)
        job = Job(spec=ask.spec, frontend=frontend, plans=plans_of(live))
        answers = answers_document([job.on(device) for device in ask.devices])
        if document["record"]:
            answers["content"] = b64encode(_content(job, ask)).decode()
        return orjson.dumps(answers)
    except EstimatorError as error:
        return encode_error(error)
    except Exception as error:
        return encode_error(TraceError(f"the tracer failed with a {type(error).__name__}: {error}"))


def _frontend(document: dict[str, Any], ask: Ask) -> tuple[Frontend, Ask]:
    """Return what traces what *document* names, and the request for the job that this is.

    Only a script is run for that: what job it is, is known afterwards.
    """
    if "module" in document:
        return UserModule(**document["module"]), ask
    words = document["script"]
    device = ask.devices[0]
    script = UserScript(
        path=Path(words["path"]),
        arguments=tuple(words["arguments"]),
        card=Shown(
            name=device.name,
            compute_capability=device.compute_capability,
            usable_bytes=device.usable_bytes,
            multiprocessors=device.multiprocessors,
        ),
        extent=Extent(steps=words["steps"], seconds=words["seconds"]),
    )
    leave = frozenset(Leave(word) for word in words["leave"])
    folder = Path(words["folder"]).resolve()
    for lack in confine_script(leave, folder=folder, memory_bytes=words["memory_bytes"]):
        print(f"vramgate trace: {lack}", file=sys.stderr)
    script.trace_job(ask.spec, traits=traits_of(device))
    assert script.job is not None
    return script, replace(ask, spec=script.job)


def _content(job: Job, ask: Ask) -> bytes:
    """Return the Trace file of *job* on the first card."""
    device = ask.devices[0]
    return recorded(job.spec, traits=traits_of(device), trace=job.trace(device)).content


if __name__ == "__main__":
    main()
