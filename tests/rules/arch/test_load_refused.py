from __future__ import annotations

from gguf_audit.errors import Refused
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.arch.load_refused import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, model, offset, without

#: A wrong number of blocks may be behind any refusal.
BLOCKS = ("llama.block_count", "llama.nextn_predict_layers")


def test_silent_for_what_llama_cpp_loads() -> None:
    assert list(check(model(LLAMA), SETTINGS)) == []


def test_silent_where_nobody_knows() -> None:
    assert list(check(model(LLAMA, implied=UNKNOWN), SETTINGS)) == []


def test_fires_for_a_lost_key() -> None:
    key = "llama.context_length"
    assert list(check(model(without(LLAMA, key)), SETTINGS)) == [
        Hit(
            message=f"{key} is absent: llama.cpp refuses the file",
            where=Where(key=key),
            expected="metadata that llama.cpp loads",
            actual="refused",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=BLOCKS,
        )
    ]


def test_fires_for_a_wrong_type_at_its_place() -> None:
    key = "llama.attention.key_length"
    subject = model({**LLAMA, key: (ValueType.UINT64, 16)})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"{key} is uint64, llama.cpp wants u32: llama.cpp refuses the file",
            where=Where(key=key, offset=offset(subject, key)),
            expected="metadata that llama.cpp loads",
            actual="refused",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(
                "llama.attention.head_count",
                "llama.attention.head_count_kv",
                "llama.attention.key_length_mla",
                "llama.attention.key_length_swa",
                "llama.attention.kv_lora_rank",
                "llama.attention.value_length",
                "llama.attention.value_length_mla",
                "llama.attention.value_length_swa",
                "llama.embedding_length",
                "llama.rope.dimension_count",
                *BLOCKS,
            ),
        )
    ]


def test_says_where_the_process_dies() -> None:
    where = Where(key="llama.rope.scaling.type", offset=3)
    death = Refused("RoPE scaling 'su' is none", kind="aborts", where=where)
    assert list(check(model(LLAMA, implied=death), SETTINGS)) == [
        Hit(
            message="RoPE scaling 'su' is none: llama.cpp dies of it",
            where=where,
            expected="metadata that llama.cpp loads",
            actual="aborts",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=BLOCKS,
        )
    ]


def test_a_reference_may_blame_a_key_that_is_checked_against_another() -> None:
    wrong = {**LLAMA, "llama.expert_count": 4}
    [hit] = check(model(wrong), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.also) == (
        "llama.expert_used_count",
        (
            "llama.expert_count",
            "llama.expert_group_count",
            "llama.expert_group_used_count",
            *BLOCKS,
        ),
    )
