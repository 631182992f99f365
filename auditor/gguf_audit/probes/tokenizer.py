"""Runs what a reference's ``tokenizer.json`` says, in a process of its own.

The library ``tokenizers`` is what the reference is run with; here it gets the texts of
ours and nothing else: no network, no code of the reference's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from gguf_audit.checkpoint import TokenizerFiles, TokenizerJson
from gguf_audit.errors import AuditError, LimitError, ReferenceUnavailableError
from gguf_audit.formats.tokenizer import TOKENIZER
from gguf_audit.limits import LIMITS
from gguf_audit.once import once, settled
from gguf_audit.parts import Absent
from gguf_audit.probes.child import Bounds, Talk, talk
from gguf_audit.probes.llama_cpp import find_library, tokenize
from gguf_audit.runtime.check_text import CHECK_TEXT, name_by_ids
from gguf_audit.runtime.pre_tokenizers import GROUPS, SPLITTERS, Splitter, pre_tokenizer
from gguf_audit.runtime.probe_texts import TEXTS
from gguf_audit.runtime.splitting import Pieces, Splitting
from gguf_audit.runtime.tokenisation import Ids, Tokenisation
from gguf_audit.where import Where

__all__ = ["Encoded", "compare", "encode", "names_by_ids", "split"]

_CHILD = Path(__file__).with_name("_tokenizers.py")
_NAME = "tokenizers"
#: Digest of a tokenizer.json -> its names: the files of one folder have one reference.
_NAMES: dict[bytes, Callable[[], tuple[str, ...] | Absent]] = {}
#: What stands for a space where text isn't turned into bytes.
_SPACE = "\u2581"


def split(tokenizer: TokenizerJson) -> Splitting | Absent:
    """Return how a tokenizer splits the probe texts, and how llama.cpp's splitters do.

    Absent where nobody can run it here. Raises AuditError where it can't be run itself.
    """
    return _split(json.dumps([tokenizer.normalizer, tokenizer.pre_tokenizer]))


def _splitting(parts: str) -> Splitting | Absent:
    normalizer, own = json.loads(parts)
    meant = [splitter for splitter in GROUPS if splitter.meant_for is not None]
    others = [pre_tokenizer(splitter) for splitter in GROUPS]
    others += [pre_tokenizer(splitter, meant=True) for splitter in meant]
    request = {"normalizer": normalizer, "pre_tokenizer": own, "others": others}
    answers = _pieces(_talk({**request, "texts": TEXTS}), wanted=1 + len(others))
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


#: The files of one folder have one reference.
_split = once(_splitting, most=8)


def names_by_ids(files: TokenizerFiles) -> tuple[str, ...] | Absent:
    """Return the names that the converter gives a tokenizer: what it makes of one text.

    Two, perhaps: whether a BOS is added to the text depends on who runs it. Raises
    AuditError where the tokenizer can't be run.
    """
    document = files.load_bytes()
    if isinstance(document, Absent):
        return document
    digest = hashlib.sha256(document).digest()
    if digest not in _NAMES:
        _NAMES[digest] = settled(_names, document)
    return _NAMES[digest]()


def _names(document: bytes) -> tuple[str, ...] | Absent:
    encoded = encode(document, ())
    if isinstance(encoded, Absent):
        return encoded
    names = (name_by_ids(ids) for ids in encoded.checked)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def compare(files: TokenizerFiles, model: Path) -> Tokenisation | Absent:
    """Return what a reference and a file make of the probe texts and of all added tokens.

    ``model`` is what llama.cpp is to open. Raises AuditError where ``tokenizer.json``
    can't be read or run.
    """
    library = find_library()
    document = library if isinstance(library, Absent) else files.load_bytes()
    found = files.json
    if isinstance(library, Absent) or isinstance(document, Absent) or isinstance(found, Absent):
        return next(each for each in (library, document, found) if isinstance(each, Absent))
    every = tuple(dict.fromkeys(_typed(token.content) for token in found.added if token.content))
    added = every[: LIMITS.probed_tokens]
    lines = tuple(f"\n{text}" for text in TEXTS)
    reference = encode(document, (*TEXTS, *lines, *added))
    if isinstance(reference, Absent):
        return reference
    runtime, ids = tokenize(library, model, (*TEXTS, *lines, *added))
    if isinstance(ids, Absent):
        return ids
    both = iter(zip(reference.ids, ids, strict=True))
    return Tokenisation(
        runtime=runtime,
        texts=dict(zip(TEXTS, both, strict=False)),
        lines=dict(zip(TEXTS, both, strict=False)),
        added=dict(zip(added, both, strict=True)),
        names=reference.names,
        left_out=len(every) - len(added),
    )


def _typed(content: str) -> str:
    """Return how somebody types an added token: one of nothing but spaces with spaces."""
    return content if content.strip(_SPACE) else content.replace(_SPACE, " ")


class Encoded(Struct, frozen=True, kw_only=True):
    """What a tokenizer made of some texts."""

    ids: tuple[Ids, ...]
    names: Mapping[int, str]
    #: Of the converter's text, with and without what is added around it.
    checked: tuple[Ids, ...]


def encode(document: bytes, texts: Sequence[str]) -> Encoded | Absent:
    """Return the ids of texts by a ``tokenizer.json``, nothing added around them.

    Raises AuditError where it can't be run.
    """
    said = _talk({"encode": True, "texts": list(texts), "check": CHECK_TEXT}, document)
    if isinstance(said, Absent):
        return said
    ids: list[Ids] = []
    checked: tuple[Ids, ...] = ()
    for answer in said.answers:
        match answer:
            case {"ids": list()}:
                ids.append(tuple(cast("list[int]", answer["ids"])))
            case {"checked": list()}:
                checked = tuple(map(tuple, cast("list[list[int]]", answer["checked"])))
            case {"names": dict()} if len(ids) == len(texts):
                names = cast("dict[str, str]", answer["names"])
                by_id = {int(id_): name for id_, name in names.items()}
                return Encoded(ids=tuple(ids), names=by_id, checked=checked)
            case _:
                break
    raise _why(said)


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
    if len(found) != wanted:
        raise _why(said)
    return found


def _why(said: Talk) -> AuditError:
    """Say why a child didn't answer everything."""
    where = Where(file=TOKENIZER)
    for answer in said.answers:
        if isinstance(answer.get("unusable"), str):
            what = f"tokenizers can't run the reference's {TOKENIZER}: {answer['unusable']}"
            return ReferenceUnavailableError(what, where=where)
    ended = f"the process that runs the reference's {TOKENIZER} ended early, {said.code}"
    return LimitError(said.reason or ended, where=where)
