from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest

from adapter_subjects import MATRIX
from companion_subjects import companion
from gguf_audit.formats.gguf import read_gguf
from gguf_audit.limits import LIMITS
from gguf_audit.rule import Hit, NoEvidence, Outcome, Severity
from gguf_audit.sources import MemorySource
from gguf_audit.testing import TensorSpec, build_gguf
from gguf_audit.where import Where
from gguf_audit_rules.pkg.imatrix_incomplete import AGAIN
from gguf_audit_rules.pkg.imatrix_negative import check
from gguf_audit_rules.wt import _tensors
from rule_subjects import SETTINGS


def floats(name: str, *values: float) -> TensorSpec:
    return TensorSpec(name, (len(values),), "F32", struct.pack(f"<{len(values)}f", *values))


def said(tensors: Sequence[TensorSpec]) -> list[Outcome]:
    gguf = read_gguf(MemorySource("imatrix.gguf", build_gguf(MATRIX, tensors)))
    return list(check(companion(gguf, "imatrix"), SETTINGS))


RIGHT = [floats("blk.0.attn_q.weight.in_sum2", 1, 0, 2), floats("blk.0.attn_q.weight.counts", 256)]


def test_fires_for_a_sum_of_the_last_entry() -> None:
    name = "blk.1.attn_q.weight.in_sum2"
    tensors = [*RIGHT, floats(name, 1, 2, -3.5), floats("blk.1.attn_q.weight.counts", 256)]
    start = read_gguf(MemorySource("", build_gguf(MATRIX, tensors)))
    offset = start.files[0].data_offset + start.tensors[name].offset + 2 * 4
    assert said(tensors) == [
        Hit(
            message=f"needs nothing below zero, {name} has -3.5, value 2",
            where=Where(file="imatrix.gguf", tensor=name, offset=offset),
            expected="0 or more",
            actual=-3.5,
            level=Severity.ERROR,
            repair=AGAIN,
            also=(name,),
        )
    ]


def test_fires_once_for_all_entries() -> None:
    names = ["blk.1.attn_q.weight.counts", "blk.2.attn_q.weight.in_sum2"]
    [hit] = said([floats(names[0], -8), *RIGHT, floats(names[1], 1, -1)])
    assert isinstance(hit, Hit)
    assert hit.message == f"needs nothing below zero, {names[0]} has -8, value 0; so has {names[1]}"
    assert hit.also == tuple(names)


def test_silent_for_sums_of_values_that_may_be_negative() -> None:
    # An expert that no token came to, what has a sign, and what another rule tells.
    tensors = [
        floats("blk.0.ffn_up_exps.weight.counts", 0.0, -0.0, 8),
        floats("blk.0.attn_q.weight.in_sum", -1, 1),
        floats("blk.0.attn_q.weight.stats", -1),
        floats("blk.0.attn_q.weight.in_sum2", math.nan, -math.nan, math.inf),
    ]
    assert said([*RIGHT[1:], *tensors]) == []
    assert said([]) == []


def test_says_what_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    few = LIMITS._replace(floats_bytes=8)
    monkeypatch.setattr(_tensors, "LIMITS", few)
    tensors = [*RIGHT[1:], floats("blk.0.attn_q.weight.in_sum2", 1, 1, -1)]
    assert said(tensors) == [
        NoEvidence(
            "only 1 of 2 sums and counts were looked at, the small ones", kind="not-applicable"
        )
    ]
    monkeypatch.setattr(_tensors, "LIMITS", LIMITS._replace(all_floats_bytes=4))
    assert len(said(tensors)) == 1


def test_silent_about_what_is_no_f32() -> None:
    half = TensorSpec("blk.0.attn_q.weight.counts", (1,), "F16", b"\x00\xbc")
    assert [type(each) for each in said([half])] == [NoEvidence]
