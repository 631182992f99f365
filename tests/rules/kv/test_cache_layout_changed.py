from __future__ import annotations

import pytest

from gguf_audit.layout import (
    CacheLayout,
    Chunked,
    Compressed,
    Full,
    Indexer,
    Latent,
    Layer,
    Recurrent,
    Sliding,
    StatePart,
    Store,
)
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.cache_layout_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, compared, conversion, layers, without

FULL = Full(kv_heads=1, key_length=8, value_length=8)
WIDE = Full(kv_heads=2, key_length=8, value_length=8)
SLIDING = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=8)
CHUNKED = Chunked(kv_heads=1, key_length=8, value_length=8, window_tokens=8)
LATENT = Latent(kv_heads=1, key_length=576)
STATE = Recurrent(parts=(StatePart(name="ssm", elements=64),))
INDEXER = Indexer(kv_heads=1, key_length=128)
ROWS = Compressed(kv_heads=1, key_length=512, tokens_per_cell=4)


def test_silent_for_equal_layouts() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []
    right = layers((LATENT, INDEXER), (SLIDING, ROWS), STATE, None)
    assert list(check(compared(right, right), SETTINGS)) == []


def test_silent_for_a_lost_window() -> None:
    lost = without(GEMMA, "gemma3.attention.sliding_window")
    assert list(check(conversion(lost, GEMMA), SETTINGS)) == []


@pytest.mark.parametrize(
    ("implied", "expected"),
    [
        (WIDE, FULL),
        (FULL, SLIDING),
        (SLIDING, FULL),
        (FULL, CHUNKED),
        (FULL, LATENT),
        (Latent(kv_heads=1, key_length=64), LATENT),
        (FULL, STATE),
        (STATE, FULL),
        (None, STATE),
    ],
)
def test_what_another_rule_names_is_left_to_it(implied: Store | None, expected: Store) -> None:
    assert list(check(compared(layers(FULL, implied), layers(FULL, expected)), SETTINGS)) == []


@pytest.mark.parametrize(
    ("implied", "expected", "has", "needs"),
    [
        ((LATENT,), (LATENT, INDEXER), "latent", "latent + indexer of 1 x 128"),
        (
            (LATENT, Indexer(kv_heads=1, key_length=64)),
            (LATENT, INDEXER),
            "latent + indexer of 1 x 64",
            "latent + indexer of 1 x 128",
        ),
        (
            (SLIDING,),
            (SLIDING, ROWS),
            "sliding",
            "sliding + compressed of 1 x 512 for 4 tokens",
        ),
        ((), (FULL,), "no cache", "full"),
        ((FULL,), (), "full", "no cache"),
        ((STATE,), (FULL, STATE), "recurrent", "full + recurrent"),
        ((LATENT,), (FULL,), "latent", "full"),
        ((LATENT,), (SLIDING,), "latent", "sliding"),
        ((SLIDING,), (CHUNKED,), "sliding", "chunked"),
        ((CHUNKED,), (SLIDING,), "chunked", "sliding"),
    ],
)
def test_fires_for_the_last_layer(
    implied: tuple[Store, ...], expected: tuple[Store, ...], has: str, needs: str
) -> None:
    subject = compared(layers(FULL, FULL, implied), layers(FULL, FULL, expected))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs {needs} on layer 2, this file makes it {has}",
            where=Where(layer=2),
            expected=needs,
            actual=has,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def shared(first: int | None, *, total: int = 3) -> CacheLayout:
    """Return layers of which the last ones read the first one's cache."""
    return CacheLayout(
        layers=tuple(
            Layer(index=index, stores=(FULL,))
            if first is None or index < first
            else Layer(index=index, shares_with=0)
            for index in range(total)
        )
    )


def test_shared_layers_are_part_of_the_layout() -> None:
    assert list(check(compared(shared(1), shared(1)), SETTINGS)) == []
    assert list(check(compared(shared(None), shared(1)), SETTINGS)) == [
        Hit(
            message="needs the cache of layer 0 on 2 of 3 layers (1, 2), this file makes it full",
            where=Where(layer=1),
            expected="the cache of layer 0",
            actual="full",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]
