"""A rule, and what it may say: hits, and how they are repaired."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from gguf_audit.evidence import (
    Companion,
    CompanionKind,
    Conversion,
    FolderSubject,
    Model,
    PairSubject,
    SetSubject,
    Settings,
    UploadSubject,
)
from gguf_audit.fields import Origin
from gguf_audit.where import Where

__all__ = [
    "Hit",
    "Need",
    "NoEvidence",
    "OnCompanion",
    "OnConversion",
    "OnFolder",
    "OnModel",
    "OnPair",
    "OnSet",
    "OnUpload",
    "Outcome",
    "Reconvert",
    "RemoveKey",
    "Repair",
    "Replace",
    "Rewritten",
    "Rule",
    "SetArray",
    "SetChatTemplate",
    "SetKey",
    "SetPreTokenizer",
    "SetSpecialId",
    "Severity",
]


class Severity(enum.StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """3 for an error, 1 for an info."""
        return {"error": 3, "warning": 2, "info": 1}[self.value]


class Need(enum.StrEnum):
    """Evidence beyond the file's own header that a rule can't do without."""

    REFERENCE = "reference"
    #: What the converter writes for the reference's config.
    HYPERPARAMETERS = "hyperparameters"
    #: What llama.cpp keeps for the file and for a right conversion.
    LAYOUT = "layout"
    #: What vocabulary a right conversion has.
    VOCABULARY = "vocabulary"
    #: What an installed runtime does with the file.
    PROBE = "probe"
    #: What the reference's tokenizer and an installed runtime make of texts.
    TOKENIZER = "tokenizer"
    #: What a policy demands.
    POLICY = "policy"
    #: The chat templates, parsed and rendered.
    RENDER = "render"
    #: What tensors hold: only of files on this machine more than the header is read.
    VALUES = "values"


class SetKey(Struct, frozen=True, kw_only=True):
    """Give a scalar key this value."""

    key: str
    value: int | float | bool | str
    #: The key is in the file with a value of the right type: it can be set in place.
    present: bool


class SetArray(Struct, frozen=True, kw_only=True):
    """Give an array key these items."""

    key: str
    items: tuple[int | float | bool | str, ...]


class RemoveKey(Struct, frozen=True, kw_only=True):
    """Remove a key."""

    key: str


class SetSpecialId(Struct, frozen=True, kw_only=True):
    """Set ``tokenizer.ggml.<name>_token_id``; ``name`` as gguf-py spells it."""

    name: str
    id: int


class SetPreTokenizer(Struct, frozen=True, kw_only=True):
    """Set ``tokenizer.ggml.pre``."""

    name: str


class SetChatTemplate(Struct, frozen=True, kw_only=True):
    """Store the reference's chat template."""

    template: str


class Reconvert(Struct, frozen=True, kw_only=True):
    """Only a new conversion helps."""

    #: Why nothing cheaper does, or what else might; "" where that is plain.
    hint: str = ""
    #: What to do before, and only convert again where that wasn't it; "" for nothing.
    first: str = ""


class Replace(Struct, frozen=True, kw_only=True):
    """The bytes are gone: fetch or copy the file again."""


class Advice(Struct, frozen=True, kw_only=True):
    """Something else than this file is to be changed: what to do, or the command for it."""

    text: str


#: What is done to a file as it is.
Rewritten = SetKey | SetArray | RemoveKey | SetSpecialId | SetPreTokenizer | SetChatTemplate
Repair = Rewritten | Reconvert | Replace | Advice


class Hit(Struct, frozen=True, kw_only=True):
    """What a rule has to say about one cause."""

    #: Expected, found, where: one sentence without a final full stop.
    message: str
    where: Where
    expected: object = None
    actual: object = None
    #: What these count, one of them: ``byte``. ``None`` for what is no quantity, and for
    #: the value of a key, which stands in the file as it is told.
    unit: str | None = None
    origin: Origin | None = None
    level: Severity
    repair: Repair | None = None
    #: What else is wrong because of this, one sentence each.
    consequences: tuple[str, ...] = ()
    #: More keys, or names of tensors, that have to do with this cause: what another rule
    #: says of one of them may be folded into it, and it into what that one says.
    also: tuple[str, ...] = ()


class NoEvidence(Struct, frozen=True):
    """A rule could not look: what was missing.

    ``limit`` says that the file goes beyond what we know or may spend, so that part of
    it was not audited (exit 3); ``no-evidence`` that nobody gave us what to look at;
    ``not-applicable`` that the rest is none of this rule's, unless somebody names the rule.
    """

    reason: str
    kind: Literal["no-evidence", "limit", "not-applicable"] = "no-evidence"


Outcome = Hit | NoEvidence


class OnModel(Struct, frozen=True):
    """A check of a GGUF model by itself."""

    check: Callable[[Model, Settings], Iterator[Outcome]]


class OnConversion(Struct, frozen=True):
    """A check of a GGUF model against its reference."""

    check: Callable[[Conversion, Settings], Iterator[Outcome]]


class OnSet(Struct, frozen=True):
    """A check of several files that claim to be one model, against each other."""

    check: Callable[[SetSubject, Settings], Iterator[Outcome]]


class OnCompanion(Struct, frozen=True):
    """A check of files that go with a model; ``Need.REFERENCE`` where it takes one."""

    check: Callable[[Companion, Settings], Iterator[Outcome]]
    kinds: tuple[CompanionKind, ...]


class OnPair(Struct, frozen=True):
    """A check of a projector file against the text models that it stands beside."""

    check: Callable[[PairSubject, Settings], Iterator[Outcome]]


class OnFolder(Struct, frozen=True):
    """A check of what stands beside the models of a folder or a repository."""

    check: Callable[[FolderSubject, Settings], Iterator[Outcome]]


class OnUpload(Struct, frozen=True):
    """A check of a repository against the folder that it was uploaded from."""

    check: Callable[[UploadSubject, Settings], Iterator[Outcome]]


class Rule(Struct, frozen=True, kw_only=True):
    """One thing that can be wrong, how bad it may be, and how it is looked for.

    Its page is the docstring of its module: a summary line, then the sections
    ``What it does``, ``Why it matters``, ``Fix`` and ``Authority``.
    """

    #: Family and number, never reused.
    id: str
    #: Kebab-case; the module has the same name with underscores.
    name: str
    levels: tuple[Severity, ...]
    check: OnModel | OnConversion | OnSet | OnCompanion | OnPair | OnFolder | OnUpload
    needs: frozenset[Need] = frozenset()
    #: Codes or families whose finding on the same key already tells this cause: the
    #: engine then lists what this rule says under that finding's consequences.
    defers_to: tuple[str, ...] = ()
    #: What it says is in every finding that it defers to, so nothing is listed there.
    echoes: bool = False
    #: Looks also where the reference is another model's, of another architecture or width;
    #: every other comparison of the two would only follow from that.
    any_reference: bool = False
    #: Looks at whatever a GGUF file is, a model or not.
    any_kind: bool = False
    #: Where the fact comes from: file and function of llama.cpp, class, specification.
    authority: str
