"""The arithmetic of the tensor tables: sizes of tensors, conditions of their being there.

    expert_ff|ff/used        the experts' own width, else a share of the dense one
    key_mla-rot              what is left of a head without its rotary part
    !draft & !lead           a block of the trunk that isn't among the leading dense ones

Integers throughout; zero is false. From the loosest to the tightest: ``|`` (the first
operand that isn't zero), ``&``, ``==`` and ``>``, ``+`` and ``-``, ``*`` and ``/``, ``!``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

__all__ = ["Expression", "parse"]

#: Values of names.
Names = Mapping[str, int]
_Compute = Callable[[Names], int]

_TOKEN = re.compile(r"\s*(@?[a-z_][a-z_0-9.]*|[0-9]+|==|[-+*/!&|()>])")
#: Two-sided operators by how tightly they bind, loosest first.
_LEVELS = (("|",), ("&",), ("==", ">"), ("+", "-"), ("*", "/"))


class Expression(Struct, frozen=True):
    """A parsed expression: the names it has in it, and how to compute it."""

    names: frozenset[str]
    compute: _Compute


@functools.cache
def parse(text: str) -> Expression:
    """Parse an expression; ValueError where it isn't one."""
    reader = _Reader(text)
    compute = reader.level(0)
    reader.end()
    return Expression(frozenset(reader.names), compute)


class _Reader:
    """Reads one expression, one token at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        self.tokens: list[str] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise ValueError(f"{text!r} is no expression")
            self.tokens.append(found[1])
            position = found.end()
        self.tokens.reverse()

    def end(self) -> None:
        if self.tokens:
            raise ValueError(f"{self.text!r} goes on after its end")

    def level(self, index: int) -> _Compute:
        if index == len(_LEVELS):
            return self._single()
        left = self.level(index + 1)
        while self.tokens and self.tokens[-1] in _LEVELS[index]:
            left = _joined(self.tokens.pop(), left, self.level(index + 1))
        return left

    def _single(self) -> _Compute:
        if not self.tokens:
            raise ValueError(f"{self.text!r} ends too early")
        token = self.tokens.pop()
        if token == "!":  # noqa: S105 - an operator, no secret
            operand = self._single()
            return lambda names: int(not operand(names))
        if token == "(":  # noqa: S105
            inner = self.level(0)
            if not self.tokens or self.tokens.pop() != ")":
                raise ValueError(f"{self.text!r} lacks a parenthesis")
            return inner
        if token.isdigit():
            number = int(token)
            return lambda _: number
        if not token.strip("@_.").isidentifier() and "." not in token:
            raise ValueError(f"{self.text!r} has an operator too many")
        self.names.add(token)
        return lambda names: names[token]


def _joined(operator: str, left: _Compute, right: _Compute) -> _Compute:
    match operator:
        case "|":
            return lambda names: left(names) or right(names)
        case "&":
            return lambda names: int(bool(left(names) and right(names)))
        case "==":
            return lambda names: int(left(names) == right(names))
        case ">":
            return lambda names: int(left(names) > right(names))
        case "+":
            return lambda names: left(names) + right(names)
        case "-":
            return lambda names: left(names) - right(names)
        case "*":
            return lambda names: left(names) * right(names)
        case _:
            return lambda names: _quotient(left(names), right(names))


def _quotient(left: int, right: int) -> int:
    # llama.cpp would die of it; a share of nobody's is nothing
    return left // right if right else 0
