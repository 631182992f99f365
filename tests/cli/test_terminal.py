from __future__ import annotations

import io

import pytest

from gguf_audit.cli.terminal import style_of
from gguf_audit.report.style import Detail


class Screen(io.TextIOWrapper):
    """A terminal of a given encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "color"),
    [
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_on_a_terminal(environ: dict[str, str], color: bool) -> None:
    style = style_of(Detail.NORMAL, Screen("utf-8"), environ)
    assert (style.color, style.unicode) == (color, True)
    assert style.width is not None


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("utf-8", True), ("UTF8", True), ("latin-1", False), ("ascii", False)],
)
def test_a_pipe_is_plain_and_its_lines_whole(encoding: str, unicode: bool) -> None:
    style = style_of(Detail.VERDICT, io.TextIOWrapper(io.BytesIO(), encoding=encoding), {})
    assert (style.color, style.width, style.unicode) == (False, None, unicode)
    assert style.detail is Detail.VERDICT
