from __future__ import annotations

from gguf_audit.layout import CacheLayout, Full, Layer, Recurrent, StatePart
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.state_changed import check
from rule_subjects import LLAMA, SETTINGS, compared, conversion, layers

FULL = Full(kv_heads=1, key_length=8, value_length=8)


def state(conv: int, ssm: int) -> Recurrent:
    return Recurrent(
        parts=(StatePart(name="conv", elements=conv), StatePart(name="ssm", elements=ssm))
    )


RIGHT = state(96, 4096)


def said(implied: CacheLayout, expected: CacheLayout) -> list[object]:
    return list(check(compared(implied, expected), SETTINGS))


def hit(*, on: str, layer: int, expected: int, actual: int) -> Hit:
    return Hit(
        message=f"needs a recurrent state of {expected:,} elements on {on}, this file makes it "
        f"{actual:,}",
        where=Where(layer=layer),
        expected=expected,
        actual=actual,
        unit="element",
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def test_silent_for_equal_states() -> None:
    right = layers(RIGHT, RIGHT, FULL)
    assert said(right, right) == []
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []


def test_silent_beside_attention_of_another_size() -> None:
    wide = Full(kv_heads=2, key_length=8, value_length=8)
    assert said(layers((RIGHT, wide)), layers((RIGHT, FULL))) == []


def test_fires_for_the_last_layer() -> None:
    assert said(layers(FULL, RIGHT, FULL), layers(FULL, RIGHT, RIGHT)) == [
        hit(on="layer 2", layer=2, expected=4192, actual=0)
    ]


def test_fires_for_a_state_that_should_be_attention() -> None:
    assert said(layers(RIGHT, FULL), layers(FULL, FULL)) == [
        hit(on="layer 0", layer=0, expected=0, actual=4192)
    ]


def test_fires_for_another_size_on_all_layers() -> None:
    assert said(layers(state(72, 4096), state(72, 4096)), layers(RIGHT, RIGHT)) == [
        hit(on="all 2 layers", layer=0, expected=4192, actual=4168)
    ]


def test_a_state_beside_attention_counts() -> None:
    assert said(layers((FULL, RIGHT), (FULL,)), layers((FULL, RIGHT), (FULL, RIGHT))) == [
        hit(on="layer 1", layer=1, expected=4192, actual=0)
    ]


def test_layers_that_only_one_side_has_are_no_difference() -> None:
    shorter = CacheLayout(layers=(Layer(index=0, stores=(RIGHT,)),))
    assert said(shorter, layers(RIGHT, RIGHT)) == []
