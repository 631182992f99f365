"""The vocabulary that we expect is the one that the official converter wrote."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from gguf_audit import open_checkpoint, open_gguf
from gguf_audit.checkpoint import Vocabulary
from gguf_audit.gguf import Gguf, Scalar
from gguf_audit.parts import Absent

pytestmark = pytest.mark.truth

SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
PAIRS = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "config.json").is_file()
]
ARCHIVES = sorted(SHARED.glob("pairs_vocab/*.tar.xz"))
#: A vocabulary of its own, which the converter reads by code that nobody else uses.
OWN = frozenset({"rwkv7"})


def _items(gguf: Gguf, name: str) -> list[Scalar] | None:
    found = gguf.array(f"tokenizer.ggml.{name}")
    return None if found is None else list(found.items())


def _departures(gguf: Gguf, expected: Vocabulary) -> list[object]:
    """Return everything in a file that isn't as expected, padding aside."""
    texts, types = _items(gguf, "tokens") or [], _items(gguf, "token_type") or []
    found: list[object] = []
    for id_, text in enumerate(texts):
        wanted = expected.texts[id_] if id_ < len(expected.texts) else None
        if wanted is None:
            if not str(text).endswith(f"[PAD{id_}]"):
                found.append((id_, text))
        elif text != wanted and text not in expected.other_texts.get(id_, ()):
            found.append((id_, wanted, text))
        elif types[id_] not in {expected.types[id_], *expected.other_types.get(id_, ())}:
            found.append((id_, wanted, expected.types[id_], types[id_]))
    if gguf.string("tokenizer.ggml.model") != expected.model:
        found.append(expected.model)
    if _items(gguf, "merges") != (None if expected.merges is None else list(expected.merges)):
        found.append("merges")
    scores = _items(gguf, "scores")
    if scores != (None if expected.scores is None else list(expected.scores)[: len(texts)]):
        found.append("scores")
    for name, values in expected.switches.items():
        field = gguf.fields.get(f"tokenizer.ggml.{name}")
        if (None if field is None else field.value) not in values:
            found.append(name)
    return found


@pytest.mark.parametrize("file", PAIRS, ids=lambda file: file.parent.name)
def test_a_vocabulary_of_a_pair(file: Path) -> None:
    expected = open_checkpoint(str(file.parent / "hf")).vocabulary
    if file.parent.name in OWN:
        assert isinstance(expected, Absent)
        return
    assert isinstance(expected, Vocabulary)
    assert _departures(open_gguf(file), expected) == []


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda file: file.name)
def test_a_whole_vocabulary(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    expected = open_checkpoint(str(folder / "hf")).vocabulary
    assert isinstance(expected, Vocabulary)
    files = sorted(folder.glob("*.gguf"))
    assert len(files) == 2
    for file in files:
        assert _departures(open_gguf(file), expected) == []
