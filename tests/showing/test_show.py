"""What ``show`` tells, whole, of models made of recipes and of built-in cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gguf_audit.formats.card import list_cards
from gguf_audit.gguf import ValueType
from gguf_audit.overview import Entry, Group, Overview, Shown
from gguf_audit.report.show import render_json, render_text, schema
from gguf_audit.report.style import Style
from gguf_audit.showing import show
from gguf_audit.testing import FieldValue, write_gguf, write_split_gguf
from recipes import find_recipes, read_recipe
from rule_subjects import GEMMA, LLAMA

GOLDEN = Path(__file__).parent / "golden"
#: What a file's text is compared with, and which recipe makes the file.
FILES = ("gemma-3-270m-window-lost", "deepseek-v2-lite", "qwen3.5-9b", "adapter", "context-short")
REFERENCES = ("google/gemma-3-270m", "deepseek-ai/DeepSeek-V3.2", "openai/gpt-oss-20b")
VALIDATOR: Any = jsonschema.Draft202012Validator(schema())
KEYS: dict[str, FieldValue] = {"general.architecture": "llama", **LLAMA}
TENSORS = [("token_embd.weight", (64, 8), "F32"), ("output_norm.weight", (64,), "F32")]


def compare(name: str, text: str, *, update: bool) -> None:
    file = GOLDEN / f"{name.replace('/', '--')}.txt"
    if update:
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_file_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update_golden: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    target = read_recipe(name).write(Path()).name
    compare(name, render_text(show(target)), update=update_golden)


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_whole(name: str, update_golden: bool) -> None:
    compare(name, render_text(show(name)), update=update_golden)


def test_every_golden_file_has_its_case() -> None:
    names = {name.replace("/", "--") for name in (*FILES, *REFERENCES)}
    assert {file.stem for file in GOLDEN.iterdir()} == names


@pytest.mark.parametrize("name", find_recipes())
def test_every_recipe_fits_the_schema(name: str, tmp_path: Path) -> None:
    shown = show(str(read_recipe(name).write(tmp_path)))
    VALIDATOR.validate(json.loads(render_json(shown)))


@pytest.mark.parametrize("name", list_cards())
def test_every_card_shows_a_cache_and_fits_the_schema(name: str) -> None:
    shown = show(name)
    VALIDATOR.validate(json.loads(render_json(shown)))
    [subject] = shown.subjects
    assert (subject.kind, subject.errors, shown.exit_code) == ("reference", (), 0)
    assert subject.cache is not None
    assert subject.cache.ideal is not None
    refused = [reason for reason in subject.unknown if "refuses a right conversion" in reason]
    assert bool(subject.cache.bytes) is not bool(refused)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


# What is a model and what is a reference


def kinds(target: Path | str) -> list[tuple[str, str]]:
    return [(Path(found.target).name, found.kind) for found in show(str(target)).subjects]


def test_a_folder_of_models_is_shown_model_by_model(tmp_path: Path) -> None:
    write_gguf(tmp_path / "b.gguf", KEYS, TENSORS)
    write_split_gguf(tmp_path, KEYS, TENSORS, shards=2, stem="a")
    assert kinds(tmp_path) == [("a-00001-of-00002.gguf", "model"), ("b.gguf", "model")]
    assert kinds(tmp_path / "a-00002-of-00002.gguf") == [("a-00002-of-00002.gguf", "model")]


def test_a_set_that_lacks_a_shard_is_told_once(tmp_path: Path) -> None:
    write_split_gguf(tmp_path, KEYS, TENSORS, shards=2, stem="a")[1].unlink()
    write_gguf(tmp_path / "b.gguf", KEYS, TENSORS)
    assert kinds(tmp_path) == [("a-00001-of-00002.gguf", "other"), ("b.gguf", "model")]


def test_a_checkpoint_is_a_reference_until_a_model_lies_beside_it(tmp_path: Path) -> None:
    config = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    assert kinds(tmp_path) == [(tmp_path.name, "reference")]
    assert kinds(tmp_path / "config.json") == [("config.json", "reference")]
    write_gguf(tmp_path / "b.gguf", KEYS, TENSORS)
    assert kinds(tmp_path) == [("b.gguf", "model")]


@pytest.mark.parametrize(
    ("target", "kind", "code"),
    [
        ("nothing.gguf", "other", "source"),
        ("org/nothing.gguf", "other", "source"),
        ("org/nothing", "reference", "reference"),
        ("nothing.json", "reference", "reference"),
    ],
)
def test_what_is_nowhere_is_an_error(target: str, kind: str, code: str) -> None:
    shown = show(target)
    [subject] = shown.subjects
    assert (subject.kind, [error.code for error in subject.errors]) == (kind, [code])
    assert (subject.errors[0].where.file, shown.exit_code) == (target, 3)
    VALIDATOR.validate(json.loads(render_json(shown)))


def test_one_unreadable_model_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"<html>")
    write_gguf(tmp_path / "b.gguf", KEYS, TENSORS)
    shown = show(str(tmp_path))
    assert [bool(subject.errors) for subject in shown.subjects] == [True, False]
    assert shown.exit_code == 3


# What isn't known is said


def shown_of(tmp_path: Path, keys: dict[str, FieldValue]) -> Overview:
    [subject] = show(str(write_gguf(tmp_path / "m.gguf", keys, TENSORS))).subjects
    return subject


def entry(subject: Overview, name: str) -> Entry:
    [found] = [e for group in subject.groups for e in group.entries if e.name == name]
    return found


def test_an_unknown_architecture_has_no_cache_and_no_defaults(tmp_path: Path) -> None:
    subject = shown_of(tmp_path, {"general.architecture": "novel", "novel.block_count": 2})
    assert subject.cache is None
    assert subject.unknown == ("the cache: general.architecture is 'novel'",)
    assert [error.code for error in subject.errors] == ["unknown-architecture"]
    assert {e.origin for group in subject.groups for e in group.entries} == {
        "key",
        "shape",
        "header",
    }


def test_metadata_that_llama_cpp_refuses_have_no_cache(tmp_path: Path) -> None:
    keys = {key: value for key, value in KEYS.items() if key != "llama.block_count"}
    subject = shown_of(tmp_path, keys)
    said = "the cache: llama.cpp refuses the file, llama.block_count is absent"
    assert (subject.cache, subject.unknown, subject.errors) == (None, (said,), ())


def test_an_absent_key_is_told_by_its_default(tmp_path: Path) -> None:
    keys = {key: value for key, value in KEYS.items() if "rope.freq_base" not in key}
    subject = shown_of(tmp_path, {**keys, "llama.rope.dimension_count": 16})
    assert entry(subject, "llama.rope.freq_base") == Entry(
        name="llama.rope.freq_base", value=10000.0, origin="runtime default"
    )


def test_a_window_that_llama_cpp_ignores_is_said(tmp_path: Path) -> None:
    subject = shown_of(tmp_path, {**KEYS, "llama.attention.sliding_window": 4096})
    found = entry(subject, "llama.attention.sliding_window")
    assert (found.value, found.note) == (4096, "no layer that llama.cpp makes has a window")


VOCABULARY: dict[str, FieldValue] = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"],
}


def test_special_ids_come_with_their_text(tmp_path: Path) -> None:
    subject = shown_of(
        tmp_path,
        {
            **KEYS,
            **VOCABULARY,
            "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.padding_token_id": 7,
        },
    )
    told = {
        e.name.removeprefix("tokenizer.ggml."): (e.value, e.origin, e.note)
        for group in subject.groups
        if group.name == "tokenizer"
        for e in group.entries
        if e.name.endswith(("_id", "_bos_token"))
    }
    assert told == {
        "bos_token_id": (2, "key", "</s>"),
        "padding_token_id": (7, "key", "no such token"),
        "eos_token_id": (2, "runtime default", "</s>"),
        "unknown_token_id": (0, "runtime default", "<unk>"),
        "add_bos_token": (True, "runtime default", ""),
    }


def test_a_default_id_beyond_the_vocabulary_is_none(tmp_path: Path) -> None:
    # llama.cpp assumes 11 for a vocabulary split by merges, and drops it here.
    subject = shown_of(tmp_path, {**KEYS, **VOCABULARY, "tokenizer.ggml.model": "gpt2"})
    names = [e.name for group in subject.groups if group.name == "tokenizer" for e in group.entries]
    assert names == [*VOCABULARY, "tokenizer.ggml.add_bos_token"]


@pytest.mark.parametrize("window", [512, 0])
def test_the_base_of_windowed_layers_is_told_where_there_are_any(
    tmp_path: Path, window: int
) -> None:
    keys: dict[str, FieldValue] = {**GEMMA, "gemma3.attention.sliding_window": window}
    del keys["gemma3.rope.freq_base_swa"]
    subject = shown_of(tmp_path, {"general.architecture": "gemma3", **keys})
    told = [e.value for group in subject.groups for e in group.entries if "freq_base_swa" in e.name]
    assert told == ([10000.0] if window else [])


def test_nothing_shown_is_no_success() -> None:
    assert Shown(version="0", runtimes={}, subjects=()).exit_code == 3


def test_a_card_of_no_published_config_says_so(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8}
    card = {"card": 1, "id": "org/m", "published": False, "config": config}
    (tmp_path / "card.json").write_text(json.dumps(card), "utf-8")
    [subject] = show(str(tmp_path / "card.json")).subjects
    assert subject.unknown[-1].startswith("whether these figures are right")


# Text


def text_of(*entries: Entry, style: Style | None = None) -> list[str]:
    group = Group(name="model", entries=entries)
    overview = Overview(target="m", kind="model", groups=(group,))
    shown = Shown(version="0", runtimes={}, subjects=(overview,))
    return render_text(shown, style).splitlines()[3:]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_000_000.0, "1000000"),
        (9.999999974752427e-07, "1e-06"),
        (0.10000000149011612, "0.1"),
        (0.08838834764831845, "0.08838834765"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (True, "true"),
        (151936, "151936"),
        ("", '""'),
        ("a\x1b[31m\u202e", "a\\x1b[31m\\u202e"),
        ((8, 8, 8, 2, 8), "[8 x3, 2, 8]"),
        ((True, False), "[true, false]"),
        ((0.5,), "[0.5]"),
        (("a\nb",), '["a\\nb"]'),
        (tuple(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (20 in all)]"),
    ],
)
def test_values_as_people_read_them(value: object, text: str) -> None:
    assert text_of(Entry(name="k", value=value, origin="key")) == [
        f"    k  key              {text}"
    ]


def test_nothing_from_a_file_reaches_a_terminal_raw(tmp_path: Path) -> None:
    evil = "\x1b]0;x\x07\u202e\n"
    keys: dict[str, FieldValue] = {
        **KEYS,
        **VOCABULARY,
        f"general.{evil}": evil,
        f"llama.{evil}": [evil, evil],
        "tokenizer.ggml.tokens": [evil, evil],
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.pre": evil,
    }
    text = render_text(show(str(write_gguf(tmp_path / "m.gguf", keys, TENSORS))))
    assert all(line.isprintable() for line in text.splitlines())
    assert text.count("\\x1b") == 7


def test_thousands_of_keys_are_counted_not_shown(tmp_path: Path) -> None:
    many: dict[str, FieldValue] = {f"general.k{index}": index for index in range(3000)}
    subject = shown_of(tmp_path, {**KEYS, **many})
    group = next(group for group in subject.groups if group.name == "model")
    assert (len(group.entries), group.omitted) == (100, 3000 + 6 - 100)


def test_an_array_that_is_long_or_nested_is_only_counted(tmp_path: Path) -> None:
    keys: dict[str, FieldValue] = {
        **KEYS,
        "llama.long": (ValueType.UINT32, [1] * 600),
        "llama.nested": [[1, 2], [3]],
    }
    subject = shown_of(tmp_path, keys)
    assert entry(subject, "llama.long").note == "600 uint32 items"
    assert entry(subject, "llama.nested").note == "2 array items"
