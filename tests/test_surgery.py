from __future__ import annotations

from pathlib import Path

import pytest

from gguf_audit.formats.gguf import open_gguf
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf
from surgery import cut_end, operate

FIELDS: dict[str, FieldValue] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.rope.freq_base": 10000.0,
    "general.alignment": 64,
    "tokenizer.ggml.tokens": ["a", "b", ""],
    "tokenizer.ggml.add_bos_token": True,
}
TENSORS = [
    TensorSpec("first", (3,), data=b"first of all"),
    TensorSpec("second", (2,), data=b"second 8"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(build_gguf(FIELDS, TENSORS))
    return path


def test_without_a_cut_the_copy_is_the_same(model: Path, tmp_path: Path) -> None:
    assert operate(model, tmp_path / "copy").read_bytes() == model.read_bytes()


@pytest.mark.parametrize("key", FIELDS)
def test_a_removed_key_is_gone_and_all_else_as_before(
    model: Path, tmp_path: Path, key: str
) -> None:
    copy = operate(model, tmp_path / "copy", remove={key})
    rest = {name: value for name, value in FIELDS.items() if name != key}
    # Without its key the alignment stays what it was for this copy: data isn't moved twice.
    if key != "general.alignment":
        assert copy.read_bytes() == build_gguf(rest, TENSORS)
    assert key not in open_gguf(copy).fields


def test_numbers_keep_their_types(model: Path, tmp_path: Path) -> None:
    copy = operate(
        model,
        tmp_path / "copy",
        replace={
            "llama.block_count": 2,
            "llama.rope.freq_base": 0.5,
            "tokenizer.ggml.add_bos_token": False,
        },
    )
    changed: dict[str, FieldValue] = FIELDS | {
        "llama.block_count": 2,
        "llama.rope.freq_base": 0.5,
        "tokenizer.ggml.add_bos_token": False,
    }
    assert copy.read_bytes() == build_gguf(changed, TENSORS)


def test_what_is_not_there_cannot_be_cut(model: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"llama\.pattern"):
        operate(model, tmp_path / "copy", remove={"llama.pattern"})
    with pytest.raises(TypeError, match=r"tokenizer\.ggml\.tokens"):
        operate(model, tmp_path / "copy", replace={"tokenizer.ggml.tokens": 1})


def test_the_end_is_cut(model: Path, tmp_path: Path) -> None:
    assert cut_end(model, tmp_path / "copy", 5).read_bytes() == model.read_bytes()[:-5]
