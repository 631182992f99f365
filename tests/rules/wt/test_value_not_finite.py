from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest

from gguf_audit.formats.gguf import read_gguf
from gguf_audit.limits import LIMITS
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.sources import MemorySource
from gguf_audit.testing import TensorSpec, build_gguf
from gguf_audit.where import Where
from gguf_audit_rules.wt import _tensors
from gguf_audit_rules.wt.value_not_finite import check
from rule_subjects import LLAMA, SETTINGS, model_of

NAN, INF = math.nan, math.inf
REPAIR = Reconvert(hint="if the checkpoint's own values are finite")


def floats(name: str, *values: float) -> TensorSpec:
    return TensorSpec(name, (len(values),), "F32", struct.pack(f"<{len(values)}f", *values))


def found(tensors: Sequence[TensorSpec]) -> list[Outcome]:
    content = build_gguf({"general.architecture": "llama", **LLAMA}, tensors)
    return list(check(model_of(read_gguf(MemorySource("model.gguf", content))), SETTINGS))


def test_fires_for_one_value_of_the_last_tensor() -> None:
    tensors = [floats("output_norm.weight", *[1.0] * 8), floats("blk.2.attn_norm.weight", 1, -INF)]
    start = read_gguf(
        MemorySource("", build_gguf({"general.architecture": "llama", **LLAMA}, tensors))
    )
    assert found(tensors) == [
        Hit(
            message="needs finite values in blk.2.attn_norm.weight, value 1 is infinite; 1 of 2 "
            "are not finite: whatever loads the file computes with them",
            where=Where(
                file="model.gguf",
                tensor="blk.2.attn_norm.weight",
                # 32 bytes of the first tensor, 4 of the value in front of it.
                offset=start.files[0].data_offset + 32 + 4,
            ),
            expected="finite values",
            actual=-INF,
            level=Severity.ERROR,
            repair=REPAIR,
            also=("blk.2.attn_norm.weight",),
        )
    ]


def test_fires_once_for_all_tensors() -> None:
    [hit] = found([floats("a", 0.0, NAN), floats("b", 1.0), floats("c", NAN), floats("d", INF)])
    assert isinstance(hit, Hit)
    # The smallest are looked at first.
    assert (hit.where.tensor, hit.also) == ("c", ("c", "d", "a"))
    assert hit.message == (
        "needs finite values in c, value 0 is NaN; 1 of 1 are not finite, as do 2 more of the 4 "
        "looked at: whatever loads the file computes with them"
    )
    assert hit.consequences == ("the others: d, a",)


@pytest.mark.parametrize("name", ["blk.2.attn_sinks.weight", "blk.2.exp_probs_b.bias"])
def test_silent_where_minus_infinity_says_never(name: str) -> None:
    assert found([floats(name, -INF, 0.5, -INF)]) == []
    for value in (NAN, INF):
        [hit] = found([floats(name, -INF, value)])
        assert isinstance(hit, Hit)
        assert hit.where.tensor == name


@pytest.mark.parametrize("bound", ["input_min", "input_max", "output_min", "output_max"])
def test_silent_where_infinity_says_not_clipped(bound: str) -> None:
    name = f"v.blk.1.attn_q.{bound}"
    assert found([floats(name, INF), floats(f"a.blk.0.ffn_up.{bound}", -INF)]) == []
    [hit] = found([floats(f"v.blk.0.attn_q.{bound}", -INF), floats(name, INF, NAN)])
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.also) == (name, (name,))
    # No such thing exists in a language model.
    assert len(found([floats(f"blk.0.attn_q.{bound}", INF)])) == 1


def test_silent_about_statistics_in_an_importance_matrix() -> None:
    assert found([floats("blk.0.attn_q.weight.stats", NAN, INF)]) == []
    assert len(found([floats("blk.0.attn_q.weight.in_sum2", NAN, INF)])) == 1


def test_silent_about_what_is_not_looked_at_and_says_how_much_that_is() -> None:
    most = LIMITS.floats_bytes // 4
    tensors = [
        TensorSpec("larger", (most + 1,), "F32", b"\xff" * (LIMITS.floats_bytes + 4)),
        TensorSpec("quantized", (32,), "Q8_0", b"\xff" * 34),
        TensorSpec("largest", (most,), "F32"),
    ]
    assert found(tensors) == [
        NoEvidence(
            "only 1 of 3 tensors were looked at, the small ones that aren't quantized, 1.0 MiB: "
            "llama-cli --check-tensors looks at all",
            kind="not-applicable",
        )
    ]


@pytest.mark.parametrize(
    ("budget", "looked"), [({"all_floats_bytes": 20}, 2), ({"floats_tensors": 3}, 3)]
)
def test_no_more_is_looked_at_than_a_budget_allows(
    monkeypatch: pytest.MonkeyPatch, budget: dict[str, int], looked: int
) -> None:
    monkeypatch.setattr(_tensors, "LIMITS", LIMITS._replace(**budget))
    small = [floats(f"t.{index}", 0, 0) for index in range(3)]
    [left] = found([floats("last", 0, 0, NAN), *small])
    assert isinstance(left, NoEvidence)
    assert left.reason.startswith(f"only {looked} of 4 tensors were looked at")


def test_silent_about_tensors_whose_data_is_not_there() -> None:
    content = build_gguf(LLAMA, [floats("a", 1.0), floats("b", NAN)])[:-64]
    subject = model_of(read_gguf(MemorySource("model.gguf", content)))
    assert [type(each) for each in check(subject, SETTINGS)] == [NoEvidence]


def test_silent_without_tensors() -> None:
    assert found([]) == []
