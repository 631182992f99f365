from __future__ import annotations

import os
from pathlib import Path

import pytest

from gguf_audit.errors import MalformedError, SourceError
from gguf_audit.sources import FileSource, LocalTree
from gguf_audit.where import Where


def test_a_file_is_read_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"0123456789")
    source = FileSource(path)
    assert (source.name, source.size) == (str(path), 10)
    assert [source.read(0, 10), source.read(3, 4), source.read(10, 0)] == [
        b"0123456789",
        b"3456",
        b"",
    ]


@pytest.mark.parametrize(("start", "length"), [(0, 11), (10, 1), (-1, 2), (2, -1), (1 << 70, 1)])
def test_what_is_not_in_the_file_is_an_error(tmp_path: Path, start: int, length: int) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"0123456789")
    with pytest.raises(SourceError, match="not in a file of 10 bytes"):
        FileSource(path).read(start, length)


def test_other_kinds_of_files_are_refused_by_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    for path, kind in ((tmp_path, "a folder"), (pipe, "a named pipe"), ("/dev/null", "a device")):
        with pytest.raises(SourceError, match=f"it is {kind}, not a regular file") as caught:
            FileSource(path)
        assert caught.value.where == Where(file=str(path))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "No such file"), ("a\0b", "contains a NUL"), ("x" * 300, "File name too long")],
)
def test_a_path_that_leads_nowhere_says_why(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        FileSource(tmp_path / name)


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(SourceError, match="symbolic links"):
        FileSource(tmp_path / "a")
    with pytest.raises(SourceError, match="can't read a"):
        LocalTree(tmp_path).open("a")


def test_a_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"0123456789")
    longer, shorter, other = FileSource(path), FileSource(path), FileSource(path)
    path.write_bytes(b"0123456789A")
    with pytest.raises(SourceError, match="changed or replaced"):
        longer.read(0, 1)
    path.write_bytes(b"0")
    with pytest.raises(SourceError, match="changed or replaced"):
        shorter.read(0, 1)
    path.unlink()
    with pytest.raises(SourceError, match="No such file"):
        other.read(0, 1)


def test_a_replaced_file_is_noticed_though_it_has_the_same_size(tmp_path: Path) -> None:
    path, twin = tmp_path / "a.bin", tmp_path / "b.bin"
    for file in (path, twin):
        file.write_bytes(b"0123456789")
        os.utime(file, ns=(0, 0))
    source = FileSource(path)
    twin.replace(path)
    with pytest.raises(SourceError, match="changed or replaced"):
        source.read(0, 1)


def test_a_tree_lists_files_and_opens_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b", "a", "sub/c"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("sub/c")
    os.mkfifo(tmp_path / "pipe")
    tree = LocalTree(tmp_path)
    assert tree.identity == str(tmp_path)
    # Whoever opens the last three is told that they are no files.
    assert list(tree.names()) == ["a", "b", "gone", "link", "pipe", "sub"]
    assert list(tree.names("sub")) == ["sub/c"]
    assert list(tree.names("absent")) == []
    found = tree.open("sub/c")
    assert (found.name, found.read(0, 5)) == ("sub/c", b"sub/c")
    assert tree.open("link").read(0, 5) == b"sub/c"


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "a\\b"])
def test_a_tree_opens_nothing_by_a_name_that_leads_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(MalformedError):
        LocalTree(tmp_path).open(name)
    with pytest.raises(MalformedError):
        LocalTree(tmp_path).names(name)


def test_a_tree_follows_no_link_that_leads_out(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "inner").symlink_to("../secret")
    with pytest.raises(SourceError, match="leads out of its folder") as caught:
        LocalTree(folder).open("inner")
    assert caught.value.where == Where(file="inner")
    assert LocalTree(folder, follow_links=True).open("inner").read(0, 6) == b"secret"


def test_a_snapshot_of_the_hub_cache_reads_its_blobs(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "c0ffee"
    blobs = tmp_path / "models--a--b" / "blobs"
    (snapshot / "sub").mkdir(parents=True)
    blobs.mkdir()
    (blobs / "5eed").write_bytes(b"{}")
    (snapshot / "config.json").symlink_to("../../blobs/5eed")
    (snapshot / "sub" / "config.json").symlink_to("../../../blobs/5eed")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "ba5e").write_bytes(b"[]")
    (blobs / "5a4e").symlink_to("../../blobs/ba5e")
    (snapshot / "shared.json").symlink_to("../../blobs/5a4e")
    (tmp_path / "else").write_bytes(b"secret")
    (snapshot / "stray.json").symlink_to("../../../else")
    tree = LocalTree(snapshot)
    assert list(tree.names()) == ["config.json", "shared.json", "stray.json", "sub"]
    assert tree.open("config.json").read(0, 2) == b"{}"
    assert tree.open("shared.json").read(0, 2) == b"[]"
    with pytest.raises(SourceError, match="leads out of its folder"):
        tree.open("stray.json")
    assert tree.open("sub/config.json").read(0, 2) == b"{}"


def test_a_tree_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="isn't a folder"):
        LocalTree(tmp_path / "file")
    with pytest.raises(SourceError, match="No such file"):
        LocalTree(tmp_path / "absent")
    with pytest.raises(SourceError, match="NUL"):
        LocalTree("a\0b")
