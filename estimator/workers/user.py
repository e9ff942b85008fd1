"""The child process of `vramgate trace`: the only one that imports code a person names.

    python -m estimator.workers.user --answer FD < request

    request on standard input -> estimates, or an error, on the descriptor

What the user's code prints goes to standard error. No limits: it is their code on their machine.
"""

from __future__ import annotations

import argparse
import os
import sys

import orjson

from estimator.errors import EstimatorError, TraceError
from estimator.frontends.pytorch.user_module import UserModule
from estimator.pipeline import Job
from estimator.workers.answer import plans_of
from estimator.workers.wire import decode_ask, encode_answers, encode_error


def main() -> int:
    """Answer the one request on standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--answer", type=int, required=True)
    descriptor = parser.parse_args().answer
    request = sys.stdin.buffer.read()
    os.dup2(2, 1)
    with os.fdopen(descriptor, "wb") as answer:
        answer.write(respond(request))
    return 0


def respond(request: bytes) -> bytes:
    """Return the estimates that *request* asks for, or the reason why there are none."""
    try:
        document = orjson.loads(request)
        ask = decode_ask(orjson.dumps(document["ask"]))
        job = Job(spec=ask.spec, frontend=UserModule(**document["module"]), plans=plans_of(None))
        return encode_answers([job.on(device) for device in ask.devices])
    except EstimatorError as error:
        return encode_error(error)
    except Exception as error:
        return encode_error(TraceError(f"the tracer failed with a {type(error).__name__}: {error}"))


if __name__ == "__main__":
    sys.exit(main())
