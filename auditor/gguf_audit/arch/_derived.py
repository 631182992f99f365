"""Defaults that llama.cpp works out of other keys, for some architectures.

``load_arch_hparams`` and ``load_arch_tensors`` of src/models/*.cpp, build 11434.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gguf_audit.arch._readers import BOTH_NORMS
from gguf_audit.fields import Fields
from gguf_audit.gguf import Array, Scalar
from gguf_audit.limits import LIMITS

__all__ = ["derived"]

NORM = "attention.layer_norm_epsilon"
RMS = "attention.layer_norm_rms_epsilon"
EXPERTS = "expert_feed_forward_length"
SHARED = "expert_shared_feed_forward_length"
#: A shared expert is as wide as a dense block; as one expert; as all shared ones of them.
LIKE_DENSE = frozenset({"hunyuan-moe", "qwen2moe", "qwen35moe", "qwen3next", "qwen4exp"})
LIKE_ONE = frozenset({"bailingmoe2", "exaone-moe", "hy_v3"})
LIKE_ALL = frozenset({"bailingmoe3", "cohere2moe", "laguna"})
#: Widths that nothing stands in for.
NO_EXPERTS = frozenset({"gemma4", "nemotron_h", "nemotron_h_moe", "smallthinker"})
#: Clamp their shared experts as the others, unless a key says otherwise.
CLAMP_BOTH = frozenset({"deepseek4", "dflash", "glm5-next"})
#: GLM-4.7-Flash, whose first files have no gating function, is known by its size.
FLASH_BLOCKS = (47, 48)
FLASH_VOCABULARY = 154880


def derived(fields: Fields, name: str) -> Scalar | None:
    """Return the default of a key named without prefix, ``None`` where none is worked out."""
    work_out = BY_NAME.get(name)
    return None if work_out is None else work_out(fields)


def _experts(fields: Fields) -> Scalar | None:
    if fields.architecture in NO_EXPERTS:
        return 0
    used = _count(fields, "expert_used_count")
    width = _count(fields, "feed_forward_length")
    if fields.architecture == "grok" or not used:
        return width
    return width // used


def _shared(fields: Fields) -> Scalar | None:
    if fields.architecture in LIKE_DENSE:
        return _count(fields, "feed_forward_length")
    one = _count(fields, EXPERTS)
    if fields.architecture in LIKE_ONE:
        return one
    if fields.architecture in LIKE_ALL:
        return one * max(1, _count(fields, "expert_shared_count"))
    return 0


def _gating(fields: Fields) -> Scalar | None:
    """Return softmax or sigmoid for what deepseek2.cpp reads; others have a fixed default."""
    if fields.architecture not in ("deepseek2", "mistral4"):
        return None
    trunk = _count(fields, "block_count") - _count(fields, "nextn_predict_layers")
    return 2 if trunk in FLASH_BLOCKS and _vocabulary(fields) == FLASH_VOCABULARY else 1


def _clamp(fields: Fields) -> Scalar | None:
    found = fields.find("swiglu_clamp_exp") if fields.architecture in CLAMP_BOTH else None
    return found.value if found is not None and isinstance(found.value, Scalar) else None


def _minicpm_logits(fields: Fields) -> Scalar | None:
    width = _count(fields, "embedding_length")
    return 256.0 / width if fields.architecture == "minicpm" and width else None


def _minicpm_residual(fields: Fields) -> Scalar | None:
    blocks = _count(fields, "block_count")
    return float(1.4 / blocks**0.5) if fields.architecture == "minicpm" and blocks else None


def _epsilon(fields: Fields) -> Scalar | None:
    """Return 0 where either key is enough, so that the other one may be absent."""
    return 0.0 if fields.architecture in BOTH_NORMS else None


def _rms_epsilon(fields: Fields) -> Scalar | None:
    if not fields.architecture.startswith("nemotron_h"):
        return _epsilon(fields)
    found = fields.find(NORM)
    return found.value if found is not None and isinstance(found.value, Scalar) else None


def _count(fields: Fields, name: str) -> int:
    """Return a count, of the widest block where blocks differ; 0 where there is none."""
    found = fields.find(name)
    if found is None:
        return 0
    if isinstance(found.value, Scalar):
        return found.value if isinstance(found.value, int) else 0
    if len(found.value) > LIMITS.blocks:
        return 0
    return max((item for item in fields.items(name) or () if isinstance(item, int)), default=0)


def _vocabulary(fields: Fields) -> int:
    size = _count(fields, "vocab_size")
    if size:
        return size
    for field in fields:
        if field.key == "tokenizer.ggml.tokens" and isinstance(field.value, Array | tuple):
            return len(field.value)
    return 0


BY_NAME: Mapping[str, Callable[[Fields], Scalar | None]] = {
    EXPERTS: _experts,
    SHARED: _shared,
    NORM: _epsilon,
    RMS: _rms_epsilon,
    "expert_gating_func": _gating,
    "logit_scale": _minicpm_logits,
    "residual_scale": _minicpm_residual,
    "swiglu_clamp_shexp": _clamp,
}
