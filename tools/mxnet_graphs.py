"""Write the graphs of MXNet's model zoos: run by hand, with the Python of the oracle's environment.

    python tools/mxnet_graphs.py --symbols FOLDER

    gluon's model_zoo.vision, apache/mxnet's symbols, GluonCV's CIFAR ResNets -> one zip of JSON

*FOLDER* is `example/image-classification/symbols` of apache/mxnet@1.9.1. The environment is that
of requirements/mxnet-oracle.txt. The same inputs give the same file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision
from mxnet.gluon.model_zoo.vision import get_model

OUTPUT = Path(__file__).parents[1] / "estimator" / "frontends" / "mxnet" / "data" / "graphs.zip"
WHEN = (2022, 5, 10, 0, 0, 0)
"""The day of MXNet 1.9.1, so that the file does not depend on when it is made."""
PICTURE = (3, 224, 224)
LARGE = (3, 299, 299)
SMALL = (3, 32, 32)
DIGIT = (1, 28, 28)
CIFAR_SYMBOL = (3, 28, 28)
DEEP = (18, 34, 50, 101, 152, 200)
CIFAR_DEEP = (20, 32, 44, 56, 110, 164)


def main() -> None:
    """Make every graph with two numbers of classes, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--symbols", type=Path, required=True)
    folder = parser.parse_args().symbols
    graphs = {**gluon_graphs(), **cifar_graphs(), **symbol_graphs(folder)}
    OUTPUT.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(OUTPUT, "w", zipfile.ZIP_LZMA) as archive:
        for name, graph in sorted(graphs.items()):
            member = zipfile.ZipInfo(f"{name}.json", WHEN)
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, json.dumps(graph, separators=(",", ":"), sort_keys=True))
    print(f"{len(graphs)} graphs, {OUTPUT.stat().st_size} bytes")


def gluon_graphs() -> dict[str, Any]:
    """Return the graphs of `mxnet.gluon.model_zoo.vision`, by the names of `get_model`."""
    source = Path(vision.__file__).read_text(encoding="utf-8")
    names = re.findall(r"'([a-z0-9_.]+)': [a-z0-9_]+", source)
    graphs = {}
    for name in names:
        image = LARGE if name == "inceptionv3" else PICTURE
        symbols = [of_block(get_model(name, classes=count)) for count in (1000, 999)]
        graphs[name] = compact(*symbols, image=image, classes=1000)
    return graphs


def of_block(block: Any) -> Any:
    """Return what a block computes, as a symbol."""
    return block(mx.sym.var("data"))


def compact(symbol: Any, other: Any, *, image: tuple[int, ...], classes: int) -> dict[str, Any]:
    """Return a symbol as a document; *other* is the same with one class less."""
    graph, changed = json.loads(symbol.tojson()), json.loads(other.tojson())
    sized = [
        [index, key]
        for index, (node, twin) in enumerate(zip(graph["nodes"], changed["nodes"], strict=True))
        for key, value in node.get("attrs", {}).items()
        if twin["attrs"][key] != value and not key.startswith("__")
    ]
    nodes = []
    for node in graph["nodes"]:
        attributes = {
            key: value for key, value in node.get("attrs", {}).items() if not key.startswith("__")
        }
        inputs = [entry[:2] for entry in node["inputs"]]
        nodes.append([node["op"], node["name"], attributes, inputs])
    return {
        "nodes": nodes,
        "heads": [head[:2] for head in graph["heads"]],
        "image": list(image),
        "classes": classes,
        "sized": sized,
    }


def convolution(channels: int, stride: int, size: int = 3) -> Any:
    """Return a convolution as the CIFAR ResNets have it."""
    return nn.Conv2D(channels, size, strides=stride, padding=size // 2, use_bias=False)


class First(nn.HybridBlock):  # type: ignore[misc]  # MXNet has no types
    """A residual block that normalises after each convolution (dmlc/gluon-cv@049a972a)."""

    def __init__(self, channels: int, stride: int, *, is_changed: bool) -> None:
        super().__init__(prefix="")
        self.body = nn.HybridSequential(prefix="")
        self.body.add(convolution(channels, stride), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(convolution(channels, 1), nn.BatchNorm())
        self.shortcut = nn.HybridSequential(prefix="") if is_changed else None
        if self.shortcut is not None:
            self.shortcut.add(convolution(channels, stride, 1), nn.BatchNorm())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the block's output."""
        inner = self.body(x)
        outer = x if self.shortcut is None else self.shortcut(x)
        return F.Activation(outer + inner, act_type="relu")


class Second(nn.HybridBlock):  # type: ignore[misc]  # MXNet has no types
    """A residual block that normalises before each convolution (dmlc/gluon-cv@049a972a)."""

    def __init__(self, channels: int, stride: int, *, is_changed: bool) -> None:
        super().__init__(prefix="")
        self.norm_1, self.norm_2 = nn.BatchNorm(), nn.BatchNorm()
        self.conv_1, self.conv_2 = convolution(channels, stride), convolution(channels, 1)
        self.shortcut = convolution(channels, stride, 1) if is_changed else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the block's output."""
        inner = self.conv_1(F.Activation(self.norm_1(x), act_type="relu"))
        inner = self.conv_2(F.Activation(self.norm_2(inner), act_type="relu"))
        outer = x if self.shortcut is None else self.shortcut(x)
        return inner + outer


def cifar_block(version: int, depth: int, classes: int) -> Any:
    """Return a ResNet for CIFAR.

    Source: dmlc/gluon-cv@049a972a gluoncv/model_zoo/cifarresnet.py.
    """
    block = First if version == 1 else Second
    net = nn.HybridSequential()
    stem = convolution(16, 1)
    if version == 1:
        net.add(stem, nn.BatchNorm())
    else:
        net.add(nn.BatchNorm(scale=False, center=False), stem)
    before = 16
    for stage, channels in enumerate((16, 32, 64)):
        for index in range((depth - 2) // 6):
            stride = 2 if stage and not index else 1
            net.add(block(channels, stride, is_changed=channels != before))
            before = channels
    if version == 2:
        net.add(nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.GlobalAvgPool2D(), *([nn.Flatten()] if version == 2 else []), nn.Dense(classes))
    return net


def cifar_graphs() -> dict[str, Any]:
    """Return the graphs of GluonCV's CIFAR ResNets."""
    return {
        f"cifar_resnet{depth}_v{version}": compact(
            *(of_block(cifar_block(version, depth, count)) for count in (10, 9)),
            image=SMALL,
            classes=10,
        )
        for version in (1, 2)
        for depth in (20, 56, 110)
    }


def symbol_graphs(folder: Path) -> dict[str, Any]:
    """Return the graphs of apache/mxnet's `example/image-classification/symbols`."""
    jobs: list[tuple[str, str, tuple[int, ...], dict[str, Any]]] = [
        (name, name, PICTURE, {}) for name in ("alexnet", "googlenet", "inception-bn")
    ]
    jobs += [(name, name, LARGE, {}) for name in ("inception-v3", "inception-v4")]
    jobs += [("inception-resnet-v2", "inception-resnet-v2", LARGE, {})]
    jobs += [(name, name, DIGIT, {}) for name in ("lenet", "mlp")]
    jobs += [(name, name, PICTURE, {}) for name in ("mobilenet", "mobilenetv2")]
    for kind in ("resnet", "resnet-v1"):
        jobs += [(f"{kind}-{depth}", kind, PICTURE, {"num_layers": depth}) for depth in DEEP]
        jobs += [
            (f"{kind}-{depth}-cifar", kind, CIFAR_SYMBOL, {"num_layers": depth})
            for depth in CIFAR_DEEP
        ]
    jobs += [(f"resnext-{n}", "resnext", PICTURE, {"num_layers": n}) for n in (50, 101, 152)]
    for depth in (11, 13, 16, 19):
        jobs.append((f"vgg-{depth}", "vgg", PICTURE, {"num_layers": depth}))
        jobs.append((f"vgg-{depth}-bn", "vgg", PICTURE, {"num_layers": depth, "batch_norm": True}))
    graphs = {}
    for name, file, image, options in jobs:
        usual = 10 if image[1] < 100 else 1000
        symbols = [
            made(folder / f"{file}.py", image=image, num_classes=count, **options)
            for count in (usual, usual - 1)
        ]
        graphs[f"symbols/{name}"] = compact(*symbols, image=image, classes=usual)
    return graphs


def made(path: Path, *, image: tuple[int, ...], **options: Any) -> Any:
    """Return the symbol that one of the files makes."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if path.stem != "mobilenetv2":
        options["image_shape"] = ",".join(map(str, image))
    with mx.name.NameManager():
        return module.get_symbol(**options)


if __name__ == "__main__":
    main()
