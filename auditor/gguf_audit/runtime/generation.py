"""Which tokens open a prompt and which end an answer, as llama.cpp sees a vocabulary.

``llama_vocab::impl::load`` (src/llama-vocab.cpp), llama.cpp build 11434.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gguf_audit.runtime.vocabulary import MODEL, PRE, SPECIAL_KEYS, default_id, tokens
from gguf_audit.subject import Gguf, Origin, Value

__all__ = ["ADD_BOS", "Generation", "adds_bos", "generation"]

ADD_BOS = "tokenizer.ggml.add_bos_token"
#: Models whose prompts begin with a BOS unless the file says otherwise.
_OPENED = frozenset({"llama", "bert"})
#: The same, of pre-tokenizers of a byte-level vocabulary.
_OPENED_PRE = frozenset(
    {
        "chameleon",
        "falcon-h1",
        "falcon3",
        "jina-v5-nano",
        "lfm2",
        "llama-bpe",
        "llama-v3",
        "llama3",
        "midm-2.0",
        "pixtral",
        "tekken",
    }
)
#: Pre-tokenizers that take the default BOS away.
_WITHOUT_BOS = frozenset({"chatglm-bpe", "glm4", "glm5"})
#: Tokens that end generation by their text, whatever the file says of them.
_ENDS = frozenset(
    {
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "[e~[",
    }
)
#: Key -> texts by which the token is found where the key has none: these end generation
#: as well.
_FILLS: Mapping[str, frozenset[str]] = {
    "tokenizer.ggml.fim_pad_token_id": frozenset(
        {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}
    ),
    "tokenizer.ggml.fim_rep_token_id": frozenset(
        {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}
    ),
    "tokenizer.ggml.fim_sep_token_id": frozenset({"<|file_sep|>"}),
}
#: How a token begins that templates print and people don't.
_MARKERS = ("<", "[", "]", "|", "_<")
_MARKS = _ENDS.union(*_FILLS.values(), {"<|plamo:eos|>"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What opens and what ends generation with a vocabulary."""

    #: Id -> text of the tokens that are special, or look like a marker.
    texts: Mapping[int, str]
    #: ``bos``, ``eos``, ``eot``, ``eom`` -> id, as far as there is one.
    special: Mapping[str, int]
    #: Ids that end it, those of ``special`` included.
    ends: frozenset[int]

    def text(self, name: str) -> str:
        """Return the text of a special token, "" where there is none."""
        id_ = self.special.get(name)
        return "" if id_ is None else self.texts.get(id_, "")


def adds_bos(gguf: Gguf) -> Value[bool]:
    """Return whether a BOS is put before a prompt, and why."""
    pre = gguf.string(PRE)
    gemma = gguf.string(MODEL) == "gemma4" or pre in ("gemma4", "granite-embed-multi-311m")
    stored = gguf.fields.get(ADD_BOS)
    if gemma:
        return Value(value=True, origin=Origin.RUNTIME_DEFAULT, key=ADD_BOS)
    if stored is not None and isinstance(stored.value, bool):
        return Value(value=stored.value, origin=Origin.KEY, key=ADD_BOS)
    model = gguf.string(MODEL)
    opened = model in _OPENED or (model == "gpt2" and pre in _OPENED_PRE)
    return Value(value=opened, origin=Origin.RUNTIME_DEFAULT, key=ADD_BOS)


def generation(gguf: Gguf) -> Generation | None:
    """Return what opens and ends generation; reads some of the tokens (AuditError).

    ``None`` where the file has no vocabulary.
    """
    stored = tokens(gguf)
    if stored is None:
        return None
    special = {
        name: id_
        for name in ("bos", "eos", "eot", "eom")
        if (id_ := _special(gguf, SPECIAL_KEYS[name], stored.count)) is not None
    }
    fills = {key: _special(gguf, key, stored.count) for key in _FILLS}
    named = [id_ for id_ in (*special.values(), *fills.values()) if id_ is not None]
    texts = stored.some(named, _MARKERS)
    marks = {text: id_ for id_, text in texts.items() if text in _MARKS}
    ends = {id_ for name, id_ in special.items() if name != "bos"}
    ends.update(id_ for text, id_ in marks.items() if text in _ENDS)
    for key, id_ in fills.items():
        found = [marks[text] for text in _FILLS[key] if text in marks] if id_ is None else [id_]
        ends.update(found[:1])
    return Generation(texts=texts, special=special, ends=frozenset(ends - _kept(marks, ends)))


def _special(gguf: Gguf, key: str, count: int) -> int | None:
    """Return the id of a key: its own if the vocabulary has it, else the default."""
    stored = gguf.integer(key)
    if stored is not None and 0 <= stored < count:
        return stored
    default = default_id(gguf, key)
    if key == SPECIAL_KEYS["bos"] and gguf.string(PRE) in _WITHOUT_BOS:
        return None
    return default if default is not None and default < count else None


def _kept(marks: Mapping[str, int], ends: set[int]) -> set[int]:
    """Return the ids that go on after all: of the vocabularies where they only part turns."""
    there = {text for text, id_ in marks.items() if id_ in ends}
    kept: set[int] = set()
    calls = not there.isdisjoint({"<|call|>", "<|calls|>"})
    if calls and not there.isdisjoint({"<|return|>", "<|flush|>"}) and "<|end|>" in there:
        kept.add(marks["<|end|>"])
    if not there.isdisjoint({"<|tool_response>", "<|plamo:eos|>"}) and "</s>" in there:
        kept.add(marks["</s>"])
    return kept
