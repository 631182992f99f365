"""An adapter is added at another scale than it was trained with.

## What it does
Compares the scale that llama.cpp computes for each pair, one alpha divided by the pair's
rank, with that of the reference's `adapter_config.json`: alpha divided by the rank, or by its
square root where `use_rslora` is set, and another alpha where `alpha_pattern` names a module.

## Why it matters
The converter ignores `use_rslora` and `alpha_pattern`, and neither it nor llama.cpp says so.
The adapter loads and is too weak, often by a factor of 4 to 16.

## Fix
Where one alpha serves all pairs, set it: for rank-stabilised adapters alpha times the square
root of the rank. Else scale lora_B before converting.

## Authority
peft, `tuners/lora/layer.py: update_layer`; llama.cpp b11434, `src/llama-adapter.h: get_scale`,
`convert_lora_to_gguf.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from gguf_audit.checkpoint import Json, PeftAdapter
from gguf_audit.evidence import Companion, Settings
from gguf_audit.parts import Absent
from gguf_audit.rule import (
    Hit,
    Need,
    NoEvidence,
    OnCompanion,
    Outcome,
    Reconvert,
    Repair,
    Rule,
    SetKey,
    Severity,
)
from gguf_audit.runtime.lora import ALPHA, pairs_of
from gguf_audit.where import Where

CLOSE = 1e-4


def check(companion: Companion, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit where the scale of any pair is another."""
    del settings
    adapter = companion.adapter
    if isinstance(adapter, Absent):
        yield NoEvidence(adapter.reason)
        return
    alpha = _number(adapter.config.get("lora_alpha"))
    rank = _number(adapter.config.get("r"))
    if alpha is None or not rank:
        yield NoEvidence("adapter_config.json doesn't say lora_alpha and r")
        return
    field = companion.gguf.fields.get(ALPHA)
    stored = _number(field.value) if field is not None and isinstance(field.value, float) else None
    ranks = sorted({pair.rank for pair in pairs_of(companion.gguf).pairs.values() if pair.rank})
    rooted = adapter.config.get("use_rslora") is True
    other = _other_alphas(adapter, alpha)
    wanted = {each: alpha / (math.sqrt(each) if rooted else each) for each in ranks}
    found = {each: stored / each if stored else 1.0 for each in ranks}
    wrong = [each for each in ranks if abs(wanted[each] - found[each]) > CLOSE * abs(wanted[each])]
    if not wrong and not other:
        return
    why = [f"alpha {alpha:g}"]
    why += ["rank-stabilised"] if rooted else []
    why += [f"{value:g} for {name}" for name, value in other.items()]
    yield Hit(
        message=f"{_told(wanted, found, wrong)}: the adapter has {', '.join(why)}",
        where=Where(key=ALPHA, offset=None if field is None else field.offset),
        expected=other if other and not wrong else [wanted[each] for each in ranks],
        actual=stored if other and not wrong else [found[each] for each in ranks],
        level=Severity.ERROR,
        repair=_repair(wanted, present=stored is not None, one=not other),
    )


def _told(wanted: Mapping[int, float], found: Mapping[int, float], wrong: list[int]) -> str:
    if not wrong:
        return "no single alpha serves all pairs"
    rank = wrong[0]
    return f"needs scale {wanted[rank]:g} at rank {rank}, llama.cpp takes {found[rank]:g}"


def _repair(wanted: Mapping[int, float], *, present: bool, one: bool) -> Repair:
    """Return the alpha that gives every pair its scale, if there is one."""
    alphas = {round(scale * rank, 6) for rank, scale in wanted.items()}
    if one and present and len(alphas) == 1:
        return SetKey(key=ALPHA, value=alphas.pop(), present=True)
    return Reconvert(hint="after scaling lora_B, no single alpha says it")


def _other_alphas(adapter: PeftAdapter, alpha: float) -> dict[str, float]:
    """Return the patterns that give a module of the adapter another alpha.

    peft matches a pattern with the end of a module's name (``get_pattern_key``).
    """
    patterns = adapter.config.get("alpha_pattern")
    if not isinstance(patterns, dict):
        return {}
    numbers = {pattern: _number(value) for pattern, value in patterns.items()}
    return {
        pattern: value
        for pattern, value in numbers.items()
        if value not in (None, alpha) and _used(pattern, adapter)
    }


def _used(pattern: str, adapter: PeftAdapter) -> bool:
    if isinstance(adapter.tensors, Absent):
        return True
    end = pattern.rpartition("\\.")[2].rpartition(".")[2].strip("^$()?*")
    plain = re.fullmatch(r"[\w.]+", pattern) is not None
    modules = (name.partition(".lora_")[0] for name in adapter.tensors if ".lora_" in name)
    if plain:
        return any(name == pattern or name.endswith(f".{pattern}") for name in modules)
    # A regular expression of somebody else's is not run: its last word has to do.
    return any(name.endswith(end) for name in modules)


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


RULE = Rule(
    id="PKG041",
    name="adapter-scale-changed",
    levels=(Severity.ERROR, Severity.WARNING),
    check=OnCompanion(check, kinds=("adapter",)),
    needs=frozenset({Need.REFERENCE}),
    authority="peft tuners/lora/layer.py update_layer, llama.cpp b11434 src/llama-adapter.h "
    "get_scale, convert_lora_to_gguf.py",
)
