"""Which keys have to do with a tensor's shape and place."""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit import arch
from gguf_audit.arch.tensors import Inventory, inventory, placing, shaping
from gguf_audit.arch.tensors._keys import TOLD_BY
from gguf_audit.arch.tensors._sizes import ANY, NAMES
from gguf_audit.fields import Fields
from gguf_audit.testing import FieldValue, make_gguf
from llama_recipes import PLAIN, recipe

#: Numbers of Gemma 3n that no file states, and what is the same in every block.
FIXED = {"altup", "altup_embd", "first", "laurel_rank"}


def fields_of(keys: Mapping[str, FieldValue]) -> Fields:
    gguf = make_gguf(keys)
    return Fields(gguf.architecture or "", gguf.fields)


def shaped(keys: Mapping[str, FieldValue], name: str) -> list[set[str]]:
    fields = fields_of(keys)
    found = inventory(fields, arch.implied_layout(fields), ())
    assert isinstance(found, Inventory)
    prefix = fields.key("")
    return [
        {key.removeprefix(prefix) for key in each} for each in shaping(found.slots[name], fields)
    ]


def placed(keys: Mapping[str, FieldValue], name: str) -> set[str]:
    fields = fields_of(keys)
    return {key.removeprefix(fields.key("")) for key in placing(name, fields)}


def test_every_name_has_its_keys() -> None:
    assert NAMES - TOLD_BY.keys() - ANY == FIXED
    assert TOLD_BY.keys() <= NAMES


def test_a_dimension_that_several_keys_make() -> None:
    keys = recipe("deepseek2", PLAIN)
    assert shaped(keys, "blk.0.attn_output.weight") == [
        {
            "attention.head_count",
            *(f"attention.{part}_length_mla" for part in ("key", "value")),
            *(f"attention.{part}_length_mla_swa" for part in ("key", "value")),
        },
        {"embedding_length"},
    ]


def test_what_stands_in_for_an_absent_key() -> None:
    keys = {**recipe("llama", PLAIN)}
    for name in ("llama.attention.key_length", "llama.attention.value_length"):
        keys.pop(name, None)
    width = shaped(keys, "blk.0.attn_q.weight")[1]
    assert {"attention.key_length", "attention.head_count", "embedding_length"} <= width
    assert shaped(recipe("qwen3", PLAIN), "blk.0.attn_q_norm.weight") == [
        {"attention.key_length", "attention.key_length_swa"}
    ]


def test_rows_of_the_vocabulary_are_told_by_no_key() -> None:
    assert shaped(recipe("llama", PLAIN), "token_embd.weight") == [{"embedding_length"}, set()]


def test_what_a_place_depends_on() -> None:
    keys = recipe("deepseek2", PLAIN)
    dense = placed(keys, "blk.0.ffn_gate.weight")
    assert "leading_dense_block_count" in dense
    assert "leading_dense_block_count" in placed(keys, "blk.0.ffn_gate_exps.weight")
    assert placed(keys, "blk.0.attn_norm.weight") == set()
    assert placed(keys, "blk.0.no_such.weight") == set()
