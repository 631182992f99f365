"""Runs what a reference's ``tokenizer.json`` says, in a process of its own.

The library ``tokenizers`` is what the reference is run with; here it gets the texts of
ours and nothing else: no network, no code of the reference's.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from gguf_audit.limits import LIMITS
from gguf_audit.probes.child import Bounds, Talk, talk
from gguf_audit.runtime.pre_tokenizers import GROUPS, SPLITTERS, Splitter, pre_tokenizer
from gguf_audit.runtime.probe_texts import TEXTS
from gguf_audit.runtime.splitting import Pieces, Splitting
from gguf_audit.subject import Absent, TokenizerJson

__all__ = ["split"]

_CHILD = Path(__file__).with_name("_tokenizers.py")
_NAME = "tokenizers"


def split(tokenizer: TokenizerJson) -> Splitting | Absent:
    """Return how a tokenizer splits the probe texts, and how llama.cpp's splitters do."""
    return _split(json.dumps([tokenizer.normalizer, tokenizer.pre_tokenizer]))


@functools.lru_cache(maxsize=8)  # The files of one folder have one reference.
def _split(parts: str) -> Splitting | Absent:
    normalizer, own = json.loads(parts)
    meant = [splitter for splitter in GROUPS if splitter.meant_for is not None]
    others = [pre_tokenizer(splitter) for splitter in GROUPS]
    others += [pre_tokenizer(splitter, meant=True) for splitter in meant]
    request = {"normalizer": normalizer, "pre_tokenizer": own, "others": others, "texts": TEXTS}
    answers = _pieces(_talk(request), wanted=1 + len(others))
    if isinstance(answers, Absent):
        return answers
    reference, rest = answers[0], answers[1:]
    does = dict(zip(GROUPS, rest, strict=False))
    stands_for = dict(zip(meant, rest[len(GROUPS) :], strict=True))

    def is_right(splitter: Splitter) -> bool:
        return reference in (does[splitter], stands_for.get(splitter))

    return Splitting(
        reference=reference,
        named={name: does[splitter] for name, splitter in SPLITTERS.items()},
        right=tuple(name for name, splitter in SPLITTERS.items() if is_right(splitter)),
    )


def _talk(request: Mapping[str, object], document: bytes = b"") -> Talk | Absent:
    if sys.platform == "win32":
        return Absent("a tokenizer is only run where a process can be limited")
    spec = importlib.util.find_spec(_NAME)  # Finding it doesn't import it.
    if spec is None or not spec.submodule_search_locations:
        return Absent("the package tokenizers isn't installed")
    paths = [str(Path(folder).parent) for folder in spec.submodule_search_locations]
    return talk(
        _CHILD,
        {**request, "paths": paths},
        document=document,
        name=_NAME,
        bounds=Bounds(
            memory_bytes=LIMITS.tokenizer_memory_bytes,
            seconds=LIMITS.tokenizer_seconds,
            output_bytes=LIMITS.tokenizer_output_bytes,
        ),
        environment={"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"},
    )


def _pieces(said: Talk | Absent, *, wanted: int) -> list[tuple[Pieces, ...]] | Absent:
    if isinstance(said, Absent):
        return said
    found: list[tuple[Pieces, ...]] = []
    for answer in said.answers:
        match answer:
            case {"pieces": list()}:
                texts = cast("list[list[str]]", answer["pieces"])
                found.append(tuple(map(tuple, texts)))
            case _:
                break
    return found if len(found) == wanted else _why(said)


def _why(said: Talk) -> Absent:
    """Say why a child didn't answer everything."""
    for answer in said.answers:
        if isinstance(answer.get("unusable"), str):
            return Absent(
                f"tokenizers can't run the reference's tokenizer.json: {answer['unusable']}"
            )
    if said.reason:
        return Absent(said.reason)
    return Absent(f"the process that runs the reference's tokenizer ended early, {said.code}")
