"""Small checkpoints with a tokenizer of each kind, and right conversions of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gguf_audit import open_checkpoint
from gguf_audit.checkpoint import Json, Tokenizer, Vocabulary
from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue, TensorSpec, write_gguf
from sentencepiece_models import Piece, sentencepiece

__all__ = ["CHECKPOINTS", "PIECES", "ROWS", "convert", "write_checkpoint"]

#: How gguf-py spells a special token's key, where not as the checkpoint does.
SPELLED = {"unk": "unknown", "sep": "seperator", "pad": "padding"}
ROWS = 48

_LETTERS = "abcdefghijklmnopqrst"
_WORDS = [*(f"\u0120{letter}" for letter in _LETTERS)]
_MERGES: list[Json] = [["\u0120", letter] for letter in _LETTERS]
_TOKENS = ["\u0120", *_LETTERS, *_WORDS]


def _begin_and_end(begin: str, end: str | None) -> Json:
    single: list[Json] = [{"SpecialToken": {"id": begin}}, {"Sequence": {"id": "A"}}]
    if end is not None:
        single.append({"SpecialToken": {"id": end}})
    return {"type": "TemplateProcessing", "single": single, "pair": []}


def _added(**flags: bool) -> list[Json]:
    return [
        {"id": len(_TOKENS) + index, "content": text, "special": special, "normalized": False}
        for index, (text, special) in enumerate(flags.items())
    ]


BYTE_PAIRS: dict[str, Json] = {
    "model": {
        "type": "BPE",
        "vocab": {text: id_ for id_, text in enumerate(_TOKENS)},
        "merges": _MERGES,
    },
    "added_tokens": _added(**{"<s>": True, "<stop>": True, "<tool>": False, "<|im_end|>": True}),
    "post_processor": _begin_and_end("<s>", None),
}
PIECES = [
    *(Piece("<unk>", 0.0, 2), Piece("<s>", 0.0, 3), Piece("</s>", 0.0, 3)),
    *(Piece(f"<0x{byte:02X}>", 0.0, 6) for byte in range(4)),
    *(Piece(f"\u2581{letter}", -float(index)) for index, letter in enumerate(_LETTERS)),
]
_SETTINGS: dict[str, Json] = {"bos_token": "<s>", "eos_token": "<stop>"}
_LLAMA: dict[str, Json] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-5,
    "vocab_size": ROWS,
}
_BERT: dict[str, Json] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 32,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "layer_norm_eps": 1e-12,
    "vocab_size": ROWS,
}
_WORD_PIECES: dict[str, Json] = {
    "model": {
        "type": "WordPiece",
        "vocab": {
            text: id_
            for id_, text in enumerate(
                ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_LETTERS, *(f"##{one}" for one in _LETTERS)]
            )
        },
    },
    "added_tokens": [
        {"id": id_, "content": text, "special": True}
        for id_, text in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    ],
    "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None},
    "post_processor": _begin_and_end("[CLS]", "[SEP]"),
}

#: Name -> files of a checkpoint folder.
CHECKPOINTS: Mapping[str, Mapping[str, Json | bytes]] = {
    "byte pairs": {
        "config.json": _LLAMA,
        "tokenizer.json": BYTE_PAIRS,
        "tokenizer_config.json": _SETTINGS,
    },
    "pieces": {
        "config.json": _LLAMA,
        "tokenizer.model": sentencepiece(PIECES),
        "tokenizer_config.json": {
            "add_bos_token": True,
            "add_eos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": {
                **{
                    str(id_): {"content": text, "special": True}
                    for id_, text in enumerate(("<unk>", "<s>", "</s>"))
                },
                "27": {"content": "<start_of_turn>", "special": True},
                "28": {"content": "<tool>\u2581", "special": False},
            },
        },
    },
    "word pieces": {
        "config.json": _BERT,
        "tokenizer.json": _WORD_PIECES,
        "tokenizer_config.json": {
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
        },
    },
}


def write_checkpoint(folder: Path, name: str) -> Path:
    """Write one of the checkpoints into a folder, and return that."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in CHECKPOINTS[name].items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / file).write_bytes(data)
    return folder


def convert(
    checkpoint: Path,
    file: Path,
    others: Mapping[str, FieldValue] | None = None,
    *,
    without: frozenset[str] = frozenset(),
) -> Path:
    """Write the right conversion of a checkpoint's vocabulary, some keys changed or lost."""
    found = open_checkpoint(str(checkpoint))
    right, tokenizer = found.vocabulary, found.tokenizer
    assert isinstance(right, Vocabulary)
    assert isinstance(tokenizer, Tokenizer)
    kind = "bert" if right.model == "bert" else "llama"
    texts = [text or f"[PAD{id_}]" for id_, text in enumerate(right.texts)]
    texts += [f"[PAD{id_}]" for id_ in range(len(texts), ROWS)]
    more = ROWS - len(right.types)
    keys: dict[str, FieldValue] = {
        "general.architecture": kind,
        "tokenizer.ggml.model": right.model,
        "tokenizer.ggml.tokens": (ValueType.STRING, texts),
        "tokenizer.ggml.token_type": (ValueType.INT32, [*right.types, *[5] * more]),
    }
    if right.model == "gpt2":
        keys["tokenizer.ggml.pre"] = "gpt-2"
    if right.scores is not None:
        scores = [*right.scores, *[-10000.0] * more]
        keys["tokenizer.ggml.scores"] = (ValueType.FLOAT32, scores)
    if right.merges is not None:
        keys["tokenizer.ggml.merges"] = (ValueType.STRING, list(right.merges))
    for name, id_ in tokenizer.special_ids.items():
        key = f"tokenizer.ggml.{SPELLED.get(name, name)}_token_id"
        keys[key] = (ValueType.UINT32, id_)
    for name, values in right.switches.items():
        if values[0] is not None:
            keys[f"tokenizer.ggml.{name}"] = values[0]
    tensors = [TensorSpec("token_embd.weight", (32, ROWS), "F16")]
    kept = {key: value for key, value in keys.items() if key not in without}
    return write_gguf(file, {**kept, **(others or {})}, tensors)
