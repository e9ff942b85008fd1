"""Kubeflow's train API: `hf_llm_training.py --model_uri hf://… --training_parameters '{…}'`.

    flags, two of them JSON of the Trainer's and LoRA's own keys -> JobSpec

Every weight is frozen and a LoRA adapter is put on it; transformers 4.38 loads the base in fp32.
Source: the recipe `kubeflow_train.yaml`. The data's tokenizer decides the length: it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.codes import ReasonCode
from admission.detect.configs import document_flags
from admission.detect.draft import Draft
from admission.detect.flags import Flags
from admission.detect.scripts.adapters import LoraNames, put_lora
from admission.detect.scripts.by_recipe import family_of
from admission.detect.scripts.family import Call
from admission.detect.scripts.hf_arguments import put_training_arguments, with_trainer
from admission.detect.scripts.hf_sharing import put_sharing
from admission.detect.scripts.nested import mapping_text
from admission.detect.scripts.verbs import put_hub_model

_TASKS: Mapping[str, str] = {
    "AutoModelForCausalLM": "causal-lm",
    "AutoModelForSequenceClassification": "sequence-classification",
    "AutoModelForTokenClassification": "token-classification",
    "AutoModelForQuestionAnswering": "question-answering",
    "AutoModelForMaskedLM": "masked-lm",
    "AutoModelForImageClassification": "image-classification",
}
_LORA = LoraNames(
    rank="r", targets="target_modules", saved="modules_to_save", dora="", rslora="use_rslora"
)
_LOADED = "default of Kubeflow train API: transformers 4.38 loads fp32"


def read(call: Call, draft: Draft) -> None:
    """Fill the draft."""
    flags = call.flags
    put_hub_model(draft, flags.get("model_uri"))
    kind, labels = flags.get("transformer_type"), flags.get("num_labels")
    task = _TASKS.get(kind.value.text) if kind is not None and kind.value is not None else None
    if kind is not None and task is not None:
        draft.put("model.task", task, kind.source)
    if labels is not None and labels.value is not None and labels.value.text != "None":
        draft.integer("model.numLabels", labels)
    inner = with_trainer(call, _below(call, draft, "training_parameters"))
    mixed = next((f for f in map(inner.flags.get, ("bf16", "fp16")) if f and f.is_on), None)
    if mixed is not None:
        draft.put("training.precision", f"amp-{mixed.name}", mixed.source)
    else:
        draft.put("training.precision", "fp32", _LOADED)
    put_training_arguments(inner, draft)
    put_sharing(inner, draft)
    adapter = _below(call, draft, "lora_config", "adapter")
    put_lora(draft, adapter.over(Flags(defaults=flags.defaults)), source="kubeflow", names=_LORA)


def _below(call: Call, draft: Draft, name: str, *paths: str) -> Flags:
    """Return the keys of the JSON that a flag holds; one that is none is a gap."""
    flag = call.flags.get(name)
    document = mapping_text(flag)
    if flag is not None and document is not None:
        return document_flags(document, told_by=flag.source, path=flag.field)
    if flag is not None:
        draft.gap(
            *(paths or ("input.batchSize",)),
            code=flag.value.code
            if flag.value is not None and not flag.value.is_known
            else ReasonCode.INVALID_SPEC,
            path=flag.field,
            reason=f"{flag.spelling} is no JSON mapping",
            hint="state what it says in the annotation vramgate.dev/spec: input: {batchSize: …}",
        )
    return Flags()


FAMILY = family_of("kubeflow_train", read)
