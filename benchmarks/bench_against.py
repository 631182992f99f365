"""CPU time and memory of a check against a checkpoint folder without a tokenizer.

    python benchmarks/bench_against.py FILE

FILE is what ``fixtures/build.py`` makes of gemma-3-270m. The folder has the published
config and the weights' header; their data is a hole.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gguf_audit import open_gguf
from gguf_audit.formats.card import find_card
from gguf_audit.gguf import Gguf
from measuring import is_within

REFERENCE = "google/gemma-3-270m"
#: CPU seconds of one run, its start included, and bytes at its peak.
MOST_SECONDS = 0.8
MOST_BYTES = 80 << 20
#: What the converter calls Gemma 3's tensors -> the checkpoint.
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def write_checkpoint(folder: Path, gguf: Gguf) -> None:
    """Write what a file was made from, but for the tokenizer."""
    card = find_card(REFERENCE)
    if card is None:
        raise SystemExit(f"there is no card of {REFERENCE}")
    (folder / "config.json").write_text(json.dumps(card.config), "utf-8")
    header, end = {}, 0
    for name, shape in _stored(gguf):
        size = 2
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def _stored(gguf: Gguf) -> Iterator[tuple[str, list[int]]]:
    for tensor in gguf.tensors.values():
        parts = tensor.name.split(".")
        prefix = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
        yield f"{prefix}{NAMES[parts[-2]]}.weight", list(reversed(tensor.shape))


def main() -> int:
    """Print both medians; 1 if one is over its budget."""
    file = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), open_gguf(file))
        return not is_within(
            ["check", file, "--against", folder],
            f"check {file} --against a folder",
            most_seconds=MOST_SECONDS,
            most_bytes=MOST_BYTES,
        )


if __name__ == "__main__":
    sys.exit(main())
