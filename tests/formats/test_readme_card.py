from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.formats.readme import (
    BaseModel,
    parse_base_model,
    parse_card,
    read_base_model,
    read_card,
)
from gguf_audit.gguf import Card
from gguf_audit.sources import LocalTree


@pytest.mark.parametrize(
    ("front", "found"),
    [
        ("base_model: a/b", BaseModel("a/b", "")),
        ("base_model: a/b\nbase_model_relation: quantized", BaseModel("a/b", "quantized")),
        (
            "base_model_relation: 'quantized'\nbase_model: \"a/b\" # c",
            BaseModel("a/b", "quantized"),
        ),
        ("base_model:\n- a/b\nbase_model_relation: finetune", BaseModel("a/b", "finetune")),
        ("tags:\n- x\nbase_model:\n  - a/b\ntags:\n- y", BaseModel("a/b", "")),
        ("base_model: [a/b]", BaseModel("a/b", "")),
        ("base_model: ['a/b', c/d]", None),
        ("base_model:\n- a/b\n- c/d", None),
        ("base_model: a/b\nbase_model: c/d", None),
        ("base_model: a/b\nbase_model_relation: [quantized, merge]", None),
        ("base_model:", None),
        ("widget:\n  base_model: a/b", None),
        ("license: mit", None),
        ("", None),
    ],
)
def test_what_a_card_says_of_its_base(front: str, found: BaseModel | None) -> None:
    assert parse_base_model(f"---\n{front}\n---\n# Title\n") == found
    assert parse_base_model(f"---\r\n{front}\r\n---\r\n") == found


@pytest.mark.parametrize(
    "text",
    ["", "base_model: a/b\n", "# T\n---\nbase_model: a/b\n---\n", "---\n---\nbase_model: a/b\n"],
)
def test_what_stands_outside_the_front_matter(text: str) -> None:
    assert parse_base_model(text) is None


@given(st.text(alphabet="base_modl:- \n[],'\"#/", max_size=80))
def test_any_text_is_an_answer(text: str) -> None:
    found = parse_base_model(f"---\n{text}\n---\n")
    assert found is None or "\n" not in found.name


def test_reads_the_file_beside_or_nothing(tmp_path: Path) -> None:
    assert read_base_model(LocalTree(tmp_path)) is None
    readme = tmp_path / "README.md"
    readme.write_bytes(b"---\nbase_model: a/b\n---\n")
    assert read_base_model(LocalTree(tmp_path)) == BaseModel("a/b", "")
    readme.write_bytes(b"---\nbase_model: \xff\n---\n")
    assert read_base_model(LocalTree(tmp_path)) is None
    readme.write_bytes(b"---\nbase_model: a/b\n---\n" + bytes(1 << 20))
    assert read_base_model(LocalTree(tmp_path)) is None


def test_a_card_is_what_has_front_matter() -> None:
    text = (
        "---\nlicense: other\nlicense_name: qwen\nbase_model:\n- owner/a\n- owner/b\n---\n"
        "See [X-Q8_0.gguf](X-Q8_0.gguf), `q4_K_m` and aQ4_0."
    )
    assert parse_card(text, of_checkpoint=True) == Card(
        license="other",
        license_name="qwen",
        base_models=("owner/a", "owner/b"),
        files=frozenset({"X-Q8_0.gguf"}),
        listed={"": frozenset({"X-Q8_0.gguf"})},
        labels=frozenset({"Q8_0", "Q4_K_M"}),
        of_checkpoint=True,
    )
    assert parse_card("# README\nlicense: mit") is None


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("[a.gguf](https://huggingface.co/o/r/blob/main/a.gguf?x=1)", {"o/r": {"a.gguf"}}),
        (
            "[GGUF](https://hf.co/o/r/resolve/main/sub/a.Q6_K.gguf.part1of2)",
            {"o/r": {"a.Q6_K.gguf"}},
        ),
        (
            '<a href="https://huggingface.co/o/r">a.gguf</a>, b.gguf',
            {"o/r": {"a.gguf"}, "": {"b.gguf"}},
        ),
        ("https://example.com/d/a.gguf.", {"https://example.com/d": {"a.gguf"}}),
        ("[a.gguf](./a.gguf) **b.gguf** `dir/c.gguf`", {"": {"a.gguf", "b.gguf", "c.gguf"}}),
        ("<a name=top>a.gguf</a> https://huggingface.co/o/r", {"": {"a.gguf"}}),
        ("*.gguf {quant}.gguf .gguf ..gguf " + "x" * 300 + ".gguf", {}),
        ("a" * (1 << 20) + "<a " * 9 + "[" * 9, {}),
    ],
)
def test_files_of_a_card_by_where_their_links_lead(text: str, listed: dict[str, set[str]]) -> None:
    card = parse_card(f"---\n---\n{text}")
    assert card is not None
    assert card.listed == listed
    assert card.files == set().union(*listed.values())


def test_a_card_is_read_from_its_folder(tmp_path: Path) -> None:
    assert read_card(LocalTree(tmp_path)) is None
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n", "utf-8")
    assert read_card(LocalTree(tmp_path)) == Card(license="mit")
    (tmp_path / "config.json").write_text("{}", "utf-8")
    assert read_card(LocalTree(tmp_path)) == Card(license="mit", of_checkpoint=True)
    (tmp_path / "README.md").write_bytes(b"---\n\xff")
    assert read_card(LocalTree(tmp_path)) is None
