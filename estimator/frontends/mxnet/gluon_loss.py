"""The loss of a Gluon training loop, whose block is not hybridised.

    output of the net, label -> loss, shapes known

Source: apache/mxnet@1.9.1 `python/mxnet/gluon/loss.py` (`SoftmaxCrossEntropyLoss`).
"""

from __future__ import annotations

from estimator.frontends.mxnet.graph import VARIABLE, Entry, Node
from estimator.frontends.mxnet.inference import infer
from estimator.frontends.mxnet.symbol import call

LABEL = "gluon_label"


def with_loss(output: Entry) -> Entry:
    """Return the loss of each sample of *output*: softmax cross entropy over its last axis."""
    index = Node(VARIABLE, LABEL, shapes=[output.shape[:-1]], dtypes=["float32"])
    scores = call("log_softmax", "loss_log_softmax", {"axis": "-1"}, [output])
    picked = call(
        "pick",
        "loss_pick",
        {"axis": "-1", "keepdims": "True"},
        [Entry(scores, 0), Entry(index, 0)],
    )
    turned = call("_mul_scalar", "loss_negative", {"scalar": "-1.0"}, [Entry(picked, 0)])
    mean = call("mean", "loss_mean", {"axis": "0", "exclude": "True"}, [Entry(turned, 0)])
    made = [scores, picked, turned, mean]
    infer(made, {}, {})
    return Entry(mean, 0)


def stand_in(output: Entry) -> Entry:
    """Return a variable in the place of what another graph computes."""
    name = f"{output.node.name}_output"
    return Entry(Node(VARIABLE, name, shapes=[output.shape], dtypes=[output.dtype]), 0)
