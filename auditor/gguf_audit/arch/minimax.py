"""MiniMax-01 with lightning attention, M2 with plain, M3 with sparse attention.

src/models/minimax-01.cpp, minimax-m2.cpp, minimax-m3.cpp and src/llama-kv-cache-msa.cpp
of llama.cpp build 11434; conversion/minimax.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._model import Hyper, LlamaModel, Trait, refuse, require
from gguf_audit.arch._recipe import Recipe, number, sizes
from gguf_audit.arch._states import even_batches, hybrid, intervals, parts
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.errors import UnsupportedError
from gguf_audit.layout import CacheLayout, Indexer, Layer, Store
from gguf_audit.where import Where

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"


def _lightning(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS, "residual_scale"))
    needs_heads(hyper)
    state = parts(state=hyper.key_length * hyper.key_length * hyper.heads[0])
    recurrent = intervals(hyper, 8)
    return hybrid(hyper, recurrent, state, traits=even_batches(hyper, recurrent))


def _sparse(hyper: Hyper) -> LlamaModel:
    required = (
        RMS,
        EXPERTS,
        "expert_shared_count",
        "expert_gating_func",
        "attention.indexer.head_count",
        "attention.indexer.key_length",
        "attention.indexer.top_k",
        "attention.indexer.block_size",
        "attention.indexer.local_blocks",
    )
    check(hyper, required)
    needs_heads(hyper)
    if require(hyper.fields, "attention.indexer.block_size") == 0:
        name = "attention.indexer.block_size"
        raise refuse(hyper.fields, name, f"{hyper.fields.key(name)} is 0", aborts=True)
    dense = hyper.fields.integer("leading_dense_block_count") or 0
    # one head of values is kept as well, though only keys are read
    indexer = Indexer(
        kv_heads=1,
        key_length=require(hyper.fields, "attention.indexer.key_length"),
        value_length=hyper.value_length,
    )
    pickers = require(hyper.fields, "attention.indexer.head_count")
    layers: list[Layer] = []
    for index in range(hyper.blocks):
        stores: tuple[Store, ...] = (hyper.full(index),)
        layers.append(Layer(index=index, stores=(*stores, indexer) if index >= dense else stores))
    odd = any(kv_heads != pickers for kv_heads in hyper.kv_heads[dense:])
    return hyper.model(layers, traits=(Trait.UNPICKED,) if odd else ())


#: MiniMaxM2Config of transformers 5.24.
M2: dict[str, Json] = {
    **sizes(200064, 3072, 1536, 62, 48, 8, 128, 196608, 1e-6, 5e6),
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
}


def _text_01_more(config: Config, keys: Draft) -> Draft:
    """Return keys with the one residual scale that llama.cpp has for all branches."""
    kinds = ("layernorm_full_attention", "layernorm_linear_attention", "layernorm_mlp")
    alphas = {number(config, f"{kind}_alpha") for kind in kinds}
    betas = {number(config, f"{kind}_beta") for kind in kinds}
    if len(alphas) > 1 or betas != {1.0}:
        where = Where(file="config.json", key="layernorm_mlp_alpha")
        raise UnsupportedError("the converter knows one residual scale for all", where=where)
    return keys | {
        "residual_scale": alphas.pop(),
        "rope.dimension_count": config.need("rotary_dim"),
    }


def _text_01_ideal(config: Config) -> CacheLayout:
    heads = _ideal.heads(config)
    queries = config.need("num_attention_heads")
    state = _ideal.state(ssm=heads.key_length * heads.key_length * queries)
    kinds = config.counts("attn_type_list")
    blocks = config.blocks()
    if kinds is None:
        types = _ideal.layer_types(config, lambda _: ())
        kinds = tuple(int(kind == "full_attention") for kind in types)
    if len(kinds) < blocks:
        raise malformed("attn_type_list", len(kinds), "one item per layer")
    return _ideal.layout(heads if kind == 1 else state for kind in kinds[:blocks])


def _m2_more(config: Config, keys: Draft) -> Draft:
    return keys | {
        EXPERTS: config.need("intermediate_size"),
        "rope.dimension_count": config.need("rotary_dim"),
    }


#: Key -> name in ``sparse_attention_config``.
SPARSE = {
    "attention.indexer.head_count": "sparse_num_index_heads",
    "attention.indexer.key_length": "sparse_index_dim",
    "attention.indexer.top_k": "sparse_topk_blocks",
    "attention.indexer.block_size": "sparse_block_size",
    "attention.indexer.local_blocks": "sparse_local_block",
}


def _m3_more(config: Config, keys: Draft) -> Draft:
    sparse = config.mapping("sparse_attention_config") or {}
    keys = _m2_more(config, keys)
    for key, name in SPARSE.items():
        value = sparse.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise malformed(name, value, "a whole number")
        keys[key] = value
    return keys | {"leading_dense_block_count": _dense(config), "expert_weights_norm": True}


def _dense(config: Config) -> int:
    kinds = config.counts("moe_layer_freq") or ()
    return next((index for index, kind in enumerate(kinds) if kind), len(kinds))


def _m3_ideal(config: Config) -> CacheLayout:
    heads = _ideal.heads(config)
    sparse = config.mapping("sparse_attention_config") or {}
    length = sparse.get("sparse_index_dim")
    if isinstance(length, bool) or not isinstance(length, int):
        raise malformed("sparse_index_dim", length, "a whole number")
    picker = Indexer(kv_heads=1, key_length=length)
    dense = _dense(config)
    return _ideal.layout(
        (heads,) if index < dense else (heads, picker) for index in range(config.blocks())
    )


TEXT_01_RECIPE = Recipe(
    takes=("MiniMaxM1ForCausalLM", "MiniMaxText01ForCausalLM"),
    writes="minimax-01",
    more=_text_01_more,
    ideal=_text_01_ideal,
)
M2_RECIPE = Recipe(
    takes=("MiniMaxM2ForCausalLM",),
    writes="minimax-m2",
    defaults={"minimax_m2": M2},
    more=_m2_more,
)
M3_RECIPE = Recipe(
    takes=("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"),
    writes="minimax-m3",
    needs={
        "expert_shared_count": "n_shared_experts",
        "expert_weights_scale": "routed_scaling_factor",
    },
    more=_m3_more,
    ideal=_m3_ideal,
)

ARCHITECTURES = (
    Architecture(
        names=("minimax-01",),
        implied=_lightning,
        converters=(TEXT_01_RECIPE.converter(),),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("minimax-m2",), implied=plain(RMS, EXPERTS), converters=(M2_RECIPE.converter(),)
    ),
    Architecture(names=("minimax-m3",), implied=_sparse, converters=(M3_RECIPE.converter(),)),
)
