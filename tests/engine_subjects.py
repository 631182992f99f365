"""What the engine is shown in tests: a small Llama, its checkpoint, rules that always speak."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Conversion, Model, Settings
from gguf_audit.mandate import Mandate
from gguf_audit.rule import (
    Hit,
    Need,
    OnConversion,
    OnModel,
    Outcome,
    Rule,
    Severity,
)
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit.where import Where
from gguf_audit_rules import load
from llama_tensors import llama_tensors
from rule_subjects import LLAMA

ALL = {rule.id: rule for rule in load()}


KEYS: dict[str, FieldValue] = {
    "general.architecture": "llama",
    **LLAMA,
    # a model without a vocabulary, which is how llama.cpp loads it
    "tokenizer.ggml.model": "none",
}
TENSORS = llama_tensors(blocks=3, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=8)
CONFIG: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 3,
    "max_position_embeddings": 8192,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 5e5,
    "vocab_size": 8,
}


def write_model(folder: Path) -> Path:
    """Write a sound Llama."""
    return write_gguf(folder / "model.gguf", KEYS, TENSORS)


def write_checkpoint(folder: Path) -> Path:
    """Write the folder of its checkpoint, a config and nothing else."""
    made = folder / "checkpoint"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG), "utf-8")
    return made


def card(folder: Path, *, published: bool, **changed: Json) -> str:
    """Write a reference card of the same checkpoint."""
    file = folder / "card.json"
    document = {"card": 1, "id": "org/model", "published": published}
    file.write_text(json.dumps({**document, "config": {**CONFIG, **changed}}), "utf-8")
    return str(file)


def audit(
    target: Path | str,
    *rules: Rule,
    against: Path | str | None = None,
    severities: Mapping[str, Severity] | None = None,
    lengths: tuple[int, ...] = (),
    require: frozenset[str] = frozenset(),
) -> SubjectReport:
    """Audit one model, with all rules unless some are given."""
    [subject] = audit_targets(
        [str(target)],
        Mandate(
            against=None if against is None else str(against),
            rules={rule.id: rule for rule in rules} if rules else ALL,
            severities=severities or {},
            lengths=lengths,
            require=require,
        ),
    ).subjects
    return subject


def hit(message: str, key: str | None = None, level: Severity = Severity.ERROR) -> Hit:
    return Hit(message=message, where=Where(key=key), level=level)


def rule(
    id_: str,
    *said: Outcome | Exception,
    defers_to: tuple[str, ...] = (),
    needs: frozenset[Need] = frozenset(),
    conversion: bool = False,
) -> Rule:
    """Return a rule that always says the same."""

    def spoken() -> Iterator[Outcome]:
        for outcome in said:
            if isinstance(outcome, Exception):
                raise outcome
            yield outcome

    def on_model(subject: Model, settings: Settings) -> Iterator[Outcome]:
        del subject, settings
        return spoken()

    def on_conversion(subject: Conversion, settings: Settings) -> Iterator[Outcome]:
        del subject, settings
        return spoken()

    return Rule(
        id=id_,
        name=id_.lower(),
        levels=tuple(Severity),
        check=OnConversion(on_conversion) if conversion else OnModel(on_model),
        needs=needs,
        defers_to=defers_to,
        authority="none",
    )
