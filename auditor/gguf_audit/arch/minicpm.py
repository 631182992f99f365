"""MiniCPM 1 to 3 and PLM: from 3 on, latent attention that llama.cpp keeps unpacked.

src/models/minicpm.cpp, minicpm3.cpp and plm.cpp of llama.cpp build 11434;
conversion/minicpm.py and plm.py. Every head's key and value is in the cache, 22 times the
latent for MiniCPM3-4B.
"""

from __future__ import annotations

from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import Recipe, copied, number
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.deepseek import ideal_latents
from gguf_audit.errors import Refused
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]


def _scales(config: Config, keys: Draft) -> Draft:
    base = number(config, "dim_model_base")
    if base == 0:
        raise malformed("dim_model_base", 0, "a width")
    return keys | {
        "embedding_scale": number(config, "scale_emb"),
        "residual_scale": number(config, "scale_depth") / config.blocks() ** 0.5,
        "logit_scale": config.need("hidden_size") / base,
    }


def _minicpm3_keys(config: Config) -> Keys:
    rope = config.need("qk_rope_head_dim")
    keys: Draft = {
        "context_length": config.need("max_position_embeddings"),
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        "feed_forward_length": config.need("intermediate_size"),
        "attention.head_count": config.need("num_attention_heads"),
        "attention.head_count_kv": config.need("num_key_value_heads"),
        RMS: number(config, "rms_norm_eps"),
        "vocab_size": config.need("vocab_size"),
        "attention.kv_lora_rank": config.need("kv_lora_rank"),
        "attention.key_length": config.need("qk_nope_head_dim") + rope,
        "rope.dimension_count": rope,
    }
    return keys | copied(config, {"attention.q_lora_rank": "q_lora_rank"})


def _plm_more(config: Config, keys: Draft) -> Draft:
    rope = config.need("qk_rope_head_dim")
    return keys | {
        "attention.key_length": config.need("qk_nope_head_dim") + rope,
        "rope.dimension_count": rope,
    }


MINICPM_RECIPE = Recipe(takes=("MiniCPMForCausalLM",), writes="minicpm", more=_scales)
PLM_RECIPE = Recipe(
    takes=("PLMForCausalLM",),
    writes="plm",
    needs={
        "vocab_size": "vocab_size",
        "attention.kv_lora_rank": "kv_lora_rank",
        "attention.value_length": "v_head_dim",
    },
    more=_plm_more,
    ideal=ideal_latents,
)


def _plm(hyper: Hyper) -> LlamaModel:
    """Raise Refused: plm.cpp hands attention values without heads, and the graph asserts."""
    plain(RMS, "attention.kv_lora_rank")(hyper)
    message = "llama.cpp b11434 can't build the graph of any PLM model (plm.cpp)"
    where = Where(key="general.architecture")
    raise Refused(message, kind="aborts", where=where)


ARCHITECTURES = (
    Architecture(
        names=("minicpm",),
        implied=plain(RMS),
        converters=(MINICPM_RECIPE.converter(),),
        defaults={"embedding_scale": 12.0},
    ),
    Architecture(
        names=("minicpm3",),
        implied=plain(RMS, "attention.q_lora_rank", "attention.kv_lora_rank"),
        converters=(
            Converter(
                takes=("MiniCPM3ForCausalLM",),
                writes="minicpm3",
                keys=_minicpm3_keys,
                ideal=ideal_latents,
            ),
        ),
    ),
    Architecture(
        names=("plm",),
        implied=_plm,
        converters=(PLM_RECIPE.converter(),),
        verified=False,
    ),
)
