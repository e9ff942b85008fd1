"""The child process of `vramgate trace`: the only one that imports code a person names.

    python -m estimator.workers.user --answer FD --parent PID [--cudnn FD] < request

    request on standard input -> estimates and the Trace file, or an error, on the descriptor

What the user's code prints goes to standard error. No limits: it is their code on their machine.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from base64 import b64encode

import orjson

from estimator.cudnn import Edition
from estimator.cudnn.client import Plans
from estimator.errors import EstimatorError, TraceError
from estimator.frontends.pytorch.user_module import UserModule
from estimator.pipeline import Job
from estimator.processes.jail import die_with_parent
from estimator.tracefile import recorded
from estimator.traits import traits_of
from estimator.workers.answer import plans_of
from estimator.workers.limits import Limits
from estimator.workers.wire import Ask, answers_document, ask_of, encode_error


def main() -> int:
    """Answer the one request on standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--answer", type=int, required=True)
    parser.add_argument("--cudnn", type=int)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(options.parent)
    request = sys.stdin.buffer.read()
    os.dup2(2, 1)
    with os.fdopen(options.answer, "wb") as answer:
        answer.write(respond(request, connected(options.cudnn)))
    return 0


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
        module = UserModule(**document["module"])
        job = Job(spec=ask.spec, frontend=module, plans=plans_of(live))
        answers = answers_document([job.on(device) for device in ask.devices])
        if document["record"]:
            answers["content"] = b64encode(_content(job, ask)).decode()
        return orjson.dumps(answers)
    except EstimatorError as error:
        return encode_error(error)
    except Exception as error:
        return encode_error(TraceError(f"the tracer failed with a {type(error).__name__}: {error}"))


def _content(job: Job, ask: Ask) -> bytes:
    """Return the Trace file of *job* on the first card."""
    device = ask.devices[0]
    return recorded(job.spec, traits=traits_of(device), trace=job.trace(device)).content


if __name__ == "__main__":
    sys.exit(main())
