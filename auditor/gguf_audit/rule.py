"""A rule, what it says, and what becomes of that in a report."""

from __future__ import annotations

import enum
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Literal, assert_never

from msgspec import Struct, field
from msgspec.structs import asdict

from gguf_audit.errors import (
    AuditError,
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    SourceError,
)
from gguf_audit.evidence import (
    Companion,
    CompanionKind,
    Conversion,
    Model,
    PairSubject,
    SetSubject,
    Settings,
    UploadSubject,
)
from gguf_audit.fields import Origin
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = [
    "Finding",
    "Hit",
    "Need",
    "NoEvidence",
    "OnCompanion",
    "OnConversion",
    "OnModel",
    "OnPair",
    "OnSet",
    "OnUpload",
    "Outcome",
    "Reconvert",
    "RemoveKey",
    "Repair",
    "Replace",
    "Rule",
    "SetArray",
    "SetChatTemplate",
    "SetKey",
    "SetPreTokenizer",
    "SetSpecialId",
    "Severity",
    "Skip",
    "SkipKind",
    "fingerprint",
    "fix_command",
    "heard",
    "repair_to_dict",
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

    #: Why nothing cheaper does, or what to do before; "" where that is plain.
    hint: str = ""


class Replace(Struct, frozen=True, kw_only=True):
    """The bytes are gone: fetch or copy the file again."""


_Rewritten = SetKey | SetArray | RemoveKey | SetSpecialId | SetPreTokenizer | SetChatTemplate
Repair = _Rewritten | Reconvert | Replace


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
    it was not audited (exit 3); ``no-evidence`` that nobody gave us what to look at.
    """

    reason: str
    kind: Literal["no-evidence", "limit"] = "no-evidence"


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
    check: OnModel | OnConversion | OnSet | OnCompanion | OnPair | OnUpload
    needs: frozenset[Need] = frozenset()
    #: Codes or families whose finding on the same key already tells this cause: the
    #: engine then lists what this rule says under that finding's consequences.
    defers_to: tuple[str, ...] = ()
    #: What it says is in every finding that it defers to, so nothing is listed there.
    echoes: bool = False
    #: Looks also where the reference becomes another architecture than the file has;
    #: every other comparison of the two would only follow from that.
    any_architecture: bool = False
    #: Where the fact comes from: file and function of llama.cpp, class, specification.
    authority: str


SkipKind = Literal["not-applicable", "no-evidence", "limit", "crashed"]


class Skip(Struct, frozen=True, kw_only=True):
    """A rule that did not look, and why."""

    rule: str
    kind: SkipKind
    reason: str

    def to_dict(self) -> dict[str, object]:
        """Return the skip in the shape of the JSON report."""
        return asdict(self)


def heard(
    rule: Rule, outcomes: Iterator[Outcome], missed: Callable[[AuditError], None]
) -> Iterator[Hit | Skip]:
    """Yield what a rule says, and why it says no more.

    Whatever it raises is such a reason: one broken rule must not hide what the others
    find. ``missed`` is told what couldn't be read, for arrays, tokenizers and tensor lists
    are read when a rule first asks for them.
    """
    try:
        for outcome in _kept_to(rule, outcomes):
            if isinstance(outcome, NoEvidence):
                yield Skip(rule=rule.id, kind=outcome.kind, reason=outcome.reason)
            else:
                yield outcome
    except (LimitError, MalformedError, ReferenceUnavailableError, SourceError) as error:
        missed(error)
        kind: SkipKind = "limit" if isinstance(error, LimitError) else "no-evidence"
        yield Skip(rule=rule.id, kind=kind, reason=error.message)
    except Exception as error:
        yield Skip(rule=rule.id, kind="crashed", reason=f"{type(error).__name__}: {error}")


def _kept_to(rule: Rule, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """Yield what a rule says, as long as it keeps to the levels that it declares.

    Raises ValueError for another level: a gate relies on what the catalogue says; and
    LimitError where it never ends.
    """
    for count, outcome in enumerate(outcomes):
        if count == LIMITS.findings_of_rule:
            raise LimitError(f"more than {count:,} faults, the rest is not told")
        if isinstance(outcome, Hit) and outcome.level not in rule.levels:
            raise ValueError(f"a finding of level {outcome.level.value}, which {rule.id} lacks")
        yield outcome


class Finding(Struct, frozen=True, kw_only=True):
    """A hit with the identity and the severity that the engine gave it."""

    rule: str
    name: str
    severity: Severity
    message: str
    where: Where
    expected: object
    actual: object
    unit: str | None = None
    origin: Origin | None
    consequences: tuple[str, ...]
    repair: Repair | None
    #: The exact command, "reconvert", or ``None`` where there is nothing to repair.
    fix: str | None
    authority: str
    fingerprint: str = field(default="")

    @classmethod
    def of(
        cls, rule: Rule, hit: Hit, *, where: Where, severity: Severity, fix: str | None
    ) -> Finding:
        """Give a hit its rule's identity."""
        return cls(
            rule=rule.id,
            name=rule.name,
            severity=severity,
            message=hit.message,
            where=where,
            expected=hit.expected,
            actual=hit.actual,
            unit=hit.unit,
            origin=hit.origin,
            consequences=hit.consequences,
            repair=hit.repair,
            fix=fix,
            authority=rule.authority,
            fingerprint=fingerprint(rule.id, where),
        )

    @property
    def help(self) -> str:
        """The command that prints the rule's page."""
        return f"gguf-audit rules {self.rule}"


def fingerprint(rule: str, where: Where) -> str:
    """Return an identity that survives rewording: rule and place, never the message."""
    place = "\0".join(
        str(part) for part in (rule, where.key, where.tensor, where.layer, where.block)
    )
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def repair_to_dict(repair: Repair) -> dict[str, object]:
    """Return a repair in the shape of the JSON report."""
    match repair:
        case SetKey():
            return {"kind": "set-key", "key": repair.key, "value": repair.value}
        case SetArray():
            return {"kind": "set-array", "key": repair.key, "items": list(repair.items)}
        case RemoveKey():
            return {"kind": "remove-key", "key": repair.key}
        case SetSpecialId():
            return {"kind": "set-special-id", "name": repair.name, "id": repair.id}
        case SetPreTokenizer():
            return {"kind": "set-pre-tokenizer", "name": repair.name}
        case SetChatTemplate():
            return {"kind": "set-chat-template"}
        case Reconvert():
            return {"kind": "reconvert", "hint": repair.hint}
        case Replace():
            return {"kind": "replace"}
        case _:
            assert_never(repair)


#: A key that needs no quoting and can't be taken for an option. Another one comes from a
#: hand that wants something else than a repair.
_PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def fix_command(repair: Repair, *, file: str, rewritable: bool) -> str:
    """Return the command that carries out a repair, or ``reconvert``.

    ``gguf-set-metadata`` changes an existing scalar in place; ``gguf-new-metadata``
    writes a new file and knows special ids, the pre-tokenizer, the template and
    removal (gguf-py/gguf/scripts). Both open the file with gguf-py's reader, which
    refuses types it doesn't know and sees one shard only: such a file is not
    ``rewritable``.
    """
    match repair:
        case Replace():
            return "fetch the file again"
        case Reconvert() if repair.hint:
            return f"reconvert ({repair.hint})"
        case Reconvert():
            return "reconvert"
        case _:
            return (_rewriting(repair, file) if rewritable else None) or "reconvert"


def _rewriting(repair: _Rewritten, file: str) -> str | None:
    """Return the command that writes a repair into a file, ``None`` where none does."""
    path = f"./{file}" if file.startswith("-") else file
    source = shlex.quote(path)
    copy = f"{source} {shlex.quote(path.removesuffix('.gguf') + '-repaired.gguf')}"
    match repair:
        case SetKey(present=True) if _PLAIN_KEY.fullmatch(repair.key):
            # The script takes any word for a true boolean, "False" too.
            if isinstance(repair.value, bool | str):
                return None
            return f"gguf-set-metadata {source} {repair.key} {repair.value}"
        case RemoveKey() if _PLAIN_KEY.fullmatch(repair.key):
            return f"gguf-new-metadata --remove-metadata {repair.key} {copy}"
        case SetSpecialId() if _PLAIN_KEY.fullmatch(repair.name):
            return f"gguf-new-metadata --special-token-by-id {repair.name} {repair.id} {copy}"
        case SetPreTokenizer() if _PLAIN_KEY.fullmatch(repair.name):
            return f"gguf-new-metadata --pre-tokenizer {repair.name} {copy}"
        case SetChatTemplate():
            return f"gguf-new-metadata --chat-template-file chat_template.jinja {copy}"
        case SetKey() | RemoveKey() | SetSpecialId() | SetPreTokenizer() | SetArray():
            return None
        case _:
            assert_never(repair)
