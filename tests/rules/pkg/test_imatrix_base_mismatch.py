from __future__ import annotations

from adapter_subjects import matrix
from companion_subjects import Tensors, based, companion, file
from gguf_audit.rule import Hit, NoEvidence, Replace, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.imatrix_base_mismatch import check
from llama_tensors import llama_tensors
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, checkpoint

SIZES: Tensors = {
    name: shape
    for name, shape, _ in llama_tensors(
        blocks=3, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=100
    )
}


def said(shapes: Tensors | None = None) -> list[object]:
    base = based(file({"general.architecture": "llama", **LLAMA}, SIZES))
    held = companion(matrix(shapes=shapes), "imatrix", reference=base, base=LLAMA)
    return list(check(held, SETTINGS))


def test_fires_for_entries_of_other_sizes() -> None:
    assert said({"blk.2.ffn_down.weight.in_sum2": (256,)}) == [
        Hit(
            message="needs the sizes of the model's tensors, others for blk.2.ffn_down.weight",
            where=Where(tensor="blk.2.ffn_down.weight.in_sum2"),
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]
    assert len(said({"blk.2.ffn_down.weight.in_sum2": (128, 8)})) == 1


def test_fires_as_a_warning_for_entries_of_no_tensor() -> None:
    [hit] = said({"blk.3.attn_q.weight.in_sum2": (64,)})
    assert isinstance(hit, Hit)
    assert (hit.level, hit.where.tensor) == (Severity.WARNING, "blk.3.attn_q.weight.in_sum2")


def test_silent_on_its_own_model() -> None:
    assert said() == []
    assert said({"blk.3.nextn.eh_proj.weight.in_sum2": (128,)}) == []


def test_silent_but_says_so_where_the_model_isnt_known() -> None:
    held = companion(matrix(), "imatrix", reference=checkpoint(), base=UNKNOWN)
    assert list(check(held, SETTINGS)) == [NoEvidence("the model isn't known: not given")]
