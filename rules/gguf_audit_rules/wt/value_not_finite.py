"""A tensor holds a value that is no number, or infinite.

## What it does
Looks at the values of small tensors that aren't quantized, in files on this machine: norms,
biases, scales, factors of RoPE, routers, the parameters of recurrent layers; F32, F16, BF16 and
F64, up to 1 MiB each and 16 MiB together, the smallest first. **Quantized and larger tensors
are not looked at**, nor is anything but the header of a remote file; `-v` tells how many tensors
were, and `llama-cli --check-tensors` looks at all of them.

Left alone are minus infinity in an attention sink or in a router's bias, which says *never*,
infinite bounds of an encoder's linear layers (`v.blk.0.attn_q.input_max` of Gemma 4), which say
*not clipped*, and the statistics in an importance matrix, which nothing computes with.

## Why it matters
llama.cpp loads the file without a word and computes with it: one NaN in a norm makes every
logit NaN, and whatever is drawn from them means nothing.

## Fix
Reconvert, into BF16 or F32 where a value is too large for F16. If the checkpoint itself holds
it, or its download is broken, that has to be fetched again.

## Authority
llama.cpp b11434, `ggml/src/ggml-quants.c: ggml_validate_row_data`, which
`src/llama-model-loader.cpp: load_all_data` asks only with `--check-tensors`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import NonFinite, Tensor
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Need, NoEvidence, OnModel, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt._tensors import NAMED, listed, small

FLOATS = frozenset({"F64", "F32", "F16", "BF16"})
#: Of an importance matrix: written for people, not read again (tools/imatrix/imatrix.cpp).
STATISTICS = ".stats"
#: Goes into a softmax or into the choice of experts, where minus infinity excludes.
EXCLUDING = re.compile(r".*\.(?:attn_sinks\.weight|exp_probs_b\.bias)")
#: What ``Gemma4ClippableLinear`` clamps to, of linear layers of projectors (tools/mtmd/clip.cpp).
BOUND = re.compile(r"(?:v|a|mm)\..+\.(?:input|output)_(?:min|max)")
MIB = 1 << 20


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for all tensors that hold such a value, and what wasn't looked at."""
    del settings
    gguf = model.gguf
    looked: list[Tensor] = []
    wrong: list[tuple[Tensor, NonFinite]] = []
    floats = [each for each in gguf.tensors.values() if each.type.name in FLOATS]
    for tensor in small(floats):
        found = gguf.non_finite(tensor)
        if isinstance(found, Absent):
            continue  # tensor-data-truncated says that the file has no data for it
        looked.append(tensor)
        if found is not None and not _is_legal(tensor, found):
            wrong.append((tensor, found))
    if wrong:
        yield _hit(model, wrong, looked)
    unseen = len(gguf.tensors) - len(looked)
    if unseen:
        size = sum(tensor.size_bytes or 0 for tensor in looked) / MIB
        yield NoEvidence(
            f"only {len(looked):,} of {len(gguf.tensors):,} tensors were looked at, the small ones "
            f"that aren't quantized, {size:.1f} MiB: llama-cli --check-tensors looks at all",
            kind="not-applicable",
        )


def _is_legal(tensor: Tensor, found: NonFinite) -> bool:
    if EXCLUDING.fullmatch(tensor.name):
        return found.count == found.lowest
    if BOUND.fullmatch(tensor.name):
        return found.count == found.lowest + found.highest
    return tensor.name.endswith(STATISTICS)


def _hit(model: Model, wrong: list[tuple[Tensor, NonFinite]], looked: list[Tensor]) -> Hit:
    (tensor, found), *others = wrong
    file = model.gguf.files[tensor.file]
    offset = file.data_offset + tensor.offset + found.index * (tensor.type.block_bytes or 0)
    named = [each.name for each, _ in wrong]
    more = f", as do {len(others)} more of the {len(looked):,} looked at" if others else ""
    what = "NaN" if math.isnan(found.value) else "infinite"
    return Hit(
        message=f"needs finite values in {tensor.name}, value {found.index:,} is {what}; "
        f"{found.count:,} of {tensor.elements:,} are not finite{more}: whatever loads the file "
        "computes with them",
        where=Where(file=file.name, tensor=tensor.name, offset=offset),
        expected="finite values",
        actual=found.value,
        level=Severity.ERROR,
        repair=Reconvert(hint="if the checkpoint's own values are finite"),
        consequences=(f"the others: {listed(named[1:])}",) if others else (),
        also=tuple(named[:NAMED]),
    )


RULE = Rule(
    id="WT008",
    name="value-not-finite",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    needs=frozenset({Need.VALUES}),
    any_kind=True,
    authority="llama.cpp b11434 ggml/src/ggml-quants.c ggml_validate_row_data",
)
