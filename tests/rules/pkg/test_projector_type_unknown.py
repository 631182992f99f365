from __future__ import annotations

from collections.abc import Sequence

import pytest

from companion_subjects import AUDIO, AUDIO_TENSORS, companion, file, gemma
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_type_unknown import check
from rule_subjects import SETTINGS

TYPE = "clip.projector_type"


def said(gguf: Gguf) -> list[object]:
    return list(check(companion(gguf), SETTINGS))


def test_fires_for_no_encoder() -> None:
    assert said(gemma(lost=["clip.has_vision_encoder"])) == [
        Hit(
            message=(
                "needs clip.has_vision_encoder, clip.has_audio_encoder or"
                " clip.has_gen_audio_encoder, none is true: llama.cpp finds nothing to load"
            ),
            where=Where(key="clip.has_vision_encoder"),
            expected=True,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    ("lost", "changed", "how"),
    [
        ([TYPE], {}, "is absent"),
        ([], {TYPE: "gemma9"}, "is 'gemma9'"),
        # known by name, but nothing can be loaded for it
        ([], {TYPE: "gemma3na"}, "is 'gemma3na'"),
    ],
)
def test_fires_for_a_type_that_isnt_loaded(
    lost: Sequence[str], changed: dict[str, FieldValue], how: str
) -> None:
    gguf = gemma(lost=lost, changed=changed)
    field = gguf.fields.get(TYPE)
    assert said(gguf) == [
        Hit(
            message=f"needs a type of projector that llama.cpp b11434 loads, {TYPE} {how}",
            where=Where(key=TYPE, offset=None if field is None else field.offset),
            expected="a known type",
            actual=changed.get(TYPE),
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_the_second_of_two_encoders() -> None:
    gguf = file(
        {**AUDIO, "clip.has_vision_encoder": True, "clip.vision.projector_type": "gemma4v"},
        AUDIO_TENSORS,
        lost=[TYPE],
        changed={"clip.audio.projector_type": "unheard"},
    )
    [hit] = said(gguf)
    assert isinstance(hit, Hit)
    assert hit.where.key == "clip.audio.projector_type"


def test_silent_for_known_types() -> None:
    assert said(gemma()) == []
    assert said(file(AUDIO, AUDIO_TENSORS)) == []


def test_silent_where_one_name_means_two_projectors() -> None:
    omni = file(
        {**AUDIO, "clip.has_vision_encoder": True}, AUDIO_TENSORS, changed={TYPE: "qwen2.5o"}
    )
    assert said(omni) == []


def test_silent_for_the_audio_of_gemma_3n_that_is_never_loaded() -> None:
    gemma_3n = file(
        {**AUDIO, "clip.has_vision_encoder": True},
        AUDIO_TENSORS,
        lost=[TYPE],
        changed={
            "clip.vision.projector_type": "gemma3nv",
            "clip.audio.projector_type": "gemma3na",
        },
    )
    assert said(gemma_3n) == []
