"""RWKV 6 and 7, and Qwen2 models distilled into them: a state and nothing else.

src/models/rwkv6.cpp, rwkv6qwen2.cpp, rwkv7.cpp and arwkv7.cpp of llama.cpp build 11434;
conversion/rwkv.py.
"""

from __future__ import annotations

from collections.abc import Callable

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, check
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel, refuse, require
from gguf_audit.arch._recipe import number
from gguf_audit.arch._states import parts
from gguf_audit.arch.architecture import Architecture, Converter, unconverted
from gguf_audit.arch.mamba import NO_LIMIT
from gguf_audit.layout import CacheLayout, Layer

__all__ = ["ARCHITECTURES"]

RWKV6 = ("wkv.head_size", "time_mix_extra_dim", "time_decay_extra_dim")
RWKV7 = (
    "wkv.head_size",
    "attention.decay_lora_rank",
    "attention.iclr_lora_rank",
    "attention.value_residual_mix_lora_rank",
)
#: Optional to the loader, which then asserts that no dimension of its tensors is 0.
GATE = "attention.gate_lora_rank"


def _rwkv(*required: str, shifts: int) -> Callable[[Hyper], LlamaModel]:
    """Return how an RWKV is read whose graph asserts ``shifts`` token shifts."""

    def implied(hyper: Hyper) -> LlamaModel:
        check(hyper, required)
        if required == RWKV7 and not hyper.fields.integer(GATE):
            message = f"{hyper.fields.key(GATE)} is absent or 0"
            raise refuse(hyper.fields, GATE, message, aborts=True)
        size = require(hyper.fields, "wkv.head_size")
        count = hyper.fields.integer("token_shift_count")
        count = 2 if count is None else count
        if count != shifts:
            message = f"{count} token shifts, the graph asserts {shifts}"
            raise refuse(hyper.fields, "token_shift_count", message, aborts=True)
        width = hyper.embedding_length
        state = parts(shift=count * width, wkv=width * size)
        return hyper.model(Layer(index=index, stores=(state,)) for index in range(hyper.trunk))

    return implied


def _rwkv6_keys(config: Config) -> Keys:
    width = config.need("hidden_size")
    feed_forward = config.integer("intermediate_size")
    large = width == 4096
    return {
        "context_length": NO_LIMIT,
        "embedding_length": width,
        "block_count": config.blocks(),
        NORM: number(config, "layer_norm_epsilon"),
        "rescale_every_n_layers": config.need("rescale_every"),
        "wkv.head_size": config.need("head_size"),
        "time_mix_extra_dim": 64 if large else 32,
        "time_decay_extra_dim": 128 if large else 64,
        "feed_forward_length": int(width * 3.5 // 32 * 32)
        if feed_forward is None
        else feed_forward,
        "attention.head_count": 0,
    }


def _rwkv6qwen2_keys(config: Config) -> Keys:
    width = config.need("hidden_size")
    heads = config.need("num_attention_heads")
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    large = width >= 4096
    mix = config.integer("lora_rank_tokenshift")
    decay = config.integer("lora_rank_decay")
    return {
        "context_length": NO_LIMIT,
        "embedding_length": width,
        "block_count": config.blocks(),
        "wkv.head_size": width // heads,
        "time_mix_extra_dim": (64 if large else 32) if mix is None else mix,
        "time_decay_extra_dim": (128 if large else 64) if decay is None else decay,
        "feed_forward_length": config.need("intermediate_size"),
        RMS: number(config, "rms_norm_eps"),
        "token_shift_count": 1,
        "attention.head_count_kv": config.need("num_key_value_heads"),
        "attention.head_count": 0,
    }


#: Key -> names in the config, exponent and factor of its default.
RANKS = {
    "attention.decay_lora_rank": ("lora_rank_decay", "decay_low_rank_dim", 0.5, 1.8),
    "attention.iclr_lora_rank": ("lora_rank_iclr", "a_low_rank_dim", 0.5, 1.8),
    "attention.value_residual_mix_lora_rank": (
        "lora_rank_value_residual_mix",
        "v_low_rank_dim",
        0.5,
        1.3,
    ),
    "attention.gate_lora_rank": ("lora_rank_gate", "gate_low_rank_dim", 0.8, 0.6),
}


def _rwkv7_keys(config: Config) -> Keys:
    width = config.need("hidden_size")
    feed_forward = config.integer("intermediate_size")
    keys: Draft = {
        "context_length": NO_LIMIT,
        "embedding_length": width,
        "block_count": config.blocks(),
        NORM: number(config, "layer_norm_epsilon", "norm_eps"),
        "wkv.head_size": config.need("head_size", "head_dim"),
        "feed_forward_length": 4 * width if feed_forward is None else feed_forward,
        "attention.head_count": 0,
    }
    for key, (name, other, exponent, factor) in RANKS.items():
        if config.first(name, other) is None:
            raise malformed(name, None, "a number, or null for its default")
        rank = config.integer(name, other)
        keys[key] = _rank(width, exponent, factor) if rank is None else rank
    return keys


def _rank(width: int, exponent: float, factor: float) -> int:
    rounded = round(width**exponent * factor / 32)
    return max(1, int(rounded)) * 32


def _arwkv7_keys(config: Config) -> Keys:
    gated = config.boolean("wkv_has_gate")
    return {
        "context_length": NO_LIMIT,
        "embedding_length": config.need("hidden_size"),
        "block_count": config.blocks(),
        RMS: number(config, "rms_norm_eps"),
        "wkv.head_size": config.need("head_size"),
        "attention.decay_lora_rank": 64,
        "attention.iclr_lora_rank": 64,
        "attention.value_residual_mix_lora_rank": 32,
        "attention.gate_lora_rank": 128 if gated else 0,
        "feed_forward_length": config.need("intermediate_size"),
        "token_shift_count": 1,
        "attention.head_count": 0,
    }


def _states(shifts: int) -> Callable[[Config], CacheLayout]:
    def ideal(config: Config) -> CacheLayout:
        width = config.need("hidden_size")
        size = config.integer("head_size", "head_dim")
        if size is None:
            size = width // max(1, config.need("num_attention_heads"))
        state = _ideal.state(conv=shifts * width, ssm=width * size)
        return _ideal.layout(state for _ in range(config.blocks()))

    return ideal


def _converter(
    *takes: str, writes: str, keys: Callable[[Config], Keys], shifts: int
) -> tuple[Converter, ...]:
    return (Converter(takes=takes, writes=writes, keys=keys, ideal=_states(shifts)),)


ARCHITECTURES = (
    Architecture(
        names=("rwkv6",),
        implied=_rwkv(*RWKV6, shifts=2),
        converters=(
            *_converter("Rwkv6ForCausalLM", writes="rwkv6", keys=_rwkv6_keys, shifts=2),
            unconverted("RwkvForCausalLM", ideal=_states(2)),
        ),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("rwkv7",),
        implied=_rwkv(*RWKV7, shifts=2),
        converters=_converter(
            "RWKV7ForCausalLM", "Rwkv7ForCausalLM", writes="rwkv7", keys=_rwkv7_keys, shifts=2
        ),
        saves=frozenset({"state"}),
    ),
    Architecture(
        names=("rwkv6qwen2",),
        implied=_rwkv(*RWKV6, shifts=1),
        converters=_converter(
            "RWKV6Qwen2ForCausalLM", writes="rwkv6qwen2", keys=_rwkv6qwen2_keys, shifts=1
        ),
        saves=frozenset({"state"}),
        verified=False,
    ),
    Architecture(
        names=("arwkv7",),
        implied=_rwkv(*RWKV7, shifts=1),
        converters=_converter(
            "RwkvHybridForCausalLM", writes="arwkv7", keys=_arwkv7_keys, shifts=1
        ),
        saves=frozenset({"state"}),
    ),
)
