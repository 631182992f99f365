from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.arch.tensors._expressions import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("a", 6),
        ("a-b-1", 1),
        ("a-(b-1)", 3),
        ("2*a+b", 16),
        ("2*(a+b)", 20),
        ("a/b/2", 0),
        ("a/zero", 0),
        ("zero|b", 4),
        ("a|b", 6),
        ("zero|a+b", 10),
        ("(zero|b)*a", 24),
        ("zero|zero|b/2", 2),
        ("!zero", 1),
        ("!a", 0),
        ("!zero & a", 1),
        ("!(zero | a) | b", 4),
        ("a & zero", 0),
        ("a==6", 1),
        ("a>6", 0),
        ("a>5 & b==4", 1),
        ("@x.y & !@z", 1),
    ],
)
def test_value(text: str, value: int) -> None:
    names = {"a": 6, "b": 4, "zero": 0, "@x.y": 1, "@z": 0}
    assert parse(text).compute(names) == value


def test_names() -> None:
    assert parse("expert_ff|ff/(used|1)").names == {"expert_ff", "ff", "used"}
    assert parse("!@attn_qkv & !draft").names == {"@attn_qkv", "draft"}


@pytest.mark.parametrize("text", ["", "a+", "a b", "(a", "a)", "a?b", "A", "+a", "a**b"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|end|parenthesis|operator"):
        parse(text)


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 99)), max_size=6))
def test_arithmetic_is_python_s(steps: list[tuple[str, int]]) -> None:
    text = "1" + "".join(f"{symbol}{number}" for symbol, number in steps)
    apply = {"+": operator.add, "-": operator.sub, "*": operator.mul}
    # products first, as everywhere
    terms, signs = [1], ["+"]
    for symbol, number in steps:
        if symbol == "*":
            terms[-1] *= number
        else:
            terms.append(number)
            signs.append(symbol)
    total = 0
    for sign, term in zip(signs, terms, strict=True):
        total = apply[sign](total, term)
    assert parse(text).compute({}) == total
