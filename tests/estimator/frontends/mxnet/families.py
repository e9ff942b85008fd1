"""Which names of MXNet's zoo differ in kind: the others are deeper or wider."""

from __future__ import annotations

FAMILIES = (
    *("alexnet", "densenet121", "inceptionv3", "mobilenet0.25", "mobilenetv2_0.25"),
    *("resnet18_v1", "resnet18_v2", "squeezenet1.1", "vgg11_bn", "cifar_resnet20_v1"),
    *("symbols/googlenet", "symbols/inception-bn", "symbols/inception-v4", "symbols/lenet"),
    *("symbols/mlp", "symbols/mobilenetv2", "symbols/resnet-20-cifar", "symbols/resnet-v1-18"),
    *("symbols/resnext-50", "symbols/inception-resnet-v2"),
)
