"""Values that llama.cpp uses where a file has no key, each with where it comes from.

``llama_model_base::load_hparams`` (src/llama-model.cpp) and the constants of
src/llama-hparams.h, llama.cpp build 11434.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.subject import Fields, Origin, Scalar, Value

__all__ = ["effective"]

#: Key -> what a file without it gets, whatever its architecture.
CONSTANTS: Mapping[str, Scalar] = {
    "attention.causal": True,
    "expert_count": 0,
    "expert_group_count": 0,
    "expert_group_used_count": 0,
    "expert_used_count": 0,
    "leading_dense_block_count": 0,
    "expert_weights_norm": False,
    "expert_shared_count": 0,
    "feed_forward_length": 0,
    "nextn_predict_layers": 0,
    "rope.freq_base": 10000.0,
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
    "rope.scaling.factor": 1.0,
    "rope.scaling.finetuned": False,
    "rope.scaling.type": "linear",
}
#: The defaults of an architecture that has none of its own.
NONE: Mapping[str, Scalar] = {}
#: Key -> the key whose value it takes.
ALIASES: Mapping[str, str] = {
    "attention.head_count_kv": "attention.head_count",
    "attention.key_length_swa": "attention.key_length",
    "attention.value_length_swa": "attention.value_length",
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
    where it has no default and the key is absent. Doesn't check types.
    """
    key = fields.key(name)
    for candidate in (name, OLD_NAMES.get(name, name)):
        found = fields.find(candidate)
        if found is not None:
            items = fields.items(candidate)
            value = found.value if isinstance(found.value, Scalar) else (items or ())
            return Value(value=value, origin=Origin.KEY, key=fields.key(candidate))
    if name in defaults:
        return Value(value=defaults[name], origin=Origin.RUNTIME_DEFAULT, key=key)
    if name in CONSTANTS:
        return Value(value=CONSTANTS[name], origin=Origin.RUNTIME_DEFAULT, key=key)
    if name in ("attention.key_length", "attention.value_length"):
        return _head_length(fields, key)
    if name in ALIASES:
        other = effective(fields, ALIASES[name], defaults=defaults)
        if other is not None:
            return Value(value=other.value, origin=Origin.RUNTIME_DEFAULT, key=key)
    return None


def _head_length(fields: Fields, key: str) -> Value[Scalar | tuple[Scalar, ...]] | None:
    width = fields.find("embedding_length")
    heads = fields.find("attention.head_count")
    if width is None or heads is None:
        return None
    count = heads.value
    if not isinstance(count, Scalar):
        items = fields.items("attention.head_count") or (0,)
        count = items[0]
    if not isinstance(width.value, int) or not isinstance(count, int):
        return None
    length = width.value // count if count > 0 else 0
    return Value(value=length, origin=Origin.RUNTIME_DEFAULT, key=key)
