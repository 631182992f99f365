"""The cache of one sequence is larger than the policy allows.

## What it does
Compares the bytes that llama.cpp keeps for this file with the budget (`--max-cache`, or
`cache` under `[budget]` of a policy): one sequence, f16, window caches not full, at the
longest `--ctx`, else the policy's `context`, else the training length.

## Why it matters
The cache is allocated when a context is made. A server whose memory was planned for less
fails at start-up, or takes it from the models beside it.

## Fix
Where a right conversion would stay within the budget, convert again: the finding on the
cache says what was lost. Else allow more, serve a shorter context, or quantize the cache.

## Authority
llama.cpp b11434, `src/llama-kv-cache.cpp` and `src/llama-memory-recurrent.cpp`; the budget is
the user's.
"""

from __future__ import annotations

from collections.abc import Iterator

from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import Advice, Hit, Need, NoEvidence, OnModel, Outcome, Rule, Severity
from gguf_audit.runtime import llama_cpp
from gguf_audit.where import Where
from gguf_audit_rules.run._sizes import told_bytes

#: A quantized V needs flash attention (src/llama-context.cpp).
_CHEAPER = "lower --ctx (llama-server -c), or quantize the cache: -ctk q8_0 -ctv q8_0 -fa on"


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where the cache is over its budget."""
    budget = None if settings.policy is None else settings.policy.budget
    if budget is None or budget.cache_bytes is None:
        return
    if not model.gguf.tensors:
        return  # A vocabulary runs nothing.
    if isinstance(model.implied, Absent):
        yield NoEvidence(
            f"the cache can't be held against its budget: {model.implied.reason}", "limit"
        )
        return
    if isinstance(model.implied, Refused):
        return  # load-refused says it: there is no cache.
    context = budget.context_tokens or model.fields.integer("context_length") or 0
    try:
        takes = llama_cpp.plan(model.fields, context=context).total_bytes
    except Refused as refused:
        what = f"no cache of {context:,} tokens to hold against its budget: {refused.message}"
        yield NoEvidence(what, "limit")
        return
    if takes <= budget.cache_bytes:
        return
    yield Hit(
        message=(
            f"needs at most {told_bytes(budget.cache_bytes)} of cache for one sequence of "
            f"{context:,} tokens, takes {told_bytes(takes)}"
        ),
        where=Where(),
        expected=budget.cache_bytes,
        actual=takes,
        unit="byte",
        level=Severity.ERROR,
        repair=Advice(text=_CHEAPER),
    )


RULE = Rule(
    id="RUN010",
    name="cache-over-budget",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.POLICY}),
    authority="llama.cpp b11434 src/llama-kv-cache.cpp; the policy",
)
