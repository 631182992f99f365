"""What a right projector says, for a small checkpoint of each family that is compared."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.checkpoint import Json
from gguf_audit.parts import Absent
from gguf_audit.projection import expected_projector, projector_types

COLOURS: Mapping[str, Json] = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
SIZES: dict[str, Json] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "image_size": 56,
    "patch_size": 14,
}
WHISPER: dict[str, Json] = {
    "hidden_size": 32,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_mel_bins": 32,
}
QWEN: dict[str, Json] = {"depth": 4, "num_heads": 2, "patch_size": 8, "spatial_merge_size": 2}

#: Type, config, how images are prepared, and what a right conversion says beyond its sizes.
CASES: list[tuple[str, dict[str, Json], dict[str, Json], dict[str, object]]] = [
    (
        "qwen2vl_merger",
        {"vision_config": {**QWEN, "embed_dim": 32, "hidden_size": 64}, "rms_norm_eps": 1e-5},
        {},
        {
            "embedding_length": (32,),
            "image_size": (560,),
            "activation": ("quick_gelu",),
            "attention.layer_norm_epsilon": (1e-6, 1e-5),
        },
    ),
    (
        "qwen2.5vl_merger",
        {
            "vision_config": {
                **QWEN,
                "hidden_size": 32,
                "intermediate_size": 48,
                "fullatt_block_indexes": [1, 3],
            }
        },
        {},
        {"feed_forward_length": (48,), "n_wa_pattern": (2,), "activation": ("silu",)},
    ),
    (
        "qwen3vl_merger",
        {"vision_config": {**QWEN, "hidden_size": 32, "num_position_embeddings": 16}},
        {},
        {"image_size": (32,), "spatial_merge_size": (2,), "block_count": (4,)},
    ),
    (
        "pixtral",
        {"model_type": "mistral3", "vision_config": {**SIZES, "hidden_act": "silu"}},
        {},
        {
            "spatial_merge_size": (2,),
            "activation": ("silu",),
            "attention.layer_norm_epsilon": (1e-5,),
        },
    ),
    (
        "internvl",
        {
            "vision_config": {**SIZES, "hidden_act": "gelu", "layer_norm_eps": 1e-6},
            "downsample_ratio": 0.5,
            "min_dynamic_patch": 1,
            "max_dynamic_patch": 6,
        },
        {},
        {
            "projector.scale_factor": (2,),
            "preproc_min_tiles": (1,),
            "preproc_max_tiles": (6,),
            "activation": ("gelu",),
        },
    ),
    (
        "internvl",
        {"vision_config": {**SIZES, "image_size": [448, 448], "patch_size": [14, 14]}},
        {},
        {"image_size": (448,), "patch_size": (14,)},
    ),
    (
        "idefics3",
        {
            "scale_factor": 3,
            "vision_config": {**SIZES, "model_type": "idefics3_vision"},
        },
        {"size": {"longest_edge": 256}},
        {
            "projector.scale_factor": (3,),
            "preproc_image_size": (256,),
            "attention.layer_norm_epsilon": (1e-6, 1e-5),
        },
    ),
    (
        "lfm2",
        {"downsample_factor": 2, "vision_feature_layer": -2, "vision_config": SIZES},
        {},
        {"image_size": (256,), "block_count": (3,), "projector.scale_factor": (2,)},
    ),
    (
        "minicpmv4_6",
        {"vision_config": {**SIZES, "image_size": 112}},
        {"scale_resolution": 56},
        {
            "image_size": (56,),
            "projector.scale_factor": (4,),
            "wa_layer_indexes": ((6,),),
        },
    ),
    (
        "minicpmv4_6",
        {"insert_layer_id": 0, "vision_config": SIZES},
        {"downsample_mode": "4x"},
        {"projector.scale_factor": (2,), "wa_layer_indexes": ((0,), 0)},
    ),
    (
        "mlp",
        {
            "vision_feature_layer": -2,
            "vision_config": {**SIZES, "model_type": "clip_vision_model"},
        },
        {},
        {"block_count": (3, 4), "activation": ("quick_gelu",)},
    ),
    ("gemma4v", {"vision_config": SIZES}, {}, {"image_size": (224,), "patch_size": (14,)}),
    (
        "gemma4a",
        {"audio_config": {"hidden_size": 32, "num_hidden_layers": 2}},
        {},
        {"feed_forward_length": (128,), "num_mel_bins": (128,)},
    ),
    (
        "voxtral",
        {"audio_config": WHISPER},
        {},
        {"projector.stack_factor": (4,), "attention.layer_norm_epsilon": (1e-5,)},
    ),
    ("qwen2a", {"audio_config": {"d_model": 32, "encoder_layers": 3}}, {}, {"block_count": (3,)}),
]


@pytest.mark.parametrize(("type_", "config", "preprocessor", "says"), CASES)
def test_a_right_conversion_says(
    type_: str,
    config: Mapping[str, Json],
    preprocessor: Mapping[str, Json],
    says: Mapping[str, object],
) -> None:
    encoder = "audio" if "audio_config" in config else "vision"
    wanted = expected_projector(config, {**COLOURS, **preprocessor}, type_, encoder)
    assert {key: wanted.values.get(key) for key in says} == says
    assert wanted.unknown == ""
    if encoder == "vision":
        assert wanted.values["image_std"] == ((0.5, 0.5, 0.5),)


def test_parts_of_a_thinker_are_found() -> None:
    config: Mapping[str, Json] = {"thinker_config": {"audio_config": {"d_model": 32}}}
    wanted = expected_projector(config, {}, "qwen2a", "audio")
    assert wanted.values["embedding_length"] == (32,)


def test_made_up_colours_are_not_compared() -> None:
    wanted = expected_projector({"vision_config": SIZES}, COLOURS, "gemma3nv", "vision")
    assert "image_mean" not in wanted.values


def test_unknown_colours_are_said_to_be_unknown() -> None:
    wanted = expected_projector({"vision_config": SIZES}, Absent("no file"), "lfm2", "vision")
    assert (wanted.unknown, "image_mean" in wanted.values) == ("no file", False)


@pytest.mark.parametrize(
    ("config", "types"),
    [
        ({"model_type": "gemma3"}, ("gemma3",)),
        ({"model_type": "llava", "vision_config": {"model_type": "pixtral"}}, ("pixtral",)),
        (
            {"model_type": "llava", "vision_config": {"model_type": "clip_vision_model"}},
            ("mlp", "ldp", "ldpv2"),
        ),
        ({"model_type": "unheard"}, ()),
    ],
)
def test_types_that_go_with_a_checkpoint(
    config: Mapping[str, Json], types: tuple[str, ...]
) -> None:
    assert projector_types(config) == types
