"""T5: one cache for the decoder's own attention; cross attention keeps nothing.

src/models/t5.cpp and t5encoder.cpp of llama.cpp build 11434; conversion/t5.py. The graph
of the decoder asserts where sequences have streams of their own (measured). The encoder
alone gets a cache that it never reads.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import NORM, RMS, plain
from gguf_audit.arch._base import Draft
from gguf_audit.arch._config import Config
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Trait
from gguf_audit.arch._recipe import number
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full, Layer

__all__ = ["ARCHITECTURES"]

BUCKETS = "attention.relative_buckets_count"

#: T5Config and, where it differs, MT5Config and UMT5Config of transformers 4.57.6.
T5: dict[str, Json] = {
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": 6,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "layer_norm_epsilon": 1e-6,
}
MT5: dict[str, Json] = {
    **T5,
    "d_ff": 1024,
    "num_layers": 8,
    "num_decoder_layers": 8,
    "num_heads": 6,
    "decoder_start_token_id": 0,
}


def _encoder_keys(config: Config) -> Draft:
    length = config.need("d_kv")
    epsilon = number(config, "layer_norm_epsilon")
    positions = config.integer("n_positions")
    return {
        "context_length": 512 if positions is None else positions,
        "embedding_length": config.need("d_model"),
        "feed_forward_length": config.need("d_ff"),
        "block_count": config.blocks(),
        "attention.head_count": config.need("num_heads"),
        "attention.key_length": length,
        "attention.value_length": length,
        NORM: epsilon,
        RMS: epsilon,
        BUCKETS: config.need("relative_attention_num_buckets"),
    }


def _keys(config: Config) -> Keys:
    keys = _encoder_keys(config)
    decoders = config.integer("num_decoder_layers")
    keys["decoder_block_count"] = config.blocks() if decoders is None else decoders
    keys["decoder_start_token_id"] = config.need("decoder_start_token_id")
    return keys


def _ideal_layout(config: Config) -> CacheLayout:
    length = config.need("d_kv")
    store = Full(kv_heads=config.need("num_heads"), key_length=length, value_length=length)
    return _ideal.layout(store for _ in range(config.blocks()))


def _nothing(config: Config) -> CacheLayout:
    return CacheLayout(layers=tuple(Layer(index=index) for index in range(config.blocks())))


CONVERTER = Converter(
    takes=(
        "MT5ForConditionalGeneration",
        "T5ForConditionalGeneration",
        "T5WithLMHeadModel",
        "UMT5ForConditionalGeneration",
        "UMT5Model",
    ),
    writes="t5",
    defaults={"t5": T5, "mt5": MT5, "umt5": MT5},
    keys=_keys,
    ideal=_ideal_layout,
)
ENCODER = Converter(
    takes=("T5EncoderModel",),
    writes="t5encoder",
    defaults={"t5": T5},
    keys=_encoder_keys,
    ideal=_nothing,
)

ARCHITECTURES = (
    Architecture(
        names=("t5",),
        implied=plain(RMS, BUCKETS, traits=(Trait.ONE_STREAM,)),
        converters=(CONVERTER,),
    ),
    Architecture(names=("t5encoder",), implied=plain(RMS, BUCKETS), converters=(ENCODER,)),
)
