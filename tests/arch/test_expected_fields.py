"""What the converter writes for a config.json, and what it can't be asked to."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_audit.arch import expected_fields, ideal_layout
from gguf_audit.checkpoint import Json
from gguf_audit.errors import AuditError, MalformedError
from gguf_audit.fields import Fields
from gguf_audit.gguf import ValueType
from gguf_audit.layout import CacheLayout
from model_configs import (
    DEEPSEEK_V2_LITE,
    GEMMA_3_4B,
    GEMMA_3_270M,
    GPT_OSS_20B,
    MISTRAL_7B_V01,
    QWEN3_5_9B,
    QWEN3_8B,
)

CONFIGS: Mapping[str, Mapping[str, Json]] = {
    "deepseek2": DEEPSEEK_V2_LITE,
    "gemma3": GEMMA_3_270M,
    "gpt-oss": GPT_OSS_20B,
    "llama": MISTRAL_7B_V01,
    "qwen3": QWEN3_8B,
    "qwen35": QWEN3_5_9B,
}


def written(config: Mapping[str, Json]) -> dict[str, object]:
    """Return what is written, by keys without their prefix."""
    fields = expected_fields(config)
    prefix = f"{fields.architecture}."
    return {field.key.removeprefix(prefix): field.value for field in fields}


@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_a_class_becomes_an_architecture(architecture: str) -> None:
    fields = expected_fields(CONFIGS[architecture])
    assert fields.architecture == architecture
    assert all(field.key.startswith(f"{architecture}.") for field in fields)


def test_every_key_of_a_plain_model() -> None:
    assert written(QWEN3_8B) == {
        "block_count": 36,
        "context_length": 40960,
        "embedding_length": 4096,
        "feed_forward_length": 12288,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "attention.layer_norm_rms_epsilon": pytest.approx(1e-6),
        "rope.freq_base": 1e6,
    }


def test_mistral_is_written_without_its_window() -> None:
    keys = written(MISTRAL_7B_V01)
    assert "attention.sliding_window" not in keys
    assert keys["vocab_size"] == 32000
    assert keys["rope.dimension_count"] == 128


def test_what_the_configuration_class_fills_in_is_written() -> None:
    keys = written(GEMMA_3_4B)
    assert keys["attention.head_count"] == 8
    assert keys["attention.key_length"] == 256
    assert keys["context_length"] == 131072
    assert keys["attention.sliding_window"] == 1024
    assert keys["rope.freq_base_swa"] == 10000.0
    assert keys["rope.scaling.factor"] == 8.0


def test_the_text_part_wins_over_the_root() -> None:
    config: dict[str, Json] = {**GEMMA_3_4B, "hidden_size": 7, "num_hidden_layers": 7}
    assert written(config) == written(GEMMA_3_4B)


def test_a_latent_is_written_packed() -> None:
    keys = written(DEEPSEEK_V2_LITE)
    assert keys["attention.head_count_kv"] == 1
    assert keys["attention.key_length"] == 512 + 64
    assert keys["attention.value_length"] == 512
    assert keys["attention.key_length_mla"] == 128 + 64
    assert keys["attention.value_length_mla"] == 128
    assert keys["rope.scaling.yarn_log_multiplier"] == pytest.approx(0.0707)


def test_values_have_the_types_of_the_converter() -> None:
    fields = expected_fields(QWEN3_5_9B)
    types = {
        "block_count": ValueType.UINT32,
        "rope.freq_base": ValueType.FLOAT32,
        "rope.dimension_sections": ValueType.ARRAY,
    }
    for name, type_ in types.items():
        found = fields.find(name)
        assert found is not None
        assert found.type is type_
    kind = expected_fields(DEEPSEEK_V2_LITE).find("rope.scaling.type")
    assert kind is not None
    assert (kind.type, kind.value) == (ValueType.STRING, "yarn")


def test_floats_are_what_32_bits_hold() -> None:
    epsilon = expected_fields(QWEN3_8B).number("attention.layer_norm_rms_epsilon")
    assert epsilon == 9.999999974752427e-07


def test_a_draft_head_may_be_left_out() -> None:
    fields = expected_fields(QWEN3_5_9B)
    assert fields.integer("block_count") == 33
    assert fields.alternatives("block_count") == (32,)
    assert fields.alternatives("nextn_predict_layers") == (None,)
    assert fields.alternatives("embedding_length") == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_hidden_layers", None),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 0),
        ("num_hidden_layers", 36.0),
        ("num_hidden_layers", "36"),
        ("num_hidden_layers", True),
        ("num_hidden_layers", 10**9),
        ("hidden_size", 2**40),
        ("head_dim", [128]),
        ("num_key_value_heads", {"a": 1}),
        ("rms_norm_eps", float("nan")),
        ("rms_norm_eps", float("inf")),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", 10**400),
        ("rope_theta", "1000000"),
    ],
)
def test_a_value_that_cant_be_used_is_named(name: str, value: Json) -> None:
    with pytest.raises(MalformedError, match=name) as caught:
        expected_fields({**QWEN3_8B, name: value})
    assert caught.value.where.file == "config.json"
    assert caught.value.where.key == name


def test_a_long_value_is_cut() -> None:
    with pytest.raises(MalformedError) as caught:
        expected_fields({**QWEN3_8B, "head_dim": "9" * 100_000})
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("share", [1e39, -1e39, 1.8e308, float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["rope_theta", "rms_norm_eps"])
def test_a_number_that_no_file_can_hold(name: str, share: float) -> None:
    with pytest.raises(MalformedError) as caught:
        expected_fields({**QWEN3_8B, name: share})
    assert caught.value.where.key == name


def test_a_share_that_no_file_can_hold() -> None:
    # Times a length it would be infinite, and no integer.
    config: dict[str, Json] = {**QWEN3_8B, "architectures": ["Glm4ForCausalLM"]}
    with pytest.raises(MalformedError) as caught:
        expected_fields({**config, "partial_rotary_factor": 1e308})
    assert caught.value.where.key == "partial_rotary_factor"


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["full_attention", "sliding_attention", "yarn", "linear", "llama3"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def spoilt(draw: st.DrawFn) -> Mapping[str, Json]:
    """A real config in which one value is replaced by anything or missing."""
    config: dict[str, Json] = json.loads(
        json.dumps(CONFIGS[draw(st.sampled_from(sorted(CONFIGS)))])
    )
    place = config
    name: str = draw(st.sampled_from(sorted(place)))
    while isinstance(inner := place[name], dict) and inner and draw(st.booleans()):
        place = inner
        name = draw(st.sampled_from(sorted(inner)))
    if draw(st.booleans()):
        place[name] = draw(junk)
    else:
        del place[name]
    return config


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoilt())
def test_a_spoilt_config_is_converted_or_an_error_of_ours(config: Mapping[str, Json]) -> None:
    with contextlib.suppress(AuditError):
        assert isinstance(expected_fields(config), Fields)
    with contextlib.suppress(AuditError):
        assert isinstance(ideal_layout(config), CacheLayout)
