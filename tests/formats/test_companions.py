from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gguf_audit.checkpoint import Checkpoint, Json, PeftAdapter, StoredTensor
from gguf_audit.errors import AuditError
from gguf_audit.formats.checkpoint import read_checkpoint
from gguf_audit.parts import Absent
from gguf_audit.sources import LocalTree

CONFIG: Mapping[str, Json] = {"model_type": "llama"}
PEFT: Mapping[str, Json] = {"r": 8, "lora_alpha": 16}


def read(folder: Path, **files: Mapping[str, Json] | bytes) -> Checkpoint:
    for name, content in files.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        end = ".safetensors" if name == "adapter_model" else ".json"
        (folder / f"{name}{end}").write_bytes(data)
    return read_checkpoint(LocalTree(folder), id="org/model")


def header(**tensors: list[int]) -> bytes:
    """Return a safetensors file of float32 zeros."""
    end, entries = 0, {}
    for name, shape in tensors.items():
        size = 4 * shape[0] * shape[1]
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end)


def test_an_adapters_folder_needs_no_config(tmp_path: Path) -> None:
    found = read(tmp_path, adapter_config=PEFT, adapter_model=header(a=[8, 64]))
    assert isinstance(found.config, Absent)
    assert found.adapter == PeftAdapter(
        config=dict(PEFT), tensors={"a": StoredTensor(dtype="F32", shape=(8, 64))}
    )


def test_an_adapter_beside_its_model_is_read_too(tmp_path: Path) -> None:
    found = read(tmp_path, config=CONFIG, adapter_config=PEFT)
    assert found.config == CONFIG
    assert isinstance(found.adapter, PeftAdapter)
    assert found.adapter.tensors == Absent("no adapter_model.safetensors in the folder")


def test_pickled_adapters_are_never_opened(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.bin").write_bytes(b"\x80\x02")
    found = read(tmp_path, adapter_config=PEFT).adapter
    assert isinstance(found, PeftAdapter)
    assert found.tensors == Absent(
        "only pickled weights (adapter_model.bin), which are never opened"
    )


@pytest.mark.parametrize("data", [b"[]", b"{", b"7"])
def test_a_broken_adapter_config_is_an_error(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, adapter_config=data)
    with pytest.raises(AuditError):
        _ = found.adapter


def test_the_later_and_the_inner_file_wins(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        config=CONFIG,
        preprocessor_config={
            "image_mean": [0.1],
            "image_std": [0.1],
            "media_proc_cfg": {"image_std": [0.2]},
            "size": 1,
        },
        processor_config={"size": 2, "image_processor": {"image_mean": [0.3]}},
    ).preprocessor
    assert not isinstance(found, Absent)
    assert (found["image_mean"], found["image_std"], found["size"]) == ([0.3], [0.2], 2)


def test_a_folder_without_either_says_so(tmp_path: Path) -> None:
    found = read(tmp_path, config=CONFIG)
    assert found.preprocessor == Absent("no preprocessor_config.json in the folder")
    assert found.adapter == Absent("no adapter_config.json in the folder")
