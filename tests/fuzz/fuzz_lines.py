"""Changes what llama.cpp says line by line: its log, its process's answers and last words.

The three parts of an input stand one behind the other, with a NUL between. The first byte
of a line of the log is its level.
"""

from __future__ import annotations

import random
import re

__all__ = ["SEEDS", "mutated"]

_LOG = b"""\
\2llama_kv_cache: size =   96.00 MiB (  4096 cells,  12 layers,  1/1 seqs), K (f16):   48.00 MiB
\2llama_kv_cache:        CPU KV buffer size =     0.00 MiB
\2llama_dsv4_comp_state: csa ratio = 4, layers = 4, size =    0.25 MiB
\4llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'
\5.....
\4llama_init_from_model: failed to initialize the context
"""
_ANSWERS = b"""\
{"version": "0.1", "build": 11549}
{"loaded": true}
{"bytes": 100663296, "caches": ["llama_kv_cache: size =   96.00 MiB"]}
{"ids": [1, 2, 3]}
{"refused": "missing tensor 'output_norm.weight'"}
{"unusable": "llama_model_params has (0,) at offset 0"}
"""
_COMPLAINTS = b"""\
/src/llama-vocab.cpp:3127: GGML_ASSERT(id_to_token.size() == token_to_id.size()) failed
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
"""
SEEDS = (
    b"\0".join((_LOG, _ANSWERS, _COMPLAINTS)),
    b"\0".join((_LOG, _ANSWERS, b"")),
    b"\0".join((_LOG, b"\n".join(_ANSWERS.splitlines()[:3]) + b"\n", _COMPLAINTS)),
)
_ODD = (b"1.2.3", b".", b"9" * 400, b"-1", b"1e999", b"NaN", b"null", b"[]", b"[" * 2000, b"")
_NUMBER = re.compile(rb"[0-9.]+")


def mutated(data: bytes, other: bytes, seed: int) -> bytes:
    """Return lines moved, doubled, lost or taken from another input, or a number made odd."""
    chance = random.Random(seed)  # noqa: S311 - the same change for the same seed
    lines, others = data.split(b"\n"), other.split(b"\n")
    at = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            lines.insert(at, chance.choice(others))
        case 1:
            lines.insert(at, chance.choice(lines))
        case 2:
            del lines[at]
        case 3:
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        case _:
            found = list(_NUMBER.finditer(data))
            if found:
                begin, end = chance.choice(found).span()
                return data[:begin] + chance.choice(_ODD) + data[end:]
    return b"\n".join(lines)
