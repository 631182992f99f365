"""Stretches of text that two splitters cut differently."""

from __future__ import annotations

from gguf_audit.runtime.splitting import Difference, differences


def test_none_where_all_cuts_are_the_same() -> None:
    assert list(differences([("a", " b"), ()], [("a", " b"), ()])) == []


def test_each_from_one_common_cut_to_the_next() -> None:
    ours = [("12", "345", " a", "b", "c d")]
    theirs = [("1", "2", "3", "4", "5", " a", "b", "c", " d")]
    assert list(differences(ours, theirs)) == [
        Difference(("12",), ("1", "2")),
        Difference(("345",), ("3", "4", "5")),
        Difference(("c d",), ("c", " d")),
    ]


def test_cuts_that_cross() -> None:
    assert list(differences([("ab", "cde", "f")], [("abc", "de", "f")])) == [
        Difference(("ab", "cde"), ("abc", "de"))
    ]


def test_texts_that_one_of_them_shortened() -> None:
    assert list(differences([("a",), ("x y",)], [("a",), ("x", "y")])) == [
        Difference(("x y",), ("x", "y"))
    ]
