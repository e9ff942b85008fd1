"""Model files: ONNX, HDF5, Keras' archives and configurations, MXNet's symbols.

    bytes -> what the file says of the model, or a named problem

What a file says is held to what a spec may hold; symbols go on through MXNet's planner.
"""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import orjson

from admission.detect.lookup import Lookup
from admission.detect.model_files import MAX_CONFIG, read_model_file
from admission.values import Document
from estimator.errors import EstimatorError, TraceError
from estimator.frontends.mxnet import trace_job
from estimator.spec import parse_spec
from estimator.traits import Traits
from tests.admission.detect.hdf5_files import CONFIG, LATEST, OLD
from tests.admission.detect.onnx_files import PERCEPTRON
from tests.fuzz.choices import Choices
from tests.fuzz.files_watch import nothing_outside
from tests.fuzz.shaping import mutated
from tests.fuzz.target import Broken, Target

NAME = "configmap/models/m"
MAX_PROBLEM = 500
CARD = Traits(flash_attention=False, efficient_attention=True, native_bf16=False)


def check_file(content: bytes, reference: str = NAME) -> None:
    """Read *content* as a model file, and put what it says into a spec.

    Raises: Broken.
    """
    name, _, key = reference.rpartition("/")
    document = Document(blobs={key: content})
    with nothing_outside():
        found = read_model_file(reference, Lookup({name: document}))
        if found.problem:
            if len(found.problem) > MAX_PROBLEM:  # what of it is shown is cleaned at the edges
                raise Broken(f"a problem of {len(found.problem)} characters")
            return
        if not found.model:
            raise Broken("neither a model nor a problem")
        stated: dict[str, Any] = {"framework": "tensorflow", "input": {"batchSize": 2}}
        stated |= {"model": dict(found.model)}
        if found.training:
            stated["training"] = dict(found.training)
        try:
            parse_spec(stated).digest()
        except EstimatorError:
            if found.model["source"] == "file":  # counted by the reader itself
                raise Broken("an ONNX graph that no spec holds") from None


def _run_onnx(data: bytes) -> None:
    """Read bytes as an ONNX file."""
    check_file(data, f"{NAME}.onnx")


def _run_hdf5(data: bytes) -> None:
    """Read bytes as an HDF5 file; every second one with some of a real one around them."""
    if data[:1] == b"\x89":
        check_file(data)
        return
    choices = Choices(data)
    whole = bytearray(choices.pick((OLD, LATEST)))
    for _ in range(1 + choices.below(4)):
        at = choices.below(len(whole))
        width = 1 << choices.below(4)
        whole[at : at + width] = choices.rest(width).ljust(width, b"\xff")
    check_file(bytes(whole[: choices.below(len(whole)) or None]))


_NAMES = ("config.json", "../config.json", "/config.json", "model.weights.h5", "config.json/")
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_INSIDE = (CONFIG.encode(), b" " * (4 << 20), b"/etc/passwd", OLD)


@lru_cache(maxsize=2000)
def _archive(*parts: tuple[str, int, int, int]) -> bytes:
    """Return an archive of *parts*: name, how it is packed, whether a link, what is in it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two parts with one name
        for name, packed, is_link, inside in parts:
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16 if is_link else 0
            info.compress_type = packed if inside != 1 else zipfile.ZIP_DEFLATED
            archive.writestr(info, _INSIDE[inside])
    return made.getvalue()


def _run_archive(data: bytes) -> None:
    """Read bytes as a `.keras` archive, or make one of them with odd headers."""
    if data[:2] == b"PK":
        check_file(data)
        return
    choices = Choices(data)
    parts = [
        (choices.pick(_NAMES), choices.pick(_PACKED), choices.below(2), choices.below(len(_INSIDE)))
        for _ in range(1 + choices.below(2))
    ]
    whole = bytearray(_archive(*parts))
    for _ in range(choices.below(5)):
        at = choices.below(len(whole))
        whole[-1 - at % 400] = choices.byte()  # sizes and places are at the end
    check_file(bytes(whole))


def _run_configuration(data: bytes) -> None:
    """Read bytes as a configuration in JSON."""
    check_file(data)
    if len(data) > MAX_CONFIG:
        raise Broken("an input of that length was not asked for")


# ---- symbols


def _nodes(*nodes: tuple[str, str, list[int], dict[str, str]]) -> dict[str, Any]:
    made = [
        {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs], "attrs": attributes}
        for op, name, inputs, attributes in nodes
    ]
    return {
        "nodes": made,
        "arg_nodes": [i for i, each in enumerate(made) if each["op"] == "null"],
        "heads": [[len(made) - 1, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }


@cache
def symbols() -> tuple[dict[str, Any], ...]:
    """Return a perceptron, a convolution with a pool, and a few operators of other kinds."""
    dense = {"num_hidden": "16"}
    window = {"kernel": "(3, 3)", "num_filter": "8", "pad": "(1, 1)", "stride": "(1, 1)"}
    pool = {"kernel": "(2, 2)", "pool_type": "max", "stride": "(2, 2)"}
    return (
        _nodes(
            ("null", "data", [], {}),
            ("null", "w", [], {"__shape__": "(16, 0)"}),
            ("null", "b", [], {}),
            ("FullyConnected", "fc", [0, 1, 2], dense),
            ("Activation", "act", [3], {"act_type": "relu"}),
            ("null", "softmax_label", [], {}),
            ("SoftmaxOutput", "softmax", [4, 5], {}),
        ),
        _nodes(
            ("null", "data", [], {}),
            ("null", "w", [], {}),
            ("null", "b", [], {}),
            ("Convolution", "conv", [0, 1, 2], window),
            ("null", "gamma", [], {}),
            ("null", "beta", [], {}),
            ("null", "mean", [], {"__init__": "zeros"}),
            ("null", "var", [], {}),
            ("BatchNorm", "bn", [3, 4, 5, 6, 7], {"fix_gamma": "False"}),
            ("Pooling", "pool", [8], pool),
            ("Flatten", "flat", [9], {}),
            ("Reshape", "shape", [10], {"shape": "(-1, 4)"}),
            ("transpose", "turned", [11], {"axes": "(1, 0)"}),
            ("sum", "sum", [12], {"axis": "(0,)"}),
            ("MakeLoss", "loss", [13], {}),
        ),
        _nodes(
            ("null", "data", [], {"__dtype__": "2"}),
            ("SliceChannel", "parts", [0], {"num_outputs": "2", "axis": "2"}),
            ("Concat", "both", [1, 1], {"dim": "1", "num_args": "2"}),
            ("broadcast_add", "more", [2, 2], {}),
            ("null", "table", [], {}),
            ("Embedding", "words", [3, 4], {"input_dim": "100", "output_dim": "8"}),
            ("Cast", "cast", [5], {"dtype": "float16"}),
            ("expand_dims", "wide", [6], {"axis": "1"}),
        ),
    )


def _run_symbol(data: bytes) -> None:
    """Plan a job of a symbol with odd values, or of bytes that are one."""
    choices = Choices(data)
    try:
        if data[:1] == b"{":
            symbol = orjson.loads(data)
        else:
            symbol = mutated(choices.pick(symbols()), choices, donors=symbols())
    except orjson.JSONDecodeError:
        return
    execution = choices.pick(({"mode": "static"}, {"mode": "hybridize"}, True, False))
    document = {
        "framework": "mxnet",
        "model": {"source": "mxnet", "name": "m", "config": symbol},
        "input": {"batchSize": 2, "imageSize": [3, 32, 32]},
        "phase": choices.pick(("train", "infer")),
        "training": {"optimizer": {"name": "sgd"}, "compile": execution},
    }
    with nothing_outside():
        try:
            trace_job(parse_spec(document), traits=CARD)
        except TraceError as error:
            # "Tracing broke one of our own rules": a symbol must not bring that about.
            raise error.__cause__ or error from None
        except EstimatorError as error:
            if len(error.message) > 4000:
                raise Broken(f"an error of {len(error.message)} characters") from None


# ---- seeds


def _onnx_seeds() -> Iterable[bytes]:
    yield PERCEPTRON
    yield PERCEPTRON[:90]
    yield PERCEPTRON + PERCEPTRON
    yield b"\x08\x08" + b"\x3a\x80\x80\x80\x80\x10"


def _hdf5_seeds() -> Iterable[bytes]:
    yield OLD
    yield LATEST
    for number in range(24):
        yield bytes((number % 2, 1, number, number * 5, 3, 255, 255, 255, 255, 0, 0, 0, 0))


def _archive_seeds() -> Iterable[bytes]:
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", kind) as archive:
            archive.writestr("config.json", CONFIG)
            archive.writestr("model.weights.h5", b"\0" * 100)
        yield made.getvalue()
    for number in range(24):
        yield bytes((number, 1, number % 5, number % 4, number % 2, number % 4, number, 9, 200))


def _configuration_seeds() -> Iterable[bytes]:
    yield CONFIG.encode()
    compiled = {"optimizer": {"class_name": "Adam", "config": {"weight_decay": 0.1}}}
    yield json.dumps({**json.loads(CONFIG), "compile_config": compiled}).encode()
    for symbol in symbols():
        yield orjson.dumps(symbol)


def _symbol_seeds() -> Iterable[bytes]:
    for symbol in symbols():
        yield orjson.dumps(symbol)
    for number in range(48):
        yield bytes((number, 2, number * 3, number % 8, number * 7 % 256, 1, number, 0, 5))
        yield bytes(range(number, number + 40))


_MORE = (b"\xff" * 8, struct.pack("<Q", 1 << 63), struct.pack("<I", 1 << 31), b"\0" * 8)

TARGETS = (
    Target(name="onnx", run=_run_onnx, seeds=_onnx_seeds, dictionary=_MORE, max_bytes=16384),
    Target(
        name="hdf5",
        run=_run_hdf5,
        seeds=_hdf5_seeds,
        dictionary=(b"OHDR", b"GCOL", b"OCHK", b"model_config", *_MORE),
        max_bytes=8192,
    ),
    Target(
        name="keras-archive",
        run=_run_archive,
        seeds=_archive_seeds,
        dictionary=(b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"config.json", *_MORE),
        max_bytes=4096,
    ),
    Target(
        name="model-configuration",
        run=_run_configuration,
        seeds=_configuration_seeds,
        dictionary=(b'"class_name"', b'"config"', b'"nodes"', b'"arg_nodes"', b"1e999"),
        max_bytes=8192,
        begins=(b"", b'{"config": "'),
    ),
    Target(
        name="mxnet-symbol",
        run=_run_symbol,
        seeds=_symbol_seeds,
        dictionary=(b'"op":"', b'"attrs":{', b'"inputs":[[', b"(-1, 0)", b"1099511627776"),
        seconds=2.0,
        max_bytes=8192,
    ),
)
