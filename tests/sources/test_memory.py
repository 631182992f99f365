from __future__ import annotations

import pytest

from gguf_audit.errors import MalformedError, SourceError
from gguf_audit.sources import ByteSource, MemorySource, MemoryTree, Tree
from gguf_audit.where import Where


def test_bytes_are_read_anywhere_but_outside() -> None:
    source: ByteSource = MemorySource("a", b"0123")
    assert (source.name, source.size, source.read(1, 2), source.read(4, 0)) == ("a", 4, b"12", b"")
    for start, length in ((3, 2), (-1, 1), (0, -1)):
        with pytest.raises(SourceError, match="not in 4 bytes"):
            source.read(start, length)


def test_a_mapping_is_a_tree() -> None:
    tree: Tree = MemoryTree({"b": b"2", "a": b"1", "sub/c": b"3"}, identity="x")
    assert tree.identity == "x"
    assert list(tree.names()) == ["a", "b"]
    assert list(tree.names("sub")) == ["sub/c"]
    assert tree.open("sub/c").read(0, 1) == b"3"
    with pytest.raises(SourceError, match="no such file") as caught:
        tree.open("d")
    assert caught.value.where == Where(file="d")
    with pytest.raises(MalformedError):
        tree.open("../d")
