"""Gathers the evidence about one file, once, before any rule looks at it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from gguf_audit import arch
from gguf_audit.chat import Chat
from gguf_audit.chats import chat_of, chat_of_reference, has_template
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.companions import Classified, classify, companion_of
from gguf_audit.errors import (
    AuditError,
    ProbeError,
    ReferenceUnavailableError,
    Refused,
    UnknownArchitectureError,
)
from gguf_audit.evidence import NOT_PROBED, Companion, Conversion, Model
from gguf_audit.expectation import Part, expected_fields, why_missing
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.runtime.generation import generation
from gguf_audit.runtime.measured import Probe
from gguf_audit.runtime.splitting import Splitting
from gguf_audit.runtime.tokenisation import Tokenisation
from gguf_audit.verdict import NO_REFERENCE, SubjectKind
from gguf_audit.where import Where

if TYPE_CHECKING:
    from gguf_audit.probes.templates import Analyst

__all__ = ["REQUIRABLE", "Evidence", "Reference", "gather", "unmet"]

#: The reference, the reason why it can't be had, or ``None`` if none was asked for.
Reference = Checkpoint | AuditError | None
#: Parts of a reference that a user may insist on.
REQUIRABLE = tuple(part.value for part in Part)

_ARCHITECTURE_KEY = "general.architecture"


class Evidence(Struct, kw_only=True):
    """What is known about one file; ``errors`` grows where a rule reads on demand."""

    kind: SubjectKind
    model: Model
    #: Absent with the reason why nothing can be compared.
    conversion: Conversion | Absent
    #: What the file is, where it goes with a model; ``None`` for every other.
    companion: Companion | None = None
    #: What it is, where nothing but its structure can be looked at; else "".
    foreign: str = ""
    #: Why something that was asked for isn't there.
    errors: list[AuditError] = field(default_factory=list[AuditError])

    def missed(self, error: AuditError) -> None:
        """Note once why something wasn't read, however many rules ask for it."""
        if all(error.message != known.message for known in self.errors):
            self.errors.append(error)


def gather(
    gguf: Gguf,
    path: str | None,
    reference: Reference,
    *,
    probe_lengths: tuple[int, ...] = (),
    analyst: Callable[[], Analyst] | None = None,
) -> Evidence:
    """Gather what is known about a file, and about its reference.

    ``path`` is where the file is on this machine, if it is. ``probe_lengths`` asks an
    installed llama.cpp, if there are any; ``analyst`` returns who is asked about chat
    templates. What can't be had is in the evidence's ``errors``.
    """
    errors: list[AuditError] = []
    found = classify(gguf)
    probe = _probe(gguf, path, found.kind, probe_lengths, errors)
    if found.kind not in ("model", "vocabulary"):
        return _no_model(gguf, found, reference, probe, errors)
    model = _model(gguf, found.kind, probe, errors)
    if analyst is not None:
        model = _with_chat(model, analyst, errors)
    conversion = _conversion(model, reference, errors)
    if analyst is not None and isinstance(conversion, Conversion):
        conversion = replace(conversion, expected_chat=_expected_chat(conversion, analyst, errors))
    if probe_lengths and path is not None and not isinstance(conversion, Absent):
        conversion = _tokenised(conversion, _loadable(gguf, path))
    return Evidence(kind=found.kind, model=model, conversion=conversion, errors=errors)


def _with_chat(model: Model, analyst: Callable[[], Analyst], errors: list[AuditError]) -> Model:
    if not has_template(model.gguf):
        return replace(model, chat=Chat())
    try:
        tokens = generation(model.gguf)
        chat = chat_of(model.gguf, tokens, analyst)
    except AuditError as error:
        errors.append(error)
        return replace(model, chat=Absent(error.message))
    return replace(model, chat=chat, generation=tokens)


def _expected_chat(
    conversion: Conversion, analyst: Callable[[], Analyst], errors: list[AuditError]
) -> Chat | Absent:
    chat = conversion.model.chat
    if isinstance(chat, Absent):
        return chat
    try:
        return chat_of_reference(conversion.checkpoint, chat, analyst)
    except AuditError as error:
        errors.append(error)
        return Absent(error.message)


def _no_model(
    gguf: Gguf,
    found: Classified,
    reference: Reference,
    probe: Probe | Absent,
    errors: list[AuditError],
) -> Evidence:
    """Return the evidence about what goes with a model, or has nothing to do with one."""
    if isinstance(reference, AuditError):
        errors.append(ReferenceUnavailableError(reference.message, where=reference.where))
    none = Absent(f"no model: {found.kind}")
    companion = None
    if found.companion is not None:
        companion = companion_of(gguf, found.companion, reference, NO_REFERENCE)
    return Evidence(
        kind=found.kind,
        model=Model(
            gguf=gguf,
            fields=Fields(gguf.architecture or "", gguf.fields),
            architecture=none,
            implied=none,
            probe=probe,
        ),
        conversion=none,
        companion=companion,
        foreign=found.foreign,
        errors=errors,
    )


def _model(gguf: Gguf, kind: SubjectKind, probe: Probe | Absent, errors: list[AuditError]) -> Model:
    name = gguf.architecture
    fields = Fields(name or "", gguf.fields)
    known = None if name is None else arch.by_name(name)
    if known is None:
        missing = Absent(f"{_ARCHITECTURE_KEY} is {'absent' if name is None else repr(name)}")
        if name is not None:
            message = f"the cache of architecture {name!r} isn't known"
            where = Where(key=_ARCHITECTURE_KEY)
            errors.append(UnknownArchitectureError(message, where=where))
        return Model(gguf=gguf, fields=fields, architecture=missing, implied=missing, probe=probe)
    implied: CacheLayout | Refused | Absent
    try:
        implied = arch.implied_layout(fields)
    except Refused as error:
        # A vocabulary by itself needs no hyper-parameters.
        implied = Absent(error.message) if kind == "vocabulary" else error
    except AuditError as error:
        errors.append(error)
        implied = Absent(error.message)
    return Model(gguf=gguf, fields=fields, architecture=known, implied=implied, probe=probe)


def _probe(
    gguf: Gguf,
    path: str | None,
    kind: SubjectKind,
    lengths: tuple[int, ...],
    errors: list[AuditError],
) -> Probe | Absent:
    if not lengths:
        return NOT_PROBED
    if kind != "model":
        return Absent(f"llama.cpp makes no context of this kind: {kind}")
    if path is None:
        missing = Absent("llama.cpp can only be asked about a file on this machine")
        errors.append(ProbeError(missing.reason))
        return missing
    # Only who asks for it pays for what it takes to run a process.
    from gguf_audit.probes import llama_cpp as installed

    found = installed.probe(_loadable(gguf, path), lengths)
    if isinstance(found, Absent):
        errors.append(ProbeError(found.reason))
    return found


def _loadable(gguf: Gguf, path: str) -> Path:
    """Return what llama.cpp is to open: of a set the first shard, it finds the others."""
    model = Path(path)
    return model if len(gguf.files) == 1 else model.with_name(Path(gguf.files[0].name).name)


def _conversion(
    model: Model, checkpoint: Reference, errors: list[AuditError]
) -> Conversion | Absent:
    if checkpoint is None:
        return Absent(NO_REFERENCE)
    if isinstance(checkpoint, AuditError):
        errors.append(ReferenceUnavailableError(checkpoint.message, where=checkpoint.where))
        return Absent("no reference could be read")
    if not isinstance(checkpoint.adapter, Absent) and isinstance(checkpoint.config, Absent):
        message = f"{checkpoint.id} is {checkpoint.config.reason}: this file is no adapter"
        errors.append(ReferenceUnavailableError(message))
    becomes: str | Absent
    fields = _expected_fields(checkpoint, errors)
    if isinstance(fields, Absent):
        becomes = fields
    else:
        becomes = fields.architecture
        if becomes != model.gguf.architecture:
            has = model.gguf.architecture
            fields = Absent(f"the reference becomes {becomes!r}, the file is {has!r}")
    return Conversion(
        model=model,
        checkpoint=checkpoint,
        expected_architecture=becomes,
        expected_fields=fields,
        expected=fields if isinstance(fields, Absent) else _expected_layout(fields),
        ideal=_ideal(checkpoint),
        load_splitting=lambda: _splitting(checkpoint),
        load_names=lambda: _names(checkpoint),
    )


def _splitting(checkpoint: Checkpoint) -> Splitting | Absent:
    files = checkpoint.tokenizer_files
    found = files if isinstance(files, Absent) else files.json
    if isinstance(found, Absent):
        return found
    # Only who has something to split pays for what it takes to run a process.
    from gguf_audit.probes import tokenizer

    return tokenizer.split(found)


def _names(checkpoint: Checkpoint) -> tuple[str, ...] | Absent:
    files = checkpoint.tokenizer_files
    if isinstance(files, Absent):
        return files
    from gguf_audit.probes import tokenizer

    return tokenizer.names_by_ids(files)


def _tokenised(conversion: Conversion, model: Path) -> Conversion:
    """Return a conversion whose tokenizers are run when somebody asks for that."""
    files = conversion.checkpoint.tokenizer_files

    def tokenise() -> Tokenisation | Absent:
        if isinstance(files, Absent):
            return files
        from gguf_audit.probes import tokenizer

        return tokenizer.compare(files, model)

    return replace(conversion, load_tokenisation=tokenise)


def _expected_fields(checkpoint: Checkpoint, errors: list[AuditError]) -> Fields | Absent:
    if isinstance(checkpoint.config, Absent) and checkpoint.gguf is None:
        return checkpoint.config
    try:
        fields = expected_fields(checkpoint)
        if checkpoint.gguf is not None:
            # Nobody has checked that file: rules may take its types for granted.
            with contextlib.suppress(UnknownArchitectureError):
                arch.implied_layout(fields)
    except AuditError as error:
        errors.append(error)
        return Absent(error.message)
    return fields


def _expected_layout(fields: Fields) -> CacheLayout | Absent:
    try:
        return arch.implied_layout(fields)
    except AuditError as error:
        return Absent(f"llama.cpp wouldn't load a right conversion: {error.message}")


def _ideal(checkpoint: Checkpoint) -> CacheLayout | Absent:
    if isinstance(checkpoint.config, Absent):
        return checkpoint.config
    try:
        return arch.ideal_layout(checkpoint.config)
    except AuditError as error:
        return Absent(error.message)


def unmet(require: AbstractSet[str], reference: Reference) -> Iterator[AuditError]:
    """Yield an error for each reason why required parts of the reference aren't there.

    A reference that can't be read has said so itself; what a part of it raises is yielded
    as it is, so that who has met it already knows it again.
    """
    if isinstance(reference, AuditError):
        return
    reasons: dict[str, list[Part]] = {}
    for part in sorted(Part(name) for name in require):
        try:
            reason = _missing(part, reference)
        except AuditError as error:
            yield error
        else:
            if reason is not None:
                reasons.setdefault(reason, []).append(part)
    for reason, parts in reasons.items():
        yield ReferenceUnavailableError(f"--require {','.join(parts)}: {reason}")


def _missing(part: Part, reference: Checkpoint | None) -> str | None:
    return "no reference was given" if reference is None else why_missing(reference, part)
