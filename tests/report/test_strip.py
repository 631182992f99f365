from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.layout import CacheLayout, Full, Latent, Layer, Recurrent, Sliding, StatePart, Store
from gguf_audit.report.strip import letters, strip, strip_legend
from report_examples import EVERY_STORE

FULL = Full(kv_heads=8, key_length=128, value_length=128)
WINDOW = Sliding(kv_heads=1, key_length=256, value_length=256, window_tokens=1024)
LATENT = Latent(kv_heads=1, key_length=576)
STATE = Recurrent(parts=(StatePart(name="conv", elements=3000), StatePart(name="ssm", elements=7)))
KEPT: dict[str, tuple[Store, ...]] = {
    "F": (FULL,),
    "S": (WINDOW,),
    "L": (LATENT,),
    "R": (STATE,),
    "B": (FULL, STATE),
    "-": (),
}


def layout(signs: str, *, reads: dict[int, int] | None = None) -> CacheLayout:
    """Return a layout of one layer per sign; ``reads`` says which reads another's."""
    shared = reads or {}
    return CacheLayout(
        layers=tuple(
            Layer(index=index, shares_with=shared[index])
            if index in shared
            else Layer(index=index, stores=KEPT[sign])
            for index, sign in enumerate(signs)
        )
    )


@pytest.mark.parametrize(
    ("signs", "line"),
    [
        ("", ""),
        ("F", "F"),
        ("FFF", "FFF"),
        ("F" * 32, "F x32"),
        ("SSSSSF" * 8, "SSSSSF x8"),
        ("SSSSSF" * 4 + "SS", "SSSSSF x4 SS"),
        ("F" + "L" * 60, "F L x60"),
        ("RRRF" * 6 + "RRF", "RRRF x6 RRF"),
        ("B" * 4, "[FR] x4"),
        ("FSFS", "FS x2"),
        ("R-R-RF-" * 5 + "R-", "R-R-RF- x5 R-"),
    ],
)
def test_what_repeats_is_written_once(signs: str, line: str) -> None:
    assert strip(layout(signs)) == line


def test_a_layer_that_reads_anothers_cache_has_a_small_letter() -> None:
    shared = layout("SF" + "  " * 4, reads={index: index % 2 for index in range(2, 10)})
    assert strip(shared) == "SF sf x4"
    assert letters(shared)[1:4] == ("F", "s", "f")


def test_a_layer_that_reads_none_of_ours_is_a_question() -> None:
    assert strip(layout("F ", reads={1: 7})) == "F?"


def test_every_store_has_a_letter_and_a_line() -> None:
    assert strip(EVERY_STORE) == "[FSC][LIPR][fsc]"
    assert list(strip_legend(EVERY_STORE)) == [
        "F    1 layer   full: 1 head of 256 + 256",
        "S    1 layer   sliding: 1 head of 256 + 256, window 512 tokens",
        "C    1 layer   chunked: 8 heads of 128 + 128, chunks of 8,192 tokens",
        "L    1 layer   latent: 1 head of 576, window 128 tokens",
        "I    1 layer   indexer: 1 head of 128",
        "P    1 layer   compressed: 1 head of 512, one row for 4 tokens",
        "R    1 layer   recurrent: a state of 24,576 elements (conv 24,576)",
        "a    1 layer reads the cache of another layer: small letters",
    ]


def test_the_legend_counts_layers_that_keep_the_same() -> None:
    assert list(strip_legend(layout("SSFSS-F--", reads={6: 2}))) == [
        "S    4 layers  sliding: 1 head of 256 + 256, window 1,024 tokens",
        "F    1 layer   full: 8 heads of 128 + 128",
        "a    1 layer reads the cache of another layer: small letters",
        "-    3 layers keep nothing",
    ]


@given(st.text(alphabet="FSLR-", max_size=80))
def test_a_line_can_be_written_out_again(signs: str) -> None:
    written: list[str] = []
    for part in strip(layout(signs)).split(" "):
        if part.startswith("x"):
            written[-1] *= int(part[1:])
        else:
            written.append(part)
    assert "".join(written) == signs
