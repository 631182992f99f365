"""What llama.cpp makes of a vocabulary's metadata when a key is absent.

``llama_vocab::impl::load`` (src/llama-vocab.cpp), llama.cpp build 11434.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from gguf_audit.fields import Origin, Value
from gguf_audit.gguf import Array, Gguf

__all__ = [
    "ADD_BOS",
    "BPE",
    "HEALED",
    "MERGED",
    "MERGES",
    "MODEL",
    "NO_VOCABULARY",
    "PRE",
    "SCORED",
    "SHOWN",
    "SPECIAL_KEYS",
    "TOKENS",
    "TokenType",
    "adds",
    "adds_bos",
    "default_id",
    "end_tokens",
    "ending_ids",
    "id_in_effect",
    "special_id",
    "tokens",
]

MODEL = "tokenizer.ggml.model"
PRE = "tokenizer.ggml.pre"
TOKENS = "tokenizer.ggml.tokens"
MERGES = "tokenizer.ggml.merges"
ADD_BOS = "tokenizer.ggml.add_bos_token"
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
#: Keys of all ids that end generation. Those that fill in text are in no checkpoint.
_ENDING_KEYS = {name: SPECIAL_KEYS[name] for name in ("eos", "eot", "eom")} | {
    "fim_pad": "tokenizer.ggml.fim_pad_token_id",
    "fim_rep": "tokenizer.ggml.fim_rep_token_id",
    "fim_sep": "tokenizer.ggml.fim_sep_token_id",
}

#: Ids that llama.cpp assumes before it reads any key, by tokenizer model
#: (src/llama-vocab.cpp, llama_vocab::impl::load).
DEFAULTS: dict[str, dict[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    BPE: {"bos": 11, "eos": 11},
    "hybriddna": {"bos": 11, "eos": 11},
    "whitespace": {"bos": 11, "eos": 11},
    "bert": {"bos": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    "t5": {"eos": 1, "unk": 2, "pad": 0},
    "plamo2": {"bos": 1, "eos": 2, "unk": 0, "pad": 3},
}
#: Pre-tokenizers that take the default bos away.
_WITHOUT_BOS = frozenset({"chatglm-bpe", "glm4", "glm5"})


class TokenType(enum.IntEnum):
    """Type of a token (``llama_token_type`` in include/llama.h)."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


#: Pre-tokenizers that begin every text with bos unless the file says otherwise.
_BEGINNING = frozenset(
    {
        *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0"),
        *("lfm2", "jina-v5-nano", "tekken", "chameleon"),
    }
)
#: Those that separate two texts, and those that always begin with bos.
_SEPARATING = frozenset({"jina-v1-en", "jina-v2-code", "roberta-bpe"})
_FORCED = frozenset({"gemma4", "granite-embed-multi-311m"})
#: What is on by default, by tokenizer model; all else is off.
_ON = {
    "llama": frozenset({"add_space_prefix", "add_bos_token"}),
    "bert": frozenset({"add_bos_token", "add_sep_token"}),
    "t5": frozenset({"add_eos_token"}),
}

#: Texts by which llama.cpp finds special tokens without an id: name -> texts.
_FOUND = {
    "eot": frozenset(
        {
            *("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>"),
            *("<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>"),
            "<\uff5cend\u2581of\u2581sentence\uff5c>",
        }
    ),
    "eom": frozenset({"<|eom_id|>"}),
    "fim_pad": frozenset({"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}),
    "fim_rep": frozenset(
        {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
    ),
    "fim_sep": frozenset({"<|file_sep|>"}),
}
_FOUND_ELSE = frozenset(
    {
        *("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "\u2581<PRE>"),
        *("<\uff5cfim\u2581begin\uff5c>", "<|code_prefix|>", "<|prefix|>"),
        *("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "\u2581<SUF>"),
        *("<\uff5cfim\u2581hole\uff5c>", "<|code_suffix|>", "<|suffix|>"),
        *("<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "\u2581<MID>"),
        *("<\uff5cfim\u2581end\uff5c>", "<|code_middle|>", "<|middle|>"),
    }
)
#: Texts of tokens that end generation whatever the ids say.
_ENDS = frozenset(
    {
        *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>"),
        *("<|calls|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>"),
        *("_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>"),
        *("<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~["),
    }
)
#: Texts of tokens that llama.cpp takes for control tokens whatever their type is.
HEALED = _ENDS | _FOUND_ELSE | frozenset[str]().union(*_FOUND.values())
#: All that end generation, or keep another from it.
_MARKS = _ENDS.union(*_FOUND.values(), {"<|plamo:eos|>"})
#: Texts of tokens that llama.cpp always shows, whatever their type is (gpt-oss).
SHOWN = frozenset({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"})


def ending_ids(gguf: Gguf, count: int) -> dict[str, int]:
    """Return the ids in effect that end generation, by name, of a vocabulary of ``count``."""
    found = {name: id_in_effect(gguf, key, count) for name, key in _ENDING_KEYS.items()}
    return {name: id_ for name, id_ in found.items() if id_ is not None}


def end_tokens(
    texts: Iterable[tuple[int, str | None]], ids: Mapping[str, int | None]
) -> frozenset[int]:
    """Return the ids that end generation.

    ``texts`` are ids and texts of the vocabulary, of the marked tokens at least; ``ids``
    are those in effect, by name as of ``ending_ids``. What llama.cpp finds by text depends
    on the order of a hash table where several texts would do; then all of them are in here.
    """
    found = {text: id_ for id_, text in texts if text in _MARKS}
    ends = {id_ for id_ in ids.values() if id_ is not None}
    ends.update(found[text] for text in _ENDS & found.keys())
    for name, names in _FOUND.items():
        if ids.get(name) is None:
            ends.update(found[text] for text in names & found.keys())
    there = {text for text, id_ in found.items() if id_ in ends}
    # Vocabularies in which these only part turns, or are no marker at all.
    if there & {"<|call|>", "<|calls|>"} and there & {"<|return|>", "<|flush|>"}:
        ends.discard(found.get("<|end|>", -1))
    if there & {"<|tool_response>", "<|plamo:eos|>"}:
        ends.discard(found.get("</s>", -1))
    return frozenset(ends)


def adds(gguf: Gguf, name: str, stored: bool | None) -> bool:
    """Return a switch in effect: ``add_bos_token`` and its like.

    ``stored`` is what a file has for it, ``None`` for nothing; the rest of the file says
    what llama.cpp then takes.
    """
    model, pre = gguf.string(MODEL) or "", gguf.string(PRE) or ""
    merged = model in MERGED
    if name == "add_bos_token" and (model == "gemma4" or (merged and pre in _FORCED)):
        return True
    if stored is not None:
        return stored
    if name == "normalizer.lowercase":
        return True
    if merged:
        beginning, separating = pre in _BEGINNING, pre in _SEPARATING
        return (name == "add_bos_token" and beginning) or (name == "add_sep_token" and separating)
    return name in _ON.get(model, frozenset())


def adds_bos(gguf: Gguf) -> Value[bool]:
    """Return whether a bos is put before every text, and why."""
    field = gguf.fields.get(ADD_BOS)
    stored = field.value if field is not None and isinstance(field.value, bool) else None
    added = adds(gguf, "add_bos_token", stored)
    origin = Origin.KEY if added is stored else Origin.RUNTIME_DEFAULT
    return Value(value=added, origin=origin, key=ADD_BOS)


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


def id_in_effect(gguf: Gguf, key: str, count: int) -> int | None:
    """Return the id of a key in a vocabulary of ``count``: its own if there is such a token.

    Else the default, if there is that one.
    """
    stored = gguf.integer(key)
    id_ = stored if stored is not None and 0 <= stored < count else default_id(gguf, key)
    return id_ if id_ is not None and id_ < count else None


def default_id(gguf: Gguf, key: str) -> int | None:
    """Return the id that llama.cpp takes where a key has none, ``None`` if it takes none."""
    model = gguf.string(MODEL) or ""
    if key == SPECIAL_KEYS["bos"] and model in MERGED and gguf.string(PRE) in _WITHOUT_BOS:
        return None
    defaults = DEFAULTS.get(model, {})
    return next((id_ for name, id_ in defaults.items() if SPECIAL_KEYS[name] == key), None)
