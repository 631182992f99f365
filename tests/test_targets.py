"""What a target means, and where its files are looked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine_subjects import ALL, KEYS, TENSORS
from gguf_audit.engine import audit_targets
from gguf_audit.limits import LIMITS
from gguf_audit.mandate import Mandate
from gguf_audit.targets import Located, Targets, is_model
from gguf_audit.targets._hub import Wanted, parse, picked
from gguf_audit.testing import build_gguf, write_gguf, write_split_gguf
from gguf_audit.verdict import SourceFacts, SubjectReport
from hub_server import COMMIT, TOKEN, FakeHub, Served, always, content, go_online

MODEL = build_gguf(KEYS, TENSORS)
PROJECTOR = build_gguf({"general.architecture": "clip"}, [("v.weight", (32,), "F32")])
HASH = hashlib.sha256(MODEL).hexdigest()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    monkeypatch.chdir(tmp_path)
    files = {
        "README.md": content("---\nbase_model: owner/base\n---\n"),
        "m-Q4_K_M.gguf": content(MODEL),
        "m-Q8_0.gguf": content(MODEL),
        "mmproj-m-f16.gguf": content(PROJECTOR),
    }
    with Served(FakeHub(files=files)) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path / "home"))
        yield fake


def locate(target: str) -> list[Located]:
    return list(Targets().locate(target))


def names(target: str) -> list[str]:
    return [each.name for each in locate(target)]


def said(target: str) -> str:
    """Return why a target can't be had."""
    [located] = locate(target)
    assert located.error is not None
    return located.error.message


def write_gguf_here(folder: Path) -> Path:
    write_gguf(folder / "here.gguf", KEYS, TENSORS)
    return folder / "here.gguf"


def audit(target: str) -> tuple[SubjectReport, ...]:
    return audit_targets([target], Mandate(rules={})).subjects


# What is meant


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("owner/repo", Wanted(repo="owner/repo", bare=True)),
        ("owner/repo@v1", Wanted(repo="owner/repo", revision="v1", bare=True)),
        (
            "owner/repo@refs/pr/1:a.gguf",
            Wanted(repo="owner/repo", revision="refs/pr/1", path="a.gguf"),
        ),
        ("owner/repo:Q4_K_M", Wanted(repo="owner/repo", tag="Q4_K_M")),
        ("owner/repo:BF16/a--b.gguf", Wanted(repo="owner/repo", path="BF16/a--b.gguf")),
        ("hf://owner/repo", Wanted(repo="owner/repo")),
        ("hf://owner/repo/", Wanted(repo="owner/repo")),
        ("hf://owner/repo@v1/x/a.gguf", Wanted(repo="owner/repo", revision="v1", path="x/a.gguf")),
        ("hf://owner/repo/x/a@b.gguf", Wanted(repo="owner/repo", path="x/a@b.gguf")),
        (
            "hf://owner/repo@refs/pr/3/a.gguf",
            Wanted(repo="owner/repo", revision="refs/pr/3", path="a.gguf"),
        ),
        (
            "hf://owner/repo@refs%2Fpr%2F3/a.gguf",
            Wanted(repo="owner/repo", revision="refs/pr/3", path="a.gguf"),
        ),
        ("hf://owner/repo:Q8_0", Wanted(repo="owner/repo", tag="Q8_0")),
        ("hf://owner/repo@v1:Q8_0", Wanted(repo="owner/repo", revision="v1", tag="Q8_0")),
        ("hf.co/owner/repo:Q8_0", Wanted(repo="owner/repo", tag="Q8_0")),
        ("https://huggingface.co/owner/repo", Wanted(repo="owner/repo")),
        (
            "https://huggingface.co/owner/repo/blob/main/x/a%20b.gguf?download=true",
            Wanted(repo="owner/repo", revision="main", path="x/a b.gguf"),
        ),
        (
            "https://huggingface.co/owner/repo/tree/refs%2Fpr%2F1",
            Wanted(repo="owner/repo", revision="refs/pr/1"),
        ),
        ("model.gguf", None),
        ("models/model.gguf", None),
        ("owner/repo:", None),
        ("a/b/c", None),
        ("C:/models", None),
        ("https://huggingface.co/datasets/owner/repo", None),
        ("https://example.org/owner/repo/a.gguf", None),
        ("hf://owner", None),
    ],
)
def test_what_is_asked_of_the_hub(target: str, wanted: Wanted | None) -> None:
    assert parse(target) == wanted


LISTED = [
    "BF16/m-BF16-00001-of-00002.gguf",
    "BF16/m-BF16-00002-of-00002.gguf",
    "m-IQ4_XS.gguf",
    "m-Q4_K_M.gguf",
    "m-Q4_K_S.gguf",
    "m-Q8_0.gguf",
    "m-UD-Q4_K_M.gguf",
    "mmproj-BF16.gguf",
    "mmproj-Q8_0.gguf",
]


@pytest.mark.parametrize(
    ("tag", "file"),
    [
        ("Q4_K_M", "m-Q4_K_M.gguf"),
        ("q8_0", "m-Q8_0.gguf"),
        ("UD-Q4_K_M", "m-UD-Q4_K_M.gguf"),
        ("BF16", "BF16/m-BF16-00001-of-00002.gguf"),
        ("latest", "m-Q4_K_M.gguf"),
    ],
)
def test_a_quantization_picks_what_llama_cpp_would(tag: str, file: str) -> None:
    assert picked(LISTED, Wanted(repo="o/r", tag=tag), "o/r") == ([file], False)


def test_the_default_is_the_first_model_where_there_is_neither_of_the_usual() -> None:
    wanted = Wanted(repo="o/r", tag="latest")
    assert picked(["mmproj-a.gguf", "a-Q5_0.gguf"], wanted, "o/r") == (["a-Q5_0.gguf"], False)


def test_what_exists_is_a_path(fake: FakeHub, tmp_path: Path) -> None:
    for folder in ("owner/model", "ollama:x"):
        (tmp_path / folder).mkdir(parents=True)
        write_gguf(tmp_path / folder / "here.gguf", KEYS, TENSORS)
        assert names(folder) == [f"{folder}/here.gguf"]
    assert names(f"file://{tmp_path}/owner/model/here.gguf") == [
        f"file://{tmp_path}/owner/model/here.gguf"
    ]
    (tmp_path / "owner" / "gone").symlink_to("nowhere")
    [subject] = audit("owner/gone")
    assert [error.message for error in subject.errors] == [
        "can't read owner/gone: No such file or directory"
    ]
    assert fake.requests == []


def test_parts_of_a_file_are_to_be_concatenated(fake: FakeHub, tmp_path: Path) -> None:
    del fake
    for number in range(2, 13):
        (tmp_path / f"my b.gguf.part{number}of12").write_bytes(b"x")

    def said(target: Path) -> list[tuple[str, str]]:
        return [
            (Path(each.name).name, each.error.message if each.error else "")
            for each in locate(str(target))
        ]

    second = "my b.gguf.part2of12"
    says = (
        f"{second} is part 2 of 12: concatenate the parts: "
        "cat 'my b.gguf'.part{1..12}of12 > 'my b.gguf'"
    )
    assert said(tmp_path) == said(tmp_path / second) == [(second, says)]
    first = tmp_path / "my b.gguf.part1of12"
    first.write_bytes(build_gguf(KEYS, TENSORS)[:-4096])
    assert said(tmp_path) == said(first) == [(first.name, "")]
    [finding] = audit_targets([str(first)], Mandate(rules=ALL)).subjects[0].findings
    assert (finding.rule, finding.fix) == (
        "GGUF001",
        "concatenate the parts: cat 'my b.gguf'.part{1..12}of12 > 'my b.gguf'",
    )
    # Beside whole files they are what a publisher has cut: nobody named them.
    (tmp_path / "c.gguf").write_bytes(b"GGUF")
    assert said(tmp_path) == [("c.gguf", "")]
    assert said(tmp_path / "none.gguf.part2of2") != [("none.gguf.part2of2", says)]


def test_stdin_is_refused_with_a_reason() -> None:
    assert said("-").startswith("a model can't be read from stdin: its header says how long")


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("-", True),
        ("ollama:x", True),
        ("owner/repo:Q4_0", True),
        ("hf://owner/repo/a.gguf", True),
        ("https://example.org/a.gguf", True),
        ("s3://bucket/a.gguf", True),
        ("owner/repo", False),
        ("hf://owner/repo", False),
        ("config.json", False),
    ],
)
def test_what_can_not_be_a_reference(target: str, model: bool) -> None:
    assert is_model(target) is model


@pytest.mark.parametrize(
    "target", ["hf://owner", "hf://owner/repo@..", "hf://owner/repo@%ff@/m.gguf", "HF://owner/repo"]
)
def test_an_address_of_the_hub_is_nobody_elses(fake: FakeHub, target: str) -> None:
    assert said(target) == f"{target}: expected hf://owner/repo[@revision][/path]"
    assert fake.requests == []


def test_a_revision_that_is_no_text_names_nothing(fake: FakeHub) -> None:
    [subject] = audit("owner/model@\udcff")
    assert subject.errors[0].message.endswith("No such file or directory")
    assert fake.requests == []


# The Hub


def test_every_model_of_a_repository(fake: FakeHub) -> None:
    subjects = audit("owner/model@main")
    assert [(each.target, each.kind, each.errors) for each in subjects] == [
        ("hf://owner/model@main/m-Q4_K_M.gguf", "model", ()),
        ("hf://owner/model@main/m-Q8_0.gguf", "model", ()),
        ("hf://owner/model@main/mmproj-m-f16.gguf", "mmproj", ()),
    ]
    # The listing, then a redirect and one answer of the CDN's for each.
    assert [(request.host, request.range) for request in fake.requests] == [
        ("hub", None),
        *[
            pair
            for size in (len(MODEL), len(MODEL), len(PROJECTOR))
            for pair in (("hub", f"bytes=0-{size - 1}"), ("cdn", f"bytes=0-{size - 1}"))
        ],
    ]
    sources = [each.source for each in subjects if each.source is not None]
    assert {(each.id, each.revision, each.origin, each.note) for each in sources} == {
        ("owner/model", COMMIT, "hub", "")
    }
    assert [each.requests for each in sources] == [3, 2, 2]
    # Where the connection is closed depends on what was under way.
    listing = fake.requests[0].sent
    assert listing < sources[0].bytes <= listing + len(MODEL)
    assert 0 < sources[1].bytes <= len(MODEL)
    assert sources[2].bytes == len(PROJECTOR)


@pytest.mark.parametrize(
    "target", ["owner/model:m-Q8_0.gguf", "owner/model:Q8_0", "hf://owner/model/m-Q8_0.gguf"]
)
def test_one_model_of_a_repository(fake: FakeHub, target: str) -> None:
    [located] = locate(target)
    assert (located.name, located.file, located.found) == (target, "m-Q8_0.gguf", False)
    assert located.sha256_of("m-Q8_0.gguf") == HASH
    assert located.open().name == target
    assert fake.count("cdn") == (1, len(MODEL))


def test_a_page_of_the_hub_is_no_plain_address(fake: FakeHub) -> None:
    fake.token, fake.gated = TOKEN, True
    [located] = locate(f"{fake.url}/owner/model/blob/main/m-Q8_0.gguf?download=true")
    assert located.name == "hf://owner/model@main/m-Q8_0.gguf"


def test_a_set_in_a_sub_folder_is_one_model(fake: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    write_split_gguf(tmp_path / "made", KEYS, TENSORS, shards=2)
    for path in sorted((tmp_path / "made").iterdir()):
        fake.files[f"BF16/{path.name}"] = content(path.read_bytes())
    subjects = audit("hf://owner/model/BF16")
    assert [(each.target, len(each.files), each.errors) for each in subjects] == [
        ("hf://owner/model/BF16/model-00001-of-00002.gguf", 2, ())
    ]
    del fake.files["BF16/model-00002-of-00002.gguf"]
    [subject] = audit("hf://owner/model/BF16")
    assert "of 2 shards 1 missing" in subject.errors[0].message


def test_what_a_repository_does_not_have_is_told_with_what_it_has(fake: FakeHub) -> None:
    at = f"owner/model@{COMMIT}"
    there = "; there are m-Q4_K_M.gguf, m-Q8_0.gguf, mmproj-m-f16.gguf"
    assert said("owner/model:Q2_K") == f"{at} has no model that Q2_K names{there}"
    assert said("owner/model:x.gguf") == f"{at} has no x.gguf{there}"
    fake.files = {"config.json": content({})}
    assert said("owner/model") == f"{at} has no .gguf file in it"
    assert said("owner/none") == (
        f"no such file or folder here; {fake.url} has no repository owner/none, or a private one:"
        " no HF_TOKEN is set, and the local Hub cache has no .gguf file of owner/none"
    )


def test_a_gated_repository_is_not_audited_and_says_what_to_do(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.gated, fake.token = True, TOKEN
    [subject] = audit("owner/model:Q8_0")
    [problem] = subject.errors
    assert problem.message == (
        f"can't read m-Q8_0.gguf of owner/model@{COMMIT}: owner/model is gated: accept its licence"
        f" at {fake.url}/owner/model and set HF_TOKEN to a token of that account"
    )
    assert subject.source is not None
    assert subject.source.requests == 2
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    [subject] = audit("owner/model:Q8_0")
    assert subject.errors == ()
    assert {(request.host, request.authorization) for request in fake.requests[3:]} == {
        ("hub", f"Bearer {TOKEN}"),
        ("cdn", None),
    }


def test_the_card_of_a_repository_names_the_reference(fake: FakeHub) -> None:
    [located] = locate("owner/model:Q8_0")
    base = located.base_model()
    assert base is not None
    assert (base.name, base.relation) == ("owner/base", "")
    assert fake.count("cdn") == (0, 0)


def test_what_was_downloaded_at_that_commit_is_read_from_the_cache(
    fake: FakeHub, tmp_path: Path
) -> None:
    snapshot = tmp_path / "home/hub/models--owner--model/snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "m-Q8_0.gguf").write_bytes(MODEL)
    (snapshot / "m-Q4_K_M.gguf").write_bytes(MODEL[:-1])  # A download that broke off.
    assert [each.errors for each in audit("owner/model")] == [(), (), ()]
    asked = [request.path for request in fake.requests if request.host == "cdn"]
    assert asked == ["/m-Q4_K_M.gguf", "/mmproj-m-f16.gguf"]


def test_offline_the_cache_is_used_and_nobody_asked(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert said("owner/model") == (
        "no such file or folder here; --offline or HF_HUB_OFFLINE is set, and the local Hub cache"
        " has no .gguf file of owner/model"
    )
    repository = tmp_path / "home/hub/models--owner--model"
    snapshot = repository / "snapshots" / COMMIT
    (snapshot / "sub").mkdir(parents=True)
    (snapshot / "sub" / "m-Q8_0.gguf").write_bytes(MODEL)
    [subject] = audit("owner/model")
    assert (subject.target, subject.errors) == ("hf://owner/model/sub/m-Q8_0.gguf", ())
    assert subject.source == SourceFacts(
        id="owner/model",
        revision=None if subject.source is None else subject.source.revision,
        origin="cache",
        note="--offline or HF_HUB_OFFLINE is set; only what was downloaded once is known of it;"
        " whether that commit is main isn't known",
        requests=0,
        bytes=0,
    )
    assert [each.errors for each in audit("owner/model:Q8_0")] == [()]
    assert [each.errors for each in audit("cache:owner/model:Q8_0")] == [()]
    assert said("https://example.org/a.gguf?sign=secret") == (
        "https://example.org/a.gguf?... isn't asked for: --offline or HF_HUB_OFFLINE is set"
    )
    assert said("s3://bucket/a.gguf") == (
        "s3://bucket/a.gguf isn't asked for: --offline or HF_HUB_OFFLINE is set"
    )
    assert fake.requests == []


def test_a_hub_that_fails_is_told_and_the_cache_used(fake: FakeHub, tmp_path: Path) -> None:
    fake.fault = always((418, {}, b""))
    snapshot = tmp_path / "home/hub/models--owner--model/snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "m-Q8_0.gguf").write_bytes(MODEL)
    [located] = locate("owner/model:Q8_0")
    assert located.source is not None
    assert located.source.note.startswith(f"{fake.url} refuses owner/model (status 418)")


def test_more_models_than_anybody_audits(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = LIMITS.listed_models + 1
    fake.files = {f"a/{number}.gguf": content(b"") for number in range(more)}
    many = f"lists {more} models, more than {more - 1} are not audited: name a file or a folder"
    assert many in said("owner/model")
    assert names("owner/model:a/7.gguf") == ["owner/model:a/7.gguf"]
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    manifest = _ollama(tmp_path, "registry.ollama.ai/library/m/latest")
    document = json.loads(manifest.read_text())
    document["layers"] = document["layers"][2:] * more
    manifest.write_text(json.dumps(document))
    assert many in said("ollama:m")


# Stores


def test_a_model_of_ollamas_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    manifest = _ollama(tmp_path, "registry.ollama.ai/library/llama3.2/latest")
    for target in ("ollama:llama3.2", "ollama:llama3.2:latest", "ollama:library/llama3.2"):
        subjects = audit(target)
        assert [(each.target, each.kind, each.errors) for each in subjects] == [
            (target, "model", ()),
            (f"{target} (projector)", "mmproj", ()),
        ]
        assert subjects[0].files[0].name == str(tmp_path / f"blobs/sha256-{HASH}")
        assert subjects[0].source == SourceFacts(
            id="registry.ollama.ai/library/llama3.2:latest",
            revision=None,
            origin="ollama",
            note="",
            requests=0,
            bytes=0,
        )
    _ollama(tmp_path, "hf.co/owner/repo/Q8_0")
    assert len(audit("ollama:hf.co/owner/repo:Q8_0")) == 2
    there = "; there is llama3.2:latest"
    assert said("ollama:llama3.2:1b") == f"{tmp_path} has no model llama3.2:1b{there}"
    assert said("ollama:gemma") == f"{tmp_path} has no model gemma; there is llama3.2"
    assert "it leaves its folder" in said("ollama:../../x")
    assert said("ollama:a/b/c/d").startswith("ollama:a/b/c/d: expected ollama:name")
    (tmp_path / f"blobs/sha256-{HASH}").write_bytes(MODEL[:-1])
    assert f"has {len(MODEL) - 1} bytes, the manifest says {len(MODEL)}" in (
        audit("ollama:llama3.2")[0].errors[0].message
    )
    manifest.write_text('{"layers": [{"mediaType": "x"}]}')
    assert "is no manifest of Ollama's" in said("ollama:llama3.2")
    manifest.write_text('{"layers": []}')
    assert said("ollama:llama3.2") == "llama3.2 has no GGUF file in it; its layers are none"


def test_no_store_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    assert said("ollama:x") == (
        f"there is no store of Ollama's in {tmp_path}; OLLAMA_MODELS names another"
    )
    assert said("lmstudio:owner/repo").startswith("there is no store of LM Studio's in ")
    assert said("lmstudio:x") == (
        "lmstudio:x: expected owner/repo, owner/repo:file or owner/repo:QUANT"
    )


STORES = ("ollama:x", "lmstudio:owner/repo", "cache:owner/repo")


@pytest.mark.parametrize("target", STORES)
def test_nobody_needs_a_home(target: str, fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    del fake

    def nobody(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "HF_HOME", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    assert said(target) in (
        "nobody knows where your home folder is: HOME isn't set",
        "/dev/null has no .gguf file of owner/repo",
    )


@pytest.mark.parametrize("target", STORES)
def test_a_place_that_can_not_be_looked_at(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / ("x" * 300))
    for name in ("OLLAMA_MODELS", "HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, place)
    model = write_gguf_here(tmp_path)
    first, second = audit_targets([target, str(model)], Mandate(rules={})).subjects
    assert place in first.errors[0].message
    assert (first.errors[0].code, second.errors) == ("source", ())


@pytest.mark.parametrize("place", ["home", "pointer", "settings"])
def test_a_model_of_lm_studios_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path / (".lmstudio" if place != "pointer" else "elsewhere")
    models = home / "models" if place != "settings" else tmp_path / "downloads"
    home.mkdir()
    if place == "pointer":
        (tmp_path / ".lmstudio-home-pointer").write_text(f"{home}\n")
    if place == "settings":
        (home / "settings.json").write_text(json.dumps({"downloadsFolder": str(models)}))
    (models / "owner/repo").mkdir(parents=True)
    for name in ("m-Q4_K_M.gguf", "m-Q8_0.gguf"):
        write_gguf(models / "owner/repo" / name, KEYS, TENSORS)
    assert names("lmstudio:owner/repo") == [
        str(models / "owner/repo/m-Q4_K_M.gguf"),
        str(models / "owner/repo/m-Q8_0.gguf"),
    ]
    [subject] = audit("lmstudio:owner/repo:Q8_0")
    assert (subject.target, subject.errors) == ("lmstudio:owner/repo:Q8_0", ())
    assert said("lmstudio:owner/other") == (
        f"{models} has no .gguf file of owner/other; there is owner/repo"
    )


def _ollama(store: Path, name: str) -> Path:
    """Put a model with a projector into a store of Ollama's."""
    layers: list[dict[str, Any]] = [
        {
            "mediaType": f"application/vnd.ollama.image.{kind}",
            "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "size": len(data),
        }
        for kind, data in (("license", b"MIT"), ("projector", PROJECTOR), ("model", MODEL))
    ]
    (store / "blobs").mkdir(exist_ok=True)
    for data in (b"MIT", PROJECTOR, MODEL):
        (store / f"blobs/sha256-{hashlib.sha256(data).hexdigest()}").write_bytes(data)
    manifest = store / "manifests" / name
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return manifest


# fsspec


def test_a_file_system_of_fsspecs() -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.pipe({"/bucket/a/m-Q8_0.gguf": MODEL, "/bucket/a/x.txt": b"", "/bucket/b.gguf": MODEL})
    try:
        subjects = audit("memory://bucket")
        assert [(each.target, each.errors) for each in subjects] == [
            ("memory://bucket/a/m-Q8_0.gguf", ()),
            ("memory://bucket/b.gguf", ()),
        ]
        [subject] = audit("memory://bucket/b.gguf")
        assert subject.target == "memory://bucket/b.gguf"
        assert subject.source is not None
        assert (subject.source.origin, subject.source.bytes) == ("fsspec", len(MODEL))
        assert said("memory://bucket/none.gguf") == (
            "memory://bucket/none.gguf is no file, and there is no .gguf file below it"
        )
        assert said("memory://bucket::memory://b.gguf").endswith("give the address itself")
    finally:
        files.rm("/bucket", recursive=True)


def test_a_protocol_that_nobody_knows(fake: FakeHub) -> None:
    del fake
    assert said("nosuch://x/a.gguf") == (
        "can't read nosuch://x/a.gguf: fsspec doesn't know this protocol"
    )
