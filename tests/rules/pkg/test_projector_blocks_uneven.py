from __future__ import annotations

import pytest

from companion_subjects import GEMMA, GEMMA_TENSORS, companion, encoder, file, gemma
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_blocks_uneven import PARTS, check
from rule_subjects import SETTINGS


def said(gguf: Gguf) -> list[object]:
    return list(check(companion(gguf), SETTINGS))


@pytest.mark.parametrize("name", ["v.blk.0.attn_q.bias", "v.blk.1.ln2.weight"])
def test_fires_for_a_tensor_that_one_block_lacks(name: str) -> None:
    assert said(gemma(lost=[name])) == [
        Hit(
            message=f"every block of gemma3 has the same tensors, {name} not in the file",
            where=Where(tensor=name),
            expected=[name],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.blk",),
        )
    ]


def test_fires_for_blocks_that_arent_used() -> None:
    gguf = gemma(changed={"clip.vision.block_count": 1})
    key = "clip.vision.block_count"
    assert said(gguf) == [
        Hit(
            message=f"needs 2 for as many blocks, {key} is 1: the upper ones aren't used",
            where=Where(key=key, offset=gguf.fields[key].offset),
            expected=2,
            actual=1,
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


def fed(*lost: str) -> list[object]:
    """Return what is said of a Qwen3-VL of which two layers feed the text model."""
    layers = {f"v.deepstack.{index}.{part}": (32,) for index in (0, 1) for part in PARTS}
    changed: dict[str, FieldValue] = {"clip.projector_type": "qwen3vl_merger"}
    return said(file(GEMMA, {**encoder("v"), **layers}, changed=changed, lost=lost))


@pytest.mark.parametrize("part", PARTS)
def test_fires_for_a_part_of_a_layer_that_feeds_the_text_model(part: str) -> None:
    name = f"v.deepstack.1.{part}"
    assert fed(name) == [
        Hit(
            message=f"every v.deepstack layer has six tensors, {name} not in the file",
            where=Where(tensor=name),
            expected=[name],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.deepstack",),
        )
    ]


def test_silent_for_whole_layers_that_feed_the_text_model() -> None:
    assert fed() == []
    # Which layers there are is told by a reference and by the width alone.
    assert fed(*(f"v.deepstack.1.{part}" for part in PARTS)) == []


def test_fires_as_a_warning_where_no_file_of_the_type_was_measured() -> None:
    gguf = file(
        GEMMA, encoder("v"), changed={"clip.projector_type": "kimivl"}, lost=["v.blk.1.ln1.weight"]
    )
    assert [hit.level for hit in said(gguf) if isinstance(hit, Hit)] == [Severity.WARNING]


def test_silent_for_even_blocks() -> None:
    assert said(gemma()) == []


def test_silent_for_what_another_rule_tells() -> None:
    assert said(gemma(lost=["v.blk.1.attn_out.weight", "v.blk.1.attn_q.weight"])) == []


@pytest.mark.parametrize("type_", ["lfm2", "mlp"])
def test_silent_for_a_block_too_many_where_right_files_have_it(type_: str) -> None:
    changed: dict[str, FieldValue] = {
        "clip.projector_type": type_,
        "clip.vision.block_count": 1,
    }
    assert said(file(GEMMA, GEMMA_TENSORS, changed=changed)) == []


def test_silent_where_blocks_differ_by_design() -> None:
    gguf = file(
        GEMMA, encoder("v"), changed={"clip.projector_type": "mimovl"}, lost=["v.blk.1.ln1.weight"]
    )
    assert said(gguf) == []


def test_silent_but_says_so_for_more_than_is_compared() -> None:
    many = {f"v.blk.{index}.odd{index}": (1,) for index in range(1500)}
    found = said(gemma(shapes=many, changed={"clip.vision.block_count": 1500}))
    assert found == [
        NoEvidence("1500 blocks with 1512 different tensors are not compared", kind="limit")
    ]
