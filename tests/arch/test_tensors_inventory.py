from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit import arch
from gguf_audit.arch.tensors import Inventory, Slot, inventory, same_shape
from gguf_audit.fields import Fields
from gguf_audit.parts import Absent
from gguf_audit.testing import FieldValue, make_gguf
from llama_recipes import PLAIN, recipe


def places(keys: Mapping[str, FieldValue], *present: str) -> Inventory:
    gguf = make_gguf(keys)
    fields = Fields(gguf.architecture or "", gguf.fields)
    found = inventory(fields, arch.implied_layout(fields), present)
    assert not isinstance(found, Absent)
    return found


def required(found: Inventory, block: int) -> set[str]:
    prefix = f"blk.{block}."
    return {
        slot.name.removeprefix(prefix).removesuffix(".weight")
        for slot in found.slots.values()
        if slot.required and slot.name.startswith(prefix)
    }


def test_a_hybrid_has_attention_or_a_state() -> None:
    found = places(recipe("qwen3next", PLAIN))
    state, attention = required(found, 2), required(found, 3)
    assert "ssm_out" in state
    assert "attn_k" not in state
    assert "attn_k" in attention
    assert "ssm_out" not in attention


def test_leading_blocks_are_dense() -> None:
    found = places(recipe("deepseek2", PLAIN))
    assert "ffn_gate" in required(found, 0)
    assert "ffn_gate_inp" in required(found, 1)


def test_windowed_layers_have_heads_of_their_own_length() -> None:
    found = places(recipe("gemma4", PLAIN))
    shapes = [found.slots[f"blk.{block}.attn_q_norm.weight"].shape for block in range(12)]
    assert shapes == [(64,), (64,), (64,), (128,)] * 3


def test_fused_projections_take_the_place_of_three() -> None:
    fused = places(recipe("llama", PLAIN), "blk.0.attn_qkv.weight")
    assert not {"attn_q", "attn_k", "attn_v"} & required(fused, 0)
    assert {"attn_q", "attn_k", "attn_v"} <= required(fused, 1)


def test_drafts_may_be_left_out_or_be_all_there_is() -> None:
    keys = recipe("glm4moe", PLAIN) | {"glm4moe.nextn_predict_layers": 1}
    there = "blk.0.attn_norm.weight", "blk.11.nextn.eh_proj.weight"
    assert "nextn.enorm" in required(places(keys, *there), 11)
    assert required(places(keys, there[0]), 11) == set()
    assert required(places(keys, there[1]), 0) == set()


def test_tensors_without_a_place() -> None:
    found = places(recipe("llama", PLAIN))
    assert found.homeless(["blk.0.ffn_up.scale", "blk.12.attn_q.weight", "token_embd.weight"]) == (
        "blk.12.attn_q.weight",
    )


def test_architectures_that_are_not_known() -> None:
    gguf = make_gguf(recipe("hrm_text", PLAIN))
    fields = Fields("hrm_text", gguf.fields)
    assert inventory(fields, arch.implied_layout(fields), ()) == Absent(
        "the tensors of 'hrm_text' aren't known"
    )


@pytest.mark.parametrize(
    ("shape", "any_shape", "found", "same"),
    [
        ((4, 3), False, (4, 3), True),
        ((4, 3), False, (4, 3, 1), True),
        ((4, 1), False, (4,), True),
        ((4, 3), False, (3, 4), False),
        ((4, None), False, (4, 9), True),
        ((4, None), False, (4,), True),
        ((4, None), False, (5, 9), False),
        ((4, 3), True, (12,), True),
        ((4, 3), True, (11,), False),
        ((), False, (1, 2), True),
    ],
)
def test_shapes(
    shape: tuple[int | None, ...], any_shape: bool, found: tuple[int, ...], same: bool
) -> None:
    slot = Slot(name="x", shape=shape, required=True, any_shape=any_shape)
    assert same_shape(slot, found) is same
