"""Faults of projectors and rerankers that people have published, made again in a small way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from companion_subjects import GEMMA, GEMMA_TENSORS, Tensors
from engine_subjects import ALL, audit
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Severity
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules.pkg.projector_blocks_uneven import PARTS
from llama_tensors import llama_tensors
from public_reports import rows
from rule_subjects import LLAMA
from test_companions import write, write_json

CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073]
CLIP_STD = [0.26862954, 0.26130258, 0.27577711]
TEXT: Mapping[str, FieldValue] = {
    "general.architecture": "llama",
    **LLAMA,
    "tokenizer.ggml.model": "none",
}


def text(folder: Path, name: str, keys: Mapping[str, FieldValue], width: int = 64) -> Path:
    sizes = llama_tensors(
        blocks=3, embedding=width, queries=64, keys=32, feed_forward=128, vocabulary=8
    )
    return write_gguf(folder / f"{name}.gguf", keys, sizes)


def bad(*subjects: SubjectReport) -> list[str]:
    return [
        found.rule
        for subject in subjects
        for found in subject.findings
        if found.severity is not Severity.INFO and found.rule.startswith("PKG")
    ]


@rows("mmp-001 mmp-002")
@pytest.mark.parametrize("width", [56, 80])
def test_the_projector_of_a_model_of_another_size(tmp_path: Path, width: int) -> None:
    # nonsense captions, or neither of the two loads
    model = text(tmp_path, "text", TEXT)
    sizes = {**GEMMA_TENSORS, "mm.input_projection.weight": (width, 32)}
    projector = write(tmp_path, "mmproj", GEMMA, sizes)
    assert bad(*audit_targets([str(tmp_path)], Mandate(rules=ALL)).subjects) == ["PKG036"]
    assert bad(audit(projector, against=model)) == ["PKG035"]


@rows("mmp-005")
def test_a_text_model_converted_as_one_that_sees_nothing(tmp_path: Path) -> None:
    # a fine-tune of an omni model as plain qwen3moe: 64 against 256
    keys: Mapping[str, FieldValue] = {
        "general.architecture": "qwen3moe",
        "qwen3moe.embedding_length": 64,
        "qwen3moe.block_count": 3,
    }
    text(tmp_path, "text", keys)
    deep: Tensors = {
        **{name: size for name, size in GEMMA_TENSORS.items() if not name.startswith("mm.")},
        "mm.0.weight": (128, 128),
        "mm.0.bias": (128,),
        "mm.2.weight": (128, 64),
        "mm.2.bias": (64,),
        "v.patch_embd.weight.1": (8, 8, 3, 32),
        **{f"v.deepstack.{index}.{part}": (128, 128) for index in (0, 1) for part in PARTS},
    }
    write(tmp_path, "mmproj", {**GEMMA, "clip.projector_type": "qwen3vl_merger"}, deep)
    assert bad(*audit_targets([str(tmp_path)], Mandate(rules=ALL)).subjects) == ["PKG036"]


@rows("mmp-007")
@pytest.mark.parametrize(
    ("std", "published", "found"),
    [
        (CLIP_MEAN, CLIP_STD, ["PKG038"]),
        (CLIP_STD, CLIP_STD, []),
        # right for SigLIP and its like
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5], []),
    ],
)
def test_the_mean_written_for_the_deviation(
    tmp_path: Path, std: list[float], published: list[float], found: list[str]
) -> None:
    mean = [0.5, 0.5, 0.5] if std == published == [0.5, 0.5, 0.5] else CLIP_MEAN
    config: Mapping[str, Json] = {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "vision_config": {
            "model_type": "pixtral",
            "hidden_act": "gelu",
            "hidden_size": 32,
            "image_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "patch_size": 8,
        },
        "text_config": {"model_type": "llama", "hidden_size": 64},
    }
    write_json(tmp_path / "hf", "config.json", config)
    colours: Mapping[str, Json] = {"image_mean": [*mean], "image_std": [*published]}
    write_json(tmp_path / "hf", "preprocessor_config.json", colours)
    tensors: Tensors = {
        **{name: size for name, size in GEMMA_TENSORS.items() if not name.startswith("mm.")},
        "mm.1.weight": (32, 64),
        "mm.2.weight": (64, 64),
        "v.token_embd.img_break": (64,),
    }
    keys: Mapping[str, FieldValue] = {
        **GEMMA,
        "clip.projector_type": "pixtral",
        "clip.vision.attention.layer_norm_epsilon": 1e-5,
        "clip.vision.image_mean": (ValueType.FLOAT32, mean),
        "clip.vision.image_std": (ValueType.FLOAT32, std),
    }
    file = write(tmp_path, "mmproj", keys, tensors)
    assert bad(audit(file, against=tmp_path / "hf")) == found


@rows("mmp-009")
def test_a_projector_without_a_type(tmp_path: Path) -> None:
    keys = {key: value for key, value in GEMMA.items() if key != "clip.projector_type"}
    assert bad(audit(write(tmp_path, "mmproj", keys, GEMMA_TENSORS))) == ["PKG031"]


@rows("emb-011 emb-012 emb-013")
@pytest.mark.parametrize(
    ("architecture", "labels", "found"),
    [
        # scores of 1e-20
        ("qwen3", None, ["PKG048"]),
        # asserts while ranking
        ("qwen3", 1, ["PKG048"]),
        ("qwen3vl", None, ["PKG048"]),
        ("qwen3", 2, []),
        ("qwen3vl", 2, []),
    ],
)
def test_a_reranker_without_its_head(
    tmp_path: Path, architecture: str, labels: int | None, found: list[str]
) -> None:
    keys: Mapping[str, FieldValue] = {
        "general.architecture": architecture,
        "general.name": "Qwen3 Reranker 0.6B",
        f"{architecture}.block_count": 3,
    }
    sizes = llama_tensors(
        blocks=3, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=8
    )
    head = [] if labels is None else [("cls.output.weight", (64, labels), "F16")]
    file = write_gguf(tmp_path / "reranker.gguf", keys, [*sizes, *head])
    assert bad(audit(file)) == found


@rows("emb-010")
def test_a_reranker_whose_pooler_the_converter_drops(tmp_path: Path) -> None:
    config: Mapping[str, Json] = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "id2label": {"0": "LABEL_0"},
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "vocab_size": 8,
    }
    write_json(tmp_path / "hf", "config.json", config)
    keys: Mapping[str, FieldValue] = {
        "general.architecture": "bert",
        "bert.block_count": 1,
        "bert.classifier.output_labels": (ValueType.STRING, ["LABEL_0"]),
    }
    tensors = {"blk.0.attn_q.weight": (64, 64), "cls.output.weight": (64, 1)}
    file = write(tmp_path, "reranker", keys, tensors)
    assert bad(audit(file, against=tmp_path / "hf")) == ["PKG049"]
    whole = write(tmp_path, "whole", keys, {**tensors, "cls.weight": (64, 64)})
    assert bad(audit(whole, against=tmp_path / "hf")) == []
