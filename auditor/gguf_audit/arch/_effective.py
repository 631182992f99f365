"""Values that llama.cpp uses where a file has no key, each with where it comes from.

``llama_model_base::load_hparams`` (src/llama-model.cpp) and the initial values of
``llama_hparams`` (src/llama-hparams.h), llama.cpp build 11434. What an architecture sets
itself before it reads a key is in ``Architecture.defaults``.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch._derived import derived
from gguf_audit.fields import Fields, Origin, Value
from gguf_audit.gguf import Scalar
from gguf_audit.limits import LIMITS

__all__ = ["effective"]

#: Key -> what a file without it gets, whatever its architecture.
CONSTANTS: Mapping[str, Scalar] = {
    "attention.causal": True,
    "attention.clamp_kqv": 0.0,
    "attention.indexer.kpool_select_tail": True,
    "attention.indexer.top_k": 0,
    "attention.max_alibi_bias": 0.0,
    "attention.q_lora_rank": 0,
    "attention.scale": 0.0,
    "attention.shared_kv_layers": 0,
    "attention.temperature_length": 0,
    "attention.temperature_scale": 0.0,
    "attention.value_scale": 1.0,
    "decision.block_count": 0,
    "dense_2_feat_in": 0,
    "dense_2_feat_out": 0,
    "dense_3_feat_in": 0,
    "dense_3_feat_out": 0,
    "embedding_scale": 0.0,
    "expert_chunk_feed_forward_length": 0,
    "expert_count": 0,
    "expert_group_count": 0,
    "expert_group_used_count": 0,
    "expert_latent_length": 0,
    "expert_shared_count": 0,
    "expert_used_count": 0,
    "expert_weights_norm": False,
    "expert_weights_scale": 0.0,
    "feed_forward_length": 0,
    "hrm.prefix_lm": False,
    "kda.safe_gate": True,
    "leading_dense_block_count": 0,
    "logit_scale": 0.0,
    "moe_latent_size": 0,
    "n_deepstack_layers": 0,
    "nextn_predict_layers": 0,
    "norm_before_fc": False,
    "norm_before_residual": False,
    "num_loops": 1,
    "rescale_every_n_layers": 0,
    "residual_scale": 0.0,
    "rope.freq_base": 10000.0,
    "rope.scaling.alpha": 0.0,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.factor": 1.0,
    "rope.scaling.finetuned": False,
    "rope.scaling.type": "linear",
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.yarn_beta_fast": 32.0,
    "rope.scaling.yarn_beta_slow": 1.0,
    "rope.scaling.yarn_ext_factor": -1.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
    "skip_loop_final_norm": False,
    "ssm.dt_b_c_rms": False,
    "swiglu_clamp_exp": 0.0,
    "swiglu_clamp_shexp": 0.0,
    "swin_norm": False,
    "token_shift_count": 2,
}
#: Keys that hold four sections, none of which is used where the key is absent.
NO_SECTIONS = {"rope.dimension_sections": (0, 0, 0, 0)}
#: The defaults of an architecture that has none of its own.
NONE: Mapping[str, Scalar] = {}
#: Key -> the key whose value it takes.
ALIASES: Mapping[str, str] = {
    "attention.head_count_kv": "attention.head_count",
    "attention.key_length_swa": "attention.key_length",
    "attention.value_length_swa": "attention.value_length",
    "decoder_block_count": "block_count",
    "embedding_length_out": "embedding_length",
    "rope.dimension_count": "attention.key_length",
    "rope.dimension_count_swa": "rope.dimension_count",
    "rope.freq_base_swa": "rope.freq_base",
    "rope.scaling.original_context_length": "context_length",
}
#: Name that a key had once -> still read where the new one is absent.
OLD_NAMES: Mapping[str, str] = {"rope.scaling.factor": "rope.scale_linear"}


def effective(
    fields: Fields, name: str, *, defaults: Mapping[str, Scalar]
) -> Value[Scalar | tuple[Scalar, ...]] | None:
    """Return the value that llama.cpp uses for a key named without its prefix.

    ``defaults`` are those of the architecture (``Architecture.defaults``). ``None``
    where it has no default and the key is absent. Doesn't check types. An array with more
    items than any model has blocks is one of no use to llama.cpp: its value is ``()``.
    """
    for candidate in (name, OLD_NAMES.get(name, name)):
        found = fields.find(candidate)
        if found is not None:
            value = found.value if isinstance(found.value, Scalar) else _items(fields, candidate)
            return Value(value=value, origin=Origin.KEY, key=fields.key(candidate))
    default = _default(fields, name, defaults)
    if default is None:
        return None
    return Value(value=default, origin=Origin.RUNTIME_DEFAULT, key=fields.key(name))


def _items(fields: Fields, name: str) -> tuple[Scalar, ...]:
    """Return an array's items; none of an endless one, so that nobody has to unpack it."""
    found = fields.find(name)
    if found is None or isinstance(found.value, Scalar) or len(found.value) > LIMITS.blocks:
        return ()
    return fields.items(name) or ()


def _default(
    fields: Fields, name: str, defaults: Mapping[str, Scalar]
) -> Scalar | tuple[Scalar, ...] | None:
    own = defaults.get(name)
    if own is None:
        own = derived(fields, name)
    if own is not None:
        return own
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in NO_SECTIONS:
        return NO_SECTIONS[name]
    if name in ("attention.key_length", "attention.value_length"):
        return _head_length(fields)
    if name in ALIASES:
        other = effective(fields, ALIASES[name], defaults=defaults)
        return None if other is None else other.value
    return None


def _head_length(fields: Fields) -> int | None:
    width = fields.find("embedding_length")
    heads = fields.find("attention.head_count")
    if width is None or heads is None:
        return None
    count = heads.value
    if not isinstance(count, Scalar):
        items = _items(fields, "attention.head_count") or (0,)
        count = items[0]
    if not isinstance(width.value, int) or not isinstance(count, int):
        return None
    return width.value // count if count > 0 else 0
