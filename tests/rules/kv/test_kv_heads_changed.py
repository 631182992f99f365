from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.layout import CacheLayout, Full, Latent, Recurrent, Sliding, StatePart
from gguf_audit.rule import Hit, Reconvert, Repair, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.kv.kv_heads_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, compared, conversion, layers, model, without

HEADS, KV_HEADS = "llama.attention.head_count", "llama.attention.head_count_kv"
WIDTH = "llama.embedding_length"
KEY, VALUE = "llama.attention.key_length", "llama.attention.value_length"
RIGHT_COST = "where a right conversion keeps 12 MiB"


def full(kv_heads: int = 1, key_length: int = 8, value_length: int = 8) -> Full:
    return Full(kv_heads=kv_heads, key_length=key_length, value_length=value_length)


def said(
    actual: Mapping[str, FieldValue], expected: Mapping[str, Scalar | Sequence[Scalar]] = LLAMA
) -> list[Hit]:
    hits = list(check(conversion(actual, expected), SETTINGS))
    return [hit for hit in hits if isinstance(hit, Hit)]


def set_key(key: str, value: int) -> SetKey:
    return SetKey(key=key, value=value, present=True)


def test_silent_for_a_right_conversion() -> None:
    assert said(LLAMA) == []
    assert said(GEMMA, GEMMA) == []


def test_silent_where_the_default_is_right() -> None:
    assert said(without(LLAMA, KEY, VALUE)) == []
    assert said(LLAMA, without(LLAMA, KEY, VALUE)) == []
    each = {**LLAMA, KV_HEADS: 4}
    assert said(without(each, KV_HEADS), each) == []


def test_silent_for_zeros_of_layers_without_attention() -> None:
    state = Recurrent(parts=(StatePart(name="ssm", elements=1),))
    right = layers(state, full(2), None)
    assert list(check(compared(right, right), SETTINGS)) == []


def test_silent_for_a_latent_beside_unpacked_heads() -> None:
    latent = Latent(kv_heads=1, key_length=576)
    assert list(check(compared(layers(full(16)), layers(latent)), SETTINGS)) == []
    assert list(check(compared(layers(latent), layers(full(16))), SETTINGS)) == []


@pytest.mark.parametrize(
    ("actual", "title", "key", "wrong", "right", "mib"),
    [
        ({KV_HEADS: 4}, "key-value heads", KV_HEADS, 4, 2, "24 MiB"),
        ({KEY: 32}, "elements of a head's key", KEY, 32, 16, "18 MiB"),
        ({VALUE: 8}, "elements of a head's value", VALUE, 8, 16, "9 MiB"),
    ],
)
def test_fires_for_another_number(
    actual: dict[str, Scalar], title: str, key: str, wrong: int, right: int, mib: str
) -> None:
    assert said({**LLAMA, **actual}) == [
        Hit(
            message=f"needs {right} {title} on all 3 layers, this file makes it {wrong} "
            f"({key} says so): {mib} of cache at 32768 tokens, {RIGHT_COST}",
            where=Where(key=key, layer=0),
            expected=right,
            actual=wrong,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=set_key(key, right),
        )
    ]


@pytest.mark.parametrize(
    ("keys", "values", "fits"),
    [
        (32, 32, True),
        (64, 64, False),  # What the file says, and what it holds.
        (32, 64, False),
        (64, 32, False),
    ],
)
def test_a_key_is_only_set_where_the_tensors_have_room(keys: int, values: int, fits: bool) -> None:
    tensors = [
        ("blk.0.attn_k.weight", (64, keys), "F32"),
        ("blk.0.attn_v.weight", (64, values), "F32"),
    ]
    file = model({**LLAMA, KV_HEADS: 4}, tensors)
    (hit,) = check(conversion(file, LLAMA), SETTINGS)
    assert isinstance(hit, Hit)
    wanted = set_key(KV_HEADS, 2) if fits else Reconvert(hint="or name the right reference")
    assert hit.repair == wanted


def test_one_head_is_no_heads() -> None:
    (hit,) = said(LLAMA, {**LLAMA, KV_HEADS: 1})
    assert hit.message.startswith("needs 1 key-value head on all 3 layers, ")


def test_fires_for_lost_key_value_heads() -> None:
    assert said(without(LLAMA, KV_HEADS)) == [
        Hit(
            message="needs 2 key-value heads on all 3 layers, this file makes it 4 "
            f"({KV_HEADS} is absent): 24 MiB of cache at 32768 tokens, {RIGHT_COST}",
            where=Where(key=KV_HEADS, layer=0),
            expected=2,
            actual=4,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_lost_lengths_are_two_keys() -> None:
    # Heads that are longer than their share of the embedding, as Qwen 3 has them.
    right = {**LLAMA, KEY: 32, VALUE: 32}
    hits = said(without(right, KEY, VALUE), right)
    assert [(hit.where.key, hit.actual, hit.expected, hit.repair) for hit in hits] == [
        (KEY, 16, 32, Reconvert()),
        (VALUE, 16, 32, Reconvert()),
    ]


def test_only_the_last_layer() -> None:
    assert said({**LLAMA, KV_HEADS: [2, 2, 1]}) == [
        Hit(
            message="needs 2 key-value heads on layer 2, this file makes it 1 "
            f"({KV_HEADS} says so): 10 MiB of cache at 32768 tokens, {RIGHT_COST}",
            where=Where(key=KV_HEADS, layer=2),
            expected=2,
            actual=1,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_query_heads_from_which_everything_else_follows_are_one_cause() -> None:
    right = without(LLAMA, KV_HEADS, KEY, VALUE)
    assert said({**right, HEADS: 2}, right) == [
        Hit(
            message="needs 4 key-value heads on all 3 layers, this file makes it 2 "
            f"({HEADS} says so): 24 MiB of cache at 32768 tokens, "
            "where a right conversion keeps 24 MiB",
            where=Where(key=HEADS, layer=0),
            expected=4,
            actual=2,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=set_key(HEADS, 4),
        )
    ]


def test_a_share_of_a_wrong_embedding_is_set_by_the_embedding() -> None:
    right = without(LLAMA, KEY, VALUE)
    [hit] = said({**right, WIDTH: 128}, right)
    assert (hit.where.key, hit.expected, hit.actual) == (WIDTH, 16, 32)
    # 64 elements of the embedding, not the 16 of a head.
    assert hit.repair == set_key(WIDTH, 64)


def test_one_number_of_heads_for_layers_that_differ_is_not_set() -> None:
    right = without(LLAMA, KV_HEADS, KEY, VALUE)
    hits = said({**right, HEADS: 2}, {**right, HEADS: (4, 4, 4)})
    assert [(hit.where.key, hit.repair) for hit in hits] == [(HEADS, Reconvert())]


def odd(
    keys: Mapping[str, FieldValue], implied: CacheLayout, expected: CacheLayout, *written: str
) -> list[tuple[str | None, int | None, Repair | None]]:
    """Return key, layer and repair for layouts of an architecture that nobody knows."""
    wanted: dict[str, Scalar | Sequence[Scalar]] = {"odd.block_count": 3}
    wanted |= dict.fromkeys(written, 0)
    subject = conversion(
        model({"odd.block_count": 3, **keys}, implied=implied), wanted, layout=expected
    )
    hits = [hit for hit in check(subject, SETTINGS) if isinstance(hit, Hit)]
    return [(hit.where.key, hit.where.layer, hit.repair) for hit in hits]


def test_one_number_for_layers_that_need_several_is_not_set() -> None:
    key = "odd.attention.head_count_kv"
    implied, expected = layers(full(2), full(2), full(2)), layers(full(2), full(4), full(4))
    assert odd({key: 2}, implied, expected, key) == [(key, 1, Reconvert())]
    assert odd({key: 2}, implied, layers(full(4), full(4), full(4)), key) == [
        (key, 0, set_key(key, 4))
    ]


def window(key_length: int) -> Sliding:
    return Sliding(kv_heads=1, key_length=key_length, value_length=8, window_tokens=8)


def test_windowed_layers_have_a_key_of_their_own() -> None:
    key = "odd.attention.key_length"
    implied = layers(window(16), full(), window(16))
    expected = layers(window(4), full(), window(4))
    assert odd({f"{key}_swa": 16, key: 8}, implied, expected, key) == [
        (f"{key}_swa", 0, set_key(f"{key}_swa", 4))
    ]
    # Lost: the reference would have it.
    assert odd({key: 8}, implied, expected, key, f"{key}_swa") == [(f"{key}_swa", 0, Reconvert())]
    # None on either side: the one key counts for all.
    assert odd({key: 16}, layers(window(16), full()), layers(window(4), full()), key) == [
        (key, 0, Reconvert())
    ]


def test_a_full_layer_that_differs_as_well_points_at_the_key_of_all() -> None:
    key = "odd.attention.key_length"
    implied = layers(window(16), full(1, 16))
    expected = layers(window(8), full(1, 8))
    assert odd({f"{key}_swa": 16, key: 16}, implied, expected, key) == [(key, 0, set_key(key, 8))]


def test_latents_are_compared_with_each_other() -> None:
    key = "odd.attention.head_count_kv"
    many, one = Latent(kv_heads=16, key_length=576), Latent(kv_heads=1, key_length=576)
    assert odd({key: 16}, layers(many), layers(one), key) == [(key, 0, set_key(key, 1))]


def test_silent_where_only_one_side_attends() -> None:
    assert list(check(compared(layers(full(2)), layers(None)), SETTINGS)) == []
    assert list(check(compared(layers(None), layers(full(2))), SETTINGS)) == []


def test_a_key_that_a_right_conversion_leaves_to_the_default() -> None:
    [hit] = said({**LLAMA, KV_HEADS: 2}, without(LLAMA, KV_HEADS))
    assert (hit.where.key, hit.expected, hit.actual) == (KV_HEADS, 4, 2)
    assert hit.repair == set_key(KV_HEADS, 4)
