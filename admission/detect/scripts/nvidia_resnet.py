"""resnet.py of the nvidia-examples in NVIDIA's TensorFlow images.

flags -> model, batch of one process in the draft

Source: the recipe `nvidia_resnet`. Variables are fp32; fp16 is what is computed in, by default.
SGD with momentum 0.9 under LARC; gradients are summed by Horovod. Pictures are 224 wide.
Not modelled: LARC's norms, DALI's own memory on the GPU.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft, annotation_hint
from admission.detect.flags import Flag
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call, source_of_default
from admission.detect.scripts.pictures import put_horovod, put_plain, put_sgd
from admission.detect.scripts.verbs import number_of, put_batch, put_choice

_NAME = "nvidia_resnet"
_OWN = "NVIDIA resnet.py"
_DEPTHS = (18, 34, 50, 101, 152)
_SIDE = 224
_PRECISIONS = {"fp16": "amp-fp16", "fp32": "fp32"}


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags, source = call.flags, source_of_default(_OWN)
    _model(call, draft, flags.get("layers"))
    put_batch(call, draft, flags.setting("batch_size"))
    draft.put("input.imageSize", [3, _SIDE, _SIDE], source)
    precision = flags.setting("precision")
    put_choice(draft, "training.precision", precision, _PRECISIONS, what="precision")
    put_sgd(draft, flags, source=source)
    put_plain(draft, source=source)
    put_horovod(call, draft, source=source)
    if flags.is_on("use_dali"):
        draft.warnings.append(f"{call.origin}: DALI's own memory on the GPU is not counted")
    predict = flags.get("predict")
    if predict is not None:
        draft.put("phase", "infer", predict.source)


def _model(call: Call, draft: Draft, flag: Flag | None) -> None:
    depth = number_of(flag)
    if flag is not None and depth in _DEPTHS:
        draft.put("model.source", "keras", flag.source)
        draft.put("model.name", f"resnet{depth}", flag.source)
        return
    word = flag.value if flag is not None else None
    draft.gap(
        "model.name",
        code=word.code if word is not None and not word.is_known else ReasonCode.NO_MODEL,
        path=flag.field if flag is not None else call.origin,
        reason=f"--layers {word.text if word is not None else ''}".rstrip()
        + f" is none of {', '.join(map(str, _DEPTHS))}",
        hint=annotation_hint("model.name"),
    )


FAMILY = family_of(_NAME, read)
