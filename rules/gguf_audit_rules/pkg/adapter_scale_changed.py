"""An adapter is added at another scale than it was trained with.

## What it does
Compares the scale that llama.cpp computes for each pair, one alpha divided by the pair's
rank, with that of the reference's `adapter_config.json`: alpha divided by the rank, or by its
square root where `use_rslora` is set, and another alpha where `alpha_pattern` names a module.
One that it names for every module is the adapter's alpha.

## Why it matters
The adapter loads and is added too weakly or too strongly, often by a factor of 4 to 16. The
converter ignores `use_rslora` and `alpha_pattern`, and neither it nor llama.cpp says so.

## Fix
Where one alpha serves all pairs, set it: for rank-stabilised adapters alpha times the square
root of the rank. No script adds a key that is missing: convert again, or give the scale to
llama.cpp (`--lora-scaled`). Where no single alpha serves, scale lora_B before converting, and take
`alpha_pattern` out of `adapter_config.json`, which says otherwise from then on.

## Authority
peft, `tuners/lora/layer.py: update_layer`; llama.cpp b11434, `src/llama-adapter.h: get_scale`,
`convert_lora_to_gguf.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

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
SCALED = (
    "after scaling lora_B and taking alpha_pattern out of adapter_config.json,"
    " no single alpha says it"
)


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
    common = _common_alpha(adapter, alpha) if other else None
    if common is not None:
        alpha, other = common, {}
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
        repair=_repair(wanted, present=field is not None and stored is not None, one=not other),
    )


def _told(wanted: Mapping[int, float], found: Mapping[int, float], wrong: list[int]) -> str:
    if not wrong:
        return "no single alpha serves all pairs"
    rank = wrong[0]
    return f"needs scale {wanted[rank]:g} at rank {rank}, llama.cpp takes {found[rank]:g}"


def _repair(wanted: Mapping[int, float], *, present: bool, one: bool) -> Repair:
    """Return the alpha that gives every pair its scale, if there is one."""
    alphas = {round(scale * rank, 6) for rank, scale in wanted.items()}
    if not one:
        return Reconvert(hint=SCALED)
    if len(alphas) > 1:
        return Reconvert(hint="after scaling lora_B, no single alpha says it")
    [alpha] = alphas
    if present:
        return SetKey(key=ALPHA, value=alpha, present=True)
    scales = {f"{scale:g}" for scale in wanted.values()}
    meanwhile = f"; until then run it with --lora-scaled FILE {scales.pop()}"
    said = f"{ALPHA} has to be {alpha:g}"
    return Reconvert(hint=said + (meanwhile if len(wanted) == 1 else ""))


def _common_alpha(adapter: PeftAdapter, alpha: float) -> float | None:
    """Return the alpha that all modules have, ``None`` where they differ or nobody knows."""
    patterns = adapter.config.get("alpha_pattern")
    if isinstance(adapter.tensors, Absent) or not isinstance(patterns, dict):
        return None
    if not all(map(_plain, patterns)):
        return None
    found: set[float | None] = set()
    for module in _modules(adapter.tensors):
        own = next((value for each, value in patterns.items() if _names(each, module)), alpha)
        found.add(_number(own))
    return found.pop() if len(found) == 1 else None


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
    modules = _modules(adapter.tensors)
    if _plain(pattern):
        return any(_names(pattern, module) for module in modules)
    # A regular expression of somebody else's is not run: its last word has to do.
    end = pattern.rpartition("\\.")[2].rpartition(".")[2].strip("^$()?*")
    return any(module.endswith(end) for module in modules)


def _modules(tensors: Iterable[str]) -> Iterator[str]:
    """Yield what pairs belong to: ``base_model.model.model.layers.0.self_attn.q_proj``."""
    return (name.partition(".lora_")[0] for name in tensors if ".lora_" in name)


def _plain(pattern: str) -> bool:
    return re.fullmatch(r"[\w.]+", pattern) is not None


def _names(pattern: str, module: str) -> bool:
    return module == pattern or module.endswith(f".{pattern}")


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
