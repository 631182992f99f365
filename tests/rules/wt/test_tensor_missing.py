from __future__ import annotations

from typing import Any

from gguf_audit.evidence import Model
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_missing import check
from llama_recipes import PLAIN, recipe
from rule_subjects import LLAMA, SETTINGS, model
from wt_subjects import llama, without_tensors


def found(subject: Model) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def deepseek(*names: str, drafts: int = 0) -> Model:
    keys: dict[str, FieldValue] = {**recipe("deepseek2", PLAIN)}
    if drafts:
        keys["deepseek2.nextn_predict_layers"] = (ValueType.UINT32, drafts)
    return model(keys, [(f"{name}.weight", (256,), "F32") for name in names])


def missing(*names: str, shown: str, layer: int | None, keys: tuple[str, ...] = ()) -> Hit:
    return Hit(
        message=f"llama.cpp needs {shown}, absent from the file: it won't load",
        where=Where(tensor=names[0], layer=layer),
        expected=list(names),
        actual=[],
        level=Severity.ERROR,
        repair=Reconvert(),
        also=(*keys, *names),
    )


def test_the_last_block_lacks_one() -> None:
    name = "blk.2.ffn_up.weight"
    assert found(llama(lacking=(name,))) == [
        missing(name, shown=name, layer=2, keys=("llama.expert_count",))
    ]


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


def test_a_block_of_the_model_that_passes_for_a_draft() -> None:
    key = "deepseek2.nextn_predict_layers"
    name = "blk.11.nextn.eh_proj.weight"
    first, last = found(deepseek("blk.0.attn_norm", "blk.11.attn_norm", drafts=1))
    assert isinstance(first, Hit)
    assert first.where.key is None
    assert last == Hit(
        message=f"needs {name} in what {key} makes a block that predicts further tokens, absent "
        "although the block has other tensors: llama.cpp leaves the block out and says nothing",
        where=Where(key=key, tensor=name, layer=11),
        expected=[name],
        actual=[],
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(hint="or lower the key, if the block belongs to the trunk"),
        also=("deepseek2.block_count", name),
    )


def test_silent_about_drafts_that_were_left_out_and_about_real_ones() -> None:
    for there in (("blk.0.attn_norm",), ("blk.0.attn_norm", "blk.11.nextn.eh_proj")):
        hits = found(deepseek(*there, drafts=1))
        keys = {hit.where.key for hit in hits if isinstance(hit, Hit)}
        assert "deepseek2.nextn_predict_layers" not in keys


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
