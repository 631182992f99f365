"""Puts one fault at a time into the vocabulary of a right file, and says what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from gguf_audit import open_checkpoint, open_gguf
from gguf_audit.checkpoint import Vocabulary
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import Gguf, Scalar, ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.rule import Rule
from gguf_audit.runtime.vocabulary import HEALED, SHOWN, TokenType, adds, special_id
from gguf_audit.testing import write_gguf
from gguf_audit_rules import load
from injector import Keys, copied

__all__ = ["FAULTS", "RULES", "Told", "VocabularyFault", "faulty", "told"]

#: Those that compare vocabularies; what probes and templates tell besides is theirs to test.
RULES: dict[str, Rule] = {rule.id: rule for rule in load() if "TOK001" <= rule.id <= "TOK019"}

PREFIX = "tokenizer.ggml."
NORMAL, CONTROL, USER_DEFINED = TokenType.NORMAL, TokenType.CONTROL, TokenType.USER_DEFINED


@dataclass(slots=True)
class Draft:
    """A file's keys, with the lists of its vocabulary at hand; a change is made in place."""

    gguf: Gguf
    right: Vocabulary
    #: Names of special tokens whose ids nobody knows.
    unsure: frozenset[str]
    keys: Keys

    def items(self, name: str) -> list[object]:
        """Return a list's items, none where there is no such list."""
        found = self.gguf.array(PREFIX + name)
        return [] if found is None else list(found.items())

    def put(self, name: str, items: Sequence[object]) -> bool:
        """Store a list again; False where it is the same as before."""
        array = self.gguf.array(PREFIX + name)
        if array is None or list(items) == list(array.items()):
            return False
        self.keys[PREFIX + name] = (array.item_type, cast("list[Scalar]", list(items)))
        return True

    def ids(self, *types: TokenType) -> list[int]:
        """Return the ids of real tokens of a type, of which no library is unsure."""
        return [
            id_
            for id_, (type_, text) in enumerate(
                zip(self.items("token_type"), self.items("tokens"), strict=True)
            )
            if type_ in types
            and id_ < len(self.right.texts)
            and self.right.texts[id_] == text
            and id_ not in self.right.other_types
        ]


#: Changes a draft; False where a file can't have the fault, or isn't harmed by it.
Change = Callable[[Draft], bool]


@dataclass(frozen=True, slots=True)
class VocabularyFault:
    """One thing that can be wrong with a vocabulary, and who may tell it."""

    name: str
    change: Change
    rules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Told:
    """What an audit said of a fault: codes of errors and warnings."""

    subject: str
    fault: VocabularyFault
    codes: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def wrong(self) -> str | None:
        """What is wrong with that, ``None`` where one finding says it."""
        if self.unread:
            return f"{self.subject}: {self.fault.name}: {self.unread}"
        if len(self.codes) == 1 and self.codes[0] in self.fault.rules:
            return None
        return f"{self.subject}: {self.fault.name}: {self.codes or 'not found'}"


def faulty(
    gguf: Gguf, right: Vocabulary, unsure: frozenset[str], fault: VocabularyFault
) -> Keys | None:
    """Return the keys of a file with the fault, ``None`` where it can't have it."""
    draft = Draft(gguf, right, unsure, copied(gguf)[0])
    return draft.keys if fault.change(draft) else None


def told(name: str, file: Path, reference: str, folder: Path) -> Iterator[Told]:
    """Yield what is said of every fault that a right file can have."""
    gguf, checkpoint = open_gguf(file), open_checkpoint(reference)
    right, tokenizer = checkpoint.vocabulary, checkpoint.tokenizer
    if isinstance(right, Absent) or isinstance(tokenizer, Absent):
        return
    _, tensors = copied(gguf)
    for fault in FAULTS:
        keys = faulty(gguf, right, tokenizer.unsure_ids, fault)
        if keys is None:
            continue
        broken = write_gguf(folder / "broken.gguf", keys, tensors)
        [report] = audit_targets([str(broken)], Mandate(against=reference, rules=RULES)).subjects
        yield Told(
            subject=name,
            fault=fault,
            codes=tuple(
                finding.rule for finding in report.findings if finding.severity.value != "info"
            ),
            unread=tuple(skip.reason for skip in report.skips if skip.kind in ("crashed", "limit")),
        )


# Kinds


def _as_pieces(draft: Draft) -> bool:
    """Store byte pairs as SentencePiece, with a score for each as others write."""
    if draft.gguf.string(PREFIX + "model") != "gpt2":
        return False
    draft.keys[PREFIX + "model"] = "llama"
    draft.keys[PREFIX + "scores"] = (ValueType.FLOAT32, [0.0] * len(draft.items("tokens")))
    return True


def _as_byte_pairs(draft: Draft) -> bool:
    if draft.gguf.string(PREFIX + "model") != "llama":
        return False
    draft.keys[PREFIX + "model"] = "gpt2"
    draft.keys[PREFIX + "pre"] = "gpt-2"
    draft.keys[PREFIX + "merges"] = (ValueType.STRING, ["\u2581 a"])
    return True


# Texts


def _garble(at: int) -> Change:
    def change(draft: Draft) -> bool:
        texts, ids = draft.items("tokens"), draft.ids(NORMAL)
        texts[ids[at]] = "\u00a7\u00a7 garbled"
        return draft.put("tokens", texts)

    return change


def _swap_texts(draft: Draft) -> bool:
    texts, ids = draft.items("tokens"), draft.ids(NORMAL)
    one, other = ids[-1], ids[-2]
    texts[one], texts[other] = texts[other], texts[one]
    return draft.put("tokens", texts)


def _shift_texts(draft: Draft) -> bool:
    texts = draft.items("tokens")
    return draft.put("tokens", [*texts[1:], texts[0]])


def _pad(kind: TokenType) -> Change:
    """Let padding stand in the place of a real token."""

    def change(draft: Draft) -> bool:
        texts, types, ids = draft.items("tokens"), draft.items("token_type"), draft.ids(kind)
        if not ids:
            return False
        texts[ids[-1]], types[ids[-1]] = f"[PAD{ids[-1]}]", int(TokenType.UNUSED)
        draft.put("token_type", types)
        return draft.put("tokens", texts)

    return change


def _double(draft: Draft) -> bool:
    texts, ids = draft.items("tokens"), draft.ids(NORMAL)
    texts[ids[-1]] = texts[ids[0]]
    return draft.put("tokens", texts)


def _cut(draft: Draft) -> bool:
    if not draft.gguf.tensors:
        return False
    for name in ("tokens", "token_type", "scores"):
        draft.put(name, draft.items(name)[:-1])
    return True


def _spell_spaces(draft: Draft) -> bool:
    """Write the spaces of user-defined tokens the way that pieces have them."""
    texts, ids = draft.items("tokens"), draft.ids(USER_DEFINED)
    ids = [id_ for id_ in ids if id_ not in draft.right.other_texts]
    for id_ in ids:
        texts[id_] = str(texts[id_]).replace(" ", "\u2581")
    return draft.put("tokens", texts)


def _invent(draft: Draft) -> bool:
    """Give padding a text and a type, as a fine-tune's tokens that got here by mistake."""
    texts, types = draft.items("tokens"), draft.items("token_type")
    rows = min(len(texts), len(draft.right.texts))
    free = [id_ for id_ in range(rows) if draft.right.texts[id_] is None]
    free += range(len(draft.right.texts), len(texts))
    if not free:
        return False
    texts[free[-1]], types[free[-1]] = "<|invented|>", int(CONTROL)
    draft.put("token_type", types)
    return draft.put("tokens", texts)


# Types


def _retype(found: TokenType, becomes: TokenType, *, all_of_them: bool = False) -> Change:
    def change(draft: Draft) -> bool:
        types, texts = draft.items("token_type"), draft.items("tokens")
        ids = [id_ for id_ in draft.ids(found) if texts[id_] not in SHOWN]
        ids = ids if all_of_them else [id_ for id_ in ids if texts[id_] not in HEALED][-1:]
        for id_ in ids:
            types[id_] = int(becomes)
        return draft.put("token_type", types)

    return change


def _lose_types(draft: Draft) -> bool:
    if not draft.ids(CONTROL, USER_DEFINED, TokenType.BYTE):
        return False
    return draft.keys.pop(PREFIX + "token_type", None) is not None


def _shift_types(draft: Draft) -> bool:
    types = draft.items("token_type")
    if not draft.ids(CONTROL):
        return False
    return draft.put("token_type", [*types[1:], types[0]])


# Scores and merges


def _is_scored(draft: Draft) -> bool:
    return draft.right.scores is not None and len(set(draft.right.scores)) > 2


def _rescore(score: Callable[[float, int], float]) -> Change:
    def change(draft: Draft) -> bool:
        if not _is_scored(draft) or draft.right.model not in ("llama", "t5"):
            return False
        scores = [float(str(item)) for item in draft.items("scores")]
        return draft.put("scores", [score(item, id_) for id_, item in enumerate(scores)])

    return change


def _swap_scores(draft: Draft) -> bool:
    scores, ids = draft.items("scores"), draft.ids(NORMAL)
    if not _is_scored(draft) or not scores:
        return False
    one, other = ids[-1], ids[-2]
    scores[one], scores[other] = scores[other], scores[one]
    return draft.put("scores", scores)


def _merge(become: Callable[[list[object]], list[object]]) -> Change:
    def change(draft: Draft) -> bool:
        merges = draft.items("merges")
        return len(merges) > 1 and draft.put("merges", become(merges))

    return change


# Ids and switches


def _point(name: str, choose: Callable[[Draft], int | None]) -> Change:
    """Let a special id stand for another token."""

    def change(draft: Draft) -> bool:
        key = f"{PREFIX}{name}_token_id"
        id_ = choose(draft)
        if id_ is None or draft.gguf.integer(key) == id_ or draft.unsure:
            return False
        field = draft.gguf.fields.get(PREFIX + "add_bos_token")
        if name == "bos" and field is not None and field.value is False:
            return False  # It is never used.
        if name != "eot" and key not in draft.keys:
            return False
        draft.keys[key] = (ValueType.UINT32, id_)
        return True

    return change


def _last_word(draft: Draft) -> int | None:
    return draft.ids(NORMAL)[-1]


def _padding(draft: Draft) -> int | None:
    texts = draft.items("tokens")
    found = [id_ for id_, text in enumerate(texts) if text == f"[PAD{id_}]"]
    return found[-1] if found else None


def _flip(name: str, token: str | None = None) -> Change:
    """Turn a switch the other way, where that changes what llama.cpp does."""

    def change(draft: Draft) -> bool:
        gguf, key = draft.gguf, PREFIX + name
        field = gguf.fields.get(key)
        if field is None or (token is not None and special_id(gguf, token) is None):
            return False
        value = not field.value
        values = {adds(gguf, name, each) for each in draft.right.switches.get(name, ())}
        if not values or adds(gguf, name, value) in values:
            return False
        if name == "add_space_prefix" and draft.right.model not in ("llama", "t5"):
            return False
        draft.keys[key] = value
        return True

    return change


def _lose_switch(name: str) -> Change:
    def change(draft: Draft) -> bool:
        gguf = draft.gguf
        values = {adds(gguf, name, each) for each in draft.right.switches.get(name, ())}
        token = name.removeprefix("add_").removesuffix("_token")
        if not values or adds(gguf, name, None) in values or special_id(gguf, token) is None:
            return False
        return draft.keys.pop(PREFIX + name, None) is not None

    return change


def _fault(name: str, change: Change, *rules: str) -> VocabularyFault:
    return VocabularyFault(name, change, frozenset(rules))


#: The splitter of Kimi K2 works without merges, so that only a reference tells.
MERGES = ("TOK013", "TOK014")

FAULTS: tuple[VocabularyFault, ...] = (
    _fault("byte pairs stored as pieces", _as_pieces, "TOK010"),
    _fault("pieces stored as byte pairs", _as_byte_pairs, "TOK010"),
    _fault("garble the first word", _garble(0), "TOK011"),
    _fault("garble the last word", _garble(-1), "TOK011"),
    _fault("swap two texts", _swap_texts, "TOK011"),
    _fault("shift the texts", _shift_texts, "TOK011"),
    _fault("pad over a control token", _pad(CONTROL), "TOK011"),
    _fault("pad over a user-defined token", _pad(USER_DEFINED), "TOK011"),
    _fault("double a text", _double, "TOK012"),
    _fault("cut the lists", _cut, "TOK002"),
    _fault("spell spaces as pieces do", _spell_spaces, "TOK011"),
    _fault("give padding a text", _invent, "TOK011"),
    _fault("control becomes normal", _retype(CONTROL, NORMAL), "TOK016"),
    _fault("every control becomes normal", _retype(CONTROL, NORMAL, all_of_them=True), "TOK016"),
    _fault("control becomes user-defined", _retype(CONTROL, USER_DEFINED), "TOK016"),
    _fault("user-defined becomes normal", _retype(USER_DEFINED, NORMAL), "TOK016"),
    _fault("user-defined becomes control", _retype(USER_DEFINED, CONTROL), "TOK016"),
    _fault("normal becomes control", _retype(NORMAL, CONTROL), "TOK016"),
    _fault("byte becomes normal", _retype(TokenType.BYTE, NORMAL), "TOK016"),
    _fault("lose the types", _lose_types, "TOK016"),
    _fault("shift the types", _shift_types, "TOK016"),
    _fault("no scores but 0", _rescore(lambda _score, _id: 0.0), "TOK015"),
    _fault("turn the scores round", _rescore(lambda score, _id: -score), "TOK015"),
    _fault("scores by id", _rescore(lambda _score, id_: float(-id_ - 1000)), "TOK015"),
    _fault("swap two scores", _swap_scores, "TOK015"),
    _fault("lose the last merge", _merge(lambda merges: merges[:-1]), "TOK014"),
    _fault("lose the first merge", _merge(lambda merges: merges[1:]), "TOK014"),
    _fault("turn the merges round", _merge(lambda merges: merges[::-1]), "TOK014"),
    _fault(
        "swap the last merges", _merge(lambda merges: [*merges[:-2], *merges[:-3:-1]]), "TOK014"
    ),
    _fault("merges without a space", _merge(lambda merges: [*merges[:-1], "nospace"]), *MERGES),
    _fault("a merge of no token", _merge(lambda merges: [*merges, "no \u00a7token"]), *MERGES),
    _fault("empty the merges", _merge(lambda _merges: []), *MERGES),
    _fault("eos is a word", _point("eos", _last_word), "TOK004"),
    _fault("eos is padding", _point("eos", _padding), "TOK004"),
    _fault("bos is a word", _point("bos", _last_word), "TOK004"),
    _fault("a word ends generation", _point("eot", _last_word), "TOK004", "TOK017"),
    _fault("flip add_bos", _flip("add_bos_token", "bos"), "TOK019"),
    _fault("flip add_eos", _flip("add_eos_token", "eos"), "TOK019"),
    _fault("flip add_sep", _flip("add_sep_token", "sep"), "TOK019"),
    _fault("flip add_space_prefix", _flip("add_space_prefix"), "TOK019"),
    _fault("lose add_bos", _lose_switch("add_bos_token"), "TOK019"),
    _fault("lose add_eos", _lose_switch("add_eos_token"), "TOK019"),
    _fault("lose add_sep", _lose_switch("add_sep_token"), "TOK019"),
)
