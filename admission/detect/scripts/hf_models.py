"""The model that a script of the Trainer's kind trains.

    --model_name_or_path, --config_name, --model_type -> model in the draft

Source: huggingface/transformers@00d481d1 examples/pytorch.
"""

from __future__ import annotations

from admission.codes import ReasonCode
from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.names import hub_id
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_arguments import put_attention
from admission.detect.scripts.verbs import put_hub_model

_MODEL = ("model_name_or_path", "config_name")


def put_model(call: Call, draft: Draft) -> None:
    """Set the model: from its checkpoint, or from a configuration for training from scratch."""
    flags = call.flags
    flag = flags.setting(_MODEL[0]) or flags.setting(_MODEL[1])
    if flag is None:
        _from_scratch(call, draft)
        return
    if put_hub_model(draft, flag) is None:
        return
    revision = flags.setting("model_revision", "revision")
    word = revision.value if revision is not None else None
    if revision is not None and word is not None and word.is_known and word.text != "main":
        draft.put("model.revision", word.text, revision.source)
    put_attention(draft, flags.setting("attn_implementation"))


def put_companion(draft: Draft, flag: Flag | None, *, precision: str | None = None) -> None:
    """Add the frozen model that *flag* names: it is on the card beside the trained one."""
    path = "model.companions"
    text = draft.word(path, flag)
    if flag is None or text is None:
        return
    name = hub_id(draft.models.get(text.rstrip("/"), text))
    if name is None:
        draft.gap(
            path,
            code=ReasonCode.NO_MODEL,
            path=flag.field,
            reason=f"{flag.spelling} {text:.120} is a path that only the container sees",
            hint="name its Hub id in the annotation vramgate.dev/spec: "
            "model: {companions: [{source: huggingface, name: ORG/MODEL}]}",
        )
        return
    add_companion(draft, name, source=flag.source, precision=precision)


def add_companion(draft: Draft, name: str, *, source: str, precision: str | None = None) -> None:
    """Add a frozen model of the Hub that is held in *precision*."""
    companion = {"source": "huggingface", "name": name}
    if precision:
        companion["precision"] = "fp32" if precision.startswith("amp-") else precision
    draft.put("model.companions", [*(draft.get("model.companions") or ()), companion], source)


def _from_scratch(call: Call, draft: Draft) -> None:
    """Set the model by `--model_type`: that type's default configuration, with overrides."""
    flag = call.flags.setting("model_type")
    model_type = draft.word("model.name", flag)
    if flag is None or model_type is None or call.flags.has("config_overrides"):
        draft.gap(
            "model.name",
            code=ReasonCode.NO_MODEL,
            path=call.origin,
            reason=f"{call.invocation.name:.80} names no model",
            hint="give --model_name_or_path ORG/MODEL, or in the annotation vramgate.dev/spec "
            "model: {source: huggingface, name: ORG/MODEL}",
        )
        return
    draft.put("model.source", "huggingface", call.invocation.name)
    draft.put("model.name", model_type, flag.source)
    draft.put("model.config", {"model_type": model_type}, flag.source)
