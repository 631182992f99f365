"""What llama.cpp makes of a vocabulary's metadata when a key is absent.

``llama_vocab::impl::load`` (src/llama-vocab.cpp), llama.cpp build 11434.
"""

from __future__ import annotations

from gguf_audit.subject import Array, Gguf, Origin, Value

__all__ = [
    "BPE",
    "MERGED",
    "MERGES",
    "MODEL",
    "NO_VOCABULARY",
    "PRE",
    "SCORED",
    "SPECIAL_KEYS",
    "TOKENS",
    "default_id",
    "special_id",
    "tokens",
]

MODEL = "tokenizer.ggml.model"
PRE = "tokenizer.ggml.pre"
TOKENS = "tokenizer.ggml.tokens"
MERGES = "tokenizer.ggml.merges"
BPE = "gpt2"
#: Models whose merges llama.cpp reads, and doesn't do without.
MERGED = frozenset({BPE, "hybriddna", "whitespace", "gemma4"})
#: Models that say that there is no vocabulary: nothing else is read.
NO_VOCABULARY = frozenset({"no_vocab", "none"})
#: Models whose tokenizer can't work without a score per token: unigram and SentencePiece
#: merge by score (src/llama-vocab.cpp, llm_tokenizer_spm and llm_tokenizer_ugm).
SCORED = frozenset({"llama", "t5", "plamo2"})

#: Name of a special token in a checkpoint -> its key in gguf-py's spelling.
SPECIAL_KEYS = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "eot": "tokenizer.ggml.eot_token_id",
    "eom": "tokenizer.ggml.eom_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "sep": "tokenizer.ggml.seperator_token_id",
    "pad": "tokenizer.ggml.padding_token_id",
    "cls": "tokenizer.ggml.cls_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
}

#: Ids that llama.cpp assumes before it reads any key, by tokenizer model
#: (src/llama-vocab.cpp, llama_vocab::impl::load).
DEFAULTS: dict[str, dict[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    "gpt2": {"bos": 11, "eos": 11},
    "bert": {"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    "t5": {"eos": 1, "unk": 2, "pad": 0},
    "plamo2": {"bos": 1, "eos": 2, "unk": 0, "pad": 3},
    "gemma4": {"bos": 1, "eos": 2, "unk": 0},
}


def tokens(gguf: Gguf) -> Array | None:
    """Return the token list, ``None`` where there is none."""
    return gguf.array(TOKENS)


def special_id(gguf: Gguf, name: str) -> Value[int] | None:
    """Return the special id in effect and its origin, ``None`` where there is none."""
    key = SPECIAL_KEYS[name]
    stored = gguf.integer(key)
    if stored is not None:
        return Value(value=stored, origin=Origin.KEY, key=key)
    default = default_id(gguf, key)
    if default is None:
        return None
    return Value(value=default, origin=Origin.RUNTIME_DEFAULT, key=key)


def default_id(gguf: Gguf, key: str) -> int | None:
    """Return the id that llama.cpp takes where a key has none, ``None`` if it takes none."""
    defaults = DEFAULTS.get(gguf.string(MODEL) or "", {})
    return next((id_ for name, id_ in defaults.items() if SPECIAL_KEYS[name] == key), None)
