"""What llama.cpp reads for which architecture, and the defaults that it works out."""

from __future__ import annotations

import pytest

from gguf_audit.arch import Kind, architectures, effective, kind, reads, rotates
from gguf_audit.arch._readers import BOTH_NORMS, READERS
from gguf_audit.arch._reads import BY_ALL, FLAGS, NUMBERS, OTHERS, WITHOUT_ROPE
from gguf_audit.fields import Fields
from gguf_audit.gguf import Scalar

KNOWN = frozenset(name for found in architectures() for name in found.names)
LINES = READERS.replace("\n    ", " ").strip().splitlines()


def test_every_reader_is_an_architecture() -> None:
    readers = {name for line in LINES for name in line.partition(" : ")[2].split()}
    assert readers <= KNOWN
    assert BOTH_NORMS <= KNOWN
    assert WITHOUT_ROPE <= KNOWN


def test_no_key_is_listed_twice() -> None:
    names = [name for line in LINES for name in line.partition(" : ")[0].split()]
    assert len(names) == len(set(names))
    assert not BY_ALL & set(names)


def test_every_key_with_a_type_is_read_by_some() -> None:
    typed = {*NUMBERS, *FLAGS, *(name for names in OTHERS.values() for name in names)}
    assert [name for name in typed if not any(reads(found, name) for found in KNOWN)] == []


@pytest.mark.parametrize(
    ("architecture", "name", "expected"),
    [
        ("llama", "block_count", True),
        ("llama", "attention.layer_norm_rms_epsilon", True),
        ("llama", "attention.layer_norm_epsilon", False),
        ("bert", "attention.layer_norm_epsilon", True),
        ("bert", "attention.layer_norm_rms_epsilon", False),
        ("nemotron_h", "attention.layer_norm_rms_epsilon", True),
        ("nemotron_h", "attention.layer_norm_epsilon", True),
        ("mimo2", "attention.value_scale", True),
        ("qwen3moe", "expert_weights_norm", False),
        ("deepseek2", "expert_weights_norm", True),
        ("llama", "rope.scaling.finetuned", False),
        ("granite", "rope.scaling.finetuned", True),
        ("llama", "no.such.key", False),
    ],
)
def test_reads(architecture: str, name: str, expected: bool) -> None:
    assert reads(architecture, name) is expected


def test_kinds() -> None:
    assert kind("block_count") is Kind.COUNT
    assert kind("rope.freq_base") is Kind.NUMBER
    assert kind("expert_weights_norm") is Kind.FLAG
    assert kind("attention.head_count_kv") is Kind.COUNTS
    assert kind("rope.scaling.type") is Kind.TEXT


def test_rotates() -> None:
    assert rotates("llama")
    assert not rotates("mamba")


@pytest.mark.parametrize(
    ("architecture", "name", "keys", "expected"),
    [
        ("qwen3moe", "expert_feed_forward_length", {"expert_used_count": 4}, 256),
        ("qwen3moe", "expert_feed_forward_length", {}, 1024),
        ("grok", "expert_feed_forward_length", {"expert_used_count": 4}, 1024),
        ("gemma4", "expert_feed_forward_length", {"expert_used_count": 4}, 0),
        ("qwen2moe", "expert_shared_feed_forward_length", {}, 1024),
        ("hy_v3", "expert_shared_feed_forward_length", {"expert_feed_forward_length": 96}, 96),
        (
            "laguna",
            "expert_shared_feed_forward_length",
            {"expert_feed_forward_length": 96, "expert_shared_count": 2},
            192,
        ),
        ("granite", "expert_shared_feed_forward_length", {}, 0),
        ("deepseek2", "expert_gating_func", {"block_count": 61}, 1),
        ("deepseek2", "expert_gating_func", {"block_count": 48, "vocab_size": 154880}, 2),
        (
            "deepseek2",
            "expert_gating_func",
            {"block_count": 48, "nextn_predict_layers": 1, "vocab_size": 154880},
            2,
        ),
        ("glm5-next", "swiglu_clamp_shexp", {"swiglu_clamp_exp": 7.0}, 7.0),
        ("step35", "swiglu_clamp_shexp", {"swiglu_clamp_exp": 7.0}, 0.0),
        ("minicpm", "logit_scale", {"embedding_length": 1024}, 0.25),
        ("minicpm", "residual_scale", {"block_count": 49}, 0.2),
        ("granite", "residual_scale", {"block_count": 49}, 0.0),
        (
            "nemotron_h",
            "attention.layer_norm_rms_epsilon",
            {"attention.layer_norm_epsilon": 1e-6},
            1e-6,
        ),
        ("rwkv7", "attention.layer_norm_rms_epsilon", {}, 0.0),
        ("llama", "attention.layer_norm_rms_epsilon", {}, None),
        ("granite", "rope.scaling.finetuned", {}, True),
        ("grok", "rope.scaling.yarn_beta_fast", {}, 8.0),
        ("llada", "attention.causal", {}, False),
        ("glm4", "rope.dimension_sections", {}, (0, 0, 0, 0)),
    ],
)
def test_a_default_that_is_worked_out(
    architecture: str, name: str, keys: dict[str, Scalar], expected: object
) -> None:
    values: dict[str, Scalar] = {f"{architecture}.feed_forward_length": 1024}
    values |= {f"{architecture}.{key}": value for key, value in keys.items()}
    found = effective(Fields.of(architecture, values), name)
    value = None if found is None else found.value
    assert value == pytest.approx(expected) if isinstance(expected, float) else value == expected


def test_arrays_give_their_widest_block() -> None:
    fields = Fields.of(
        "qwen3moe",
        {"qwen3moe.feed_forward_length": (0, 1024), "qwen3moe.expert_used_count": (4, 4)},
    )
    found = effective(fields, "expert_feed_forward_length")
    assert found is not None
    assert found.value == 256


def test_a_vocabulary_is_counted_where_no_key_gives_its_size() -> None:
    fields = Fields.of(
        "deepseek2",
        {"deepseek2.block_count": 47, "tokenizer.ggml.tokens": ("x",) * 154880},
    )
    found = effective(fields, "expert_gating_func")
    assert found is not None
    assert found.value == 2
