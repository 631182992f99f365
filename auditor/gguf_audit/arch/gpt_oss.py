"""gpt-oss: a window on every second layer.

src/models/openai-moe.cpp of llama.cpp build 11434; ``GptOssModel`` in
conversion/gpt_oss.py. The period isn't written.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, windowed
from gguf_audit.arch._config import Config
from gguf_audit.arch._recipe import Recipe, sizes
from gguf_audit.arch.architecture import Architecture
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = ["ARCHITECTURES"]

#: GptOssConfig of transformers 4.57.6.
DEFAULTS: dict[str, Json] = {
    **sizes(201088, 2880, 2880, 36, 64, 8, 64, 131072, 1e-5, 150000.0),
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "original_max_position_embeddings": 4096,
    },
}


def _ideal_layout(config: Config) -> CacheLayout:
    types = _ideal.layer_types(config, lambda blocks: _ideal.periodic(2, blocks))
    return _ideal.windowed(config, types, config.integer("sliding_window"))


GPT_OSS = Recipe(
    takes=("GptOssForCausalLM",),
    writes="gpt-oss",
    defaults={"gpt_oss": DEFAULTS},
    needs={
        "attention.sliding_window": "sliding_window",
        "expert_feed_forward_length": "intermediate_size",
    },
    ideal=_ideal_layout,
)

ARCHITECTURES = (
    Architecture(
        names=("gpt-oss",),
        implied=windowed(Window(period=2), RMS, "expert_feed_forward_length"),
        converters=(GPT_OSS.converter(),),
        saves=frozenset({"window"}),
    ),
)
