"""How a repair is told, and the command that carries it out."""

from __future__ import annotations

import re
import shlex
from typing import assert_never

from gguf_audit.rule import (
    Advice,
    Reconvert,
    RemoveKey,
    Repair,
    Replace,
    Rewritten,
    SetArray,
    SetChatTemplate,
    SetKey,
    SetPreTokenizer,
    SetSpecialId,
)

__all__ = ["fix_command", "repair_to_dict"]


def repair_to_dict(repair: Repair) -> dict[str, object]:
    """Return a repair in the shape of the JSON report."""
    match repair:
        case SetKey():
            return {"kind": "set-key", "key": repair.key, "value": repair.value}
        case SetArray():
            return {"kind": "set-array", "key": repair.key, "items": list(repair.items)}
        case RemoveKey():
            return {"kind": "remove-key", "key": repair.key}
        case SetSpecialId():
            return {"kind": "set-special-id", "name": repair.name, "id": repair.id}
        case SetPreTokenizer():
            return {"kind": "set-pre-tokenizer", "name": repair.name}
        case SetChatTemplate():
            return {"kind": "set-chat-template"}
        case Reconvert():
            return {"kind": "reconvert", "hint": repair.hint or repair.first}
        case Replace():
            return {"kind": "replace"}
        case Advice():
            return {"kind": "advice", "text": repair.text}
        case _:
            assert_never(repair)


#: A key that needs no quoting and can't be taken for an option. Another one comes from a
#: hand that wants something else than a repair.
_PLAIN_KEY = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def fix_command(repair: Repair, *, file: str, rewritable: bool) -> str:
    """Return the command that carries out a repair, ``reconvert``, or what else to do.

    ``gguf-set-metadata`` changes an existing scalar in place; ``gguf-new-metadata``
    writes a new file and knows special ids, the pre-tokenizer, the template and
    removal (gguf-py/gguf/scripts). Both open the file with gguf-py's reader, which
    refuses types it doesn't know and sees one shard only: such a file is not
    ``rewritable``.
    """
    match repair:
        case Replace():
            return "fetch the file again"
        case Advice():
            return repair.text
        case Reconvert() if repair.first:
            return f"{repair.first}; else reconvert"
        case Reconvert() if repair.hint:
            return f"reconvert ({repair.hint})"
        case Reconvert():
            return "reconvert"
        case _:
            return (_rewriting(repair, file) if rewritable else None) or "reconvert"


def _rewriting(repair: Rewritten, file: str) -> str | None:
    """Return the command that writes a repair into a file, ``None`` where none does."""
    path = f"./{file}" if file.startswith("-") else file
    source = shlex.quote(path)
    copy = f"{source} {shlex.quote(path.removesuffix('.gguf') + '-repaired.gguf')}"
    match repair:
        case SetKey(present=True) if re.fullmatch(_PLAIN_KEY, repair.key):
            # The script takes any word for a true boolean, "False" too.
            if isinstance(repair.value, bool | str):
                return None
            return f"gguf-set-metadata {source} {repair.key} {repair.value}"
        case RemoveKey() if re.fullmatch(_PLAIN_KEY, repair.key):
            return f"gguf-new-metadata --remove-metadata {repair.key} {copy}"
        case SetSpecialId() if re.fullmatch(_PLAIN_KEY, repair.name):
            return f"gguf-new-metadata --special-token-by-id {repair.name} {repair.id} {copy}"
        case SetPreTokenizer() if re.fullmatch(_PLAIN_KEY, repair.name):
            return f"gguf-new-metadata --pre-tokenizer {repair.name} {copy}"
        case SetChatTemplate():
            return f"gguf-new-metadata --chat-template-file chat_template.jinja {copy}"
        case SetKey() | RemoveKey() | SetSpecialId() | SetPreTokenizer() | SetArray():
            return None
        case _:
            assert_never(repair)
