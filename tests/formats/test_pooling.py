"""A sentence transformer's folder says how it pools, as the converter reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from gguf_audit import expectation
from gguf_audit.checkpoint import Checkpoint, Json
from gguf_audit.errors import MalformedError
from gguf_audit.formats.checkpoint import read_checkpoint
from gguf_audit.parts import Absent
from gguf_audit.sources import MemoryTree

MODULES: Json = [
    {"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Pooling", "type": "sentence_transformers.models.Pooling"},
]
QWEN3: Json = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 32,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 48,
}


def checkpoint(
    files: Mapping[str, Json], *, config: Json = QWEN3, absent: frozenset[str] | None = None
) -> Checkpoint:
    contents = {name: json.dumps(file).encode() for name, file in files.items()}
    contents["config.json"] = json.dumps(config).encode()
    return read_checkpoint(MemoryTree(contents), id="x", absent=absent)


@pytest.mark.parametrize(
    ("pooling", "found"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_lasttoken": True}, 1),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, 2),
        ({"pooling_mode_lasttoken": True}, 3),
        ({"pooling_mode": "mean"}, 1),
        ({"pooling_mode": "cls"}, 2),
        ({"pooling_mode": "lasttoken"}, 3),
        (
            {"pooling_mode_max_tokens": True},
            Absent("the converter knows no pooling as in 1_Pooling/config.json"),
        ),
        (
            {"pooling_mode": ["mean"]},
            Absent("the converter knows no pooling as in 1_Pooling/config.json"),
        ),
    ],
)
def test_reads_the_first_pooling(pooling: Json, found: int | Absent) -> None:
    files = {"modules.json": MODULES, "1_Pooling/config.json": pooling}
    assert checkpoint(files).load_pooling() == found


def test_says_what_is_not_known() -> None:
    assert checkpoint({}).load_pooling() is None
    assert (
        checkpoint({"modules.json": [{"path": "", "type": "Transformer"}, 1]}).load_pooling()
        is None
    )
    gone = checkpoint({"modules.json": MODULES}).load_pooling()
    assert gone == Absent("1_Pooling/config.json isn't at hand")
    cached = checkpoint({}, absent=frozenset()).load_pooling()
    assert cached == Absent("modules.json isn't in the local Hub cache")
    with pytest.raises(MalformedError, match=r"^modules.json has to be a list$"):
        checkpoint({"modules.json": {}}).load_pooling()


def test_a_right_conversion_pools_the_same_way() -> None:
    files: dict[str, Json] = {
        "modules.json": MODULES,
        "1_Pooling/config.json": {"pooling_mode": "lasttoken"},
    }
    embedder = expectation.expected_fields(checkpoint(files))
    assert (embedder.integer("pooling_type"), embedder.alternatives("pooling_type")) == (3, ())
    # A chat model has none, and where nobody knows any is right.
    plain = expectation.expected_fields(checkpoint({}))
    assert (plain.integer("pooling_type"), plain.alternatives("pooling_type")) == (None, ())
    unknown = expectation.expected_fields(checkpoint({}, absent=frozenset()))
    assert unknown.alternatives("pooling_type") == (1, 2, 3)


def test_a_classifier_may_be_a_reranker() -> None:
    bert: Json = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "hidden_size": 32,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": 48,
    }
    files: dict[str, Json] = {
        "modules.json": MODULES,
        "1_Pooling/config.json": {"pooling_mode": "cls"},
    }
    fields = expectation.expected_fields(checkpoint(files, config=bert))
    assert (fields.integer("pooling_type"), fields.alternatives("pooling_type")) == (2, (4,))
