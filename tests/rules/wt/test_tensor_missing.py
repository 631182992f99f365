from __future__ import annotations

from typing import Any

from gguf_audit.evidence import Model
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_missing import check
from llama_recipes import PLAIN, recipe
from rule_subjects import LLAMA, SETTINGS, model
from wt_subjects import llama, without_tensors


def found(subject: Model) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def missing(*names: str, shown: str, layer: int | None) -> Hit:
    return Hit(
        message=f"llama.cpp needs {shown}, absent from the file: it won't load",
        where=Where(tensor=names[0], layer=layer),
        expected=list(names),
        actual=[],
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def test_the_last_block_lacks_one() -> None:
    name = "blk.2.ffn_up.weight"
    assert found(llama(lacking=(name,))) == [missing(name, shown=name, layer=2)]


def test_a_tensor_of_the_whole_model() -> None:
    name = "output_norm.weight"
    assert found(llama(lacking=(name,))) == [missing(name, shown=name, layer=None)]


def test_all_that_is_missing_is_one_finding() -> None:
    names = [f"blk.{block}.{part}.weight" for block in (0, 1, 2) for part in ("attn_k", "attn_v")]
    assert found(llama(lacking=tuple(names))) == [
        missing(*sorted(names), shown=", ".join(sorted(names)[:4]) + " and 2 more", layer=0)
    ]


def test_blocks_that_are_not_there_are_their_number_s() -> None:
    keys = {**LLAMA, "llama.block_count": 4}
    last, end = found(llama(keys=keys, lacking=("blk.1.ffn_up.weight",)))
    assert isinstance(last, Hit)
    assert isinstance(end, Hit)
    assert last.where == Where(key="llama.block_count", tensor="blk.3.attn_norm.weight", layer=3)
    assert end.where == Where(tensor="blk.1.ffn_up.weight", layer=1)


def test_silent_where_nothing_is_missing() -> None:
    assert found(llama()) == []


def test_silent_about_what_llama_cpp_does_without() -> None:
    fused: Any = [(f"blk.{block}.attn_qkv.weight", (64, 128), "F32") for block in range(3)]
    apart = tuple(f"blk.{b}.attn_{part}.weight" for b in range(3) for part in "qkv")
    assert found(llama(*fused, lacking=apart)) == []


def test_silent_without_any_tensor() -> None:
    assert found(without_tensors()) == []


def test_an_architecture_whose_tensors_are_not_known() -> None:
    subject = model(recipe("hrm_text", PLAIN), [("token_embd.weight", (512, 256), "F32")])
    assert found(subject) == [NoEvidence("the tensors of 'hrm_text' aren't known")]
