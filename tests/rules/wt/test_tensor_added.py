from __future__ import annotations

from gguf_audit.evidence import Conversion
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_added import check
from rule_subjects import SETTINGS, info_offset
from wt_subjects import converted, llama, stored

NAME = "blk.2.attn_q.bias"


def found(subject: Conversion) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_a_bias_that_the_model_does_not_have() -> None:
    subject = llama((NAME, (64,), "F32"))
    assert found(converted(subject, stored())) == [
        Hit(
            message=f"has {NAME}, which no tensor of the checkpoint becomes",
            where=Where(tensor=NAME, offset=info_offset(subject, NAME)),
            expected=[],
            actual=[NAME],
            level=Severity.WARNING,
            repair=Reconvert(hint="or name the right reference"),
        )
    ]


def test_a_copy_of_the_embedding_is_only_noted() -> None:
    subject = llama(("output.weight", (64, 8), "F32"))
    [hit] = found(converted(subject, stored()))
    assert isinstance(hit, Hit)
    assert (hit.level, hit.actual, hit.repair) == (Severity.INFO, ["output.weight"], None)


def test_tensors_that_nobody_knows_may_have_become_it() -> None:
    subject = converted(llama((NAME, (64,), "F32")), stored(model__layers__2__odd__weight=(64,)))
    assert found(subject) == [NoEvidence("what becomes of 1 tensors isn't known")]


def test_silent_where_nothing_is_added() -> None:
    assert found(converted(llama(), stored())) == []


def test_silent_about_what_needs_no_source() -> None:
    factors = ("rope_freqs.weight", (8,), "F32")
    scale = ("blk.2.ffn_up.scale", (1,), "F32")
    assert found(converted(llama(factors, scale), stored())) == []


def test_silent_without_tensors_to_compare_with() -> None:
    assert found(converted(llama((NAME, (64,), "F32")), Absent("none"))) == []
