"""Values that llama.cpp uses, and where they are from."""

from __future__ import annotations

import pytest

from gguf_audit.arch import effective
from gguf_audit.fields import Fields, Origin, Value
from gguf_audit.gguf import Array, Field, Scalar, ValueType


def value(
    architecture: str, name: str, **keys: Scalar | tuple[Scalar, ...]
) -> tuple[object, Origin | None]:
    full = {f"{architecture}.{key.replace('__', '.')}": item for key, item in keys.items()}
    found = effective(Fields.of(architecture, full), name)
    return (None, None) if found is None else (found.value, found.origin)


KEY, DEFAULT = Origin.KEY, Origin.RUNTIME_DEFAULT


def test_a_key_of_the_file_wins() -> None:
    assert value("llama", "rope.freq_base", rope__freq_base=5e5) == (5e5, KEY)


def test_an_array_is_given_whole() -> None:
    name = "attention.head_count_kv"
    assert value("llama", name, attention__head_count_kv=(1, 2)) == ((1, 2), KEY)


@pytest.mark.parametrize(
    ("architecture", "name", "expected"),
    [
        ("llama", "rope.freq_base", 10000.0),
        ("llama", "rope.scaling.type", "linear"),
        ("llama", "rope.scaling.factor", 1.0),
        ("llama", "expert_count", 0),
        ("llama", "attention.sliding_window", None),
        ("gemma2", "attention.sliding_window", 4096),
        ("llama4", "attention.sliding_window", 8192),
        ("gemma3", "rope.freq_base_swa", 10000.0),
        ("deepseek2", "expert_gating_func", 1),
        ("glm4moe", "expert_gating_func", 2),
        ("spaceship", "rope.freq_base", 10000.0),
        ("llama", "no.such.key", None),
    ],
)
def test_an_absent_key_has_the_default_of_the_runtime(
    architecture: str, name: str, expected: Scalar | None
) -> None:
    assert value(architecture, name) == (expected, None if expected is None else DEFAULT)


def test_keys_that_stand_for_others() -> None:
    assert value("llama", "attention.head_count_kv", attention__head_count=8) == (8, DEFAULT)
    assert value("gemma2", "rope.freq_base_swa", rope__freq_base=5e5) == (5e5, DEFAULT)
    original = "rope.scaling.original_context_length"
    assert value("llama", original, context_length=4096) == (4096, DEFAULT)


def test_a_head_is_a_share_of_the_embedding() -> None:
    keys = {"embedding_length": 512, "attention__head_count": 8}
    assert value("llama", "attention.key_length", **keys) == (64, DEFAULT)
    assert value("llama", "rope.dimension_count", **keys) == (64, DEFAULT)
    assert value("llama", "attention.key_length", embedding_length=512) == (None, None)
    keys["attention__head_count"] = 0
    assert value("llama", "attention.key_length", **keys) == (0, DEFAULT)


def test_a_head_of_the_first_layer_where_layers_differ() -> None:
    assert value(
        "deci", "attention.key_length", embedding_length=512, attention__head_count=(8, 4)
    ) == (64, DEFAULT)


def test_an_old_name_of_a_key_is_read() -> None:
    name = "rope.scaling.factor"
    assert value("llama", name, rope__scale_linear=4.0) == (4.0, KEY)
    assert value("llama", name, rope__scale_linear=4.0, rope__scaling__factor=2.0) == (2.0, KEY)
    found = effective(Fields.of("llama", {"llama.rope.scale_linear": 4.0}), name)
    assert found is not None
    assert found.key == "llama.rope.scale_linear"


def test_an_endless_array_is_not_unpacked() -> None:
    def unpack() -> tuple[Scalar, ...]:
        raise AssertionError("nobody needs these items")

    names = ("rope.freq_base", "attention.head_count", "expert_used_count")
    long = Array(item_type=ValueType.UINT32, count=10_001, offset=0, size_bytes=4, load=unpack)
    stored = {
        key: Field(key=key, type=ValueType.ARRAY, value=long)
        for key in (f"llama.{name}" for name in names)
    }
    width = Field(key="llama.embedding_length", type=ValueType.UINT32, value=64)
    fields = Fields("llama", stored | {width.key: width})
    for name in names:
        assert effective(fields, name) == Value(value=(), origin=KEY, key=f"llama.{name}")
    assert effective(fields, "attention.key_length") == Value(
        value=0, origin=DEFAULT, key="llama.attention.key_length"
    )
    found = effective(fields, "expert_feed_forward_length")
    assert found is not None
    assert found.value == 0


def test_the_longest_array_is_unpacked() -> None:
    items = (1,) * 10_000
    assert value("llama", "rope.freq_base", rope__freq_base=items) == (items, KEY)
