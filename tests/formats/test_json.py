"""Whatever the bytes are: a value or an AuditError."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gguf_audit.checkpoint import Json
from gguf_audit.errors import AuditError, LimitError, MalformedError
from gguf_audit.formats._json import parse_json, parse_object, read_object, read_text
from gguf_audit.limits import LIMITS
from gguf_audit.sources import MemorySource
from gguf_audit.where import Where

_SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text()
_VALUES: st.SearchStrategy[Json] = st.recursive(
    _SCALARS | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _error(data: bytes, *, offset: int = 0) -> AuditError:
    with pytest.raises(AuditError) as caught:
        parse_json(data, name="x.json", offset=offset)
    return caught.value


@settings(deadline=None)  # a loaded machine is no fault
@given(value=_VALUES, indent=st.none() | st.integers(0, 2), ascii_only=st.booleans())
def test_gives_back_what_json_wrote(value: Json, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    data = text.encode("utf-8", "surrogatepass")
    try:
        assert parse_json(data, name="x.json") == value
    except MalformedError:
        # A lone surrogate that isn't escaped can't be UTF-8.
        assert not ascii_only


@settings(deadline=None)  # a loaded machine is no fault
@given(
    data=st.binary(max_size=200)
    | st.text('[]{}",:\\0123456789e-ntrufals', max_size=60).map(str.encode)
)
def test_any_bytes_make_a_value_or_an_audit_error(data: bytes) -> None:
    try:
        value = parse_json(data, name="x.json")
    except AuditError:
        return
    assert value == json.loads(data.decode("utf-8-sig"))


def test_takes_a_byte_order_mark() -> None:
    assert parse_object(b'\xef\xbb\xbf{"a": 1}', name="x.json") == {"a": 1}
    assert read_text(MemorySource("x", b"\xef\xbb\xbfhi"), limit_bytes=9) == "hi"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"[1]", "a list"),
        (b"null", "null"),
        (b'"a"', "a string"),
        (b"1", "a number"),
        (b"true", "a boolean"),
    ],
)
def test_says_what_stands_instead_of_an_object(data: bytes, kind: str) -> None:
    with pytest.raises(MalformedError, match=f"^x.json holds {kind}, expected a JSON object$"):
        parse_object(data, name="x.json")


def test_names_the_place_of_a_fault_in_bytes() -> None:
    error = _error('{"é": 1,\n "b" 2}'.encode(), offset=8)
    assert isinstance(error, MalformedError)
    assert error.message == "x.json is no JSON at line 2, column 6: Expecting ':' delimiter"
    assert error.where == Where(file="x.json", offset=8 + 15)


def test_counts_the_byte_order_mark() -> None:
    assert _error(b"\xef\xbb\xbf[1 2]").where == Where(file="x.json", offset=6)


def test_names_the_byte_that_is_no_utf8() -> None:
    error = _error(b'\xef\xbb\xbf{"a": "\xff"}', offset=8)
    assert error.message == "x.json is no UTF-8 at byte 18: invalid start byte"
    assert error.where == Where(file="x.json", offset=18)


@pytest.mark.parametrize("data", [b'{"a": 1, "a": 1}', b'[{"b": {"c": 0, "a": 1, "a": 2}}]'])
def test_refuses_a_key_that_stands_twice(data: bytes) -> None:
    assert _error(data).message == "x.json has the key 'a' twice in one object"


@pytest.mark.parametrize(
    ("opening", "levels"), [(b"[", 1), (b'{"a":', 1), (b'[{"[[[": ', 2), (b'{"\\"":[', 2)]
)
def test_refuses_nesting_before_it_recurses(opening: bytes, levels: int) -> None:
    error = _error(opening * 200_000)
    assert isinstance(error, LimitError)
    assert error.message == f"x.json is nested {200_000 * levels} deep, more than 64 is not read"


def test_reads_nesting_up_to_the_limit() -> None:
    depth = LIMITS.json_depth
    assert parse_json(b"[" * depth + b"]" * depth, name="x.json") != []
    assert isinstance(_error(b"[" * (depth + 1) + b"]" * (depth + 1)), LimitError)


def test_brackets_in_strings_are_no_nesting() -> None:
    text = '\\"' + "[" * 100 + "\\\\"
    assert parse_json(json.dumps({text: text}).encode(), name="x.json") == {text: text}


def test_refuses_integers_that_only_cost_time() -> None:
    assert parse_json(b"1" * 32, name="x.json") == int("1" * 32)
    # A sign is no digit.
    assert parse_json(b"-" + b"1" * 32, name="x.json") == -int("1" * 32)
    for sign in (b"", b"-"):
        error = _error(b"[" + sign + b"1" * 100_000 + b"]")
        assert isinstance(error, LimitError)
        assert error.message == "x.json has an integer of 100000 digits, more than 32 are not read"


def test_keeps_numbers_that_are_not_finite() -> None:
    value = parse_json(
        b'{"time_step_limit": [0.0, Infinity], "n": NaN, "huge": 1e400}', name="x.json"
    )
    assert isinstance(value, dict)
    assert value["time_step_limit"] == [0.0, math.inf]
    assert value["huge"] == math.inf
    assert isinstance(value["n"], float)
    assert math.isnan(value["n"])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999999999"])
def test_refuses_them_where_nothing_else_reads_them(number: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_json(f'[1e308, {{"a": {number}}}]'.encode(), name="x.json", finite=True)
    assert caught.value.message == f"x.json has the number {number!r}, which is not finite"
    assert parse_json(b"[1e308, -0.5]", name="x.json", finite=True) == [1e308, -0.5]


def test_looks_at_the_size_before_it_reads() -> None:
    class Endless(MemorySource):
        def read(self, start: int, length: int) -> bytes:
            raise AssertionError((start, length))

    with pytest.raises(LimitError, match=r"^x.json has 4 bytes, more than 3 are not read$"):
        read_object(Endless("x.json", b"{  }"), limit_bytes=3)


def test_more_values_than_any_real_document_has() -> None:
    data = b"[" + b"{}," * LIMITS.json_values + b"0]"
    with pytest.raises(LimitError, match=r"x has about \d+ values, more than 2500000 are not read"):
        parse_json(data, name="x")
