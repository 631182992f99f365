from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Json
from gguf_audit.evidence import Conversion
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_lost import NO_OUTPUT, TIE, check
from rule_subjects import LLAMA, SETTINGS
from wt_subjects import SPECS, converted, llama, stored, without_tensors

BIAS = {"model__layers__2__self_attn__q_proj__bias": (64,)}
HEAD = {"lm_head__weight": (8, 64)}


def found(subject: Conversion) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_a_lost_bias() -> None:
    name = "blk.2.attn_q.bias"
    assert found(converted(llama(), stored(**BIAS))) == [
        Hit(
            message=f"needs {name} (model.layers.2.self_attn.q_proj.bias in the checkpoint), "
            "absent from the file: llama.cpp may load it and say nothing",
            where=Where(tensor=name, layer=2),
            expected=[name],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(name,),
        )
    ]


def test_lost_blocks_are_their_number_s() -> None:
    keys = {**LLAMA, "llama.block_count": 2}
    end = tuple(name for name, _, _ in SPECS if name.startswith("blk.2."))
    [hit] = found(converted(llama(keys=keys, lacking=end), stored()))
    assert isinstance(hit, Hit)
    assert hit.also == (*end, "llama.block_count", "llama.nextn_predict_layers")


def test_what_llama_cpp_misses_in_another_layout() -> None:
    apart = tuple(f"blk.2.attn_{part}.weight" for part in "qkv")
    fused = stored(model__layers__2__self_attn__qkv_proj__weight=(128, 64))
    without = {
        name: each
        for name, each in fused.items()
        if not name.endswith(tuple(f"layers.2.self_attn.{part}_proj.weight" for part in "qkv"))
    }
    [hit] = found(converted(llama(lacking=apart), without))
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.also) == (
        ["blk.2.attn_qkv.weight"],
        ("blk.2.attn_qkv.weight", *sorted(apart)),
    )


def test_a_lost_output_projection() -> None:
    [hit] = found(converted(llama(), stored(**HEAD), config={TIE: False}))
    assert isinstance(hit, Hit)
    assert (hit.where, hit.consequences) == (Where(tensor="output.weight"), (NO_OUTPUT,))


def test_what_another_file_has() -> None:
    whole = llama(("blk.2.attn_q.bias", (64,), "F32"))
    [hit] = found(converted(llama(), Absent("none"), gguf=whole.gguf))
    assert isinstance(hit, Hit)
    assert hit.expected == ["blk.2.attn_q.bias"]


def test_tensors_that_nobody_knows_are_said() -> None:
    odd = stored(model__layers__2__self_attn__odd__weight=(64,))
    assert found(converted(llama(), odd)) == [
        NoEvidence("what becomes of 1 tensors isn't known: model.layers.2.self_attn.odd.weight")
    ]


def test_no_tensors_to_compare_with() -> None:
    assert found(converted(llama(), Absent("no model.safetensors in the folder"))) == [
        NoEvidence("no model.safetensors in the folder")
    ]


@pytest.mark.parametrize("config", [{TIE: True}, {"text_config": {TIE: True}}])
def test_silent_about_a_tied_output_projection(config: dict[str, Json]) -> None:
    assert found(converted(llama(), stored(**HEAD), config=config)) == []


def test_silent_about_what_the_converter_drops() -> None:
    dropped = stored(
        model__layers__2__self_attn__rotary_emb__inv_freq=(8,),
        model__vision_tower__encoder__layers__0__mlp__fc1__weight=(4, 4),
        model__layers__2__mlp__up_proj__weight_scale_inv=(1, 1),
    )
    assert found(converted(llama(), dropped)) == []


def test_silent_about_what_llama_cpp_misses() -> None:
    assert found(converted(llama(lacking=("blk.2.ffn_up.weight",)), stored())) == []


def test_silent_where_projections_are_fused() -> None:
    apart = tuple(f"blk.2.attn_{part}.weight" for part in "qkv")
    fused = llama(("blk.2.attn_qkv.weight", (64, 128), "F32"), lacking=apart)
    assert found(converted(fused, stored())) == []


def test_silent_about_files_without_tensors() -> None:
    assert found(converted(without_tensors(), stored())) == []
