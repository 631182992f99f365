"""What most converter classes are: base keys, some taken over as they are, some fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from gguf_audit.arch import _ideal
from gguf_audit.arch._base import Draft, base_keys, rope_parameters
from gguf_audit.arch._config import Config, malformed, to_number
from gguf_audit.arch._keys import Either, Keys, Written
from gguf_audit.arch.architecture import Converter
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout

__all__ = [
    "Recipe",
    "copied",
    "drafts_of",
    "either",
    "filled",
    "head_length",
    "needed",
    "number",
    "rope_share",
    "rope_whole",
    "sizes",
    "with_drafts",
]

#: Keys that hold a number with a fraction; flags; everything else counts something.
NUMBERS = frozenset(
    {
        "attention.clamp_kqv",
        "attention.layer_norm_epsilon",
        "attention.layer_norm_rms_epsilon",
        "attention.max_alibi_bias",
        "attention.scale",
        "attention.value_scale",
        "attn_logit_softcapping",
        "attention.output_scale",
        "embedding_scale",
        "expert_group_scale",
        "expert_weights_scale",
        "final_logit_softcapping",
        "hyper_connection.epsilon",
        "hyper_connection.magnitude",
        "attention.compress_rope_freq_base",
        "kda.gate_lower_bound",
        "logit_scale",
        "residual_scale",
        "router_logit_softcapping",
        "activation.situ_beta",
        "activation.situ_linear_beta",
    }
)
FLAGS = frozenset({"expert_weights_norm", "use_parallel_residual", "swin_norm", "kda.safe_gate"})


def sizes(
    vocabulary: int,
    width: int,
    feed_forward: int,
    blocks: int,
    heads: int,
    kv_heads: int | None,
    head: int | None,
    context: int,
    epsilon: float,
    theta: float | None,
) -> dict[str, Json]:
    """Return the defaults of a configuration class, under the names most of them use."""
    values: dict[str, Json] = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": feed_forward,
        "num_hidden_layers": blocks,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head,
        "max_position_embeddings": context,
        "rms_norm_eps": epsilon,
        "rope_theta": theta,
    }
    return {name: value for name, value in values.items() if value is not None}


def head_length(config: Config) -> int:
    """Return ``hidden_size`` / heads, which the converter takes for a head's length."""
    heads = config.need("num_attention_heads", "n_head", "n_heads")
    if heads == 0:
        raise malformed("num_attention_heads", 0, "a number of heads")
    return config.need("hidden_size", "n_embd", "dim") // heads


def filled(config: Config, *, kv_heads: bool = True, head_dim: bool = True) -> Config:
    """Return a config with what LlamaConfig and many others compute for themselves.

    Null ``num_key_value_heads`` means one per query head, null ``head_dim`` means
    ``hidden_size`` / heads.
    """
    values: dict[str, Json] = {}
    if kv_heads and config.get("num_key_value_heads") is None:
        values["num_key_value_heads"] = config.need("num_attention_heads")
    if head_dim and config.get("head_dim") is None:
        values["head_dim"] = head_length(config)
    return config.with_values(**values)


def rope_whole(config: Config) -> int:
    """Return the head's length, which RoPE turns whole."""
    length = config.integer("head_dim")
    return head_length(config) if length is None else length


def rope_share(default: float) -> Callable[[Config], int]:
    """Return how the turned part of a head is found; ``default`` is its share."""

    def dimensions(config: Config) -> int:
        factor = rope_parameters(config).get("partial_rotary_factor", default)
        return int(rope_whole(config) * to_number("partial_rotary_factor", factor))

    return dimensions


def copied(config: Config, names: Mapping[str, str]) -> Draft:
    """Return keys for the values that a config has; absent and null ones are skipped."""
    keys: Draft = {}
    for key, name in names.items():
        value = _value(config, key, name)
        if value is not None:
            keys[key] = value
    return keys


def needed(config: Config, names: Mapping[str, str]) -> Draft:
    """Return keys for values without which there is no conversion."""
    keys: Draft = {}
    for key, name in names.items():
        value = _value(config, key, name)
        if value is None:
            raise malformed(name, None, "a value")
        keys[key] = value
    return keys


def _value(config: Config, key: str, name: str) -> Written | None:
    if key in NUMBERS:
        return config.number(name)
    if key in FLAGS:
        return config.boolean(name)
    return config.integer(name)


def number(config: Config, *names: str) -> float:
    """Return a number without which there is no conversion."""
    value = config.number(*names)
    if value is None:
        raise malformed(config.first(*names) or names[0], None, "a number")
    return value


def drafts_of(config: Config, name: str = "num_nextn_predict_layers") -> int:
    """Return how many draft (MTP) blocks a checkpoint has behind its trunk."""
    return config.integer(name) or 0


def with_drafts(keys: Draft, config: Config, drafts: int) -> Draft:
    """Return keys with ``drafts`` blocks behind the trunk; ``--no-mtp`` leaves them out."""
    if drafts == 0:
        return keys
    return {
        **keys,
        "block_count": Either(config.blocks(drafts=drafts), (config.blocks(),)),
        "nextn_predict_layers": Either(drafts, (None,)),
    }


def either(pinned: Draft, other: Draft) -> Draft:
    """Return keys of which either set as a whole is right."""
    keys = dict(pinned)
    for name in {**pinned, **other}:
        value, second = pinned.get(name), other.get(name)
        if not isinstance(value, Either) and not isinstance(second, Either) and value != second:
            keys[name] = Either(value, (second,))
    return keys


class Recipe(Struct, frozen=True, kw_only=True):
    """One converter class that adds to the base keys."""

    takes: tuple[str, ...]
    writes: str | Callable[[Config], str]
    defaults: Mapping[str, Mapping[str, Json]] = field(
        default_factory=dict[str, Mapping[str, Json]]
    )
    #: What the Hugging Face class computes: see ``filled``.
    fills_kv_heads: bool = False
    fills_head_dim: bool = False
    #: Key -> name in the config, written where the config has a value.
    copies: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The same for values that must be there.
    needs: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Keys that always have the same value.
    sets: Mapping[str, Written | Either] = field(default_factory=dict[str, "Written | Either"])
    #: Elements of a head that RoPE turns; ``None`` where that isn't written.
    rope: Callable[[Config], int] | None = None
    #: What else is written, out of the config and the keys so far.
    more: Callable[[Config, Draft], Draft] | None = None
    ideal: Callable[[Config], CacheLayout] = _ideal.full

    def keys(self, config: Config) -> Keys:
        """Return every key that the class writes."""
        config = self._filled(config)
        keys = base_keys(config)
        keys |= copied(config, self.copies) | needed(config, self.needs) | dict(self.sets)
        if self.rope is not None:
            keys["rope.dimension_count"] = self.rope(config)
        return keys if self.more is None else self.more(config, keys)

    def converter(self) -> Converter:
        """Return the class as the registry knows it."""
        return Converter(
            takes=self.takes,
            writes=self.writes,
            defaults=self.defaults,
            keys=self.keys,
            ideal=lambda config: self.ideal(self._filled(config)),
        )

    def _filled(self, config: Config) -> Config:
        return filled(config, kv_heads=self.fills_kv_heads, head_dim=self.fills_head_dim)
