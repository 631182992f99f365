"""Qwen3-Next and Qwen3.5: three gated delta nets to one layer of attention.

src/models/qwen3next.cpp, qwen35.cpp and qwen35moe.cpp of llama.cpp build 11434;
``Qwen3NextModel`` and ``Qwen3_5TextModel`` in conversion/qwen.py.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, check, needs_heads
from gguf_audit.arch._base import Draft, rope_parameters
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Either
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import Recipe, needed, rope_share, sizes, with_drafts
from gguf_audit.arch._states import SSM, hybrid, intervals, selective
from gguf_audit.arch.architecture import Architecture
from gguf_audit.arch.qwen import EXPERTS, SHARED
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Recurrent, Store

__all__ = ["ARCHITECTURES"]


def _delta_net(hyper: Hyper) -> LlamaModel:
    check(hyper, (RMS,))
    if hyper.architecture != "qwen3next":
        check(hyper, ("rope.dimension_sections",))
    check(hyper, (*SSM, "ssm.group_count"))
    needs_heads(hyper)
    return hybrid(hyper, intervals(hyper, 4), selective(hyper))


#: Qwen3NextConfig of transformers 4.57.6, Qwen3_5TextConfig and Qwen3_5MoeTextConfig of 5.24.
NETS: dict[str, Json] = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "partial_rotary_factor": 0.25,
}
QWEN3_NEXT = sizes(151936, 2048, 5632, 48, 16, 2, 256, 32768, 1e-6, 1e4) | {
    **NETS,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}

WRITTEN = {
    "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.state_size": "linear_key_head_dim",
    "ssm.group_count": "linear_num_key_heads",
    "ssm.time_step_rank": "linear_num_value_heads",
}
#: Sections that llama.cpp wants and that a text-only config doesn't have.
SECTIONS = (11, 11, 10, 0)
FULL_INTERVAL = 4


def _more(config: Config, keys: Draft) -> Draft:
    blocks = config.blocks()
    drafts = config.integer("mtp_num_hidden_layers") or 0
    if drafts == 0 and config.get("model_type") in ("qwen3_next", None):
        # counted in the tensors: every published Qwen3-Next has one
        drafts = 1
    keys = with_drafts(keys | needed(config, WRITTEN), config, drafts)
    heads = config.need("linear_num_value_heads")
    keys["ssm.inner_size"] = config.need("linear_value_head_dim") * heads
    interval = config.integer("full_attention_interval")
    keys["full_attention_interval"] = FULL_INTERVAL if interval is None else interval
    types = config.strings("layer_types")
    if types is None and config.get("model_type") == "qwen3_next":
        types = _types(config, blocks)
    if types is not None:
        if len(types) != blocks:
            raise malformed("layer_types", len(types), f"an array of {blocks} items")
        recurrent = tuple(kind == "linear_attention" for kind in types)
        alone = (recurrent,) if drafts else ()
        keys["attention.recurrent_layers"] = Either((*recurrent, *(False,) * drafts), alone)
    return keys


def _more_sections(config: Config, keys: Draft) -> Draft:
    keys = _more(config, keys)
    if "mrope_section" not in rope_parameters(config):
        keys["rope.dimension_sections"] = SECTIONS
    return keys


def _types(config: Config, blocks: int) -> tuple[str, ...]:
    interval = config.integer("full_attention_interval") or FULL_INTERVAL
    return tuple(
        "full_attention" if (index + 1) % interval == 0 else "linear_attention"
        for index in range(blocks)
    )


def _ideal_layout(config: Config) -> CacheLayout:
    types = _ideal.layer_types(config, lambda blocks: _types(config, blocks))
    heads = _ideal.heads(config)
    state = _state(config)
    return _ideal.layout(_store(kind, heads, state) for kind in types)


def _store(kind: str, heads: Store, state: Recurrent) -> Store:
    return state if kind == "linear_attention" else heads


def _state(config: Config) -> Recurrent:
    keys = config.need("linear_key_head_dim") * config.need("linear_num_key_heads")
    values = config.need("linear_value_head_dim") * config.need("linear_num_value_heads")
    steps = config.need("linear_conv_kernel_dim") - 1
    return _ideal.state(
        conv=steps * (2 * keys + values), ssm=config.need("linear_key_head_dim") * values
    )


def _recipe(*takes: str, writes: str, defaults: dict[str, dict[str, Json]]) -> Recipe:
    return Recipe(
        takes=takes,
        writes=writes,
        defaults=defaults,
        copies=EXPERTS | SHARED,
        rope=rope_share(0.25),
        more=_more if writes == "qwen3next" else _more_sections,
        ideal=_ideal_layout,
    )


RECIPES = {
    "qwen3next": _recipe(
        "Qwen3NextForCausalLM", writes="qwen3next", defaults={"qwen3_next": QWEN3_NEXT}
    ),
    "qwen35": _recipe(
        "MiniCPMV4_6ForConditionalGeneration",
        "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        writes="qwen35",
        defaults={"qwen3_5_text": NETS},
    ),
    "qwen35moe": _recipe(
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
        writes="qwen35moe",
        defaults={"qwen3_5_moe_text": NETS},
    ),
}

ARCHITECTURES = tuple(
    Architecture(
        names=(name,),
        implied=_delta_net,
        converters=(recipe.converter(),),
        saves=frozenset({"state"}),
    )
    for name, recipe in RECIPES.items()
)
