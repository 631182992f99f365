"""What is known to stand beside the models of a folder, and what is said of that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cached_snapshots import write_snapshot
from engine_subjects import ALL, KEYS, TENSORS
from gguf_audit.engine import audit_targets
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.policies import Policy
from gguf_audit.testing import FieldValue, build_gguf, write_gguf
from hub_server import FakeHub, Served, content, go_online

RULES = {code: ALL[code] for code in ("PKG014", "PKG015")}
#: A text model whose card called what it was made from one that sees.
SEEING: dict[str, FieldValue] = {
    **{key.replace("llama.", "gemma3."): value for key, value in KEYS.items()},
    "general.architecture": "gemma3",
    "general.tags": ["gemma", "image-text-to-text"],
}
PROJECTOR: dict[str, FieldValue] = {"general.architecture": "clip"}
ODD = [("v.weight", (32,), "F32")]
LIST = "---\nlicense: mit\n---\nm-Q4_0.gguf m-Q8_0.gguf m-BF16.gguf"
PUBLISHED = Policy(provenance=True)


def write(folder: Path, *names: str) -> None:
    """Write a model under each name, a projector where it says so, a card for README.md."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "README.md":
            path.write_text(LIST, "utf-8")
        elif "projector" in name or "mmproj" in name:
            write_gguf(path, PROJECTOR, ODD)
        else:
            write_gguf(path, SEEING, TENSORS)


def found(
    target: Path | str,
    *,
    policy: Policy | None = None,
    part: tuple[int, int] | None = None,
    matches: str | None = None,
) -> list[tuple[str, str]]:
    """Return the rules that say something of a folder, and which."""
    mandate = Mandate(rules=RULES, policy=policy, matches=matches)
    report = audit_targets([str(target)], mandate, part=part)
    return [
        (finding.rule, subject.target)
        for subject in report.subjects
        for finding in subject.findings
    ]


# Projectors


@pytest.mark.parametrize(
    "beside",
    [
        "mmproj-m-f16.gguf",
        "m.mmproj-Q8_0.gguf",
        # By what it holds, whatever it is called.
        "projector.gguf",
        "mmproj/projector.gguf",
        "../projector.gguf",
        # In a folder without models it is nobody's, so anybody's.
        "../other/projector.gguf",
    ],
)
def test_any_projector_near_a_model_is_one(tmp_path: Path, beside: str) -> None:
    write(tmp_path, "a/m-Q4_0.gguf", "a/m-Q8_0.gguf")
    assert found(tmp_path) == [("PKG014", str(tmp_path / "a"))]
    write(tmp_path / "a", beside)
    assert found(tmp_path) == []


def test_a_projector_below_is_near_whatever_else_is_there(tmp_path: Path) -> None:
    write(tmp_path, "a/m.gguf", "a/b/m.gguf", "a/b/mmproj.gguf")
    assert found(tmp_path) == []


def test_what_is_called_a_projector_is_none_that_is_missing(tmp_path: Path) -> None:
    write(tmp_path, "m.gguf")
    # As scripts of old made them, with nothing that says so.
    write_gguf(tmp_path / "x-MMPROJ.gguf", {"general.architecture": "llava"}, ODD)
    assert found(tmp_path) == []


def test_a_projector_of_another_folders_models_is_none(tmp_path: Path) -> None:
    write(tmp_path, "a/m.gguf", "b/m.gguf", "b/mmproj.gguf")
    assert found(tmp_path) == [("PKG014", str(tmp_path / "a"))]


def test_a_folder_that_is_named_like_a_quantization_is_part_of_the_one_above(
    tmp_path: Path,
) -> None:
    write(tmp_path, "BF16/m-BF16.gguf", "m-Q4_0.gguf")
    assert found(tmp_path) == [("PKG014", str(tmp_path))]
    # By itself nobody knows what the one above it holds.
    assert found(tmp_path / "BF16") == []


def test_what_cannot_be_read_may_be_a_projector_of_models_near_it(tmp_path: Path) -> None:
    write(tmp_path, "a/m.gguf", "b/m.gguf", "c/m.gguf")
    (tmp_path / "b" / "x.gguf").write_bytes(b"GGUF")
    (tmp_path / "c" / "vision").symlink_to(tmp_path / "a")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "x.gguf").write_bytes(b"GGUF")
    assert found(tmp_path) == [("PKG014", str(tmp_path / "a"))]


def test_nothing_is_known_of_what_is_beside_a_file(tmp_path: Path) -> None:
    write(tmp_path, "m.gguf")
    assert found(tmp_path / "m.gguf") == []
    assert found(tmp_path) == [("PKG014", str(tmp_path))]
    # Nor of the other parts of a run.
    write(tmp_path, "n.gguf")
    assert found(tmp_path, part=(1, 2)) == []


def test_several_processes_and_targets_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/m.gguf", "a/n.gguf", "b/mmproj.gguf")
    monkeypatch.chdir(tmp_path / "a")
    report = audit_targets([".", str(tmp_path / "b")], Mandate(rules=RULES), jobs=2)
    assert [
        (subject.target, [each.where.file for each in subject.findings])
        for subject in report.subjects
        if subject.kind == "set"
    ] == [(".", ["m.gguf"])]


# Downloads


def _into_the_cache(folder: Path, file: Path) -> Path:
    return write_snapshot(folder, {"README.md": LIST}) / file.name


def _into_a_folder(folder: Path, file: Path) -> Path:
    note = folder / ".cache" / "huggingface" / "download" / "sub" / f"{file.name}.metadata"
    note.parent.mkdir(parents=True)
    note.touch()
    (folder / "sub").mkdir()
    return folder / "sub" / file.name


def _by_a_link(folder: Path, file: Path) -> Path:
    blob = folder / "models--o--r" / "blobs" / "0123"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(file.read_bytes())
    (folder / "here").mkdir()
    (folder / "here" / file.name).symlink_to(blob)
    return folder / "here" / file.name


@pytest.mark.parametrize("fetch", [_into_the_cache, _into_a_folder, _by_a_link])
def test_what_was_downloaded_lacks_nothing(
    tmp_path: Path, fetch: Callable[[Path, Path], Path]
) -> None:
    write(tmp_path, "m-Q4_0.gguf")
    there = fetch(tmp_path / "there", tmp_path / "m-Q4_0.gguf")
    if not there.exists():
        os.link(tmp_path / "m-Q4_0.gguf", there)
    assert found(there.parent, policy=PUBLISHED) == []
    # Nor does a folder where somebody has put one more.
    write(there.parent, "a-Q4_0.gguf")
    assert found(there.parent, policy=PUBLISHED) == []
    assert found(tmp_path, policy=PUBLISHED) == [("PKG014", str(tmp_path))]


def test_models_made_beside_a_downloaded_checkpoint_are_no_download(tmp_path: Path) -> None:
    write(tmp_path, "m.gguf")
    note = tmp_path / ".cache" / "huggingface" / "download" / "config.json.metadata"
    note.parent.mkdir(parents=True)
    note.touch()
    assert found(tmp_path) == [("PKG014", str(tmp_path))]


# Cards


def test_a_list_is_held_against_a_folder_and_what_is_below(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "m-Q4_0.gguf", "mmproj.gguf")
    assert found(tmp_path) == []  # Most of it isn't there.
    assert found(tmp_path, policy=PUBLISHED) == [("PKG015", str(tmp_path))]
    write(tmp_path, "m-Q8_0.gguf")
    assert found(tmp_path) == [("PKG015", str(tmp_path))]
    (tmp_path / "m-BF16.gguf.part1of2").touch()
    assert found(tmp_path) == []
    (tmp_path / "m-BF16.gguf.part1of2").unlink()
    write(tmp_path, "full/m-BF16-00001-of-00001.gguf")
    assert found(tmp_path) == []


def test_a_folder_that_is_too_large_to_look_through_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "README.md", "m-Q4_0.gguf", "m-Q8_0.gguf", "mmproj.gguf", "a/b/x-Q4_0.gguf")
    # Four of them, a folder, a folder in that, and what is there.
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "objects" / "pack").touch()
    monkeypatch.setattr("gguf_audit.folders.LIMITS", LIMITS._replace(listed_files=7))
    assert found(tmp_path) == [("PKG015", str(tmp_path))]
    monkeypatch.setattr("gguf_audit.folders.LIMITS", LIMITS._replace(listed_files=6))
    report = audit_targets([str(tmp_path)], Mandate(rules=RULES))
    reason = (
        f"{tmp_path} has more than 6 files and folders below it: what its card lists isn't looked"
        " for among them"
    )
    [skip] = [
        skip for subject in report.subjects for skip in subject.skips if skip.reason == reason
    ]
    assert (skip.rule, skip.kind) == ("PKG015", "limit")
    assert report.exit_code(None) == 3
    # Without a card nothing is looked through.
    (tmp_path / "README.md").unlink()
    assert audit_targets([str(tmp_path)], Mandate(rules=RULES)).exit_code(None) == 0


# Repositories


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    monkeypatch.chdir(tmp_path)
    model = content(build_gguf(SEEING, TENSORS))
    files = {"README.md": content(LIST), "m-Q4_0.gguf": model, "sub/m-Q8_0.gguf": model}
    with Served(FakeHub(files=files)) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path / "home"))
        yield fake


def test_a_repository_is_one_folder(fake: FakeHub) -> None:
    assert found("owner/model") == [("PKG014", "hf://owner/model")]
    # A card there is a request that only a policy is worth.
    assert not any("README" in request.path for request in fake.requests)
    assert found("owner/model", policy=PUBLISHED) == [
        ("PKG014", "hf://owner/model"),
        ("PKG015", "hf://owner/model"),
    ]
    for part in ("owner/model:Q4_0", "owner/model:m-Q4_0.gguf", "hf://owner/model/sub"):
        assert found(part, policy=PUBLISHED) == []
    fake.files["else/any.gguf"] = content(build_gguf(PROJECTOR, ODD))
    fake.files["m-BF16.gguf-split-a"] = content(b"x")
    assert found("owner/model", policy=PUBLISHED) == []


def test_a_repository_that_is_the_same_here_is_one_folder_too(
    fake: FakeHub, tmp_path: Path
) -> None:
    for name, file in fake.files.items():
        path = tmp_path / "up" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.head)
    assert found("owner/model", matches=str(tmp_path / "up")) == [
        ("PKG014", "hf://owner/model"),
        ("PKG015", "hf://owner/model"),
    ]


def test_the_local_cache_of_a_repository_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    write(write_snapshot(tmp_path, {"README.md": LIST}), "m-Q4_0.gguf")
    assert found("cache:owner/model", policy=PUBLISHED) == []
