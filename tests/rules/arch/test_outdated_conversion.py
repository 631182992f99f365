from __future__ import annotations

import pytest

from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.outdated_conversion import check
from rule_subjects import LLAMA, SETTINGS, info_offset, model

BPE: dict[str, FieldValue] = {"tokenizer.ggml.model": "gpt2"}
SINGLE = "blk.0.ffn_up.7.weight"


def said(keys: dict[str, FieldValue], *tensors: str) -> list[object]:
    found = [(name, (8, 8), "F32") for name in ("token_embd.weight", *tensors)]
    return list(check(model({**LLAMA, **keys}, found), SETTINGS))


@pytest.mark.parametrize(
    ("keys", "tensors"),
    [
        ({}, ()),
        # One sign by itself has a rule of its own.
        (BPE, ()),
        ({"llama.rope.scale_linear": 4.0}, ()),
        # What only later converters write: the file isn't old, it lost something.
        ({**BPE, "llama.rope.scale_linear": 4.0, "general.type": "model"}, ()),
        ({"general.size_label": "7B"}, (SINGLE,)),
        ({}, (SINGLE, "blk.1.ffn_up_exps.weight")),
        # Not one of an expert.
        ({}, ("blk.0.ffn_up.weight", "v.blk.0.ffn_up.0.weight")),
    ],
)
def test_silent(keys: dict[str, FieldValue], tensors: tuple[str, ...]) -> None:
    assert said(keys, *tensors) == []


def test_fires_for_experts_that_are_stored_one_by_one() -> None:
    tensors = [(name, (8, 8), "F32") for name in ("token_embd.weight", SINGLE)]
    subject = model(LLAMA, tensors)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs what converters write today, this file was made before April 2024, "
            f"which llama.cpp refuses: experts are stored one by one ({SINGLE})",
            where=Where(tensor=SINGLE, offset=info_offset(subject, SINGLE)),
            expected="a current conversion",
            actual="made before April 2024",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=tuple(
                f"{SINGLE[: SINGLE.index('.ffn_')]}.ffn_{part}"
                for part in (
                    *("gate_exps.weight", "gate.0.weight", "down_exps.weight", "down.0.weight"),
                    *("up_exps.weight", "up.0.weight"),
                )
            ),
        )
    ]


def test_fires_for_two_signs_and_names_their_keys() -> None:
    assert said({**BPE, "llama.rope.scale_linear": 4.0}) == [
        Hit(
            message="needs what converters write today, this file was made before November 2023: "
            "llama.rope.scale_linear is a name of then; tokenizer.ggml.pre is absent",
            where=Where(),
            expected="a current conversion",
            actual="made before November 2023",
            level=Severity.WARNING,
            repair=Reconvert(),
            also=("llama.rope.scale_linear", "tokenizer.ggml.pre"),
        )
    ]


def test_a_latent_from_before_it_could_be_kept_is_a_sign() -> None:
    keys: dict[str, FieldValue] = {
        **{key.replace("llama", "deepseek2"): value for key, value in LLAMA.items()},
        **BPE,
    }
    tensors = [("token_embd.weight", (8, 8), "F32"), ("blk.0.attn_kv_b.weight", (8, 8), "F32")]
    [hit] = check(model(keys, tensors), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.actual, hit.also) == (
        "made before May 2024",
        (
            "tokenizer.ggml.pre",
            "deepseek2.attention.key_length_mla",
            "deepseek2.attention.value_length_mla",
        ),
    )
    packed = [*tensors, ("blk.0.attn_k_b.weight", (8, 8), "F32")]
    assert list(check(model(keys, packed), SETTINGS)) == []
