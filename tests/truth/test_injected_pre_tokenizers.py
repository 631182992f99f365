"""Every wrong splitter, in every conversion that has one."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gguf_audit import open_checkpoint, open_gguf
from gguf_audit.gguf import Array, Field, Scalar
from gguf_audit.parts import Absent
from gguf_audit.probes.tokenizer import split
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.testing import FieldValue, TensorSpec
from injected_pre_tokenizer import FAULTS, PRE, outcomes, wrong

pytestmark = pytest.mark.truth

LOGGER = logging.getLogger(__name__)
SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "tokenizer.json").is_file()
    and open_gguf(file).string("tokenizer.ggml.model") == "gpt2"
]


def typed(field: Field) -> FieldValue:
    if isinstance(field.value, Array):
        return (field.value.item_type, list(field.value.items()))
    assert isinstance(field.value, Scalar)
    assert field.type is not None
    return (field.type, field.value)


def right_names(reference: Path) -> tuple[str, ...]:
    """Return the names that split as a checkpoint's tokenizer does."""
    files = open_checkpoint(str(reference)).tokenizer_files
    assert not isinstance(files, Absent)
    assert not isinstance(files.json, Absent)
    found = split(files.json)
    assert not isinstance(found, Absent)
    return found.right


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    counted = Counter[str]()
    yield counted
    # The table: --log-cli-level=info.
    for fault in FAULTS:
        LOGGER.info("%s: %d of %d", fault.name, counted[fault.name], counted[fault.name])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_wrong_splitter_is_one_finding(
    file: Path, seen: Counter[str], tmp_path: Path
) -> None:
    gguf, reference = open_gguf(file), file.parent / "hf"
    right = right_names(reference)
    assert right, "llama.cpp has a name for each of these"
    # The name that the pair has was given by hand, and may be another one.
    keys = {key: typed(field) for key, field in gguf.fields.items()} | {PRE: right[0]}
    tensors = [TensorSpec(each.name, each.shape, each.type) for each in gguf.tensors.values()]
    found = list(outcomes(file.parent.name, keys, tensors, str(reference), right, tmp_path))
    assert [said for outcome in found if (said := wrong(outcome)) is not None] == []
    seen.update(outcome.fault.name for outcome in found if not outcome.harmless)


def test_no_name_is_right_everywhere() -> None:
    assert len(FILES) >= 40
    assert {right_names(file.parent / "hf")[0] for file in FILES} <= SPLITTERS.keys()
