"""Train a zoo model with Gluon on the CPU and say how much memory lived. Runs in the oracle's env.

name, mode, batch, size of the image -> JSON: kilobytes at the most
"""

import json
import os
import sys
import tempfile

os.environ["MXNET_MKLDNN_ENABLED"] = "0"
os.environ["MXNET_CPU_TEMP_COPY"] = "1"
os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"
os.environ["MXNET_STORAGE_FALLBACK_LOG_VERBOSE"] = "0"

import mxnet as mx
from mxnet import autograd, gluon, profiler
from mxnet.gluon.model_zoo.vision import get_model

STEPS = 3
PROFILE = "profile.json"


def main(name: str, mode: str, batch: int, size: int) -> None:
    """Run the loop under the profiler."""
    net = get_model(name, classes=10)
    net.initialize()
    if mode != "imperative":
        net.hybridize(static_alloc=mode == "static")
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    images, labels = mx.nd.zeros((batch, 3, size, size)), mx.nd.zeros((batch,))
    profiler.set_config(profile_memory=True, aggregate_stats=True, filename=PROFILE)
    profiler.set_state("run")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    for _ in range(STEPS):
        data, label = images.copy(), labels.copy()
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(batch)
        mx.nd.waitall()
    profiler.set_state("stop")
    found = json.loads(profiler.dumps(format="json"))
    print(json.dumps(found["Memory"]["Device Storage"]["Memory: cpu/0"]["Max"]))


# The profiler replaces its file at the end: never a device, and never one that stays.
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
