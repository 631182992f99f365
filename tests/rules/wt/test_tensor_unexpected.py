from __future__ import annotations

from gguf_audit.evidence import Model
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_unexpected import check
from rule_subjects import LLAMA, SETTINGS, info_offset
from wt_subjects import SPECS, llama, without_tensors


def found(subject: Model) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_a_name_that_nobody_asks_for() -> None:
    name = "blk.2.attn_q_norm.weight"
    subject = llama((name, (16,), "F32"))
    assert found(subject) == [
        Hit(
            message=f"llama.cpp b11434 has no place for {name} in a model of this architecture "
            "and metadata: it won't load",
            where=Where(tensor=name, offset=info_offset(subject, name)),
            expected=[],
            actual=[name],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(name,),
        )
    ]


def test_blocks_too_many_are_their_number_s() -> None:
    last = "blk.3.ffn_up.weight"
    odd, beyond = "blk.0.attn_norm.bias", (last, (64, 128), "F32")
    hits = found(llama((odd, (64,), "F32"), beyond))
    assert [(hit.where.key, hit.actual) for hit in hits if isinstance(hit, Hit)] == [
        (None, [odd]),
        ("llama.block_count", [last]),
    ]


def test_a_draft_of_an_architecture_that_has_none() -> None:
    keys = {**LLAMA, "llama.nextn_predict_layers": (ValueType.UINT32, 1)}
    [hit] = found(llama(keys=keys))
    assert isinstance(hit, Hit)
    assert hit.where.key == "llama.nextn_predict_layers"
    assert hit.actual == [name for name, _, _ in SPECS if name.startswith("blk.2.")]


def test_a_misspelt_name_goes_by_the_places_it_may_mean() -> None:
    bias = "blk.2.attn_q.bias"
    [hit] = found(llama((f"{bias}.old", (64,), "F32")))
    assert isinstance(hit, Hit)
    assert hit.also[0] == f"{bias}.old"
    assert bias in hit.also
    assert "blk.1.attn_q.bias" not in hit.also


def test_what_is_missing_may_be_meant() -> None:
    lost = "output_norm.weight"
    [hit] = found(llama(("blk.2.odd.weight", (7,), "F32"), lacking=(lost,)))
    assert isinstance(hit, Hit)
    assert hit.also == ("blk.2.odd.weight", lost)


def test_silent_about_what_may_be_there() -> None:
    biases = [(f"blk.{block}.attn_q.bias", (64,), "F32") for block in range(3)]
    scale = ("blk.2.ffn_up.scale", (1,), "F32")
    head = ("output.weight", (64, 8), "F32")
    assert found(llama(*biases, scale, head)) == []


def test_silent_without_any_tensor() -> None:
    assert found(without_tensors()) == []
