from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from gguf_audit.checkpoint import StoredTensor
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
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
    reference = replace(seeing(GEMMA_CONFIG), load_tensors=lambda: tensors)
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
