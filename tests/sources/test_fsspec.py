"""File systems of fsspec's that do what they want, in the process that asks them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gguf_audit.errors import SourceError
from gguf_audit.limits import LIMITS
from gguf_audit.sources.fsspec_files import FsspecTree

pytest.importorskip("fsspec", reason="the extra fsspec isn't installed")

Install = Callable[[str], None]

#: A file system with one file of 4 MiB, of which a test changes what it wants.
_IMPLEMENTATION = """
import os, sys, time
from fsspec import AbstractFileSystem

class Strange(AbstractFileSystem):
    protocol = "strange"

    def info(self, path, **named):
        if path.endswith(".gguf"):
            return {"name": path, "size": 1 << 22, "type": "file"}
        return {"name": path, "size": 0, "type": "directory"}

    def ls(self, path, detail=True, **named):
        return [self.info(path + "/m.gguf")]

    def cat_file(self, path, start=None, end=None, **named):
        return bytes(end - start)

"""


#: Folders of it, each of which lists itself, too.
TREE = """
    def ls(self, path, detail=True):
        folders = {"a": ["b", "c", "c"], "a/c": ["d/"]}.get(path.removeprefix("host/"), [])
        found = [{"name": path, "size": 0, "type": "directory"}]
        found += [{"name": f"{path}/{each}", "type": "directory"} for each in folders]
        return found if path.endswith("c") else [*found, self.info(path + "/m.gguf")]
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a file system ``strange://`` with these methods."""
    information = tmp_path / "strange-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: strange\nVersion: 0\n", "utf-8")
    points = "[fsspec.specs]\nstrange = strange_files:Strange\n"
    (information / "entry_points.txt").write_text(points, "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def write(methods: str) -> None:
        (tmp_path / "strange_files.py").write_text(_IMPLEMENTATION + methods, "utf-8")

    return write


def said(tree: FsspecTree) -> str:
    """Return why the file can't be read."""
    with pytest.raises(SourceError) as caught:
        tree.open("m.gguf").read(0, 8)
    return caught.value.message


def test_files_of_an_installed_file_system(install: Install) -> None:
    install("")
    tree = FsspecTree("strange://host/a")
    assert (tree.is_file, tree.found(), tree.names()) == (False, ["m.gguf"], ["m.gguf"])
    file = tree.open("m.gguf")
    assert (file.size, file.read(0, 8), file.read(3 << 20, 8)) == (1 << 22, bytes(8), bytes(8))
    # A window, and what lies far behind it by itself.
    assert tree.traffic.bytes == (1 << 20) + 8
    assert FsspecTree("strange://host/a/m.gguf").is_file


def test_its_process_has_so_much_memory_and_no_more(install: Install) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux bounds it")
    assert LIMITS.fsspec_memory_bytes == 1 << 30
    install("    def cat_file(self, path, **named): return bytes(1 << 31)")
    assert said(FsspecTree("strange://host/a")) == (
        "can't read strange://host/a: what it sends takes too much memory"
    )


@pytest.mark.parametrize("there", [1 << 19, 1 << 21])
def test_a_range_of_another_length(install: Install, there: int) -> None:
    install(f"    def cat_file(self, path, **named): return bytes({there})")
    assert said(FsspecTree("strange://host/a")) == (
        f"can't read strange://host/a: asked for bytes 0-1048575, got {there}"
    )


def test_one_that_ends_its_process_is_not_asked_again(install: Install) -> None:
    install("    def cat_file(self, path, **named): os._exit(5)")
    tree, other = FsspecTree("strange://host/a"), FsspecTree("strange://host/b")
    why = "the process that asks its server ended, exit code 5; it isn't asked again"
    assert said(tree) == f"can't read strange://host/a: {why}"
    asked = tree.traffic.requests
    assert said(tree) == f"can't read strange://host/a: {why}"
    assert tree.traffic.requests == asked
    assert other.open("m.gguf").size == 1 << 22


def test_a_listing_that_unfolds_is_not_taken_over(install: Install) -> None:
    install("    def ls(self, path, **named): return [self.info('x' * (1 << 20) + '.gguf')] * 65")
    assert LIMITS.fsspec_excess_bytes == 64 << 20
    with pytest.raises(SourceError) as caught:
        FsspecTree("strange://host/a").names()
    assert caught.value.message == (
        "can't read strange://host/a: its server sends more than it was asked for; it isn't asked"
        " again"
    )


def test_several_threads_get_their_own_answers(install: Install) -> None:
    install(
        "    def cat_file(self, path, start=None, end=None): return path[-9:-5].encode() * (1 << 18)"
    )

    def read(number: int) -> bytes:
        return FsspecTree(f"strange://host/{number:04}.gguf").open(f"{number:04}.gguf").read(0, 4)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(64))) == [f"{number:04}".encode() for number in range(64)]


def test_one_that_says_nothing_is_given_up(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("    def cat_file(self, path, **named): time.sleep(600)")
    tree = FsspecTree("strange://host/a")
    file = tree.open("m.gguf")
    limits = LIMITS._replace(
        remote_seconds=0.5, remote_usual_seconds=0.25, remote_bytes_per_second=1 << 30
    )
    monkeypatch.setattr(tree, "_limits", limits)
    with pytest.raises(SourceError, match="no answer in time"):
        file.read(0, 8)
    assert tree.traffic.idle > 0.2
    tree.traffic.idle = 90.4
    assert said(tree) == (
        "can't read strange://host/a: its server was waited for in vain for 90 s: it isn't asked"
        " again"
    )


def test_what_an_implementation_prints_is_no_answer(install: Install) -> None:
    install("    def _strip(self): pass\nprint('{}' * 99); sys.stdout.flush(); os.write(1, b'x')")
    assert FsspecTree("strange://host/a").names() == ["m.gguf"]


def test_every_folder_is_walked(install: Install) -> None:
    install(TREE)
    assert FsspecTree("strange://host/a").found() == ["b/m.gguf", "c/d/m.gguf", "m.gguf"]


@pytest.mark.parametrize("where", ["a", "a/b", "a/c/d"])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("OSError(5, 'it is on fire')", "it is on fire"),
        ("PermissionError()", "it isn't allowed: are the credentials set"),
        ("FileNotFoundError()", "no such file"),
        ("TimeoutError()", "no answer in time"),
        ("KeyError('secret')", "its fsspec implementation fails (KeyError)"),
    ],
)
def test_a_folder_that_cannot_be_listed_is_no_empty_one(
    install: Install, where: str, error: str, reason: str
) -> None:
    refuses = f"        if path.endswith({where!r}): raise {error}\n"
    install(TREE.replace("detail=True):\n", f"detail=True):\n{refuses}"))
    tree = FsspecTree("strange://host/a")
    with pytest.raises(SourceError) as caught:
        tree.found()
    assert caught.value.message.startswith(f"can't read strange://host/a: {reason}")


def test_a_server_that_cannot_be_asked_has_no_missing_file(install: Install) -> None:
    install(
        "    def info(self, path):\n"
        "        try: raise ConnectionRefusedError(111, 'Connection refused')\n"
        "        except OSError: raise ConnectionError('a secret')"
    )
    with pytest.raises(SourceError) as caught:
        FsspecTree("strange://host/a/m.gguf")
    assert caught.value.message == "can't read strange://host/a/m.gguf: Connection refused"


def test_an_address_that_is_none() -> None:
    with pytest.raises(SourceError) as caught:
        FsspecTree("nosuch://[x")
    assert caught.value.message == (
        "can't read an address that is none: fsspec doesn't know this protocol"
    )
