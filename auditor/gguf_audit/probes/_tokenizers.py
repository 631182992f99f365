"""Splits and encodes texts by parts of a ``tokenizer.json``: a child process.

Started by ``probes.tokenizer`` as a script, in a process of its own: the expressions in
such a file are anybody's, and may never end.

Reads one JSON document in the first line of stdin, with ``paths``, where packages are. To
split ``texts``: a ``normalizer``, a ``pre_tokenizer``, and more of them in ``others``.
Answers one JSON document a line: ``pieces``, a list for each text, of the first, then of
every other. To encode: ``encode`` is true, and the rest of stdin is the ``tokenizer.json``;
answers ``ids`` of every text, ``names`` of each of these ids, and ``checked``, the ids of
the text ``check`` with and without what is added around it. ``unusable`` ends it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Answer = dict[str, Any]
#: What stands for a space where text isn't turned into bytes.
SPACE = "\u2581"
EMPTY: Answer = {"type": "BPE", "vocab": {}, "merges": []}


def splitter(normalizer: object, pre_tokenizer: object) -> Tokenizer:
    """Return a tokenizer without a vocabulary."""
    from tokenizers import Tokenizer

    parts: Answer = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": EMPTY}
    none: Answer = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    return Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], **none, **parts}))


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the pieces of a text, as they stand in it."""
    if tokenizer.pre_tokenizer is None:
        return [text.replace(SPACE, " ")]
    found = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return [text[start:end].replace(SPACE, " ") for _, (start, end) in found if end > start]


def split(request: Answer) -> Iterator[Answer]:
    """Answer with the pieces of every text by every pre-tokenizer."""
    own = splitter(request["normalizer"], request["pre_tokenizer"])
    normal = own.normalizer
    texts = [normal.normalize_str(text) if normal else text for text in request["texts"]]
    yield {"pieces": [pieces(own, text) for text in texts]}
    plain = [text.replace(SPACE, " ") for text in texts]
    for other in request["others"]:
        tokenizer = splitter(None, other)
        yield {"pieces": [pieces(tokenizer, text) for text in plain]}


def encode(request: Answer, document: bytes) -> Iterator[Answer]:
    """Answer with the ids of every text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(document)
    del document
    tokenizer.no_truncation()
    tokenizer.no_padding()
    check = request["check"]
    bare, whole = (tokenizer.encode(check, add_special_tokens=added).ids for added in (False, True))
    yield {"checked": [whole, bare]}
    seen: set[int] = set()
    for text in request["texts"]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        seen.update(ids)
        yield {"ids": ids}
    yield {"names": {str(id_): tokenizer.id_to_token(id_) for id_ in sorted(seen)}}


def main() -> None:
    """Answer the request on stdin."""
    request = json.loads(sys.stdin.buffer.readline())
    sys.path += request["paths"]
    try:
        if request.get("encode"):
            answers = encode(request, sys.stdin.buffer.read())
        else:
            answers = split(request)
        for answer in answers:
            say(answer)
    except Exception as error:
        # The library raises plain exceptions, whatever is wrong.
        say({"unusable": str(error)})


def say(answer: Answer) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
