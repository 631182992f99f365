from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cached_snapshots import COMMIT, OLDER, write_snapshot
from engine_subjects import CONFIG, KEYS, TENSORS, audit, write_model
from engine_subjects import write_checkpoint as write_folder
from gguf_audit import api
from gguf_audit.checkpoint import Json, Tokenizer
from gguf_audit.engine import audit_targets
from gguf_audit.errors import AuditError, MalformedError, ReferenceUnavailableError, SourceError
from gguf_audit.expectation import Part, expected_fields, lacks, why_missing
from gguf_audit.formats.card import find_card, list_cards
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.reference import References, open_checkpoint
from gguf_audit.sources.hub import Hub
from gguf_audit.testing import (
    FieldValue,
    TensorSpec,
    build_gguf,
    make_gguf,
    write_gguf,
    write_split_gguf,
)
from gguf_audit.verdict import ReferenceFacts
from gguf_audit_rules import load
from hub_server import FakeHub, Served, always, content, go_online, hang, hub_of, safetensors
from rule_subjects import GEMMA, LLAMA
from vocabulary_pairs import CHECKPOINTS, write_checkpoint

TOKENIZER: dict[str, Json] = {
    "model": {"vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 2, "content": "<s>"}, {"id": 3, "content": "</s>"}],
}
TOKENIZER_CONFIG: dict[str, Json] = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "chat_template": "{{ messages }}",
}
WHOLE: dict[str, dict[str, Json]] = {
    "config.json": CONFIG,
    "tokenizer.json": TOKENIZER,
    "tokenizer_config.json": TOKENIZER_CONFIG,
}
CARD = "google/gemma-3-270m"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def fake(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    files = {name: content(dict(document)) for name, document in WHOLE.items()}
    files["model.safetensors"] = safetensors(100 << 20)
    with Served(FakeHub(files=files)) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(cache.parent))
        yield fake


# A Hub id: the Hub, its cache, a built-in card


def test_the_hub_comes_first(fake: FakeHub, cache: Path) -> None:
    write_snapshot(cache, {"config.json": {}}, commit=OLDER)
    found = open_checkpoint("owner/model")
    assert (found.id, found.revision, found.origin, found.found) == (
        "owner/model",
        COMMIT,
        "hub",
        "",
    )
    assert (found.config, found.chat_templates) == (CONFIG, {"default": "{{ messages }}"})
    assert found.tokenizer == Tokenizer(special_ids={"bos": 2, "eos": 3}, size=4)
    assert lacks(found) == ""
    # A listing and three files, one of which is at the CDN; no weights.
    assert fake.count()[0] == 1 + 1 + 1 + 2
    assert not [r.path for r in fake.requests if r.path.endswith(".safetensors")]
    assert fake.count("cdn") == (1, fake.files["tokenizer.json"].size)


def test_weights_are_known_by_their_headers(fake: FakeHub) -> None:
    found = open_checkpoint("hf://owner/model@main").tensors
    assert not isinstance(found, Absent)
    assert list(found) == ["model.layers.0.weight"]
    assert fake.count("cdn") == (1, 100_000)


@pytest.mark.parametrize("seconds", [0, 6])
def test_the_cache_comes_next(fake: FakeHub, cache: Path, seconds: int) -> None:
    write_snapshot(cache, WHOLE)
    if seconds:
        fake.fault = hang(seconds)
    else:
        fake.fault = always((503, {"retry-after": "60"}, b""))
    start = time.monotonic()
    found = open_checkpoint("owner/model")
    assert time.monotonic() - start < 5.5
    assert (found.origin, found.revision, found.config) == ("cache", COMMIT, CONFIG)
    says = "doesn't answer" if seconds else "fails (status 503)"
    assert found.found == f"{fake.url} {says}"
    assert found.tokenizer == Tokenizer(special_ids={"bos": 2, "eos": 3}, size=4)
    assert fake.count()[0] <= 1


def test_the_card_comes_last(fake: FakeHub) -> None:
    fake.fault = hang(6)
    start = time.monotonic()
    found = open_checkpoint(CARD)
    assert time.monotonic() - start < 5.5
    assert (found.id, found.origin, found.found) == (CARD, "card", f"{fake.url} doesn't answer")


def test_what_is_nowhere_says_why(fake: FakeHub) -> None:
    with pytest.raises(ReferenceUnavailableError) as caught:
        open_checkpoint("owner/none")
    assert caught.value.message == (
        f"{fake.url} has no repository owner/none, or a private one: no HF_TOKEN is set;"
        " owner/none: no such file or folder, not in the local Hub cache, and no built-in card of"
        " that name; give a checkpoint folder, its config.json, a reference card or another GGUF"
    )


def test_a_gated_repository_falls_back_and_says_what_to_do(fake: FakeHub) -> None:
    fake.repo, fake.gated = CARD, True
    found = open_checkpoint(CARD)
    assert (found.origin, found.found) == (
        "card",
        (
            f"{CARD} is gated: accept its licence at {fake.url}/{CARD}"
            " and set HF_TOKEN to a token of that account"
        ),
    )


def test_a_repository_without_a_config_is_no_reference(fake: FakeHub) -> None:
    fake.repo = CARD
    del fake.files["config.json"]
    with pytest.raises(ReferenceUnavailableError, match=f"^{CARD}@{COMMIT} has no config.json: "):
        open_checkpoint(CARD)


def test_a_broken_config_is_no_reason_to_take_another(fake: FakeHub) -> None:
    fake.repo = CARD
    fake.files["config.json"] = content("[]")
    with pytest.raises(MalformedError):
        open_checkpoint(CARD)


def test_offline_nobody_is_asked(
    fake: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    write_snapshot(cache, WHOLE)
    found = open_checkpoint("owner/model")
    assert (found.origin, found.found) == ("cache", "")
    assert (open_checkpoint(CARD).origin, open_checkpoint(CARD).found) == ("card", "")
    assert fake.requests == []


def test_what_the_hub_gave_is_there_when_it_is_gone(
    fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = open_checkpoint("owner/model")
    assert not isinstance(online.tokenizer, Absent)
    asked = len(fake.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = open_checkpoint("owner/model")
    assert (offline.revision, offline.found) == (COMMIT, "whether that commit is main isn't known")
    assert (offline.config, offline.chat_templates) == (online.config, online.chat_templates)
    assert offline.tokenizer == online.tokenizer
    assert not isinstance(online.vocabulary, Absent)
    assert offline.vocabulary == online.vocabulary
    assert len(fake.requests) == asked


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_repository_says_what_its_folder_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_checkpoint(tmp_path / "hf", name)
    local = open_checkpoint(str(folder))
    with Served(hub_of(folder)) as fake:
        go_online(monkeypatch, endpoint=fake.url, home=str(tmp_path / "home"))
        remote = open_checkpoint("owner/model")
        assert (remote.origin, remote.vocabulary) == ("hub", local.vocabulary)
        assert (remote.tokenizer, remote.tensors) == (local.tokenizer, local.tensors)
        assert remote.chat_templates == local.chat_templates
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = open_checkpoint("owner/model")
    assert (offline.origin, offline.vocabulary) == ("cache", local.vocabulary)
    assert (offline.tokenizer, offline.chat_templates) == (local.tokenizer, local.chat_templates)


# What a part of a snapshot can and can't tell


UNSURE = Tokenizer(special_ids={}, complete=False)


@pytest.mark.parametrize(
    ("files", "absent", "templates", "tokenizer"),
    [
        (["config.json"], (), "tokenizer.json isn't in the local Hub cache", UNSURE),
        (
            ["config.json", "tokenizer.json"],
            (),
            "tokenizer_config.json isn't in the local Hub cache",
            UNSURE,
        ),
        (
            ["config.json", "tokenizer.json"],
            ("tokenizer_config.json",),
            None,
            Tokenizer(special_ids={}, size=4),
        ),
        (["config.json", "tokenizer_config.json"], (), "tokenizer.json isn't in", UNSURE),
        (
            ["config.json"],
            ("tokenizer.json", "tokenizer_config.json"),
            "no tokenizer in the folder",
            UNSURE,
        ),
    ],
)
def test_what_is_not_cached_is_not_known(
    cache: Path,
    files: list[str],
    absent: tuple[str, ...],
    templates: str | None,
    tokenizer: Tokenizer,
) -> None:
    write_snapshot(cache, {name: WHOLE[name] for name in files}, absent=absent)
    found = open_checkpoint("owner/model")
    assert found.tokenizer == tokenizer
    if templates is None:
        assert found.chat_templates == {}
    else:
        assert isinstance(found.chat_templates, Absent)
        assert found.chat_templates.reason.startswith(templates)
        assert lacks(found) == "it says nothing of chat templates"
    assert found.tensors == Absent("the weights aren't in the local Hub cache")


@pytest.mark.parametrize(
    ("architecture", "names", "unknown"),
    [
        ("GPT2LMHeadModel", ["tokenizer.json"], None),
        ("GPT2LMHeadModel", [], "merges.txt"),
        ("LlamaForCausalLM", ["tokenizer.json"], "tokenizer.model"),
        ("T5EncoderModel", ["tokenizer.json"], "tokenizer.model"),
        ("XLMRobertaModel", ["tokenizer.json"], "sentencepiece.bpe.model"),
    ],
)
def test_only_files_that_decide_have_to_be_known(
    cache: Path, architecture: str, names: list[str], unknown: str | None
) -> None:
    config: dict[str, Json] = {**CONFIG, "architectures": [architecture]}
    files: dict[str, dict[str, Json] | str] = {
        "config.json": config,
        "tokenizer_config.json": {},
        **dict.fromkeys(names, TOKENIZER),
    }
    small = {"tokenizer.json", "added_tokens.json", "special_tokens_map.json", "vocab.json"}
    write_snapshot(cache, files, absent=tuple(small.difference(names)))
    found = open_checkpoint("owner/model").vocabulary
    if unknown is None:
        assert not isinstance(found, Absent)
        assert found.texts[:2] == ["a", "b"]
    else:
        assert found == Absent(f"{unknown} isn't in the local Hub cache")


def test_all_of_a_whole_download_is_known(cache: Path) -> None:
    files: dict[str, dict[str, Json] | str] = {**WHOLE, ".gitattributes": "", "a.safetensors": ""}
    folder = write_snapshot(cache, files)
    assert not isinstance(open_checkpoint("owner/model").vocabulary, Absent)
    blobs = folder.parents[1] / "blobs"
    blobs.mkdir()
    (blobs / "abc.incomplete").touch()
    unknown = Absent("added_tokens.json isn't in the local Hub cache")
    assert open_checkpoint("owner/model").vocabulary == unknown
    (blobs / "abc.incomplete").unlink()
    (folder / "a.safetensors").unlink()
    assert open_checkpoint("owner/model").vocabulary == unknown


def test_a_template_in_a_file_that_may_exist(cache: Path) -> None:
    silent: dict[str, Json] = {"bos_token": "<s>"}
    files: dict[str, dict[str, Json] | str] = {**WHOLE, "tokenizer_config.json": silent}
    folder = write_snapshot(cache, files)
    assert open_checkpoint("owner/model").chat_templates == Absent(
        "chat_template.jinja isn't in the local Hub cache"
    )
    (folder / "chat_template.jinja").write_text("{{ x }}")
    assert open_checkpoint("owner/model").chat_templates == {"default": "{{ x }}"}


def test_no_template_where_its_files_are_known_to_be_absent(cache: Path) -> None:
    files: dict[str, dict[str, Json] | str] = {**WHOLE, "tokenizer_config.json": {"bos_token": "a"}}
    write_snapshot(cache, files, absent=("chat_template.jinja", "chat_template.json"))
    assert open_checkpoint("owner/model").chat_templates == {}


def test_shards_that_are_not_cached(cache: Path) -> None:
    index: dict[str, Json] = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
    write_snapshot(cache, {"config.json": CONFIG, "model.safetensors.index.json": index})
    found = open_checkpoint("owner/model").tensors
    assert isinstance(found, Absent)
    assert "model-00001-of-00001.safetensors not there" in found.reason


# Names


@pytest.mark.parametrize(
    "name",
    ["../model", "owner/../x", "owner/model.gguf", "owner/config.json", "a/b/c", "-a/b", "a/b--c"],
)
def test_what_is_no_hub_id_is_not_sent_anywhere(fake: FakeHub, name: str) -> None:
    with pytest.raises(ReferenceUnavailableError, match="no such file or folder, and no built-in"):
        open_checkpoint(name)
    assert fake.requests == []


def test_a_path_is_never_a_hub_id(
    fake: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "owner" / "model").mkdir(parents=True)
    (tmp_path / "owner" / "model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert open_checkpoint("owner/model").origin == "folder"
    for name, target in (("gone", "nowhere"), ("round", "round")):
        (tmp_path / "owner" / name).symlink_to(target)
        with pytest.raises(SourceError, match=f"^can't read owner/{name}: "):
            open_checkpoint(f"owner/{name}")
    assert fake.requests == []


def test_a_reference_is_opened_once(fake: FakeHub, cache: Path) -> None:
    references = References(Hub(fake.url, cache=cache))
    assert references.open("owner/model") is references.open("owner/model")
    for _ in range(2):
        with pytest.raises(ReferenceUnavailableError):
            references.open("owner/none")
    assert [r.path for r in fake.requests if r.path.startswith("/api/")] == [
        "/api/models/owner/model/revision/main",
        "/api/models/owner/none/revision/main",
    ]


def test_a_hub_that_is_down_costs_its_time_once(fake: FakeHub) -> None:
    fake.fault = hang(6)
    references = References()
    start = time.monotonic()
    for name in ("owner/a", "owner/b"):
        with pytest.raises(ReferenceUnavailableError, match=f"^{fake.url} doesn't answer; "):
            references.open(name)
    assert references.open(CARD).origin == "card"
    assert time.monotonic() - start < 5.5


# What a reference can't tell


def test_what_is_required_and_what_is_noted_is_one_answer() -> None:
    cards = [card for name in list_cards() if (card := find_card(name)) is not None]
    assert [why_missing(card, Part.TEMPLATE) is not None for card in cards] == [
        "chat templates" in lacks(card) for card in cards
    ]
    # No card has a vocabulary: what can't be compared is said, and isn't enough for who
    # requires a tokenizer.
    assert all("vocabulary" in lacks(card) for card in cards)
    assert None not in [why_missing(card, Part.TOKENIZER) for card in cards]
    ids = [isinstance(card.tokenizer, Tokenizer) and card.tokenizer.complete for card in cards]
    assert ["special token ids" not in lacks(card) for card in cards] == ids
    assert {True, False} == set(ids)


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ("Qwen/Qwen3.5-9B", "Qwen/Qwen3.5-9B doesn't say which ids all of the special tokens have"),
        (CARD, "the reference has no vocabulary"),
    ],
)
def test_a_card_does_not_meet_a_requirement_of_a_tokenizer(
    tmp_path: Path, card: str, why: str
) -> None:
    model = write_model(tmp_path)
    subject = audit(model, against=card, require=frozenset({"tokenizer"}))
    assert [error.message for error in subject.errors] == [f"--require tokenizer: {why}"]


# Another GGUF


GOOD: dict[str, FieldValue] = {
    **KEYS,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "llama-bpe",
    "tokenizer.ggml.tokens": [*"abcdefg", "ab"],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.chat_template.tool": "{{ tool }}",
    "tokenizer.chat_template": "{{ x }}",
    "tokenizer.chat_templates": ["tool"],
}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "good.gguf", GOOD, TENSORS)


def test_another_gguf_is_a_reference(good: Path) -> None:
    found = open_checkpoint(str(good))
    other = Absent(f"{good} is a GGUF file, not its checkpoint")
    assert (found.id, found.origin, found.published) == (str(good), "gguf", True)
    assert (found.config, found.tensors) == (other, other)
    assert found.chat_templates == {"default": "{{ x }}", "tool": "{{ tool }}"}
    assert found.tokenizer == Tokenizer(special_ids={"bos": 1, "unk": 0}, size=8)
    assert expected_fields(found).integer("context_length") == LLAMA["llama.context_length"]
    assert api.expected_layout(found) == api.implied_layout(open_gguf(good))
    with pytest.raises(MalformedError, match="is a GGUF file, not its checkpoint"):
        api.ideal_layout(found)


@pytest.mark.parametrize(("kept", "cut"), [(1.0, False), (0.0, False), (0.5, True)])
def test_a_reference_that_is_cut_off_says_so(
    tmp_path: Path, good: Path, *, kept: float, cut: bool
) -> None:
    tensors = [TensorSpec("a", (32,)), TensorSpec("b", (17,))]
    whole = build_gguf(GOOD, tensors)
    start = make_gguf(GOOD, tensors).files[0].data_offset
    needed = start + 128 + 68
    size = start + int(kept * (needed - start))
    (tmp_path / "other.gguf").write_bytes(whole[:size])
    subject = audit(good, against=tmp_path / "other.gguf")
    assert subject.reference is not None
    said = f"; its data is cut off, it has {size:,} of {needed:,} bytes" if cut else ""
    assert subject.reference.note == f"that file's own metadata are taken for right{said}"


def test_a_file_is_held_against_another(tmp_path: Path, good: Path) -> None:
    assert audit(good, against=good).findings == ()
    keys: dict[str, FieldValue] = {
        **GOOD,
        "llama.attention.head_count_kv": 4,
        "tokenizer.ggml.bos_token_id": 0,
    }
    del keys["tokenizer.chat_template"]
    subject = audit(write_gguf(tmp_path / "bad.gguf", keys), against=good)
    assert subject.reference is not None
    assert (subject.reference.origin, subject.reference.note) == (
        "gguf",
        "that file's own metadata are taken for right",
    )
    found = {finding.rule for finding in subject.findings}
    assert {"TOK004", "TPL001"} <= found
    assert any(rule.startswith("KV") for rule in found)
    assert subject.errors == ()
    assert not [skip for skip in subject.skips if skip.kind == "crashed"]


def test_a_reference_with_wrong_types_is_said_to_be_one(tmp_path: Path) -> None:
    bad = write_gguf(tmp_path / "bad.gguf", {**KEYS, "llama.context_length": "long"}, TENSORS)
    subject = audit(write_model(tmp_path), against=bad)
    assert [error.message for error in subject.errors] == [
        "llama.context_length is string, llama.cpp wants u32"
    ]
    assert not [skip for skip in subject.skips if skip.kind == "crashed"]


def test_a_reference_without_an_architecture(tmp_path: Path) -> None:
    bad = write_gguf(tmp_path / "bad.gguf", {"general.name": "x"}, TENSORS)
    subject = audit(write_model(tmp_path), against=bad)
    assert [error.message for error in subject.errors] == ["general.architecture is absent"]


def test_a_reference_that_is_no_whole_gguf(tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(b"GGUF")
    with pytest.raises(AuditError):
        open_checkpoint(str(tmp_path / "cut.gguf"))


# What the file itself names


def _named(folder: Path, readme: str | None = None, **general: str) -> Path:
    if readme is not None:
        (folder / "README.md").write_text(f"---\n{readme}\n---\n")
    extra = {f"general.{key.replace('__', '.')}": value for key, value in general.items()}
    return write_gguf(folder / "named.gguf", {**KEYS, **extra}, TENSORS)


def _gemma(folder: Path, *, rows: int = 262144, **changed: FieldValue) -> Path:
    """Write a file that is called as the converter calls one of google/gemma-3-270m."""
    keys = {"general.architecture": "gemma3", "general.name": "Gemma 3 270m", **GEMMA, **changed}
    embeddings = TensorSpec("token_embd.weight", (1, rows), "F16")
    return write_gguf(folder / "named.gguf", {**keys, "tokenizer.ggml.model": "none"}, [embeddings])


QUANTIZED = "base_model: owner/model\nbase_model_relation: quantized"


@pytest.mark.parametrize(
    ("readme", "general", "how"),
    [
        (
            None,
            {"source__huggingface__repository": "owner/model"},
            "named by general.source.huggingface.repository of the file",
        ),
        (
            "base_model: other/model\nbase_model_relation: quantized",
            {"source__repo_url": "https://huggingface.co/owner/model"},
            "named by general.source.repo_url of the file",
        ),
        (
            None,
            {
                "source__url": f"https://huggingface.co/owner/model/tree/{COMMIT}",
                "name": "gemma-3-270m",
            },
            "named by general.source.url of the file",
        ),
        (
            QUANTIZED,
            {"source__url": "https://example.org/owner/model", "name": "gemma-3-270m"},
            "named as base_model by the README.md beside the file",
        ),
    ],
)
def test_auto_takes_what_the_file_names(
    cache: Path, tmp_path: Path, readme: str | None, general: dict[str, str], how: str
) -> None:
    write_snapshot(cache, WHOLE)
    subject = audit(_named(tmp_path, readme, **general), against="auto")
    assert subject.errors == ()
    assert subject.reference is not None
    assert (subject.reference.id, subject.reference.origin) == ("owner/model", "cache")
    assert subject.reference.note == how


def test_auto_takes_the_card_of_that_name(tmp_path: Path) -> None:
    subject = audit(_gemma(tmp_path), against="auto")
    assert subject.reference is not None
    assert (subject.reference.id, subject.reference.origin) == (CARD, "card")
    assert subject.reference.note.startswith("chosen by general.name alone")
    assert subject.errors == ()


@pytest.mark.parametrize(
    ("changed", "rows", "other"),
    [
        ({"gemma3.embedding_length": 64}, 262144, "its width is 640, the file's 64"),
        ({"gemma3.block_count": 26}, 262144, "its number of blocks is 18, the file's 26"),
        ({}, 32000, "its vocabulary is 262,144, the file's 32,000"),
        (
            {"general.architecture": "llama"},
            262144,
            "its architecture is 'gemma3', the file's 'llama'",
        ),
        (
            {"gemma3.block_count": "18"},
            262144,
            "whether the file agrees with that isn't known: gemma3.block_count is string, llama.cpp wants u32",
        ),
    ],
)
def test_auto_takes_no_card_that_only_the_name_fits(
    tmp_path: Path, changed: dict[str, FieldValue], rows: int, other: str
) -> None:
    subject = audit(_gemma(tmp_path, rows=rows, **changed), against="auto")
    assert subject.reference is None
    assert {"ARCH005", "ARCH011"}.isdisjoint(finding.rule for finding in subject.findings)
    assert [error.message for error in subject.errors] == [
        (
            "the file names no reference: give --against REF; general.name fits the built-in card of"
            f" {CARD}, but {other}"
        )
    ]


def test_auto_takes_a_card_whose_vocabulary_is_padded(tmp_path: Path) -> None:
    subject = audit(_gemma(tmp_path, rows=262144 + 64), against="auto")
    assert subject.reference is not None
    assert subject.reference.id == CARD


@pytest.mark.parametrize(
    ("readme", "general", "hint"),
    [
        (None, {}, ""),
        (None, {"name": "Gemma 3 270m It"}, ""),
        (
            None,
            {"base_model__0__repo_url": "https://huggingface.co/owner/model"},
            (
                "; general.base_model names https://huggingface.co/owner/model, the parent of its"
                " checkpoint"
            ),
        ),
        (
            "base_model: owner/model",
            {},
            (
                "; README.md has owner/model as base_model and no base_model_relation: add"
                " base_model_relation: quantized to the card"
            ),
        ),
        (
            "base_model: owner/model\nbase_model_relation: finetune",
            {},
            "; README.md has owner/model as base_model with finetune, not quantized",
        ),
        ("base_model: ../secret\nbase_model_relation: quantized", {}, ""),
        (None, {"source__url": "https://huggingface.co/owner"}, ""),
        (None, {"source__url": "http://[/owner/model"}, ""),
    ],
)
def test_auto_guesses_nothing(
    tmp_path: Path, readme: str | None, general: dict[str, str], hint: str
) -> None:
    subject = audit(_named(tmp_path, readme, **general), against="auto")
    assert subject.reference is None
    assert [error.message for error in subject.errors] == [
        f"the file names no reference: give --against REF{hint}"
    ]


# What is no reference


@pytest.mark.parametrize("how", ["itself", "link", "hard link"])
def test_a_file_is_not_its_own_reference(tmp_path: Path, how: str) -> None:
    file = write_model(tmp_path)
    against = file
    if how == "link":
        against = tmp_path / "link"
        against.symlink_to(file)
    elif how == "hard link":
        against = tmp_path / "again"
        against.hardlink_to(file)
    rules = {rule.id: rule for rule in load()}
    report = audit_targets([str(file)], Mandate(against=str(against), rules=rules))
    [subject] = report.subjects
    assert [error.message for error in subject.errors] == [
        "the file itself is no reference: give what it was made from, or another conversion of that"
    ]
    assert (subject.reference, report.exit_code()) == (None, 3)


@pytest.mark.parametrize("folder", [False, True])
def test_one_of_several_files_may_be_the_reference_of_the_others(
    tmp_path: Path, folder: bool
) -> None:
    file = write_model(tmp_path)
    other = write_gguf(tmp_path / "other.gguf", KEYS, TENSORS)
    targets = [str(tmp_path)] if folder else [str(file), str(other)]
    rules = {rule.id: rule for rule in load() if rule.id.startswith("KV")}
    report = audit_targets(targets, Mandate(against=str(file), rules=rules))
    models = [subject for subject in report.subjects if subject.kind == "model"]
    assert {subject.target: subject.reference is None for subject in models} == {
        str(file): True,
        str(other): False,
    }
    assert all(subject.errors == () for subject in models)
    assert report.exit_code() == 0


def test_a_shard_is_not_the_reference_of_its_set(tmp_path: Path) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=2)
    subject = audit(shards[0], against=shards[1])
    assert [error.message.partition(":")[0] for error in subject.errors] == [
        "the file itself is no reference"
    ]
    copied = tmp_path / "copy"
    copied.mkdir()
    for shard in shards:
        (copied / shard.name).write_bytes(shard.read_bytes())
    assert audit(shards[0], against=copied / shards[0].name).errors == ()


@pytest.mark.parametrize(
    "address",
    [
        "https://huggingface.co/owner/model",
        "https://hf.co/owner/model/tree/main",
        "https://huggingface.co/owner/model/blob/main/config.json",
        "{url}/owner/model",
        "hf://owner/model",
    ],
)
def test_an_address_of_the_hub_is_its_id(fake: FakeHub, address: str) -> None:
    found = open_checkpoint(address.format(url=fake.url))
    assert (found.id, found.revision, found.origin) == ("owner/model", COMMIT, "hub")


@pytest.mark.parametrize(
    "reference",
    [
        "owner/model:Q8_0",
        "owner/model@main:model-Q8_0.gguf",
        "hf://owner/model:Q8_0",
        "hf://owner/model/model.gguf",
        "https://huggingface.co/owner/model/resolve/main/model.gguf",
    ],
)
def test_a_file_of_a_repository_is_no_reference(fake: FakeHub, reference: str) -> None:
    with pytest.raises(ReferenceUnavailableError) as caught:
        open_checkpoint(reference)
    assert caught.value.message == (
        f"{reference} names a GGUF file of owner/model, and a reference is the checkpoint that it"
        " was made from: give that one's owner/repo, or a GGUF on this machine"
    )
    assert fake.requests == []


def test_a_repository_of_gguf_files_is_no_reference(fake: FakeHub, tmp_path: Path) -> None:
    del fake.files["config.json"]
    fake.files["model-Q8_0.gguf"] = content(b"GGUF")
    [error] = audit(write_model(tmp_path), against="owner/model").errors
    assert (error.message, error.where.file) == (
        (
            f"owner/model@{COMMIT} holds GGUF files and no config.json: the checkpoint is needed"
            " that they were made from"
        ),
        str(tmp_path / "model.gguf"),
    )


def test_a_config_alone_says_what_it_lacks(tmp_path: Path) -> None:
    reference = write_folder(tmp_path) / "config.json"
    subject = audit(write_model(tmp_path), against=reference)
    assert subject.reference == ReferenceFacts(
        id=str(reference),
        revision=None,
        origin="config",
        note="it says nothing of chat templates, special token ids, vocabulary, tensors",
    )


def test_auto_asks_each_file_and_each_reference_once(fake: FakeHub, tmp_path: Path) -> None:
    for number in range(3):
        made = _named(tmp_path, source__huggingface__repository="owner/model")
        made.rename(tmp_path / f"{number}.gguf")
    _gemma(tmp_path)
    rules = {rule.id: rule for rule in load()}
    subjects = audit_targets([str(tmp_path)], Mandate(against="auto", rules=rules)).subjects
    held = [subject.reference.id for subject in subjects if subject.reference is not None]
    assert held == ["owner/model"] * 3 + [CARD]
    assert sum(request.path.startswith("/api/") for request in fake.requests) == 1


def test_the_hub_can_be_required(fake: FakeHub, tmp_path: Path) -> None:
    model = write_model(tmp_path)
    required = frozenset({"hub"})
    assert audit(model, against="owner/model", require=required).errors == ()
    fake.fault = always((503, {"retry-after": "60"}, b""))
    [error] = audit(model, against=CARD, require=required).errors
    assert error.message == (
        f"--require hub: the reference is not from the Hub, {fake.url} fails (status 503)"
    )


def test_a_tokenizer_that_the_hub_no_longer_sends(fake: FakeHub) -> None:
    found = open_checkpoint("owner/model")
    fake.fault = always((503, {"retry-after": "60"}, b""))
    with pytest.raises(SourceError, match=r"fails|doesn't answer"):
        _ = found.tokenizer
