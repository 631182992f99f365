from __future__ import annotations

import pytest

from gguf_audit.errors import MalformedError
from gguf_audit.sources import contained


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "model-00001-of-00002.safetensors",
        "text_encoder/model.safetensors",
        "..hidden",
        "a..b",
        "naïve.bin",
        "ab:c",
        "x" * 255,
    ],
)
def test_plain_relative_names_are_let_through(name: str) -> None:
    assert contained(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty part"),
        ("/etc/passwd", "absolute"),
        ("//host/share", "absolute"),
        ("..", "leaves its folder"),
        ("../x", "leaves its folder"),
        ("a/../../x", "leaves its folder"),
        ("a/..", "leaves its folder"),
        ("a//b", "empty part"),
        ("./a", "empty part"),
        ("a/", "empty part"),
        ("..\\x", "backslash"),
        ("C:/x", "drive or a URL"),
        ("c:x", "drive or a URL"),
        ("https://example.org/x", "drive or a URL"),
        ("file:///etc/passwd", "drive or a URL"),
        ("a\0b", "NUL"),
        ("x" * 256, "longer than 255"),
        ("é" * 128, "longer than 255"),
        ("\ud800", "isn't text"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason) as caught:
        contained(name)
    assert caught.value.message.isascii()
