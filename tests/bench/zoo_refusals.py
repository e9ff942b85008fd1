"""Heads of transformers that have no estimate, and why: what `make soak` expects.

    kind of reason -> model type / class, of transformers 5.24.0

`UNTRAINED`, `BROKEN` and `PACKAGES` are no fault of ours: a real run fails alike.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a head has no estimate."""

    UNTRAINED = "the library has no loss for it"
    BROKEN = "the library's own step fails"
    PACKAGES = "needs a package that is not installed"
    VALUES = "sizes depend on values"
    OPERATORS = "an operator is not followed on stand-ins"


REFUSALS: dict[Reason, tuple[str, ...]] = {
    Reason.UNTRAINED: (
        "chmv2/CHMv2ForDepthEstimation",
        "colmodernvbert/ColModernVBertForRetrieval",
        "colpali/ColPaliForRetrieval",
        "colqwen2/ColQwen2ForRetrieval",
        "depth_anything/DepthAnythingForDepthEstimation",
        "depth_pro/DepthProForDepthEstimation",
        "dpt/DPTForDepthEstimation",
        "gemma4_assistant/Gemma4AssistantForCausalLM",
        "gemma4_unified_assistant/Gemma4UnifiedAssistantForCausalLM",
        "omdet-turbo/OmDetTurboForObjectDetection",
        "pp_doclayout_v2/PPDocLayoutV2ForObjectDetection",
        "pp_doclayout_v3/PPDocLayoutV3ForObjectDetection",
        "pp_doclayout_v4/PPDocLayoutV4ForObjectDetection",
        "prompt_depth_anything/PromptDepthAnythingForDepthEstimation",
        "tipsv2_dpt/Tipsv2DptForDepthEstimation",
        "unispeech/UniSpeechForPreTraining",
        "videomt/VideomtForUniversalSegmentation",
        "zoedepth/ZoeDepthForDepthEstimation",
    ),
    Reason.BROKEN: (
        "llama4/Llama4ForConditionalGeneration",
        "nemotron3_5_asr/Nemotron3_5AsrForRNNT",
        "nemotron_asr_streaming/NemotronAsrStreamingForRNNT",
    ),
    Reason.PACKAGES: (
        "dinat/DinatForImageClassification",
        "layoutlmv2/LayoutLMv2ForQuestionAnswering",
        "layoutlmv2/LayoutLMv2ForSequenceClassification",
        "layoutlmv2/LayoutLMv2ForTokenClassification",
        "parakeet_rnnt/ParakeetForRNNT",
    ),
    Reason.VALUES: (
        "blt/BltForCausalLM",
        "dbrx/DbrxForCausalLM",
        "ernie4_5_vl_moe/Ernie4_5_VLMoeForConditionalGeneration",
        "vilt/ViltForQuestionAnswering",
    ),
    Reason.OPERATORS: (
        "granite_speech/GraniteSpeechForConditionalGeneration",
        "granite_speech_plus/GraniteSpeechPlusForConditionalGeneration",
    ),
}
"""Queries of one sample that attend to a batch are taken for one sample (granite_speech)."""


def reason_of(case: str) -> Reason | None:
    """Return why *case*, `library/task/type/class`, is expected to have no estimate."""
    library, _, head = case.split("/", 2)
    if library != "transformers":
        return None
    return next((reason for reason, heads in REFUSALS.items() if head in heads), None)
