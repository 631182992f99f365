from __future__ import annotations

from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.layout import Full, Latent
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.latent_unpacked import check
from rule_subjects import LLAMA, SETTINGS, compared, conversion, layers

LATENT = Latent(kv_heads=1, key_length=576)
FULL = Full(kv_heads=16, key_length=192, value_length=128)
REPAIR = Reconvert(hint="made before llama.cpp could keep the latent")

#: DeepSeek-V2-Lite, as it was converted before MLA and as it is now.
LEGACY: dict[str, Scalar] = {
    "deepseek2.block_count": 27,
    "deepseek2.context_length": 163840,
    "deepseek2.embedding_length": 2048,
    "deepseek2.feed_forward_length": 10944,
    "deepseek2.attention.head_count": 16,
    "deepseek2.attention.head_count_kv": 16,
    "deepseek2.attention.key_length": 192,
    "deepseek2.attention.value_length": 128,
    "deepseek2.attention.kv_lora_rank": 512,
    "deepseek2.attention.layer_norm_rms_epsilon": 1e-6,
    "deepseek2.rope.dimension_count": 64,
    "deepseek2.vocab_size": 102400,
    "deepseek2.leading_dense_block_count": 1,
    "deepseek2.expert_count": 64,
    "deepseek2.expert_used_count": 6,
    "deepseek2.expert_shared_count": 2,
    "deepseek2.expert_feed_forward_length": 1408,
    "deepseek2.expert_weights_scale": 1.0,
}
RIGHT = {
    **LEGACY,
    "deepseek2.attention.head_count_kv": 1,
    "deepseek2.attention.key_length": 576,
    "deepseek2.attention.value_length": 512,
    "deepseek2.attention.key_length_mla": 192,
    "deepseek2.attention.value_length_mla": 128,
}


def also(architecture: str) -> tuple[str, ...]:
    """Return the other keys that an unpacked file has otherwise."""
    names = ("value_length_mla", "head_count_kv", "key_length", "value_length")
    return tuple(f"{architecture}.attention.{name}" for name in names)


def test_silent_for_a_right_conversion() -> None:
    assert list(check(conversion(RIGHT, RIGHT), SETTINGS)) == []


def test_silent_for_models_without_a_latent() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []
    # MiniCPM3 has a latent, but llama.cpp unpacks it for every conversion.
    assert list(check(compared(layers(FULL, FULL), layers(FULL, FULL)), SETTINGS)) == []


def test_silent_for_a_latent_of_another_size() -> None:
    other = Latent(kv_heads=1, key_length=320)
    assert list(check(compared(layers(other), layers(LATENT)), SETTINGS)) == []


def test_fires_for_a_legacy_file() -> None:
    assert list(check(conversion(LEGACY, RIGHT), SETTINGS)) == [
        Hit(
            message="needs a latent of 576 elements per token on all 27 layers, this file keeps "
            "16 heads of 192 + 128 elements: 8,640 MiB of cache at 32768 tokens, equal to full "
            "attention, where a right conversion keeps 972 MiB",
            where=Where(key="deepseek2.attention.key_length_mla", layer=0),
            expected=576,
            actual=5120,
            unit="element",
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=REPAIR,
            also=also("deepseek2"),
        )
    ]


def test_fires_for_the_last_layer() -> None:
    subject = compared(layers(LATENT, LATENT, FULL), layers(LATENT, LATENT, LATENT))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs a latent of 576 elements per token on layer 2, this file keeps "
            "16 heads of 192 + 128 elements",
            where=Where(key="odd.attention.key_length_mla", layer=2),
            expected=576,
            actual=5120,
            unit="element",
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=REPAIR,
            also=also("odd"),
        )
    ]


def test_a_key_without_effect_is_no_default() -> None:
    one_of_two = {**LEGACY, "deepseek2.attention.key_length_mla": 192}
    [hit] = list(check(conversion(one_of_two, RIGHT), SETTINGS))
    assert isinstance(hit, Hit)
    assert hit.origin is Origin.KEY
