"""What an architecture needs of its own, whatever runs it."""

from __future__ import annotations

import pytest

from gguf_audit.arch import expected_fields, ideal_layout
from gguf_audit.checkpoint import Json
from gguf_audit.errors import AuditError, MalformedError, UnsupportedError
from gguf_audit.layout import Full, Latent, Recurrent, Sliding, Store
from model_configs import (
    DEEPSEEK_V2_LITE,
    GEMMA_3_4B,
    GEMMA_3_270M,
    GPT_OSS_20B,
    MISTRAL_7B_V01,
    MISTRAL_7B_V03,
    QWEN3_5_9B,
    QWEN3_8B,
    periodic,
)


def stores(config: dict[str, Json]) -> list[Store]:
    return [store for _, store in ideal_layout(config).stores()]


def test_a_plain_model_keeps_every_token() -> None:
    assert stores(QWEN3_8B) == [Full(kv_heads=8, key_length=128, value_length=128)] * 36
    assert stores(MISTRAL_7B_V03) == [Full(kv_heads=8, key_length=128, value_length=128)] * 32


def test_the_window_of_mistral_counts_though_llama_cpp_ignores_it() -> None:
    window = Sliding(kv_heads=8, key_length=128, value_length=128, window_tokens=4096)
    assert stores(MISTRAL_7B_V01) == [window] * 32


@pytest.mark.parametrize(
    ("config", "pattern", "window"),
    [
        (GEMMA_3_270M, "SSSSSF" * 3, 512),
        (GEMMA_3_4B, "SSSSSF" * 5 + "SSSS", 1024),
        (GPT_OSS_20B, "SF" * 12, 128),
    ],
)
def test_windows_are_where_the_config_says(
    config: dict[str, Json], pattern: str, window: int
) -> None:
    found = stores(config)
    assert "".join("S" if isinstance(store, Sliding) else "F" for store in found) == pattern
    assert {store.window_tokens for store in found if isinstance(store, Sliding)} == {window}


def test_listed_layers_win_over_a_period() -> None:
    found = stores({**GEMMA_3_270M, "layer_types": periodic(2, 18)})
    assert sum(isinstance(store, Full) for store in found) == 9


def test_a_latent_is_kept_packed() -> None:
    assert stores(DEEPSEEK_V2_LITE) == [Latent(kv_heads=1, key_length=576)] * 27


def test_states_have_the_types_of_the_model() -> None:
    found = stores(QWEN3_5_9B)
    assert [isinstance(store, Full) for store in found] == [False, False, False, True] * 8
    state = found[0]
    assert isinstance(state, Recurrent)
    assert [(part.name, part.elements, part.type) for part in state.parts] == [
        ("conv", 3 * (2 * 16 * 128 + 32 * 128), "bf16"),
        ("ssm", 32 * 128 * 128, "f32"),
    ]


def test_a_class_that_nobody_converts_has_a_need_all_the_same() -> None:
    config: dict[str, Json] = {**MISTRAL_7B_V01, "architectures": ["MistralModel"]}
    assert ideal_layout(config) == ideal_layout(MISTRAL_7B_V01)
    with pytest.raises(UnsupportedError, match="doesn't take MistralModel"):
        expected_fields(config)


def test_a_list_of_layers_must_be_as_long_as_the_model() -> None:
    with pytest.raises(MalformedError, match="layer_types"):
        stores({**GEMMA_3_270M, "layer_types": periodic(6, 17)})


@pytest.mark.parametrize("value", [0, -5, 2**70, None, "many"])
def test_a_hostile_layer_count_is_never_counted_to(value: Json) -> None:
    with pytest.raises(AuditError, match="num_hidden_layers"):
        stores({**QWEN3_8B, "num_hidden_layers": value})
