"""Every tensor of a right conversion is missed when it is gone, and none before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from gguf_audit import open_gguf
from gguf_audit.evidence import Conversion, Settings
from gguf_audit.formats.safetensors import read_tensors
from gguf_audit.gathering import gather
from gguf_audit.parts import Absent
from gguf_audit.reference import References
from gguf_audit.rule import Hit
from gguf_audit.sources.local import LocalTree
from gguf_audit_rules.ctx import rope_tensors_changed
from gguf_audit_rules.wt import (
    parameters_changed,
    tensor_added,
    tensor_lost,
    tensor_missing,
    tensor_shape_mismatch,
    tensor_unexpected,
)

pytestmark = pytest.mark.truth

SHARED = Path(os.environ.get("GGUF_AUDIT_TRUTH", "/nonexistent"))
FILES = [
    file
    for file in sorted(SHARED.glob("pairs/*/model.gguf"))
    if (file.parent / "hf" / "config.json").is_file()
]
#: What the converter computes: rope-tensors-changed looks for them.
COMPUTED = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def conversion_of(file: Path) -> Conversion:
    reference = References().open(str(file.parent / "hf"))
    found = gather(open_gguf(file), str(file), reference).conversion
    assert not isinstance(found, Absent)
    return found


def without(conversion: Conversion, name: str) -> Conversion:
    """Return the conversion of a file that lacks one tensor."""
    gguf = conversion.model.gguf
    kept = {other: tensor for other, tensor in gguf.tensors.items() if other != name}
    return replace(conversion, model=replace(conversion.model, gguf=replace(gguf, tensors=kept)))


def hits(conversion: Conversion) -> Iterator[Hit]:
    settings = Settings()
    for rule in (tensor_missing, tensor_unexpected, tensor_shape_mismatch):
        yield from (hit for hit in rule.check(conversion.model, settings) if isinstance(hit, Hit))
    for other in (tensor_lost, tensor_added, parameters_changed, rope_tensors_changed):
        yield from (hit for hit in other.check(conversion, settings) if isinstance(hit, Hit))


@pytest.mark.parametrize("file", FILES, ids=[file.parent.name for file in FILES])
def test_every_removed_tensor_is_missed(file: Path) -> None:
    conversion = conversion_of(file)
    assert list(hits(conversion)) == []
    names = [*conversion.model.gguf.tensors]
    unseen = [
        name
        for name in names
        if not any(hit.where.tensor == name for hit in hits(without(conversion, name)))
    ]
    assert unseen == []


@pytest.mark.parametrize("file", FILES, ids=[file.parent.name for file in FILES])
def test_every_tensor_of_the_checkpoint_has_a_name(file: Path) -> None:
    conversion = conversion_of(file)
    assert not isinstance(read_tensors(LocalTree(file.parent / "hf")), Absent)
    said = list(tensor_lost.check(conversion, Settings()))
    assert said == []
