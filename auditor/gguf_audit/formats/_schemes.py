"""From which files a converter class takes its tokens.

``set_vocab`` of every class in ``conversion/`` of llama.cpp, build 11434.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

__all__ = ["Scheme", "Source", "scheme_of"]


class Source(enum.Enum):
    """One way to read a vocabulary; the converter tries the next where files are missing."""

    #: ``AutoTokenizer``: tokenizer.json, or vocab.json and merges.txt (``get_vocab_base``).
    BPE = enum.auto()
    #: The same as a WordPiece vocabulary (``BertModel.set_vocab``); not of unigrams.
    WORD_PIECE = enum.auto()
    #: ``tokenizer.model`` (``_create_vocab_sentencepiece``).
    SENTENCEPIECE = enum.auto()
    #: ``tokenizer.model``, with added tokens as Phi 3 has them.
    PHI3 = enum.auto()
    #: ``tokenizer.json`` of byte-pair encoding with byte fallback (``LlamaHfVocab``).
    LLAMA_HF = enum.auto()
    #: The same with merges (``Gemma4Model.set_vocab``).
    GEMMA4 = enum.auto()
    #: ``tokenizer.model`` or ``spiece.model`` of unigrams (``T5Model.set_vocab``).
    UNIGRAM = enum.auto()
    #: ``sentencepiece.bpe.model`` or tokenizer.json (``_xlmroberta_set_vocab``).
    XLM_ROBERTA = enum.auto()
    #: Something of the class' own that we don't know.
    UNKNOWN = enum.auto()


class Scheme(Struct, frozen=True, kw_only=True):
    """How one converter class makes a vocabulary."""

    sources: tuple[Source, ...]
    #: Switches that it sets before the tokenizer's own files are asked, and after.
    before: Mapping[str, bool] = field(default_factory=dict[str, bool])
    after: Mapping[str, bool] = field(default_factory=dict[str, bool])
    #: ``add_space_prefix`` is what tokenizer_config.json has as ``add_prefix_space``;
    #: ``null`` there is none to a few classes, false to the others.
    asks_prefix: Literal["no", "or none", "or false"] = "no"


def scheme_of(name: str | None) -> Scheme:
    """Return how the converter reads the vocabulary of a Hugging Face class."""
    return _SCHEMES.get(name or "", _BPE)


_BPE = Scheme(sources=(Source.BPE,))
_PIECES = Scheme(sources=(Source.SENTENCEPIECE,))
_PIECES_OR_BPE = Scheme(sources=(Source.SENTENCEPIECE, Source.BPE))
_BPE_OR_PIECES = Scheme(sources=(Source.BPE, Source.SENTENCEPIECE))
_NO_PREFIX = {"add_space_prefix": False}
_GEMMA = Scheme(sources=(Source.SENTENCEPIECE,), after=_NO_PREFIX)
# Only with tokenizer.model do Gemma 3 and its like write the switch: with tokenizer.json
# llama.cpp's own default is the same.
_GEMMA3 = Scheme(sources=(Source.SENTENCEPIECE, Source.BPE), after=_NO_PREFIX)
_GEMMA4 = Scheme(sources=(Source.GEMMA4,), after={**_NO_PREFIX, "add_bos_token": True})
_LLAMA = Scheme(
    sources=(Source.SENTENCEPIECE, Source.LLAMA_HF, Source.BPE),
    asks_prefix="or none",
)
_ERNIE = Scheme(sources=(Source.SENTENCEPIECE,), asks_prefix="or false")
_JAMBA = Scheme(sources=(Source.SENTENCEPIECE, Source.LLAMA_HF))
_PHI3 = Scheme(sources=(Source.PHI3,))
_BERT = Scheme(sources=(Source.WORD_PIECE,))
_MODERN_BERT = Scheme(
    sources=(Source.BPE,),
    before={"add_bos_token": True, "add_eos_token": True, "add_sep_token": True},
)
_NOMIC = Scheme(sources=(Source.WORD_PIECE, Source.XLM_ROBERTA))
_XLM_ROBERTA = Scheme(sources=(Source.XLM_ROBERTA,))
_T5 = Scheme(sources=(Source.UNIGRAM,))
_NO_BOS_BEFORE = Scheme(sources=(Source.BPE,), before={"add_bos_token": False})
_UNKNOWN = Scheme(sources=(Source.UNKNOWN,))

_CLASSES: tuple[tuple[Scheme, tuple[str, ...]], ...] = (
    (
        _LLAMA,
        (
            *("AfmoeForCausalLM", "ApertusForCausalLM", "ArceeForCausalLM", "CogVLMForCausalLM"),
            *("GraniteForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeSWAForCausalLM"),
            *("GraniteMoeSharedForCausalLM", "GraniteSWAForCausalLM", "GraniteSwitchForCausalLM"),
            *("IQuestCoderForCausalLM", "JanusForConditionalGeneration", "LLaMAForCausalLM"),
            *("LlamaBidirectionalModel", "LlamaForCausalLM", "LlamaModel"),
            *("LlavaForConditionalGeneration", "Ministral3ForCausalLM", "MistralForCausalLM"),
            *("Mistral3ForConditionalGeneration", "MixtralForCausalLM", "NanbeigeForCausalLM"),
            *("Sarashina2VisionForCausalLM", "SmolLM3ForCausalLM", "VLlama3ForCausalLM"),
            "VoxtralForConditionalGeneration",
        ),
    ),
    (
        _PIECES_OR_BPE,
        (
            *("DeepseekForCausalLM", "DreamModel", "Qwen2ForCausalLM", "Qwen2Model"),
            *("Qwen2AudioForConditionalGeneration", "KORMoForCausalLM", "DotsOCRForCausalLM"),
            *("AudioFlamingo3ForConditionalGeneration", "Qwen2VLModel", "Qwen2_5OmniModel"),
            *("Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration"),
            *("Qwen3ForCausalLM", "Qwen3Model", "Qwen3VLForConditionalGeneration"),
            *("Mamba2ForCausalLM", "GraniteMoeHybridForCausalLM", "BambaForCausalLM"),
            *("RWKV6Qwen2ForCausalLM", "RwkvHybridForCausalLM", "GrokForCausalLM"),
            *("Grok1ForCausalLM", "StepVLForConditionalGeneration"),
        ),
    ),
    (_BPE_OR_PIECES, ("FalconMambaForCausalLM", "MambaForCausalLM", "MambaLMHeadModel")),
    (
        _PIECES,
        (
            *("BaiChuanForCausalLM", "BaichuanForCausalLM", "BitNetForCausalLM"),
            *("BitnetForCausalLM", "MiniCPM3ForCausalLM", "MiniCPMForCausalLM"),
            *("NemotronForCausalLM", "OpenELMForCausalLM", "OrionForCausalLM", "PlamoForCausalLM"),
        ),
    ),
    (
        _ERNIE,
        (
            *("Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM", "Ernie4_5_MoeForCausalLM"),
            *("PaddleOCRVLForConditionalGeneration", "PanguEmbeddedForCausalLM"),
        ),
    ),
    (_GEMMA, ("Gemma2ForCausalLM", "GemmaForCausalLM")),
    (
        _GEMMA3,
        (
            *("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma3TextModel"),
            *("Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"),
        ),
    ),
    (
        _GEMMA4,
        (
            *("Gemma4AssistantForCausalLM", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"),
            *("Gemma4UnifiedAssistantForCausalLM", "Gemma4UnifiedForConditionalGeneration"),
        ),
    ),
    (_JAMBA, ("JambaForCausalLM",)),
    (_PHI3, ("Phi3ForCausalLM", "Phi4ForCausalLMV", "PhiMoEForCausalLM")),
    (
        _BERT,
        (
            *("BertForMaskedLM", "BertForSequenceClassification", "BertModel", "CamembertModel"),
            *("DistilBertForMaskedLM", "DistilBertForSequenceClassification", "DistilBertModel"),
            *("NeoBERT", "NeoBERTForSequenceClassification", "NeoBERTLMHead"),
        ),
    ),
    (
        _MODERN_BERT,
        ("ModernBertForMaskedLM", "ModernBertForSequenceClassification", "ModernBertModel"),
    ),
    (_NOMIC, ("NomicBertModel",)),
    (_XLM_ROBERTA, ("XLMRobertaForSequenceClassification", "XLMRobertaModel")),
    (
        _T5,
        (
            *("MT5ForConditionalGeneration", "T5EncoderModel", "T5ForConditionalGeneration"),
            *("T5WithLMHeadModel", "UMT5ForConditionalGeneration", "UMT5Model"),
        ),
    ),
    (_NO_BOS_BEFORE, ("EuroBertModel", "JinaEmbeddingsV5Model", "PhiForCausalLM")),
    (
        Scheme(sources=(Source.BPE,), after={"add_bos_token": True}),
        ("LLaDAModelLM",),
    ),
    (
        _UNKNOWN,
        (
            *("ArcticForCausalLM", "ChatGLMForConditionalGeneration", "ChatGLMModel"),
            *("DFlash2DraftModel", "DFlashDraftModel", "DSparkDraftModel", "DSparkSpeculator"),
            *("DeciLMForCausalLM", "DeepseekV4DSparkModel", "Eagle3DraftModel"),
            *("Eagle3LlamaForCausalLM", "Eagle3Speculator", "Gemma4DSparkModel"),
            *("HunYuanMoEV1ForCausalLM", "InternLM2ForCausalLM", "InternLM3ForCausalLM"),
            *("InternS1ForConditionalGeneration", "JinaBertForMaskedLM", "JinaBertModel"),
            *("KimiK3ForConditionalGeneration", "LagunaForCausalLM", "Lfm25AudioTokenizer"),
            *("Lfm2DSparkDraftModel", "LingDSparkModel", "LlamaForCausalLMEagle3"),
            *("MPTForCausalLM", "MuseGlimmerAssistantModel", "PLaMo2ForCausalLM"),
            *("PLaMo3ForCausalLM", "Plamo2ForCausalLM", "Plamo3ForCausalLM", "PocketTTSModel"),
            *("QWenLMHeadModel", "Qwen3DSparkModel", "Qwen3TTSForConditionalGeneration"),
            *("RWKV7ForCausalLM", "Rwkv6ForCausalLM", "Rwkv7ForCausalLM", "WavTokenizerDec"),
            "XverseForCausalLM",
        ),
    ),
)
_SCHEMES: Mapping[str, Scheme] = {name: scheme for scheme, names in _CLASSES for name in names}
