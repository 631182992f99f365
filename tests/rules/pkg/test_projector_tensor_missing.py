from __future__ import annotations

import pytest

from companion_subjects import (
    AUDIO,
    AUDIO_TENSORS,
    GEMMA,
    GEMMA_TENSORS,
    companion,
    encoder,
    file,
    gemma,
)
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_tensor_missing import HINT, check
from rule_subjects import SETTINGS

BREAK = "v.token_embd.img_break"
PIXTRAL = {
    "mm.1.weight": (32, 64),
    "mm.2.weight": (64, 64),
    "v.patch_embd.weight": (8, 8, 3, 32),
    BREAK: (64,),
    **encoder("v"),
}

QWEN = {
    "mm.0.weight": (128, 128),
    "mm.0.bias": (128,),
    "mm.2.weight": (128, 64),
    "mm.2.bias": (64,),
    "v.patch_embd.weight": (8, 8, 3, 32),
    "v.patch_embd.weight.1": (8, 8, 3, 32),
    **encoder("v"),
}


def said(gguf: Gguf) -> list[object]:
    return list(check(companion(gguf), SETTINGS))


def lost(*names: str) -> object:
    [hit] = said(gemma(lost=names))
    assert isinstance(hit, Hit)
    return hit.expected


@pytest.mark.parametrize(
    "name",
    [
        "mm.input_projection.weight",
        "mm.soft_emb_norm.weight",
        "v.patch_embd.weight",
        "v.blk.0.attn_out.weight",
        "v.blk.0.attn_q.weight",
        "v.blk.1.ffn_up.weight",
        "v.blk.1.ffn_down.weight",
    ],
)
def test_fires_for_each_tensor_that_is_demanded(name: str) -> None:
    assert lost(name) == [name]


def test_fires_for_the_row_that_the_converter_drops() -> None:
    pixtral = file(GEMMA, PIXTRAL, changed={"clip.projector_type": "pixtral"}, lost=[BREAK])
    assert said(pixtral) == [
        Hit(
            message=f"pixtral needs {BREAK}, absent from the file: llama.cpp won't load it",
            where=Where(tensor=BREAK),
            expected=[BREAK],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(hint=HINT),
            also=("v.blk",),
        )
    ]


@pytest.mark.parametrize(
    ("type_", "taken"),
    [
        ("qwen2vl_merger", []),
        ("qwen2.5vl_merger", []),
        ("qwen3vl_merger", ["v.patch_embd.bias", "v.position_embd.weight"]),
    ],
)
def test_fires_for_what_the_graph_of_qwen_vl_takes_unseen(type_: str, taken: list[str]) -> None:
    tensors = {**QWEN, "v.patch_embd.bias": (32,), "v.position_embd.weight": (32, 16)}
    changed: dict[str, FieldValue] = {"clip.projector_type": type_}
    assert said(file(GEMMA, tensors, changed=changed)) == []
    for name in ("v.patch_embd.weight.1", *taken):
        [hit] = said(file(GEMMA, tensors, changed=changed, lost=[name]))
        assert isinstance(hit, Hit)
        assert hit.expected == [name]


def test_fires_for_the_norm_in_front_of_pixtrals_merger() -> None:
    merging = {**PIXTRAL, "mm.patch_merger.weight": (128, 32), "mm.input_norm.weight": (32,)}
    changed: dict[str, FieldValue] = {"clip.projector_type": "pixtral"}
    assert said(file(GEMMA, merging, changed=changed)) == []
    [hit] = said(file(GEMMA, merging, changed=changed, lost=["mm.input_norm.weight"]))
    assert isinstance(hit, Hit)
    assert hit.expected == ["mm.input_norm.weight"]


def test_fires_for_blocks_that_arent_there() -> None:
    gguf = gemma(changed={"clip.vision.block_count": 3})
    [hit] = said(gguf)
    assert isinstance(hit, Hit)
    assert hit.where == Where(key="clip.vision.block_count", tensor="v.blk.2.attn_out.weight")


def test_fires_for_what_says_the_width() -> None:
    # nothing else asks for the last layer of LLaVA's projector
    llava = file(GEMMA, GEMMA_TENSORS, changed={"clip.projector_type": "mlp"})
    [hit] = said(llava)
    assert isinstance(hit, Hit)
    assert hit.expected == ["mm.2.weight"]


def test_silent_for_right_projectors() -> None:
    assert said(gemma()) == []
    assert said(file(AUDIO, AUDIO_TENSORS)) == []
    assert said(file(GEMMA, PIXTRAL, changed={"clip.projector_type": "pixtral"})) == []


def test_silent_for_what_llama_cpp_does_without() -> None:
    assert said(gemma(lost=["v.post_ln.weight", "v.blk.1.attn_q.bias"])) == []


def test_silent_for_fused_attention() -> None:
    heads = [f"v.blk.1.attn_{name}.weight" for name in "qkv"]
    assert said(gemma(lost=heads, shapes={"v.blk.1.attn_qkv.weight": (32, 96)})) == []


def test_silent_for_a_file_without_tensors() -> None:
    assert said(file(GEMMA, {})) == []
