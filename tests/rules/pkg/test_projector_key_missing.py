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


MERGE = "clip.vision.spatial_merge_size"


@pytest.mark.parametrize(
    ("size", "merged", "message", "actual"),
    [
        (None, 128, "needs 2, {} is absent and llama.cpp takes 1", None),
        (3, 128, "needs 2, {} is 3", 3),
        (2, 130, "needs what mm.patch_merger merges, 130, {} is 2", 2),
    ],
)
def test_fires_where_patches_do_not_fit_their_merger(
    size: int | None, merged: int, message: str, actual: int | None
) -> None:
    gguf = merging(size, merged)
    field = gguf.fields.get(MERGE)
    [hit] = check(companion(gguf), SETTINGS)
    wanted = message.partition(" ")[2].partition(", {}")[0]
    assert hit == Hit(
        message=f"{message.format(MERGE)}: it aborts where it merges patches",
        where=Where(key=MERGE, offset=None if field is None else field.offset),
        expected=wanted,
        actual=actual,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


@pytest.mark.parametrize(("size", "merged"), [(2, 128), (None, 32), (1, 32), (None, None)])
def test_silent_where_patches_fit_their_merger(size: int | None, merged: int | None) -> None:
    assert keys(merging(size, merged)) == []


def merging(size: int | None, merged: int | None) -> Gguf:
    """Return a Pixtral that merges so many by so many patches into one that is so wide."""
    changed: dict[str, FieldValue] = {"clip.projector_type": "pixtral"}
    if size is not None:
        changed[MERGE] = size
    shapes = {} if merged is None else {"mm.patch_merger.weight": (merged, 32)}
    return gemma(changed=changed, shapes=shapes)


@pytest.mark.parametrize(
    ("key", "value", "how"),
    [
        ("clip.vision.image_std", (ValueType.FLOAT64, [0.5] * 3), "is an array of float64"),
        ("clip.vision.image_std", 0.5, "is float32"),
        ("clip.vision.image_size", (ValueType.UINT64, 32), "is uint64"),
    ],
)
def test_says_of_which_type_a_value_is(key: str, value: FieldValue, how: str) -> None:
    [hit] = check(companion(gemma(changed={key: value})), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.message.endswith(f", {key} {how}")


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
