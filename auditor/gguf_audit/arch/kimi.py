"""Kimi Linear and K3: delta attention with latents among it, as in their relatives.

src/models/kimi-linear.cpp, kimi-k3.cpp, bailingmoe3.cpp and glm5-next.cpp of llama.cpp
build 11434; conversion/kimi_linear.py and kimi_k3.py. A block with 0 key-value heads has
a state instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either, Keys
from gguf_audit.arch._latent import latent, packed_lengths, unpacked
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._recipe import copied, needed
from gguf_audit.arch._states import delta, even_batches, without_kv
from gguf_audit.arch.architecture import Architecture, Converter, Saving
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Indexer, Latent, Layer, Recurrent, Store
from gguf_audit.where import Where

__all__ = [
    "ARCHITECTURES",
    "SAVES",
    "delta_latents",
    "delta_state",
    "linear_of",
    "linear_state",
    "number_of",
]

COMMON = (
    RMS,
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.kv_lora_rank",
    "ssm.conv_kernel",
    "kda.head_dim",
    "expert_feed_forward_length",
    "expert_shared_count",
)
REQUIRED = {
    "kimi-linear": ("expert_gating_func",),
    "kimi-k3": (
        "expert_gating_func",
        "attn_res.block_size",
        "activation.situ_beta",
        "activation.situ_linear_beta",
    ),
    "bailingmoe3": ("expert_gating_func", "kda.gate_lower_bound", "leading_dense_block_count"),
    "glm5-next": (
        "attention.q_lora_rank",
        "attention.indexer.head_count",
        "attention.indexer.key_length",
        "attention.indexer.top_k",
        "attention.indexer.kpool",
        "hyper_connection.count",
        "hyper_connection.sinkhorn_iterations",
        "hyper_connection.epsilon",
    ),
}
#: Key, gate and pooled key stand side by side in a cell.
POOLED_ROWS = 3


def delta_latents(hyper: Hyper) -> LlamaModel:
    """Return a model with states where there are no key-value heads, else latents."""
    check(hyper, COMMON)
    check(hyper, REQUIRED[hyper.architecture])
    needs_heads(hyper)
    if packed_lengths(hyper) is None:
        raise refuse(
            hyper.fields,
            "attention.key_length_mla",
            f"{hyper.architecture} has no other form than MLA",
            aborts=True,
        )
    if hyper.architecture in ("kimi-k3", "glm5-next"):
        # the value is read out of the latent, whatever value_length says
        rank = require(hyper.fields, "attention.kv_lora_rank")
        hyper = replace(hyper, value_length=rank)
    layers = [Layer(index=index, stores=_stores(hyper, index)) for index in range(hyper.blocks)]
    if hyper.architecture == "glm5-next":
        layers = layers[: hyper.trunk]
    kept = [layer for layer in layers if layer.index < hyper.trunk or layer.stores]
    traits = [Trait.ONE_TYPE]
    if hyper.architecture == "kimi-linear":
        traits.extend(even_batches(hyper, without_kv(hyper)))
    return hyper.model(
        kept,
        traits=traits,
        unpacked=[unpacked(hyper, layer.index) for layer in kept if hyper.kv_heads[layer.index]],
    )


def _stores(hyper: Hyper, index: int) -> tuple[Store, ...]:
    if hyper.kv_heads[index] == 0:
        return (delta(hyper),) if index < hyper.trunk else ()
    store = latent(hyper, index)
    if hyper.architecture != "glm5-next" or not _own_indexer(hyper, index):
        return (store,)
    length = require(hyper.fields, "attention.indexer.key_length")
    return (store, Indexer(kv_heads=1, key_length=length * POOLED_ROWS))


def _own_indexer(hyper: Hyper, index: int) -> bool:
    pool = require(hyper.fields, "attention.indexer.kpool")
    budget = require(hyper.fields, "attention.indexer.top_k")
    if pool <= 1 or budget % pool:
        message = f"pools of {pool} tokens for a budget of {budget}"
        raise refuse(hyper.fields, "attention.indexer.kpool", message, aborts=True)
    own = hyper.fields.per_block("attention.indexer.types", hyper.trunk)
    return index < hyper.trunk and (own is None or bool(own[index]))


def linear_of(config: Config) -> Mapping[str, Json]:
    """Return the part of a config about the layers that keep a state."""
    linear = config.mapping("linear_attn_config")
    if linear is None:
        raise malformed("linear_attn_config", None, "an object")
    return linear


def number_of(linear: Mapping[str, Json], name: str) -> int:
    """Return a count out of a part of a config."""
    value = linear.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise malformed(name, value, "a whole number")
    return value


def _attends(config: Config) -> tuple[bool, ...]:
    """Return which layers attend; the config counts layers from 1."""
    listed = linear_of(config).get("full_attn_layers")
    if not isinstance(listed, list):
        raise malformed("full_attn_layers", listed, "an array")
    return tuple(index + 1 in listed for index in range(config.blocks()))


LINEAR = {
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "num_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "expert_weights_scale": "routed_scaling_factor",
    "vocab_size": "vocab_size",
}


def _keys(config: Config) -> Draft:
    """Return what Kimi Linear and K3 have in common."""
    keys = base_keys(config.with_values(num_key_value_heads=1))
    linear = linear_of(config)
    rank = config.need("kv_lora_rank", "n_lora_kv")
    rope = config.need("qk_rope_head_dim", "n_rot")
    keys |= {
        **needed(config, LINEAR),
        "attention.head_count_kv": tuple(int(attends) for attends in _attends(config)),
        "ssm.conv_kernel": number_of(linear, "short_conv_kernel_size"),
        "kda.head_dim": number_of(linear, "head_dim"),
        "attention.kv_lora_rank": rank,
        "rope.dimension_count": rope,
        "attention.key_length": rank + rope,
        "attention.key_length_mla": config.need("qk_nope_head_dim") + rope,
        "attention.value_length_mla": config.need("v_head_dim"),
    }
    return keys | copied(config, {"attention.q_lora_rank": "q_lora_rank"})


def _linear_keys(config: Config) -> Keys:
    keys = _keys(config)
    if "context_length" not in keys:
        # transformers 5 knows the class, which has a length of its own
        keys["context_length"] = Either(None, (1048576,))
    return keys


def _k3_keys(config: Config) -> Keys:
    if not config.boolean("mla_use_nope") or config.get("hidden_act") != "situ":
        where = Where(file="config.json", key="mla_use_nope")
        raise UnsupportedError("the converter wants latents without RoPE and situ", where=where)
    keys = _keys(config)
    bound = linear_of(config).get("gate_lower_bound")
    if bound is not None:
        keys["kda.gate_lower_bound"] = to_number("gate_lower_bound", bound)
    names = {
        "expert_weights_norm": "moe_renormalize",
        "activation.situ_beta": "activation_situ_beta",
        "activation.situ_linear_beta": "activation_situ_linear_beta",
        "attn_res.block_size": "attn_res_block_size",
    }
    keys |= needed(config, names) | copied(
        config, {"expert_latent_length": "routed_expert_hidden_size"}
    )
    return keys | {
        "attention.value_length": config.need("kv_lora_rank"),
        "expert_gating_func": 2,
    }


def delta_state(*, kernel: int, heads: int, length: int) -> Recurrent:
    """Return the state of one layer of delta attention (KDA)."""
    steps = max(kernel - 1, 0)
    return _ideal.state(conv=3 * steps * heads * length, ssm=length * length * heads)


def linear_state(config: Config) -> Recurrent:
    """Return the same out of ``linear_attn_config``."""
    linear = linear_of(config)
    return delta_state(
        kernel=number_of(linear, "short_conv_kernel_size"),
        heads=number_of(linear, "num_heads"),
        length=number_of(linear, "head_dim"),
    )


def _ideal_layout(config: Config) -> CacheLayout:
    state = linear_state(config)
    rank = config.need("kv_lora_rank", "n_lora_kv")
    rope = config.need("qk_rope_head_dim", "n_rot")
    store = Latent(kv_heads=1, key_length=rank + rope)
    return _ideal.layout(store if attends else state for attends in _attends(config))


LINEAR_CONVERTER = Converter(
    takes=("KimiLinearForCausalLM", "KimiLinearModel"),
    writes="kimi-linear",
    keys=_linear_keys,
    ideal=_ideal_layout,
)
K3_CONVERTER = Converter(
    takes=("KimiK3ForConditionalGeneration",),
    writes="kimi-k3",
    keys=_k3_keys,
    ideal=_ideal_layout,
)
SAVES: frozenset[Saving] = frozenset({"latent", "state"})

ARCHITECTURES = (
    Architecture(
        names=("kimi-linear",), implied=delta_latents, converters=(LINEAR_CONVERTER,), saves=SAVES
    ),
    Architecture(
        names=("kimi-k3",),
        implied=delta_latents,
        converters=(K3_CONVERTER,),
        defaults={"kda.gate_lower_bound": float("-inf")},
        saves=SAVES,
    ),
)
