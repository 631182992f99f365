from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cached_snapshots import COMMIT, OLDER, write_snapshot
from engine_subjects import CONFIG
from gguf_audit.sources.hub import cache_folder, find_snapshot, is_offline


def test_finds_what_a_ref_means(tmp_path: Path) -> None:
    write_snapshot(tmp_path, {"config.json": CONFIG}, refs=("main", "refs/pr/1"))
    write_snapshot(tmp_path, {"config.json": CONFIG}, commit=OLDER, refs=("v1",))
    for revision, commit in [
        (None, COMMIT),
        ("main", COMMIT),
        ("refs/pr/1", COMMIT),
        ("v1", OLDER),
    ]:
        found = find_snapshot("owner/model", revision, cache=tmp_path)
        assert found is not None
        assert (found.commit, found.meant) == (commit, True)
        assert found.tree.names() == ("config.json",)


def test_finds_a_commit_that_no_ref_means(tmp_path: Path) -> None:
    write_snapshot(tmp_path, {"config.json": CONFIG}, refs=())
    found = find_snapshot("owner/model", COMMIT, cache=tmp_path)
    assert found is not None
    assert (found.commit, found.meant) == (COMMIT, True)


def test_takes_the_newest_commit_where_no_ref_tells(tmp_path: Path) -> None:
    write_snapshot(tmp_path, {"config.json": CONFIG}, refs=())
    older = write_snapshot(tmp_path, {"config.json": CONFIG}, commit=OLDER, refs=())
    newest = write_snapshot(tmp_path, {"README.md": {}}, commit="2" * 40, refs=())
    os.utime(older, ns=(1, 1))
    found = find_snapshot("owner/model", None, cache=tmp_path)
    assert found is not None
    assert (found.commit, found.meant) == (COMMIT, False)
    assert newest.is_dir()  # It has no config.json.


def test_follows_links_into_the_blobs(tmp_path: Path) -> None:
    folder = write_snapshot(tmp_path, {}, refs=("main",))
    (folder.parents[1] / "blobs").mkdir()
    (folder.parents[1] / "blobs" / "abc").write_bytes(b"{}")
    (folder / "config.json").symlink_to("../../blobs/abc")
    found = find_snapshot("owner/model", None, cache=tmp_path)
    assert found is not None
    assert found.tree.open("config.json").read(0, 2) == b"{}"


def test_knows_which_files_are_not_there(tmp_path: Path) -> None:
    write_snapshot(tmp_path, {"config.json": CONFIG}, absent=("chat_template.jinja",))
    found = find_snapshot("owner/model", None, cache=tmp_path)
    assert found is not None
    assert found.absent == frozenset({"chat_template.jinja"})


@pytest.mark.parametrize(
    ("repo", "revision"),
    [
        ("owner/other", None),
        ("owner/model", "v9"),
        ("owner/model", "f" * 40),
        ("owner/model", ".."),
    ],
)
def test_what_is_not_cached(tmp_path: Path, repo: str, revision: str | None) -> None:
    write_snapshot(tmp_path, {"config.json": CONFIG})
    assert find_snapshot(repo, revision, cache=tmp_path) is None


@pytest.mark.parametrize("ref", [b"", b"f" * 40, b"\xff" * 40, b"../../../.."])
def test_a_ref_that_means_nothing(tmp_path: Path, ref: bytes) -> None:
    folder = write_snapshot(tmp_path, {"config.json": CONFIG})
    (folder.parents[1] / "refs" / "main").write_bytes(ref)
    assert find_snapshot("owner/model", "main", cache=tmp_path) is None


def test_no_cache_at_all(tmp_path: Path) -> None:
    assert find_snapshot("owner/model", None, cache=tmp_path / "none") is None


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"XDG_CACHE_HOME": "/x"},
        {"HF_HOME": "~/home", "XDG_CACHE_HOME": "/x"},
        {"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/home"},
        {"HF_HUB_CACHE": "$HOME/new", "HUGGINGFACE_HUB_CACHE": "/old"},
    ],
)
def test_the_folder_is_that_of_huggingface_hub(values: dict[str, str]) -> None:
    code = (
        "from huggingface_hub import constants; print(constants.HF_HUB_CACHE, constants.ENDPOINT)"
    )
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **values},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{cache_folder(values)} https://huggingface.co\n"


@pytest.mark.parametrize(
    ("environment", "offline"),
    [
        ({}, False),
        ({"HF_HUB_OFFLINE": "1"}, True),
        ({"HF_HUB_OFFLINE": "yes"}, True),
        ({"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "1"}, False),
        ({"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "TRUE"}, True),
        ({"HF_HUB_OFFLINE": "no"}, False),
    ],
)
def test_offline(environment: dict[str, str], offline: bool) -> None:
    assert is_offline(environment) is offline
