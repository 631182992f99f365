from __future__ import annotations

import pytest

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model
from gguf_audit.parts import Absent
from gguf_audit.policies import Budget, Policy
from gguf_audit.rule import Advice, Hit, NoEvidence, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.run.cache_over_budget import check
from rule_subjects import GEMMA, SETTINGS, model, policed, without

TENSORS = [("token_embd.weight", (640, 8), "F16")]
#: Of Gemma 3 270M at 32,768 tokens, as llama.cpp allocates it.
TAKES = 111 << 20


def said(
    cache: int | None, context: int | None = None, *, subject: Model | None = None
) -> list[Outcome]:
    budget = Budget(cache_bytes=cache, context_tokens=context)
    return list(check(subject or model(GEMMA, TENSORS), policed(Policy(budget=budget))))


def test_fires_where_the_cache_is_larger() -> None:
    assert said(TAKES - 1) == [
        Hit(
            message=(
                "needs at most 110.99 MiB of cache for one sequence of 32,768 tokens, takes 111 MiB"
            ),
            where=Where(),
            expected=TAKES - 1,
            actual=TAKES,
            unit="byte",
            level=Severity.ERROR,
            repair=Advice(
                text="lower --ctx (llama-server -c), or quantize the cache: -ctk q8_0 -ctv q8_0 -fa on"
            ),
        )
    ]


def test_fires_where_a_lost_window_makes_it_larger() -> None:
    lost = model(without(GEMMA, "gemma3.attention.sliding_window"), TENSORS)
    [hit] = said(TAKES, subject=lost)
    assert isinstance(hit, Hit)
    assert hit.actual == 576 << 20


@pytest.mark.parametrize(("context", "takes"), [(4096, 27 << 20), (32768, TAKES)])
def test_silent_up_to_the_budget(context: int, takes: int) -> None:
    assert said(takes, context) == []
    assert len(said(takes - 1, context)) == 1


def test_silent_without_a_budget() -> None:
    assert said(None) == []
    assert list(check(model(GEMMA, TENSORS), SETTINGS)) == []


def test_silent_where_nothing_runs() -> None:
    assert said(0, subject=model(GEMMA)) == []
    assert said(0, subject=model(GEMMA, TENSORS, implied=Refused("no"))) == []


def test_what_cant_be_computed_is_not_within_the_budget() -> None:
    unknown = model(GEMMA, TENSORS, implied=Absent("nobody knows it"))
    assert said(0, subject=unknown) == [
        NoEvidence("the cache can't be held against its budget: nobody knows it", "limit")
    ]
