"""A key may hold anything: no rule on a file by itself takes it for what it should be."""

from __future__ import annotations

import pytest

from gguf_audit import arch
from gguf_audit.errors import AuditError
from gguf_audit.evidence import Settings
from gguf_audit.gathering import gather
from gguf_audit.gguf import ValueType
from gguf_audit.rule import OnModel
from gguf_audit.testing import FieldValue, TensorSpec, make_gguf
from gguf_audit_rules import load

SETTINGS = Settings(lengths=(4096,))
RULES = [rule for rule in load() if isinstance(rule.check, OnModel)]
#: What most architectures read.
KEYS: dict[str, FieldValue] = {
    "block_count": 4,
    "context_length": 4096,
    "embedding_length": 64,
    "feed_forward_length": 128,
    "vocab_size": 16,
    "expert_count": 4,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 16,
    "attention.value_length": 16,
    "attention.sliding_window": 512,
    "attention.sliding_window_pattern": 4,
    "attention.kv_lora_rank": 32,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.dimension_count": 16,
    "rope.freq_base": 10000.0,
    "rope.scaling.type": "linear",
    "rope.scaling.factor": 2.0,
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 16,
}
VALUES: list[FieldValue] = [
    (ValueType.INT32, [1, 2, 3]),
    ["a", "b"],
    "text",
    float("nan"),
]


@pytest.mark.parametrize("key", [*KEYS, "general.file_type", "tokenizer.ggml.model"])
def test_no_rule_crashes_over_any_value(key: str) -> None:
    crashed: list[str] = []
    for name in sorted({each.names[0] for each in arch.architectures()}):
        known = {f"{name}.{each}": value for each, value in KEYS.items()}
        for value in VALUES:
            full = key if key.startswith(("general.", "tokenizer.")) else f"{name}.{key}"
            gguf = make_gguf(
                {"general.architecture": name, **known, full: value},
                [TensorSpec("token_embd.weight", (64, 16))],
            )
            model = gather(gguf, "any", None).model
            for rule in RULES:
                assert isinstance(rule.check, OnModel)
                try:
                    list(rule.check.check(model, SETTINGS))
                except AuditError:
                    pass
                except Exception as error:
                    crashed.append(f"{rule.id} on {full} = {value!r}: {error!r}")
    assert crashed == []
