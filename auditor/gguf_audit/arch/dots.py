"""dots.llm1, and dots3-note with latents, windows and an indexer.

src/models/dots1.cpp, dots3note.cpp and src/llama-kv-cache-dsa-iswa.cpp of llama.cpp
build 11434; ``Dots1Model`` in conversion/dots1.py, ``Dots3NoteModel`` in dots3.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, flags, needs_heads, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._latent import INDEXER, indexer, latent, packed_lengths, unpacked
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._recipe import Recipe, either, needed, sizes
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import index_keys, latent_keys
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Indexer, Latent, Layer

__all__ = ["ARCHITECTURES"]

NOTE = (
    RMS,
    "expert_shared_count",
    "expert_feed_forward_length",
    "leading_dense_block_count",
    "expert_gating_func",
    "attention.q_lora_rank",
    "attention.kv_lora_rank",
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank_swa",
    "attention.key_length_mla_swa",
    "attention.value_length_mla_swa",
    "attention.sliding_window",
    "rope.freq_base_swa",
    *INDEXER,
)


def _note(hyper: Hyper) -> LlamaModel:
    check(hyper, NOTE)
    needs_heads(hyper)
    pattern = _list(hyper, "attention.sliding_window_pattern")
    own = _list(hyper, "attention.indexer.types")
    if packed_lengths(hyper) is None:
        name = "attention.key_length_mla"
        raise refuse(hyper.fields, name, "dots3note has no other form than MLA")
    tokens = require(hyper.fields, "attention.sliding_window")
    layers: list[Layer] = []
    for index in range(hyper.trunk):
        store = latent(hyper, index)
        picker = indexer(hyper)
        if pattern[index]:
            store = _windowed_latent(hyper, tokens)
            # the indexer's cache has window layers too, with the length of their own
            picker = replace(picker, key_length=hyper.key_length_swa)
        beside = (picker,) if own[index] else ()
        layers.append(Layer(index=index, stores=(store, *beside)))
    return hyper.model(
        layers,
        windowed=pattern,
        traits=(Trait.ONE_TYPE,),
        unpacked=[unpacked(hyper, index) for index in range(hyper.trunk)],
    )


def _windowed_latent(hyper: Hyper, tokens: int) -> Latent:
    rank = require(hyper.fields, "attention.kv_lora_rank_swa")
    rope = hyper.fields.integer("rope.dimension_count_swa")
    if rope is None:
        rope = hyper.fields.integer("rope.dimension_count")
    length = hyper.key_length_swa
    if rope is not None and length != rank + rope:
        message = f"window rows of {length} elements for a rank of {rank} and {rope} of RoPE"
        raise refuse(hyper.fields, "attention.key_length_swa", message, aborts=True)
    return Latent(kv_heads=1, key_length=length, window_tokens=tokens)


def _list(hyper: Hyper, name: str) -> tuple[bool, ...]:
    found = flags(hyper, name)
    if found is None:
        raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is absent or no array")
    return found


#: Dots1Config of transformers 4.57.6.
DOTS1: dict[str, Json] = {
    **sizes(152064, 4608, 10944, 62, 32, 32, None, 2048, 1e-6, 1e4),
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 0,
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
}
DOTS1_RECIPE = Recipe(
    takes=("Dots1ForCausalLM",),
    writes="dots1",
    defaults={"dots1": DOTS1},
    needs={
        "leading_dense_block_count": "first_k_dense_replace",
        "expert_shared_count": "n_shared_experts",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_weights_scale": "routed_scaling_factor",
        "expert_weights_norm": "norm_topk_prob",
    },
)

WINDOWED = {
    "attention.sliding_window": "sliding_window_size",
    "attention.kv_lora_rank_swa": "swa_kv_lora_rank",
    "attention.value_length_swa": "swa_kv_lora_rank",
    "attention.value_length_mla_swa": "swa_v_head_dim",
}


def _note_pattern(config: Config, blocks: int) -> tuple[bool, ...]:
    """Return which layers have a window: draft blocks do."""
    trunk = config.blocks()
    kinds = config.strings("layer_types") or ()
    if len(kinds) < trunk:
        raise malformed("layer_types", list(kinds)[:8], f"an array of {trunk} items")
    return tuple(index >= trunk or kinds[index] == "sliding_attention" for index in range(blocks))


def _note_of(config: Config, drafts: int) -> Draft:
    pattern = _note_pattern(config, config.blocks(drafts=drafts))
    heads = config.need("num_attention_heads")
    window_heads = config.need("swa_num_attention_heads")
    keys = latent_keys(config.without("head_dim"))
    rank, rope = config.need("swa_kv_lora_rank"), config.need("swa_qk_rope_head_dim")
    trunk = pattern[: config.blocks()]
    keys |= needed(config, WINDOWED) | index_keys(config)
    keys |= {
        "block_count": len(pattern),
        "attention.head_count": tuple(window_heads if window else heads for window in pattern),
        "attention.sliding_window_pattern": trunk,
        "attention.key_length_swa": rank + rope,
        "attention.key_length_mla_swa": config.need("swa_qk_nope_head_dim") + rope,
        "attention.indexer.types": tuple(not window for window in trunk),
    }
    return {**keys, "nextn_predict_layers": drafts} if drafts else keys


def _note_keys(config: Config) -> Keys:
    # whether there is a draft block shows in the tensors alone
    return either(_note_of(config, 0), _note_of(config, 1))


def _note_ideal(config: Config) -> CacheLayout:
    full = Latent(
        kv_heads=1, key_length=config.need("kv_lora_rank") + config.need("qk_rope_head_dim")
    )
    picker = Indexer(kv_heads=1, key_length=config.need("index_head_dim"))
    window = Latent(
        kv_heads=1,
        key_length=config.need("swa_kv_lora_rank") + config.need("swa_qk_rope_head_dim"),
        window_tokens=config.need("sliding_window_size"),
    )
    return _ideal.layout(
        (window,) if windowed else (full, picker)
        for windowed in _note_pattern(config, config.blocks())
    )


NOTE_CONVERTER = Converter(
    takes=(
        "Dots3NoteForCausalLM",
        "Dots3NoteForConditionalGeneration",
        "Dots3NoteTextForCausalLM",
    ),
    writes="dots3note",
    keys=_note_keys,
    ideal=_note_ideal,
)

ARCHITECTURES = (
    Architecture(
        names=("dots1",),
        implied=plain(RMS, "expert_feed_forward_length", "expert_shared_count"),
        converters=(DOTS1_RECIPE.converter(),),
    ),
    Architecture(
        names=("dots3note",),
        implied=_note,
        converters=(NOTE_CONVERTER,),
        saves=frozenset({"latent", "window"}),
    ),
)
