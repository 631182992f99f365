from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, Reconvert, RemoveKey, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.ctx.rotation_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, conversion

GLM: Mapping[str, Scalar | Sequence[Scalar]] = {
    **{key.replace("llama", "glm4"): value for key, value in LLAMA.items()},
    "glm4.rope.dimension_count": 8,
}
TURNED = "glm4.rope.dimension_count"
SECTIONS = "glm4.rope.dimension_sections"


def said(
    actual: Mapping[str, FieldValue], expected: Mapping[str, Scalar | Sequence[Scalar]]
) -> list[object]:
    return list(check(conversion(actual, expected), SETTINGS))


def test_silent_for_the_same() -> None:
    assert said(GLM, GLM) == []
    assert said(LLAMA, {**LLAMA, "llama.rope.dimension_count": 16}) == []
    assert said({**LLAMA, "llama.rope.dimension_count": 16}, LLAMA) == []
    assert said({**GLM, SECTIONS: [0, 0, 0, 0]}, GLM) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_silent_where_there_is_no_rope() -> None:
    gpt = {key.replace("glm4", "gpt2"): value for key, value in GLM.items()}
    gpt["gpt2.attention.layer_norm_epsilon"] = 1e-5
    assert said({**gpt, "gpt2.rope.dimension_count": 4}, gpt) == []


def test_silent_for_a_default_that_another_key_moves() -> None:
    assert said({**LLAMA, "llama.attention.key_length": 32}, LLAMA) == []


def test_fires_for_a_lost_partial_rotation() -> None:
    assert said({k: v for k, v in GLM.items() if k != TURNED}, GLM) == [
        Hit(
            message=f"needs 8 elements of each head rotated, {TURNED} is absent, so it is 16",
            where=Where(key=TURNED),
            expected=8,
            actual=16,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_another_part() -> None:
    assert said({**GLM, TURNED: 4}, GLM) == [
        Hit(
            message=f"needs 8 elements of each head rotated, {TURNED} is 4",
            where=Where(key=TURNED),
            expected=8,
            actual=4,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=TURNED, value=8, present=True),
        )
    ]


@pytest.mark.parametrize(
    ("actual", "expected", "repair"),
    [
        ({SECTIONS: [2, 2, 4, 0]}, {SECTIONS: [4, 2, 2, 0]}, Reconvert()),
        ({}, {SECTIONS: [4, 2, 2, 0]}, Reconvert()),
        ({SECTIONS: [2, 2, 4, 0]}, {}, RemoveKey(key=SECTIONS)),
    ],
)
def test_fires_for_sections(
    actual: dict[str, FieldValue], expected: dict[str, Sequence[Scalar]], repair: object
) -> None:
    [hit] = said({**GLM, **actual}, {**GLM, **expected})
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.repair) == (SECTIONS, repair)


def test_fires_for_windowed_layers() -> None:
    key = "gemma3.rope.dimension_count_swa"
    [hit] = said({**GEMMA, key: 128}, GEMMA)
    assert isinstance(hit, Hit)
    assert hit.message == (
        f"needs 256 elements of each head rotated on windowed layers, {key} is 128"
    )


def test_fires_for_granites_switch() -> None:
    granite = {key.replace("llama", "granite"): value for key, value in LLAMA.items()}
    granite["granite.logit_scale"] = 4.0
    key = "granite.rope.scaling.finetuned"
    assert said({**granite, key: True}, granite) == []
    [hit] = said(granite, {**granite, key: False})
    assert isinstance(hit, Hit)
    assert hit.message == f"needs false as the switch for RoPE, {key} is absent, so it is true"
