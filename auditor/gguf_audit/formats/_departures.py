"""How converter classes depart from what gguf-py makes of special tokens.

``SpecialVocab`` (gguf-py/gguf/vocab.py) serves most of them; these set ids of their
own on top (llama.cpp build 11434, ``conversion/``).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from gguf_audit.checkpoint import Json
from gguf_audit.text_model import class_of, text_part

__all__ = ["Departure", "departure_of", "vocabulary_size"]


class Departure(Struct, frozen=True, kw_only=True):
    """How one converter class departs from ``SpecialVocab``."""

    #: Name -> token looked up among the added ones where the name has no id yet.
    tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Name -> id that is written whatever the tokenizer says.
    ids: Mapping[str, int] = field(default_factory=dict[str, int])
    #: File without which the above doesn't apply.
    file: str | None = None
    #: Names whose id depends on the version of transformers.
    unsure: frozenset[str] = frozenset()
    #: The class makes its own special ids, and we don't know how.
    unknown: bool = False


def departure_of(config: Mapping[str, Json]) -> Departure:
    """Return how the converter class of a checkpoint departs, if it does.

    Raises MalformedError for a config of which nobody can tell the class.
    """
    name = class_of(config) or ""
    if name == "LlamaForCausalLM" and vocabulary_size(config) == 32_016:
        return _CODE_LLAMA
    return _DEPARTURES.get(name, _NONE)


def vocabulary_size(config: Mapping[str, Json]) -> Json:
    """Return ``vocab_size`` as the converter sees it, the text model's first."""
    part = text_part(config) or {}
    return part["vocab_size"] if "vocab_size" in part else config.get("vocab_size")


# conversion/glm.py (build 11434), Glm4Model.set_vocab
_GLM4 = Departure(
    tokens={
        "eos": "<|endoftext|>",
        "eot": "<|user|>",
        "unk": "<|endoftext|>",
        "bos": "<|endoftext|>",
    }
)
# conversion/base.py, _set_vocab_glm
_GLM4_MOE = Departure(
    tokens={
        "bos": "[gMASK]",
        "eot": "<|user|>",
        "unk": "<|endoftext|>",
        "eom": "<|observation|>",
    }
)
# conversion/base.py, _set_vocab_rwkv_world
_RWKV = Departure(ids={"bos": 0, "eos": 0, "eot": 261}, file="rwkv_vocab_v20230424.txt")
# conversion/llama.py, LlamaModel.set_vocab: CodeLlama is told by its vocabulary
_CODE_LLAMA = Departure(ids={"eot": 32_010})
_NONE = Departure()
_UNKNOWN = Departure(unknown=True)

#: HF architecture -> departure of its converter class.
_DEPARTURES: Mapping[str, Departure] = {
    "Glm4ForCausalLM": _GLM4,
    "Glm4vForConditionalGeneration": _GLM4,
    "GlmOcrForConditionalGeneration": _GLM4,
    "Glm4MoeForCausalLM": _GLM4_MOE,
    "Glm4MoeLiteForCausalLM": _GLM4_MOE,
    "Glm4vMoeForConditionalGeneration": _GLM4_MOE,
    "GlmMoeDsaForCausalLM": _GLM4_MOE,
    "RWKV7ForCausalLM": _RWKV,
    "Rwkv6ForCausalLM": _RWKV,
    "Rwkv7ForCausalLM": _RWKV,
    # conversion/gemma.py, GemmaModel.set_vocab
    "GemmaForCausalLM": Departure(ids={"eot": 107}),
    # conversion/nemotron.py, NemotronModel.set_vocab
    "NemotronForCausalLM": Departure(ids={"pad": 0, "unk": 1}),
    # conversion/llada.py, LLaDAMoEModel.set_gguf_parameters
    "LLaDAMoEModel": Departure(ids={"mask": 156_895}),
    "LLaDAMoEModelLM": Departure(ids={"mask": 156_895}),
    # conversion/hunyuan.py, _fix_special_tokens: eod_token_id, which transformers 5
    # fills in, and generation_config.json
    "HunYuanDenseV1ForCausalLM": Departure(unsure=frozenset({"eos", "eot"})),
    "HunYuanVLForConditionalGeneration": Departure(unsure=frozenset({"eos", "eot"})),
    **dict.fromkeys(
        (
            "ChameleonForCausalLM",
            "ChameleonForConditionalGeneration",
            "ChatGLMForConditionalGeneration",
            "ChatGLMModel",
            "DFlash2DraftModel",
            "DFlashDraftModel",
            "Dots3NoteForCausalLM",
            "Dots3NoteForConditionalGeneration",
            "GPTRefactForCausalLM",
            "Glm5NextForConditionalGeneration",
            "GlmForCausalLM",
            "Grok1ForCausalLM",
            "GrokForCausalLM",
            "HYV3ForCausalLM",
            "HrmTextForCausalLM",
            "HunYuanMoEV1ForCausalLM",
            "InternLM2ForCausalLM",
            "InternLM3ForCausalLM",
            "JAISLMHeadModel",
            "KimiK3ForConditionalGeneration",
            "LagunaForCausalLM",
            "Lfm25AudioTokenizer",
            "MPTForCausalLM",
            "MiniMaxM1ForCausalLM",
            "MiniMaxText01ForCausalLM",
            "MuseGlimmerAssistantModel",
            "MuseGlimmerForConditionalGeneration",
            "OpenELMForCausalLM",
            "PLMForCausalLM",
            "PLaMo2ForCausalLM",
            "PLaMo3ForCausalLM",
            "PanguEmbeddedForCausalLM",
            "Plamo2ForCausalLM",
            "Plamo3ForCausalLM",
            "PlamoForCausalLM",
            "PocketTTSModel",
            "QWenLMHeadModel",
            "Qwen3ASRForConditionalGeneration",
            "Qwen3TTSForConditionalGeneration",
            "RWKV6Qwen2ForCausalLM",
            "RwkvHybridForCausalLM",
            "SolarOpenForCausalLM",
            "WavTokenizerDec",
            "XverseForCausalLM",
        ),
        _UNKNOWN,
    ),
}
