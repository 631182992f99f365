from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Field, Scalar
from gguf_audit.rule import Hit, Reconvert, RemoveKey, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.hyperparameter_changed import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, conversion, model, without

Values = Mapping[str, Scalar | Sequence[Scalar]]

#: A small GLM 4.5, as far as its experts go.
GLM: Values = {
    **{key.replace("llama", "glm4moe"): value for key, value in LLAMA.items()},
    "glm4moe.expert_count": 16,
    "glm4moe.expert_used_count": 4,
    "glm4moe.expert_gating_func": 2,
    "glm4moe.expert_shared_count": 1,
    "glm4moe.expert_feed_forward_length": 32,
    "glm4moe.expert_weights_norm": True,
    "glm4moe.expert_weights_scale": 2.5,
    "glm4moe.leading_dense_block_count": 1,
}
EPS = "llama.attention.layer_norm_rms_epsilon"


def said(actual: Mapping[str, FieldValue], expected: Values) -> list[Hit]:
    hits = list(check(conversion(actual, expected), SETTINGS))
    assert all(isinstance(hit, Hit) for hit in hits)
    return [hit for hit in hits if isinstance(hit, Hit)]


def keys(actual: Mapping[str, FieldValue], expected: Values) -> list[tuple[str | None, str]]:
    return [(hit.where.key, hit.level.value) for hit in said(actual, expected)]


def glm(**changes: Scalar) -> dict[str, FieldValue]:
    found: dict[str, FieldValue] = {**GLM}
    found.update({f"glm4moe.{name}": value for name, value in changes.items()})
    return found


def lost(values: Values, *names: str) -> dict[str, FieldValue]:
    return {key: value for key, value in values.items() if key not in names}


def llama(**changes: Scalar) -> dict[str, Scalar]:
    return {**LLAMA, **{f"llama.{name.replace('__', '.')}": item for name, item in changes.items()}}


# Silent


def test_silent_for_the_same() -> None:
    assert said(GLM, GLM) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_silent_for_a_lost_key_whose_default_is_right() -> None:
    assert said(lost(GLM, "glm4moe.expert_gating_func"), GLM) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Factors that change nothing.
        ({"glm4moe.expert_weights_scale": 1.0}, {"glm4moe.expert_weights_scale": 0.0}),
        ({"glm4moe.expert_group_count": 1, "glm4moe.expert_group_used_count": 1}, {}),
        # Nothing reads these of this architecture.
        ({"glm4moe.vocab_size": 8}, {}),
        ({"glm4moe.final_logit_softcapping": 30.0}, {}),
        ({"glm4moe.attention.layer_norm_epsilon": 1e-5}, {}),
        # One for all blocks, or one for each.
        ({"glm4moe.feed_forward_length": [128, 128, 128]}, {}),
        # Floats of 32 bits.
        ({"glm4moe.expert_weights_scale": 2.5000001}, {}),
        # Owned by other rules.
        ({"glm4moe.context_length": 9, "glm4moe.rope.freq_base": 1.0}, {}),
    ],
)
def test_silent_for_what_has_the_same_effect(one: Values, other: Values) -> None:
    assert said({**GLM, **one}, {**GLM, **other}) == []
    assert said({**GLM, **other}, {**GLM, **one}) == []


def test_silent_for_experts_of_a_model_without_any() -> None:
    assert said(llama(expert_weights_norm=True), LLAMA) == []


def test_silent_for_what_another_release_writes() -> None:
    fields = {key: Field(key=key, type=None, value=value) for key, value in LLAMA.items()}
    either = Fields("llama", fields, alternatives={EPS: (1e-3, None)})
    for file in ({**LLAMA, EPS: 1e-3}, without(LLAMA, EPS)):
        assert list(check(conversion(file, either), SETTINGS)) == []
    assert len(list(check(conversion({**LLAMA, EPS: 1e-2}, either), SETTINGS))) == 1


def test_silent_for_a_usual_attention_scale() -> None:
    granite = {key.replace("llama", "granite"): value for key, value in LLAMA.items()}
    granite |= {"granite.logit_scale": 4.0}
    assert said({**granite, "granite.attention.scale": 0.25}, granite) == []
    assert keys({**granite, "granite.attention.scale": 0.5}, granite) == [
        ("granite.attention.scale", "error")
    ]


# Firing


@pytest.mark.parametrize(
    ("name", "tensor", "shape"),
    [
        ("llama.embedding_length", "token_embd.weight", (96, 8)),
        ("llama.feed_forward_length", "blk.0.ffn_down.weight", (96, 64)),
    ],
)
def test_a_size_is_only_set_where_the_tensors_have_it(
    name: str, tensor: str, shape: tuple[int, int]
) -> None:
    right = int(LLAMA[name])
    for held, repair in [
        (96, Reconvert(hint="or name the right reference")),
        (right, SetKey(key=name, value=right, present=True)),
    ]:
        file = model({**LLAMA, name: 96}, [(tensor, (held, *shape[1:]), "F32")])
        (hit,) = check(conversion(file, LLAMA), SETTINGS)
        assert isinstance(hit, Hit)
        assert hit.repair == repair


def test_fires_for_a_changed_number_with_its_repair() -> None:
    assert said(glm(expert_used_count=2), GLM) == [
        Hit(
            message="needs expert_used_count 4, glm4moe.expert_used_count is 2",
            where=Where(key="glm4moe.expert_used_count"),
            expected=4,
            actual=2,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key="glm4moe.expert_used_count", value=4, present=True),
        )
    ]


def test_fires_for_a_lost_key_and_names_the_default() -> None:
    key = "glm4moe.expert_weights_norm"
    assert said(lost(GLM, key), GLM) == [
        Hit(
            message=f"needs expert_weights_norm true, {key} is absent, so it is false",
            where=Where(key=key),
            expected=True,
            actual=False,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_a_lost_key_without_default() -> None:
    assert said(without(LLAMA, EPS), LLAMA) == [
        Hit(
            message=f"needs attention.layer_norm_rms_epsilon 1e-05, {EPS} is absent",
            where=Where(key=EPS),
            expected=1e-5,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_a_key_that_a_right_conversion_lacks() -> None:
    key = "gemma2.attn_logit_softcapping"
    gemma = {name.replace("llama", "gemma2"): value for name, value in LLAMA.items()}
    assert said({**gemma, key: 20.0}, gemma) == [
        Hit(
            message=f"needs attn_logit_softcapping 50, {key} is 20",
            where=Where(key=key),
            expected=50.0,
            actual=20.0,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=RemoveKey(key=key),
        )
    ]


def test_names_what_a_number_stands_for() -> None:
    [hit] = said(glm(expert_gating_func=1), GLM)
    assert hit.message == (
        "needs expert_gating_func 2 (sigmoid), glm4moe.expert_gating_func is 1 (softmax)"
    )


def test_warns_of_a_wrong_value_that_nothing_reads() -> None:
    [hit] = said(llama(vocab_size=9), llama(vocab_size=8))
    assert (hit.level, hit.message) == (
        Severity.WARNING,
        "needs vocab_size 8, llama.vocab_size is 9; llama.cpp doesn't read it, other engines may",
    )


def test_older_converters_left_the_vocabulary_s_size_to_the_tokens() -> None:
    assert said(llama(), llama(vocab_size=8)) == []


def test_looks_at_every_key() -> None:
    changed = glm(leading_dense_block_count=2, expert_shared_count=2)
    changed["glm4moe.attention.layer_norm_rms_epsilon"] = 1e-6
    assert keys(changed, GLM) == [
        ("glm4moe.attention.layer_norm_rms_epsilon", "error"),
        ("glm4moe.expert_shared_count", "error"),
        ("glm4moe.leading_dense_block_count", "error"),
    ]


def test_arrays_are_cut_short() -> None:
    expected = [128] * 8 + [256] * 2
    wide = {**LLAMA, "llama.block_count": 10, "llama.feed_forward_length": expected}
    [hit] = said({**wide, "llama.feed_forward_length": 128}, wide)
    assert hit.message == (
        "needs feed_forward_length [128, 128, 128, 128, 128, 128, 128, 128, ...] (10 items), "
        "llama.feed_forward_length is 128"
    )


def test_the_value_of_a_latent_has_no_effect() -> None:
    latent: dict[str, Scalar] = {
        **{key.replace("llama", "deepseek2"): value for key, value in LLAMA.items()},
        "deepseek2.attention.head_count_kv": 1,
        "deepseek2.attention.q_lora_rank": 8,
        "deepseek2.attention.kv_lora_rank": 12,
        "deepseek2.rope.dimension_count": 4,
        "deepseek2.attention.key_length_mla": 16,
        "deepseek2.attention.value_length_mla": 12,
        "deepseek2.attention.value_length": 12,
        "deepseek2.expert_feed_forward_length": 4,
        "deepseek2.expert_shared_count": 0,
    }
    assert said({**latent, "deepseek2.attention.value_length": 9}, latent) == []


def test_the_window_of_an_encoder_is_a_hyper_parameter() -> None:
    bert: dict[str, Scalar] = {
        **{key.replace("llama", "modern-bert"): value for key, value in LLAMA.items()},
        "modern-bert.attention.layer_norm_epsilon": 1e-5,
        "modern-bert.attention.sliding_window": 128,
    }
    wider = {**bert, "modern-bert.attention.sliding_window": 256}
    assert keys(wider, bert) == [("modern-bert.attention.sliding_window", "error")]


def test_routing_groups_came_late_and_are_told_once() -> None:
    count, used = "glm4moe.expert_group_count", "glm4moe.expert_group_used_count"
    grouped: Values = {**GLM, count: 8, used: 4}
    assert keys({**GLM}, grouped) == [(count, "warning")]
    # What is stored is no omission.
    assert keys({**grouped, count: 4}, grouped) == [(count, "error")]
    assert keys(lost(grouped, used), grouped) == [(used, "warning")]
