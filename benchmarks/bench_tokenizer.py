"""CPU time and memory of a check against a checkpoint with the largest real tokenizer.

    python benchmarks/bench_tokenizer.py
    python benchmarks/bench_tokenizer.py FOLDER    writes what is checked, and no more

262,144 tokens and 514,906 merges, as Gemma 3 has them, written as transformers writes
them: merges as pairs, a line for each part. The file has the same; nothing is tokenised.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench_against import RUNS, cost

from gguf_audit.checkpoint import Json
from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf

FILE = "model.gguf"
TOKENS, MERGES = 262_144, 514_906
#: CPU seconds of one run, its start included, and bytes at its peak.
MOST_SECONDS = 1.5
MOST_BYTES = 250 << 20
#: The bytes as GPT-2 spells them.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTES = [chr(byte) for byte in _PRINTABLE] + [chr(0x100 + i) for i in range(256 - len(_PRINTABLE))]
SPACE, CONSONANTS, VOWELS = "\u0120", "bdgklmnp", "aeiu"
NAMED = ("<s>", "</s>", "<pad>")
WIDTH = 16
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
KEYS: dict[str, FieldValue] = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.dimension_count": WIDTH // 2,
    "llama.vocab_size": TOKENS,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.bos_token_id": TOKENS - 3,
    "tokenizer.ggml.eos_token_id": TOKENS - 2,
    "tokenizer.ggml.padding_token_id": TOKENS - 1,
}


def vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Return tokens without the named ones, and merges: words of up to three syllables."""
    merges = [(SPACE, consonant) for consonant in CONSONANTS]
    starts = [*CONSONANTS, *(SPACE + consonant for consonant in CONSONANTS)]
    syllables = [*itertools.product(starts, VOWELS)]
    merges += syllables
    parts = ["".join(each) for each in syllables]
    merges += itertools.product(parts, parts)
    tokens = [*BYTES, *("".join(each) for each in merges)]
    words = [
        *itertools.islice(itertools.product(parts, repeat=3), TOKENS - len(tokens) - len(NAMED))
    ]
    merges += ((first + second, third) for first, second, third in words)
    again = MERGES - len(merges)
    merges += ((first, second + third) for first, second, third in words[:again])
    return [*tokens, *("".join(each) for each in words)], merges


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


def write_file(file: Path, tokens: list[str], merges: list[tuple[str, str]]) -> None:
    """Write the right conversion."""
    keys: dict[str, FieldValue] = {
        **KEYS,
        "tokenizer.ggml.tokens": (ValueType.STRING, [*tokens, *NAMED]),
        "tokenizer.ggml.token_type": (ValueType.INT32, [1] * len(tokens) + [3] * len(NAMED)),
        "tokenizer.ggml.merges": (ValueType.STRING, [" ".join(merge) for merge in merges]),
    }
    write_gguf(file, keys, [*_tensors()])


def _tensors() -> Iterator[TensorSpec]:
    yield TensorSpec("token_embd.weight", (WIDTH, TOKENS), "F16")
    yield TensorSpec("output_norm.weight", (WIDTH,), "F32")
    yield TensorSpec("output.weight", (WIDTH, TOKENS), "F16")
    for name in ("attn_norm", "ffn_norm"):
        yield TensorSpec(f"blk.0.{name}.weight", (WIDTH,), "F32")
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        yield TensorSpec(f"blk.0.{name}.weight", (WIDTH, WIDTH), "F16")
    for name, shape in (("gate", (WIDTH, 64)), ("up", (WIDTH, 64)), ("down", (64, WIDTH))):
        yield TensorSpec(f"blk.0.ffn_{name}.weight", shape, "F16")


def write(folder: Path) -> None:
    """Write the checkpoint, and the file beside it."""
    tokens, merges = vocabulary()
    write_file(folder / FILE, tokens, merges)
    write_checkpoint(folder, tokens, merges)


def main() -> int:
    """Print both medians; 1 if one is over its budget."""
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]))
        return 0
    program = str(Path(sys.executable).with_name("gguf-audit"))
    with tempfile.TemporaryDirectory() as made:
        # In a process of its own: what this one has at its peak counts for its children.
        subprocess.run([sys.executable, __file__, made], check=True)
        command = [program, "check", str(Path(made, FILE)), "--against", made]
        runs = [cost(command) for _ in range(RUNS)]
    seconds = statistics.median(each for each, _ in runs)
    size = statistics.median(each for _, each in runs)
    over = seconds > MOST_SECONDS or size > MOST_BYTES
    print(
        f"{seconds:.3f} s and {size / (1 << 20):.0f} MiB, {'OVER' if over else 'within'} "
        f"{MOST_SECONDS:.2f} s and {MOST_BYTES >> 20} MiB: gguf-audit check of {TOKENS:,} tokens "
        f"and {MERGES:,} merges --against a folder"
    )
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
