"""Architectures whose every layer keeps every token, and that have no module of their own.

Name -> the keys that their ``load_arch_hparams`` won't do without (src/models/*.cpp of
llama.cpp build 11434). What the converter writes for them isn't covered here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch._attention import NORM, RMS, plain
from gguf_audit.arch.architecture import Architecture

__all__ = ["ARCHITECTURES"]

EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_count"

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "apertus": (RMS, "xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"),
    "arcee": (RMS,),
    "arctic": (RMS,),
    "baichuan": (RMS,),
    "bailingmoe": (RMS, EXPERTS, SHARED),
    "bailingmoe2": (RMS, EXPERTS, SHARED, "expert_gating_func"),
    "bitnet": (RMS,),
    "chameleon": (RMS,),
    "cogvlm": (RMS,),
    "dbrx": (NORM, "attention.clamp_kqv"),
    "ernie4_5": (RMS,),
    "ernie4_5-moe": (RMS, EXPERTS, "interleave_moe_layer_step"),
    "grovemoe": (EXPERTS, "expert_group_scale", "experts_per_group", RMS),
    "internlm2": (RMS,),
    "llama-embed": (RMS,),
    "maincoder": (RMS,),
    "openelm": (RMS,),
    "orion": (NORM,),
    "paddleocr": (RMS,),
    "pangu-embedded": (RMS,),
    "pockettts": (NORM,),
    "qwen": (RMS,),
    "seed_oss": (RMS,),
    "smollm3": (RMS,),
    "t5encoder": (RMS, "attention.relative_buckets_count"),
    "talkie": (RMS, "logit_scale"),
    "xverse": (RMS,),
}

ARCHITECTURES = tuple(
    Architecture(names=(name,), implied=plain(*required)) for name, required in REQUIRED.items()
)
