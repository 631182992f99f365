from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Json
from gguf_audit.evidence import Conversion
from gguf_audit.gguf import Scalar
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.arch.built_in_differs import check
from rule_subjects import SETTINGS, checkpoint, conversion, layers


def gemma(architecture: str = "gemma3", **changes: Scalar) -> dict[str, Scalar]:
    """Return the keys of Gemma 3 27B, or of a model like it."""
    keys: dict[str, Scalar] = {
        "block_count": 62,
        "embedding_length": 5376,
        "attention.head_count": 32,
        "attention.head_count_kv": 16,
        "attention.key_length": 128,
        "attention.value_length": 128,
    }
    return {f"{architecture}.{name}": value for name, value in {**keys, **changes}.items()}


def held(keys: dict[str, Scalar], **config: Json) -> Conversion:
    return conversion({**keys}, keys, reference=checkpoint(config=config), layout=layers())


def test_fires_for_gemma_with_blocks_removed() -> None:
    keys = gemma(block_count=48)
    assert list(check(held(keys, query_pre_attn_scalar=168), SETTINGS)) == [
        Hit(
            message="needs queries scaled by 1/sqrt(168), llama.cpp scales those of gemma3 with "
            "48 blocks by 1/sqrt(128) whatever the file says",
            where=Where(key="gemma3.block_count"),
            expected=168,
            actual=128,
            level=Severity.INFO,
        )
    ]


def test_fires_for_llama_4_that_is_normalized_otherwise() -> None:
    keys: dict[str, Scalar] = {"llama4.block_count": 2, "llama4.expert_count": 16}
    text: dict[str, Json] = {"use_qk_norm": False}
    assert list(check(held(keys, text_config=text), SETTINGS)) == [
        Hit(
            message="needs queries and keys left as they are, with 16 experts they are normalized "
            "in llama.cpp whatever the file says",
            where=Where(key="llama4.expert_count"),
            expected=False,
            actual=True,
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    ("keys", "config"),
    [
        (gemma(), {"query_pre_attn_scalar": 168}),
        (gemma(), {"text_config": {"query_pre_attn_scalar": 168}}),
        (gemma(block_count=34), {"query_pre_attn_scalar": 128}),
        (gemma("gemma2", block_count=46), {"query_pre_attn_scalar": 168}),
        (gemma(block_count=48), {}),
        (gemma(block_count=48), {"query_pre_attn_scalar": True}),
        (gemma("llama", block_count=48), {"query_pre_attn_scalar": 168}),
        ({"llama4.expert_count": 16}, {"use_qk_norm": True}),
        ({"llama4.expert_count": 128}, {"use_qk_norm": False}),
        ({"llama4.block_count": 2}, {"use_qk_norm": False}),
        ({"qwen3.expert_count": 16}, {"use_qk_norm": False}),
    ],
)
def test_silent(keys: dict[str, Scalar], config: dict[str, Json]) -> None:
    assert list(check(held(keys, **config), SETTINGS)) == []


def test_goes_by_a_right_conversion() -> None:
    lost = {**gemma(), "gemma3.attention.key_length": 64}
    reference = checkpoint(config={"query_pre_attn_scalar": 168})
    subject = conversion({**lost}, gemma(), reference=reference, layout=layers())
    assert list(check(subject, SETTINGS)) == []


def test_silent_without_a_configuration_or_of_another_architecture() -> None:
    keys = gemma(block_count=48)
    assert list(check(conversion({**keys}, keys, layout=layers()), SETTINGS)) == []
    reference = checkpoint(config={"query_pre_attn_scalar": 168})
    other = conversion({**keys}, Absent("another architecture"), reference=reference)
    assert list(check(other, SETTINGS)) == []
