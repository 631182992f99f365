from __future__ import annotations

import pytest

from companion_subjects import AUDIO, AUDIO_TENSORS, GEMMA, companion, file, gemma
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_key_missing import check
from rule_subjects import SETTINGS

DEMANDED = [
    "projection_dim",
    "image_size",
    "patch_size",
    "embedding_length",
    "feed_forward_length",
    "block_count",
    "attention.head_count",
    "attention.layer_norm_epsilon",
    "image_mean",
    "image_std",
]


def keys(gguf: Gguf) -> list[str | None]:
    found = list(check(companion(gguf), SETTINGS))
    return [hit.where.key for hit in found if isinstance(hit, Hit)]


@pytest.mark.parametrize("name", DEMANDED)
def test_fires_for_each_key_without_a_default(name: str) -> None:
    key = f"clip.vision.{name}"
    assert keys(gemma(lost=[key])) == [key]


def test_fires_with_what_is_needed() -> None:
    key = "clip.vision.image_size"
    assert list(check(companion(gemma(lost=[key])), SETTINGS)) == [
        Hit(
            message=f"needs a u32, {key} is absent and has no default",
            where=Where(key=key),
            expected="a u32",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clip.vision.image_std", (ValueType.FLOAT32, [0.5, 0.5, 0.0])),
        ("clip.vision.image_std", (ValueType.FLOAT32, [-0.5, 0.5, 0.5])),
        ("clip.vision.image_std", (ValueType.FLOAT64, [0.5, 0.5, 0.5])),
        ("clip.vision.image_std", (ValueType.FLOAT32, [0.5, 0.5])),
        ("clip.vision.image_mean", (ValueType.FLOAT32, [0.5, 0.5, float("nan")])),
        ("clip.vision.image_size", (ValueType.UINT64, 32)),
        ("clip.vision.image_size", (ValueType.UINT32, 1 << 31)),
        ("clip.vision.patch_size", 0),
        ("clip.vision.attention.layer_norm_epsilon", (ValueType.FLOAT64, 1e-6)),
        ("clip.use_silu", True),
    ],
)
def test_fires_for_values_that_cant_be_used(key: str, value: FieldValue) -> None:
    assert keys(gemma(changed={key: value})) == [key]


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        ("qwen2.5vl_merger", "clip.vision.n_wa_pattern"),
        ("youtuvl", "clip.vision.wa_layer_indexes"),
        ("dots_ocr", "clip.vision.projector.scale_factor"),
    ],
)
def test_fires_for_what_a_type_asks_for(type_: str, key: str) -> None:
    gguf = gemma(
        changed={"clip.projector_type": type_}, lost=["clip.vision.projector.scale_factor"]
    )
    assert key in keys(gguf)


def test_fires_for_the_keys_of_an_audio_encoder() -> None:
    key = "clip.audio.num_mel_bins"
    assert keys(file(AUDIO, AUDIO_TENSORS, lost=[key])) == [key]


def test_silent_for_right_projectors() -> None:
    assert keys(gemma()) == []
    assert keys(file(AUDIO, AUDIO_TENSORS)) == []


def test_silent_where_the_type_says_nothing() -> None:
    # told by the rule that looks at the type
    assert keys(file(GEMMA, {}, changed={"clip.projector_type": "gemma9"})) == []
