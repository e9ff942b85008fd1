"""People's own Keras scripts, by the flags they share.

--model of keras.applications, --batch_size -> model and batch in the draft, always with a doubt

Only where something beside the script says TensorFlow: the operator, the image, or what is
installed. What the flags do not say is left out. On several GPUs `--batch_size` may be of one or of
all, so it is a gap.
"""

from __future__ import annotations

import re
from dataclasses import replace

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag, Flags
from admission.detect.invocation import Invocation
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, Match
from admission.detect.scripts.pictures import is_off_gpu, put_picture
from admission.detect.scripts.verbs import put_batch

_MODEL = ("model", "model_name", "arch", "architecture", "network", "backbone")
_BATCH = ("batch_size", "batchsize")
_BATCH_EACH = ("per_gpu_batch_size", "per_replica_batch_size")
_APPLICATIONS = re.compile(
    r"resnet(50|101|152)(v2)?|vgg1[69]|mobilenet(v2|v3small|v3large)?|densenet(121|169|201)|"
    r"inceptionv3|inceptionresnetv2|xception|nasnet(mobile|large)|efficientnetb[0-7]|"
    r"efficientnetv2(b[0-3]|s|m|l)|convnext(tiny|small|base|large|xlarge)"
)
"""Names in keras.applications, in lower case and without separators."""
_PACKAGES = ("tensorflow", "tensorflow-gpu", "keras", "tf-nightly")
_IMAGES = ("tensorflow", "tensorflow-gpu", "keras")
_OPERATOR = "TF_CONFIG"
"""The variable that only TensorFlow's operators set."""
_OPTIMIZERS = ("sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "lamb")
_HALF = ("mixed_float16", "float16", "fp16", "mixed", "amp")


def read(call: Call, draft: Draft) -> None:
    """Fill the draft with what the flags say."""
    flags = call.flags
    flag = _model_flag(flags)
    if flag is not None and flag.value is not None:
        draft.put("model.source", "keras", flag.source)
        draft.put("model.name", _plain(flag.value.text), flag.source)
    _batch(call, draft)
    put_picture(draft, flags.get("image_size", "img_size", "input_size"))
    optimizer = flags.get("optimizer")
    if optimizer is not None and optimizer.value is not None:
        name = optimizer.value.text.lower()
        if name in _OPTIMIZERS:
            draft.put("training.optimizer", {"name": name}, optimizer.source)
    half = flags.get("mixed_precision", "precision", "dtype", "fp16", "amp", "use_fp16")
    if half is not None and half.is_on and (half.value is None or half.value.text in (*_HALF, "1")):
        draft.put("training.precision", "amp-fp16", half.source)
    draft.doubt(
        f"{call.origin}: {call.invocation.name:.80} is not a script that is known; its model and "
        "batch are read by the names of its flags, and what it does otherwise is not seen"
    )


def _batch(call: Call, draft: Draft) -> None:
    each, whole = call.flags.get(*_BATCH_EACH), call.flags.get(*_BATCH)
    if each is not None:
        put_batch(call, draft, each)
        return
    if whole is not None and (call.gpus > 1 or call.ranks.total > 1):
        draft.gap(
            "input.batchSize",
            "parallelism.strategy",
            code=ReasonCode.NO_BATCH,
            path=whole.field,
            reason=f"whether {whole.spelling} is of one GPU or of all is not known",
            hint=annotation_hint("input.batchSize"),
        )
        return
    put_batch(call, draft, whole)


def _model_flag(flags: Flags) -> Flag | None:
    flag = flags.get(*_MODEL)
    word = flag.value if flag is not None else None
    is_known = word is not None and word.is_known and _APPLICATIONS.fullmatch(_plain(word.text))
    return flag if is_known else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _match(_invocation: Invocation, flags: Flags) -> Match:
    """Return how sure it is: never more than by flags."""
    has_batch = flags.has(*_BATCH, *_BATCH_EACH)
    return Match.FLAGS if has_batch and _model_flag(flags) is not None else Match.NO


def _may_claim(invocation: Invocation) -> bool:
    """Return whether something beside the script says TensorFlow."""
    if invocation.is_module:
        return False
    repository = invocation.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return (
        _OPERATOR in invocation.variables
        or repository in _IMAGES
        or any(name in invocation.versions for name in _PACKAGES)
    )


FAMILY = replace(
    family_of("keras_scripts", read, is_on_cpu=is_off_gpu, is_closed=False),
    match=_match,
    may_claim=_may_claim,
)
