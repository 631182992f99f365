from __future__ import annotations

import pytest

from adapter_subjects import VECTOR, vector
from companion_subjects import Tensors, companion, file
from gguf_audit.gguf import Gguf
from gguf_audit.rule import Hit, Severity
from gguf_audit.testing import make_gguf
from gguf_audit.where import Where
from gguf_audit_rules.pkg.control_vector_unusable import AGAIN, check
from rule_subjects import LLAMA, SETTINGS, checkpoint


def said(gguf: Gguf, **changed: int) -> list[Hit]:
    held = companion(gguf, "controlvector")
    if changed:
        base = {**LLAMA, **{f"llama.{key}": value for key, value in changed.items()}}
        held = companion(gguf, "controlvector", reference=checkpoint(), base=base)
    return [hit for hit in check(held, SETTINGS) if isinstance(hit, Hit)]


@pytest.mark.parametrize(
    "shapes",
    [
        {"direction.0": (64,)},
        {"direction.x": (64,)},
        {"direction.2": (64, 2)},
        {"direction.2": (32,)},
    ],
)
def test_fires_for_directions_that_cant_be_taken(shapes: Tensors) -> None:
    found = said(vector(shapes=shapes))
    assert found
    assert {hit.level for hit in found} == {Severity.ERROR}


def test_fires_for_another_type() -> None:
    gguf = make_gguf(dict(VECTOR), [("direction.1", (64,), "F16")])
    assert len(said(gguf)) == 1


def test_fires_for_none() -> None:
    assert said(file(VECTOR, {})) == [
        Hit(
            message="needs a tensor direction.N for a layer, the file has none",
            where=Where(),
            level=Severity.ERROR,
            repair=AGAIN,
        )
    ]


def test_fires_for_another_model() -> None:
    assert [hit.level for hit in said(vector(), embedding_length=128)] == [Severity.ERROR]
    assert [hit.level for hit in said(vector(), block_count=2)] == [Severity.WARNING]
    other = vector(changed={"controlvector.model_hint": "gemma3"})
    assert [hit.where.key for hit in said(other, embedding_length=64)] == [
        "controlvector.model_hint"
    ]


def test_silent_for_a_right_vector() -> None:
    assert said(vector()) == []
    assert said(vector(), block_count=3) == []
