"""CPU time and memory of a check against a checkpoint with the largest real tokenizer.

    python benchmarks/bench_tokenizer.py
    python benchmarks/bench_tokenizer.py FOLDER    writes what is checked, and no more

262,144 tokens and 514,906 merges, as Gemma 3 has them, written as transformers writes
them: merges as pairs, a line for each part. The file has the same; nothing is tokenised.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from byte_pairs import WIDTH, vocabulary, write_file
from gguf_audit.checkpoint import Json
from measuring import is_within

FILE = "model.gguf"
NAMED = ("<s>", "</s>", "<pad>")
TOKENS, MERGES = 262_144, 514_906
#: CPU seconds of one run, its start included, and bytes at its peak.
MOST_SECONDS = 1.5
MOST_BYTES = 250 << 20
CONFIG: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-5,
    "vocab_size": TOKENS,
}


def write_checkpoint(folder: Path, tokens: list[str], merges: list[tuple[str, str]]) -> None:
    """Write what the file was made from, but for the weights."""
    document = {
        "version": "1.0",
        "added_tokens": [
            {"id": len(tokens) + i, "content": text, "special": True, "normalized": False}
            for i, text in enumerate(NAMED)
        ],
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": True,
        },
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {text: id_ for id_, text in enumerate(tokens)},
            "merges": merges,
        },
    }
    text = json.dumps(document, ensure_ascii=False, indent=2)
    (folder / "tokenizer.json").write_text(text, "utf-8")
    names = dict(zip(("bos_token", "eos_token", "pad_token"), NAMED, strict=True))
    (folder / "tokenizer_config.json").write_text(json.dumps(names), "utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")


def write(folder: Path) -> None:
    """Write the checkpoint, and its right conversion beside it."""
    tokens, merges = vocabulary(TOKENS - len(NAMED), MERGES)
    write_file(folder / FILE, tokens, merges, named=NAMED)
    write_checkpoint(folder, tokens, merges)


def main() -> int:
    """Print both medians; 1 if one is over its budget."""
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory() as made:
        # In a process of its own: what this one has at its peak counts for its children.
        subprocess.run([sys.executable, __file__, made], check=True)
        return not is_within(
            ["check", str(Path(made, FILE)), "--against", made],
            f"check of {TOKENS:,} tokens and {MERGES:,} merges --against a folder",
            most_seconds=MOST_SECONDS,
            most_bytes=MOST_BYTES,
        )


if __name__ == "__main__":
    sys.exit(main())
