from __future__ import annotations

from gguf.constants import LlamaFileType

from gguf_audit.formats.file_types import FILE_TYPES


def test_names_are_those_of_the_enumeration() -> None:
    # An older gguf-py knows fewer.
    known = {
        type_.value: type_.name.removeprefix("MOSTLY_").removeprefix("ALL_")
        for type_ in LlamaFileType
    }
    ours = {number: name for number, name in FILE_TYPES.items() if number in known}
    assert ours == known | {1024: "guessed"}
