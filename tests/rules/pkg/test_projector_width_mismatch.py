from __future__ import annotations

from collections.abc import Mapping

import pytest

from companion_subjects import GEMMA, GEMMA_CONFIG, companion, encoder, file, gemma, seeing
from gguf_audit.gguf import Gguf, Scalar
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Replace, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_width_mismatch import check
from rule_subjects import SETTINGS

REFERENCE = seeing(GEMMA_CONFIG)
#: Blocks 1 and 2 of four feed a layer of their own.
DEEP = {
    "mm.0.weight": (128, 128),
    "mm.0.bias": (128,),
    "mm.2.weight": (128, 64),
    "mm.2.bias": (64,),
    "v.patch_embd.weight": (8, 8, 3, 32),
    **encoder("v", blocks=4),
    "v.deepstack.1.fc1.weight": (128, 128),
    "v.deepstack.2.fc1.weight": (128, 128),
    # beyond the last block: never loaded
    "v.deepstack.4.fc1.weight": (128, 128),
}


def said(gguf: Gguf, base: Mapping[str, Scalar] | Absent) -> list[object]:
    return list(check(companion(gguf, reference=REFERENCE, base=base), SETTINGS))


def deep(blocks: int = 4) -> Gguf:
    changed: dict[str, FieldValue] = {
        "clip.projector_type": "qwen3vl_merger",
        "clip.vision.block_count": blocks,
    }
    return file(GEMMA, DEEP, changed=changed)


def test_fires_for_another_width() -> None:
    assert said(gemma(), {"gemma3.embedding_length": 128}) == [
        Hit(
            message=("the text model takes 128 numbers for each token, projector gemma3 gives 64"),
            where=Where(tensor="mm.input_projection.weight"),
            expected=128,
            actual=64,
            unit="number",
            level=Severity.ERROR,
            repair=Replace(),
            also=("width",),
        )
    ]


@pytest.mark.parametrize(
    "base",
    [
        # the count is lost, or the text model was converted as one of another class
        {"qwen3vl.embedding_length": 64},
        {"qwen3moe.embedding_length": 64, "qwen3moe.n_deepstack_layers": 2},
        {"qwen3vl.embedding_length": 64, "qwen3vl.n_deepstack_layers": 3},
        {"qwen3vl.embedding_length": 192},
    ],
)
def test_fires_where_other_layers_are_fed(base: Mapping[str, Scalar]) -> None:
    hits = said(deep(), base)
    wrong = [hit.actual for hit in hits if isinstance(hit, Hit)]
    assert wrong == ([] if base == {"qwen3vl.embedding_length": 192} else [192])


def test_fires_whatever_projection_dim_says() -> None:
    gguf = gemma(changed={"clip.vision.projection_dim": 128})
    assert len(said(gguf, {"gemma3.embedding_length": 128})) == 1
    assert said(gguf, {"gemma3.embedding_length": 64}) == []


def test_silent_where_they_fit() -> None:
    assert said(gemma(), {"gemma3.embedding_length": 64}) == []
    fed = {"qwen3vl.embedding_length": 64, "qwen3vl.n_deepstack_layers": 2}
    assert said(deep(), fed) == []
    granite = {"granite.embedding_length": 64}
    assert said(gemma(), granite) == []


def test_silent_but_says_so_where_the_text_model_isnt_known() -> None:
    assert said(gemma(), Absent("no such class")) == [
        NoEvidence("the text model isn't known: no such class")
    ]
