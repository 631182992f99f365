"""The files of a reference's tokenizer, each read once, when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable

from gguf_audit.checkpoint import TokenizerFiles
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._json import read_bytes, read_object, read_text
from gguf_audit.formats._sentencepiece import read_sentencepiece
from gguf_audit.formats._tokenizer_json import TOKENIZER, read_tokenizer_json
from gguf_audit.limits import LIMITS
from gguf_audit.once import T, once
from gguf_audit.parts import Absent
from gguf_audit.sources import ByteSource, Tree

__all__ = ["tokenizer_files"]


def tokenizer_files(tree: Tree, files: Inventory) -> TokenizerFiles:
    """Return the tokenizer files of a checkpoint folder; nothing is read yet."""

    def reader(read: Callable[[ByteSource], T]) -> Callable[[str], T | Absent]:
        return once(lambda name: _open(tree, files, name, read))

    read_json = reader(read_tokenizer_json)
    return TokenizerFiles(
        names=files.names,
        load_json=lambda: read_json(TOKENIZER),
        # Kept by nobody: it is large, and who runs a tokenizer asks once.
        load_bytes=lambda: _open(
            tree,
            files,
            TOKENIZER,
            lambda source: read_bytes(source, limit_bytes=LIMITS.tokenizer_bytes),
        ),
        load_sentencepiece=reader(read_sentencepiece),
        load_object=reader(lambda source: read_object(source, limit_bytes=LIMITS.config_bytes)),
        load_text=reader(
            lambda source: read_text(source, limit_bytes=LIMITS.vocabulary_text_bytes)
        ),
    )


def _open(tree: Tree, files: Inventory, name: str, read: Callable[[ByteSource], T]) -> T | Absent:
    folder = name.rpartition("/")[0]
    if name not in (tree.names(folder) if folder else files.names):
        return Absent(files.missing(name))
    return read(tree.open(name))
