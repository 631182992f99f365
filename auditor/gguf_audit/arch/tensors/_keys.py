"""Which metadata keys a tensor's shape and its being there depend on.

Looked up where something doesn't fit: one of these keys may be what went wrong.
"""

from __future__ import annotations

import functools
import re

from gguf_audit.arch.tensors._expressions import parse
from gguf_audit.arch.tensors._inventory import Slot
from gguf_audit.arch.tensors._sizes import ANY, KEYS
from gguf_audit.arch.tensors._tables import rows_of
from gguf_audit.fields import Fields

__all__ = ["TOLD_BY", "placing", "shaping"]

_KEY = ("attention.key_length", "attention.key_length_swa")
_VALUE = ("attention.value_length", "attention.value_length_swa", "attention.kv_lora_rank")
_SHARE = ("attention.head_count", "embedding_length")
_LATENT = (
    "attention.key_length_mla",
    "attention.value_length_mla",
    "attention.key_length_mla_swa",
    "attention.value_length_mla_swa",
)
_BLOCKS = ("block_count", "nextn_predict_layers")
_EXPERT = "expert_feed_forward_length"

#: Name in the tables -> the keys that tell it, and those that do where none of these is in
#: a file. The rest is in ``KEYS``.
TOLD_BY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{name: ((key,), ()) for name, key in KEYS.items() if name.isidentifier()},
    "embd": (("embedding_length",), ()),
    "plamo_dt": (("embedding_length",), ()),
    "layers": (_BLOCKS, ()),
    "draft": (_BLOCKS, ()),
    "longrope": (("rope.scaling.type",), ()),
    "classes": (("classifier.output_labels",), ()),
    "kv_heads": (("attention.head_count_kv",), ("attention.head_count",)),
    "kv_heads_i": (("attention.head_count_kv",), ("attention.head_count",)),
    "key": (_KEY, _SHARE),
    "key_i": (_KEY, _SHARE),
    "key_full": (_KEY, _SHARE),
    "value": (_VALUE, _SHARE),
    "value_i": (_VALUE, _SHARE),
    "key_mla": (_LATENT, (*_KEY, *_SHARE)),
    "key_mla_i": (_LATENT, ()),
    "value_mla": (_LATENT, (*_VALUE, *_SHARE)),
    "value_mla_i": (_LATENT, ()),
    "mla": (_LATENT, ()),
    "kv_rank_i": (("attention.kv_lora_rank", "attention.kv_lora_rank_swa"), ()),
    "rot": (("rope.dimension_count", "rope.dimension_count_swa"), (*_KEY, *_SHARE)),
    "used": (("expert_used_count",), ()),
    "used_i": (("expert_used_count",), ()),
    "shared_ff": (("expert_shared_feed_forward_length",), (_EXPERT, "expert_shared_count")),
    "ratio_i": (("attention.compress_ratios",), ()),
    "ratio_width": (("attention.compress_ratios",), ()),
    "window": (("attention.sliding_window", "attention.sliding_window_pattern"), ()),
    "recurrent": (
        ("attention.recurrent_layers", "full_attention_interval", "attention.head_count_kv"),
        (),
    ),
    "indexed": (("attention.indexer.types",), ()),
    "own_kv": (("attention.shared_kv_layers",), ()),
    "stepped": (("interleave_moe_layer_step", "moe_every_n_layers"), ()),
    "lead": (("leading_dense_block_count",), ()),
    "hashed": (("hash_layer_count",), ()),
    "ple": (("ple.layers",), ()),
}

#: In front of the names of a block's tensors.
_PREFIX = re.compile(r"(?:enc\.|dec\.)?blk\.[0-9]{1,9}\.")


def shaping(slot: Slot, fields: Fields) -> tuple[tuple[str, ...], ...]:
    """Return for each dimension of a place the keys, in full, that may have made it."""
    return tuple(_keys(size, fields) for size in slot.sizes)


def placing(name: str, fields: Fields) -> tuple[str, ...]:
    """Return the keys, in full, that decide whether there is a place of this name."""
    rows = rows_of(fields.architecture) or ()
    own = _PREFIX.sub("", name)
    conditions = [row.condition for row in rows if row.name == own and row.condition]
    return tuple(dict.fromkeys(key for each in conditions for key in _keys(each, fields)))


def _keys(expression: str, fields: Fields) -> tuple[str, ...]:
    found = (key for name in _names(expression) for key in _told_by(name, fields))
    return tuple(map(fields.key, dict.fromkeys(found)))


def _told_by(name: str, fields: Fields) -> tuple[str, ...]:
    own, otherwise = TOLD_BY.get(name, ((), ()))
    return own if any(key in fields for key in own) else (*own, *otherwise)


@functools.cache
def _names(expression: str) -> tuple[str, ...]:
    """Return what an expression names; nothing where one of it stands for any number."""
    names = frozenset[str]() if expression == "_" else parse(expression).names
    return () if names & ANY else tuple(sorted(names))
