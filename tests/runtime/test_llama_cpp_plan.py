"""What llama.cpp reserves, against amounts that llama.cpp itself reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.arch import expected_fields, llama_model
from gguf_audit.checkpoint import Json
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.gguf import Scalar
from gguf_audit.runtime.llama_cpp import ELEMENT_TYPES, full_attention_bytes, plan
from model_configs import (
    DEEPSEEK_V2_LITE,
    GEMMA_3_4B,
    GEMMA_3_270M,
    GPT_OSS_20B,
    MISTRAL_7B_V03,
    QWEN3_5_9B,
    QWEN3_8B,
)

MIB = 2**20
Config = Mapping[str, Json]

#: The four caches that a model can have several of.
MODELS = {
    "full": QWEN3_8B,
    "window": GEMMA_3_270M,
    "sinks": GPT_OSS_20B,
    "state": QWEN3_5_9B,
    "latent": DEEPSEEK_V2_LITE,
}


def values(config: Config) -> dict[str, Scalar | tuple[Scalar, ...]]:
    found: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for field in expected_fields(config):
        assert isinstance(field.value, Scalar | tuple)
        found[field.key] = field.value
    return found


def legacy_deepseek() -> Fields:
    """Return DeepSeek-V2-Lite as files were before latents were kept packed."""
    kept = values(DEEPSEEK_V2_LITE) | {
        "deepseek2.attention.head_count_kv": 16,
        "deepseek2.attention.key_length": 192,
        "deepseek2.attention.value_length": 128,
    }
    del kept["deepseek2.attention.key_length_mla"]
    del kept["deepseek2.attention.value_length_mla"]
    return Fields.of("deepseek2", kept)


@pytest.mark.parametrize(
    ("config", "settings", "mebibytes"),
    [
        (QWEN3_8B, {"context": 4096}, 576),
        (QWEN3_8B, {"context": 32768}, 4608),
        (QWEN3_8B, {"context": 131072}, 18432),
        (MISTRAL_7B_V03, {"context": 32768}, 4096),
        (GEMMA_3_4B, {"context": 32768}, 814),
        (GEMMA_3_4B, {"context": 32768, "swa_full": True}, 4352),
        (GEMMA_3_4B, {"context": 32768, "parallel": 4, "kv_unified": True}, 1162),
        (GEMMA_3_4B, {"context": 32768, "parallel": 4}, 1336),
        (GEMMA_3_4B, {"context": 32768, "ubatch": 2048}, 988),
        (GPT_OSS_20B, {"context": 32768}, 786),
        (QWEN3_5_9B, {"context": 32768}, 1024 + 50.25),
        (
            QWEN3_5_9B,
            {"context": 32768, "cache_type_k": "q8_0", "cache_type_v": "q8_0"},
            544 + 50.25,
        ),
        (DEEPSEEK_V2_LITE, {"context": 32768}, 972),
        (GEMMA_3_270M, {"context": 32768}, 111),
    ],
)
def test_a_real_model_takes_what_llama_cpp_reported(
    config: Config, settings: dict[str, Any], mebibytes: float
) -> None:
    assert plan(expected_fields(config), **settings).total_bytes == mebibytes * MIB


def test_a_lost_window_makes_every_layer_keep_every_token() -> None:
    kept = values(GEMMA_3_270M)
    del kept["gemma3.attention.sliding_window"]
    assert plan(Fields.of("gemma3", kept), context=32768).total_bytes == 576 * MIB


def test_a_latent_costs_a_ninth_of_what_it_stands_for() -> None:
    latent = expected_fields(DEEPSEEK_V2_LITE)
    assert plan(latent, context=32768).total_bytes == 1019215872
    assert full_attention_bytes(latent, 32768) == 9059696640


def test_a_legacy_deepseek_keeps_unpacked_heads() -> None:
    legacy = legacy_deepseek()
    assert plan(legacy, context=32768).total_bytes == 9059696640
    assert full_attention_bytes(legacy, 32768) == 9059696640


def test_full_attention_ignores_windows_and_states() -> None:
    assert full_attention_bytes(expected_fields(GEMMA_3_4B), 32768) == 4352 * MIB
    assert full_attention_bytes(expected_fields(QWEN3_5_9B), 32768) == 1024 * MIB


def test_a_plan_names_its_caches() -> None:
    caches = plan(expected_fields(GEMMA_3_270M), context=4096).caches
    assert [(cache.label, cache.layers, cache.cells) for cache in caches] == [
        ("non-SWA", 3, 4096),
        ("SWA", 15, 1024),
    ]
    assert all(cache.key_bytes == cache.value_bytes for cache in caches)


def test_a_state_has_a_row_for_every_sequence() -> None:
    one = plan(expected_fields(QWEN3_5_9B), context=4096).caches[1]
    four = plan(expected_fields(QWEN3_5_9B), context=4096, parallel=4).caches[1]
    assert (one.label, one.layers, one.cells) == ("recurrent", 24, 1)
    assert four.bytes == 4 * one.bytes


def test_a_latent_keeps_no_values() -> None:
    [cache] = plan(expected_fields(DEEPSEEK_V2_LITE), context=4096).caches
    assert cache.value_bytes == 0


def test_settings_say_which_context_was_meant() -> None:
    settings = plan(expected_fields(QWEN3_8B), context=0).settings
    assert settings["context"] == 40960


def test_a_context_is_padded() -> None:
    fields = expected_fields(QWEN3_8B)
    assert plan(fields, context=4000).total_bytes == plan(fields, context=4096).total_bytes


def test_sequences_share_a_context() -> None:
    fields = expected_fields(QWEN3_8B)
    [cache] = plan(fields, context=4096, parallel=3).caches
    assert (cache.cells, cache.streams) == (1536, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cache_type_k": "q3_k"}, "no type for a cache"),
        ({"cache_type_v": "q8_0", "flash_attn": "off"}, "flash attention"),
        ({"parallel": 300}, "at most 256"),
        ({"batch": 0, "ubatch": 0}, "can't both be 0"),
    ],
)
def test_settings_that_llama_cpp_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        plan(expected_fields(QWEN3_8B), context=4096, **settings)
    assert caught.value.kind == "refused"


def test_a_head_must_be_a_whole_number_of_blocks() -> None:
    kept = values(QWEN3_8B)
    kept["qwen3.attention.key_length"] = 80
    fields = Fields.of("qwen3", kept)
    assert plan(fields, context=4096).total_bytes
    with pytest.raises(Refused, match="80 elements"):
        plan(fields, context=4096, cache_type_k="q8_0")
    assert plan(fields, context=4096, cache_type_k="q8_0", flash_attn="off").total_bytes


def test_keys_and_values_of_a_latent_are_of_one_type() -> None:
    with pytest.raises(Refused, match="alike"):
        plan(expected_fields(DEEPSEEK_V2_LITE), context=4096, cache_type_k="q8_0")


def test_no_context_at_all_is_refused() -> None:
    kept = values(QWEN3_8B) | {"qwen3.context_length": 0}
    with pytest.raises(Refused, match="can't both be 0"):
        plan(Fields.of("qwen3", kept), context=0)


names = st.sampled_from(sorted(MODELS))
tokens = st.integers(1, 2**20)
cache_types = st.sampled_from(sorted(ELEMENT_TYPES))


@given(names, tokens, tokens, st.integers(1, 8), st.booleans())
def test_more_context_never_takes_less(
    name: str, first: int, second: int, parallel: int, unified: bool
) -> None:
    model = llama_model(expected_fields(MODELS[name]))
    less, more = (
        plan(model, context=tokens, parallel=parallel, kv_unified=unified).total_bytes
        for tokens in sorted((first, second))
    )
    assert less <= more


@given(names, tokens, st.integers(1, 4096), cache_types)
def test_a_window_never_takes_more_than_no_window(
    name: str, context: int, ubatch: int, cache_type: str
) -> None:
    model = llama_model(expected_fields(MODELS[name]))
    windowed, full = (
        plan(
            model,
            context=context,
            ubatch=ubatch,
            cache_type_k=cache_type,
            cache_type_v=cache_type,
            swa_full=swa_full,
        ).total_bytes
        for swa_full in (False, True)
    )
    assert windowed <= full


@given(names, tokens)
def test_a_total_is_the_sum_of_its_caches(name: str, context: int) -> None:
    found = plan(expected_fields(MODELS[name]), context=context)
    assert found.total_bytes == sum(cache.key_bytes + cache.value_bytes for cache in found.caches)


@given(st.sampled_from(["full", "window", "sinks"]), st.integers(1, 4096))
def test_full_attention_is_what_a_plan_without_windows_takes(name: str, blocks: int) -> None:
    model = llama_model(expected_fields(MODELS[name]))
    tokens = 256 * blocks
    planned = plan(model, context=tokens, swa_full=True).total_bytes
    assert planned == full_attention_bytes(model, tokens)
