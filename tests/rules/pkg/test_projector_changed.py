from __future__ import annotations

from collections.abc import Mapping

import pytest

from companion_subjects import (
    AUDIO,
    AUDIO_TENSORS,
    GEMMA_COLOURS,
    GEMMA_CONFIG,
    companion,
    file,
    gemma,
    seeing,
)
from gguf_audit.checkpoint import Json
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Replace, SetArray, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_changed import check
from rule_subjects import SETTINGS, UNKNOWN

STD = "clip.vision.image_std"
AUDIO_CONFIG: Mapping[str, Json] = {
    "model_type": "qwen2_audio",
    "audio_config": {
        "model_type": "qwen2_audio_encoder",
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "num_mel_bins": 32,
    },
}


def said(
    gguf: Gguf,
    config: Mapping[str, Json] = GEMMA_CONFIG,
    colours: Mapping[str, Json] | Absent = GEMMA_COLOURS,
) -> list[object]:
    return list(check(companion(gguf, reference=seeing(config, colours)), SETTINGS))


def test_fires_for_the_mean_in_the_place_of_the_deviation() -> None:
    gguf = gemma(changed={STD: (ValueType.FLOAT32, [0.5, 0.5, 0.5])})
    assert said(gguf) == [
        Hit(
            message=f"the reference needs [0.25, 0.5, 0.75], {STD} is [0.5, 0.5, 0.5]",
            where=Where(key=STD, offset=gguf.fields[STD].offset),
            expected=(0.25, 0.5, 0.75),
            actual=(0.5, 0.5, 0.5),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetArray(key=STD, items=(0.25, 0.5, 0.75)),
        )
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clip.vision.embedding_length", 64),
        ("clip.vision.feed_forward_length", 32),
        ("clip.vision.block_count", 1),
        ("clip.vision.attention.head_count", 4),
        ("clip.vision.image_size", 64),
        ("clip.vision.patch_size", 16),
        ("clip.vision.attention.layer_norm_epsilon", 1e-5),
        ("clip.vision.projector.scale_factor", 4),
        ("clip.vision.image_mean", (ValueType.FLOAT32, [0.5, 0.5, 0.4])),
    ],
)
def test_fires_for_each_value(key: str, value: FieldValue) -> None:
    assert [hit.where.key for hit in said(gemma(changed={key: value})) if isinstance(hit, Hit)] == [
        key
    ]


MERGED = "clip.vision.wa_layer_indexes"
MINICPM: Mapping[str, Json] = {
    "model_type": "minicpmv4_6",
    "insert_layer_id": 2,
    "vision_config": {"hidden_size": 32},
}


def test_fires_for_the_layer_that_patches_are_merged_behind() -> None:
    changed: dict[str, FieldValue] = {
        "clip.projector_type": "minicpmv4_6",
        MERGED: (ValueType.INT32, [1]),
    }
    gguf = gemma(changed=changed)
    assert said(gguf, MINICPM, UNKNOWN) == [
        Hit(
            message=f"the reference needs [2], {MERGED} is [1]",
            where=Where(key=MERGED, offset=gguf.fields[MERGED].offset),
            expected=(2,),
            actual=(1,),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetArray(key=MERGED, items=(2,)),
        ),
        NoEvidence("not given"),
    ]
    changed[MERGED] = (ValueType.INT32, [2])
    assert said(gemma(changed=changed), MINICPM, UNKNOWN) == [NoEvidence("not given")]
    del changed[MERGED]
    hit, _ = said(gemma(changed=changed), MINICPM, UNKNOWN)
    assert isinstance(hit, Hit)
    assert hit.message == f"the reference needs [2], {MERGED} is absent and llama.cpp takes 0"


@pytest.mark.parametrize(
    ("type_", "model", "config", "name", "said_", "taken"),
    [
        ("pixtral", "mistral3", {"rope_theta": 20000.0}, "rope_theta", 20000, 10000),
        (
            "pixtral",
            "mistral3",
            {"rope_parameters": {"rope_theta": 500}},
            "rope_theta",
            500,
            10000,
        ),
        ("qwen3vl_merger", "qwen3_vl", {"temporal_patch_size": 4}, "temporal_patch_size", 4, 2),
    ],
)
def test_fires_as_an_info_for_what_no_key_holds(
    type_: str, model: str, config: dict[str, Json], name: str, said_: int, taken: int
) -> None:
    reference: Mapping[str, Json] = {"model_type": model, "vision_config": config}
    gguf = gemma(changed={"clip.projector_type": type_})
    infos = [
        hit for hit in said(gguf, reference) if isinstance(hit, Hit) and hit.level is Severity.INFO
    ]
    assert infos == [
        Hit(
            message=f"the reference needs {name} {said_}, llama.cpp takes {taken} for {type_} "
            "whatever the file says",
            where=Where(),
            expected=float(said_),
            actual=taken,
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    "config", [{}, {"rope_theta": 10000.0}, {"rope_parameters": {"rope_theta": 10000}}]
)
def test_silent_where_the_reference_says_what_llama_cpp_takes(config: dict[str, Json]) -> None:
    reference: Mapping[str, Json] = {
        "model_type": "mistral3",
        "spatial_merge_size": 1,
        "vision_config": config,
    }
    gguf = gemma(changed={"clip.projector_type": "pixtral"})
    infos = [each for each in said(gguf, reference) if getattr(each, "level", "") is Severity.INFO]
    assert infos == []


def test_fires_for_a_number_with_its_repair() -> None:
    key = "clip.vision.attention.head_count"
    [hit] = said(gemma(changed={key: 4}))
    assert isinstance(hit, Hit)
    assert hit.repair == SetKey(key=key, value=2, present=True)


def test_fires_for_a_lost_key_that_has_another_default() -> None:
    key = "clip.vision.projector.scale_factor"
    assert said(gemma(lost=[key])) == [
        Hit(
            message=f"the reference needs 2, {key} is absent and llama.cpp takes 4",
            where=Where(key=key),
            expected=2,
            actual=4,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    ("lost", "changed"),
    [(["clip.use_gelu"], {}), (["clip.use_gelu"], {"clip.use_silu": True})],
)
def test_fires_for_another_activation(lost: list[str], changed: dict[str, FieldValue]) -> None:
    [hit] = said(gemma(lost=lost, changed=changed))
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.actual) == ("gelu", "silu" if changed else "quick_gelu")


def test_fires_for_the_projector_of_another_model() -> None:
    assert said(gemma(), AUDIO_CONFIG) == [
        Hit(
            message="the reference has projector qwen2a, the file gemma3",
            where=Where(key="clip.projector_type"),
            expected="qwen2a",
            actual="gemma3",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


def test_fires_for_the_sizes_of_an_audio_encoder() -> None:
    key = "clip.audio.num_mel_bins"
    gguf = file(AUDIO, AUDIO_TENSORS, changed={key: 128})
    assert [hit.where.key for hit in said(gguf, AUDIO_CONFIG) if isinstance(hit, Hit)] == [key]


DEEP: Mapping[str, Json] = {
    "model_type": "qwen3_vl",
    "vision_config": {"deepstack_visual_indexes": [0, 1], "depth": 2},
}


def deep(*blocks: int) -> list[object]:
    shapes = {f"v.deepstack.{block}.fc1.weight": (128, 128) for block in blocks}
    gguf = gemma(changed={"clip.projector_type": "qwen3vl_merger"}, shapes=shapes)
    found = said(gguf, DEEP)
    return [hit.actual for hit in found if isinstance(hit, Hit) and hit.where.tensor]


def test_fires_where_other_blocks_feed_layers() -> None:
    assert deep(0, 2) == [[0, 2]]
    assert deep(0) == [[0]]


def test_silent_where_the_same_blocks_feed_layers() -> None:
    assert deep(0, 1) == []


def test_silent_for_right_projectors() -> None:
    assert said(gemma()) == []
    assert said(file(AUDIO, AUDIO_TENSORS), AUDIO_CONFIG) == []


def test_silent_for_what_transformers_fills_in() -> None:
    bare: Mapping[str, Json] = {
        **GEMMA_CONFIG,
        "vision_config": {"model_type": "siglip_vision_model"},
    }
    sizes: dict[str, FieldValue] = {
        "clip.vision.embedding_length": 768,
        "clip.vision.feed_forward_length": 3072,
        "clip.vision.block_count": 12,
        "clip.vision.attention.head_count": 12,
        "clip.vision.image_size": 224,
        "clip.vision.patch_size": 16,
        "clip.vision.projector.scale_factor": 7,
    }
    assert said(gemma(changed=sizes), bare) == []


def test_silent_for_equal_mean_and_deviation() -> None:
    half: dict[str, FieldValue] = {STD: (ValueType.FLOAT32, [0.5, 0.5, 0.5])}
    same: Mapping[str, Json] = {**GEMMA_COLOURS, "image_std": [0.5, 0.5, 0.5]}
    assert said(gemma(changed=half), colours=same) == []


def test_silent_for_a_rounded_deviation() -> None:
    published: Mapping[str, Json] = {
        **GEMMA_COLOURS,
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    short: dict[str, FieldValue] = {STD: (ValueType.FLOAT32, [0.2686295, 0.2613026, 0.2757771])}
    assert said(gemma(changed=short), colours=published) == []


def test_silent_but_says_what_it_couldnt_compare() -> None:
    assert said(gemma(), colours=UNKNOWN) == [NoEvidence("not given")]
    assert said(gemma(), {"model_type": "gemma3"}) == [
        NoEvidence("the reference's config.json has no vision_config")
    ]
    kimi = gemma(changed={"clip.projector_type": "kimivl"})
    assert said(kimi, {"model_type": "kimi_vl"}) == [
        NoEvidence("what the converter writes for projector 'kimivl' isn't known here")
    ]
