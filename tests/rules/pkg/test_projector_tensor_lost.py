from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from companion_subjects import (
    GEMMA,
    GEMMA_CONFIG,
    GEMMA_STORED,
    GEMMA_TENSORS,
    companion,
    file,
    gemma,
    seeing,
)
from gguf_audit.checkpoint import Json, StoredTensor
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_tensor_lost import check
from rule_subjects import SETTINGS, UNKNOWN


def said(
    gguf: Gguf, stored: Mapping[str, Sequence[int]] | Absent = GEMMA_STORED, dtype: str = "BF16"
) -> list[object]:
    tensors: Mapping[str, StoredTensor] | Absent
    if isinstance(stored, Absent):
        tensors = stored
    else:
        tensors = {
            name: StoredTensor(dtype=dtype, shape=tuple(shape)) for name, shape in stored.items()
        }
    # Of other types nobody says what goes with the checkpoint.
    config: Mapping[str, Json] = (
        GEMMA_CONFIG if gguf.string("clip.projector_type") == "gemma3" else {}
    )
    reference = replace(seeing(config), load_tensors=lambda: tensors)
    return list(check(companion(gguf, reference=reference), SETTINGS))


def test_fires_for_biases_that_no_block_has() -> None:
    lost = [f"v.blk.{index}.attn_q.bias" for index in range(2)]
    assert said(gemma(lost=lost)) == [
        Hit(
            message=(
                "the reference's encoder has more parameters in 2 of its 2 blocks, first in v.blk.0"
            ),
            where=Where(layer=0),
            expected=8384,
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.blk",),
        )
    ]


def test_fires_for_the_last_block_alone() -> None:
    [hit] = said(gemma(lost=["v.blk.1.ln2.weight"]))
    assert isinstance(hit, Hit)
    assert hit.where.layer == 1


def test_fires_for_what_stands_around_the_blocks() -> None:
    lost = ["v.post_ln.weight", "v.position_embd.weight"]
    [hit] = said(gemma(lost=lost))
    assert isinstance(hit, Hit)
    assert hit.expected == lost


def test_fires_for_positions_however_they_are_called() -> None:
    stored = {"vision_model.embeddings.position_embedding": (1, 17, 32)}
    internvl = gemma(changed={"clip.projector_type": "internvl"}, lost=["v.position_embd.weight"])
    assert said(internvl, stored) == [
        Hit(
            message="the reference has what becomes v.position_embd.weight, absent from the file",
            where=Where(tensor="v.position_embd.weight"),
            expected=["v.position_embd.weight"],
            actual=[],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("v.around",),
        )
    ]


@pytest.mark.parametrize(
    ("type_", "name", "made"),
    [
        ("mlp", "linear_1.bias", "mm.0.bias"),
        ("mlp", "linear_2.bias", "mm.2.bias"),
        ("pixtral", "linear_1.bias", "mm.1.bias"),
        ("pixtral", "linear_2.bias", "mm.2.bias"),
        ("pixtral", "norm.weight", "mm.input_norm.weight"),
        ("pixtral", "patch_merger.merging_layer.weight", "mm.patch_merger.weight"),
        ("lfm2", "layer_norm.weight", "mm.input_norm.weight"),
        ("lfm2", "layer_norm.bias", "mm.input_norm.bias"),
    ],
)
def test_fires_for_what_a_projector_may_have_or_not(type_: str, name: str, made: str) -> None:
    changed: dict[str, FieldValue] = {"clip.projector_type": type_}
    stored = {f"model.multi_modal_projector.{name}": (32,)}
    [hit] = said(gemma(changed=changed), stored)
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.level) == ([made], Severity.ERROR)
    assert said(gemma(changed=changed, shapes={made: (32,)}), stored) == []
    # gemma3's tensors are called otherwise
    assert said(gemma(), stored) == []


OMNI: Mapping[str, Json] = {
    "model_type": "qwen2_5_omni",
    "thinker_config": {"vision_config": {"depth": 2}, "audio_config": {"encoder_layers": 2}},
}


def heard(gguf: Gguf, config: Mapping[str, Json], stored: Sequence[str]) -> list[object]:
    """Return what is said of a file beside a checkpoint that may both see and hear."""
    tensors = {name: StoredTensor(dtype="BF16", shape=(32,)) for name in stored}
    reference = replace(seeing(config), load_tensors=lambda: tensors)
    return list(check(companion(gguf, reference=reference), SETTINGS))


def test_fires_as_an_info_for_an_encoder_that_another_file_may_have() -> None:
    changed: dict[str, FieldValue] = {"clip.projector_type": "qwen2.5o"}
    seen = gemma(changed=changed, shapes={"v.patch_embd.weight.1": (8, 8, 3, 32)})
    towers = ["thinker.visual.patch_embed.proj.weight", "thinker.audio_tower.conv1.weight"]
    info = Hit(
        message="the reference has an encoder of sounds too, this file has none: without another "
        "file that has it the model takes no sounds",
        where=Where(key="clip.has_audio_encoder"),
        expected="audio",
        actual=["vision"],
        level=Severity.INFO,
        repair=Reconvert(),
    )
    assert heard(seen, OMNI, towers) == [info]
    assert heard(seen, OMNI, towers[:1]) == []
    both = {**changed, "clip.has_audio_encoder": True}
    assert heard(gemma(changed=both), OMNI, towers) == []
    blind = file(GEMMA, {}, changed={"clip.has_vision_encoder": False})
    assert heard(blind, OMNI, towers) == []


def test_silent_about_an_encoder_that_the_checkpoint_has_not() -> None:
    towers = ["thinker.visual.patch_embed.proj.weight", "thinker.audio_tower.conv1.weight"]
    config: Mapping[str, Json] = {"model_type": "gemma4", "vision_config": {}, "audio_config": None}
    assert heard(gemma(), config, towers) == []
    # Of Gemma 3 there is none that hears, whatever is written down.
    assert heard(gemma(), {**GEMMA_CONFIG, "audio_config": {"x": 1}}, towers) == []


def test_silent_for_a_projector_of_another_type() -> None:
    # projector-changed says that it is, and that is all there is to say
    changed: dict[str, FieldValue] = {"clip.projector_type": "pixtral"}
    stored = ["multi_modal_projector.linear_1.bias", "vision_tower.ln_pre.weight"]
    assert heard(gemma(changed=changed), GEMMA_CONFIG, stored) == []
    assert len(heard(gemma(changed=changed), {}, stored)) == 1


def test_silent_for_what_llama_cpp_refuses_a_file_without() -> None:
    lost = "v.position_embd.weight"
    qwen = gemma(changed={"clip.projector_type": "qwen3vl_merger"}, lost=[lost])
    assert said(qwen) == []


def test_silent_for_the_whole_encoder() -> None:
    assert said(gemma()) == []


def test_silent_for_fused_attention() -> None:
    heads = [f"v.blk.1.attn_{name}.{part}" for name in "qkv" for part in ("weight", "bias")]
    fused = {"v.blk.1.attn_qkv.weight": (32, 96), "v.blk.1.attn_qkv.bias": (96,)}
    assert said(gemma(lost=heads, shapes=fused)) == []


def test_silent_for_blocks_that_arent_used() -> None:
    llava = file(
        GEMMA,
        GEMMA_TENSORS,
        changed={"clip.projector_type": "mlp", "clip.vision.block_count": 1},
        lost=[name for name in GEMMA_TENSORS if name.startswith(("v.blk.1.", "v.post_ln"))],
    )
    assert said(llava) == []


def test_silent_but_says_so_where_nothing_can_be_counted() -> None:
    assert said(gemma(), UNKNOWN) == [NoEvidence("not given")]
    assert said(gemma(), dtype="U8") == [
        NoEvidence("the reference's encoder is quantized: not counted")
    ]
    kimi = gemma(changed={"clip.projector_type": "kimivl"})
    assert said(kimi) == [NoEvidence("what becomes of an encoder with 'kimivl' isn't known here")]
