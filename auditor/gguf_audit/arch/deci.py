"""DeciLM and Nemotron-NAS: heads that differ from layer to layer, or are missing.

src/models/deci.cpp of llama.cpp build 11434; ``DeciModel`` in conversion/deci.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, plain
from gguf_audit.arch._base import Draft, base_keys, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._recipe import head_length, number, rope_whole
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full

__all__ = ["ARCHITECTURES"]


def _part(block: Json, name: str) -> Mapping[str, Json]:
    part = block.get(name) if isinstance(block, dict) else None
    if not isinstance(part, dict):
        raise malformed("block_configs", part, f"objects with {name}")
    return part


def _blocks(config: Config) -> list[Json]:
    blocks = config.items("block_configs")
    if blocks is None or len(blocks) != config.blocks():
        raise malformed("block_configs", None, "one object per layer")
    return blocks


def _heads(config: Config) -> tuple[tuple[int, int], ...]:
    """Return the heads and key-value heads of each layer; 0 where it doesn't attend."""
    queries = config.need("num_attention_heads")
    found: list[tuple[int, int]] = []
    for block in _blocks(config):
        attention = _part(block, "attention")
        group = attention.get("n_heads_in_group")
        if group is None:
            linear = attention.get("replace_with_linear") is True
            found.append((queries if linear else 0, 0))
        elif isinstance(group, bool) or not isinstance(group, int) or group <= 0:
            raise malformed("n_heads_in_group", group, "a number of heads")
        else:
            found.append((queries, queries // group))
    return tuple(found)


def _feed_forward(config: Config, block: Json) -> int:
    """Return ``ffn_mult`` of two thirds of eight widths, rounded up to 256."""
    factor = _part(block, "ffn").get("ffn_mult")
    if factor is None:
        return 0
    width = int(2 * to_number("ffn_mult", factor) * config.need("hidden_size") / 3)
    return (width + 255) // 256 * 256


def _keys(config: Config) -> Keys:
    keys = _listed(config) if "block_configs" in config else _plain(config)
    keys["vocab_size"] = config.need("vocab_size")
    keys["rope.dimension_count"] = rope_whole(config)
    return keys


def _listed(config: Config) -> Draft:
    heads = _heads(config)
    length = head_length(config)
    keys: Draft = {
        "attention.head_count_kv": tuple(kv_heads for _, kv_heads in heads),
        "attention.head_count": tuple(queries for queries, _ in heads),
        "feed_forward_length": tuple(_feed_forward(config, block) for block in _blocks(config)),
        "block_count": len(heads),
        "context_length": config.need("max_position_embeddings"),
        "embedding_length": config.need("hidden_size"),
        RMS: number(config, "rms_norm_eps"),
        "attention.key_length": length,
        "attention.value_length": length,
    }
    theta = rope_parameters(config).get("rope_theta")
    if theta is not None:
        keys["rope.freq_base"] = to_number("rope_theta", theta)
    return keys


def _plain(config: Config) -> Draft:
    keys = base_keys(config)
    listed = config.counts("num_key_value_heads_per_layer")
    if listed is not None:
        keys["attention.head_count_kv"] = listed
    return keys


def _ideal_layout(config: Config) -> CacheLayout:
    if "block_configs" in config:
        counts = tuple(kv_heads for _, kv_heads in _heads(config))
    else:
        listed = config.counts("num_key_value_heads_per_layer")
        counts = (
            listed if listed is not None else (_ideal.heads(config).kv_heads,) * config.blocks()
        )
    length = rope_whole(config)
    return _ideal.layout(
        (Full(kv_heads=count, key_length=length, value_length=length),) if count else ()
        for count in counts
    )


ARCHITECTURES = (
    Architecture(
        names=("deci",),
        implied=plain(RMS),
        converters=(
            Converter(takes=("DeciLMForCausalLM",), writes="deci", keys=_keys, ideal=_ideal_layout),
        ),
    ),
)
