"""Gathers the evidence about one file, once, before any rule looks at it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from gguf_audit import arch
from gguf_audit.against import Reference
from gguf_audit.arch import Architecture
from gguf_audit.chat import Chat
from gguf_audit.chats import chat_of, chat_of_reference, has_template
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.companions import classify, companion_of
from gguf_audit.errors import (
    AuditError,
    ProbeError,
    ReferenceUnavailableError,
    Refused,
    UnknownArchitectureError,
)
from gguf_audit.evidence import (
    NO_REFERENCE,
    NOT_ANALYSED,
    NOT_PROBED,
    UNREAD_REFERENCE,
    Companion,
    Conversion,
    Model,
)
from gguf_audit.expectation import expected_fields
from gguf_audit.fields import Fields
from gguf_audit.formats.file_types import FILE_TYPES
from gguf_audit.gguf import Gguf
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent
from gguf_audit.runtime.generation import Generation, generation
from gguf_audit.runtime.measured import Probe
from gguf_audit.runtime.splitting import Splitting
from gguf_audit.runtime.tokenisation import Tokenisation
from gguf_audit.verdict import SubjectKind
from gguf_audit.where import Where

if TYPE_CHECKING:
    from gguf_audit.probes.templates import Analyst

__all__ = ["Evidence", "gather"]

T = TypeVar("T")

_ARCHITECTURE_KEY = "general.architecture"
#: What a checkpoint is converted to; every other file goes with such, or with nothing.
_MODELS = ("model", "vocabulary")
#: What goes with a model, as people are told.
_COMPANIONS: Mapping[str, str] = {
    "adapter": "an adapter",
    "controlvector": "a control vector",
    "imatrix": "an importance matrix",
    "mmproj": "a projector file (mmproj)",
}


class Evidence(Struct, kw_only=True):
    """What is known about one file; ``errors`` grows where a rule reads on demand."""

    kind: SubjectKind
    model: Model
    #: What it is held against.
    reference: Reference
    #: Absent with the reason why nothing can be compared.
    conversion: Conversion | Absent
    #: What the file is, where it goes with a model; ``None`` for every other.
    companion: Companion | None = None
    #: What it is, where nothing but its structure can be looked at; else "".
    foreign: str = ""
    #: More than its header can be read.
    is_local: bool
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
    return _Gathering(gguf, path, reference, probe_lengths, analyst).evidence()


class _Gathering:
    """Evidence in the making: what there is to look at, and what couldn't be had so far."""

    def __init__(
        self,
        gguf: Gguf,
        path: str | None,
        reference: Reference,
        probe_lengths: tuple[int, ...],
        analyst: Callable[[], Analyst] | None,
    ) -> None:
        self.gguf = gguf
        self.path = path
        self.reference = reference
        self.probe_lengths = probe_lengths
        self.analyst = analyst
        self.errors: list[AuditError] = []

    def evidence(self) -> Evidence:
        """Gather all of it."""
        found = classify(self.gguf)
        self.reference = _usable(self.reference)
        probe = self._had(lambda: self._probe(found.kind))
        model = self._model(found.kind, probe)
        companion: Companion | None = None
        if found.kind in _MODELS:
            conversion = self._conversion(model)
        else:
            conversion = _no_model(found.kind)
            if isinstance(self.reference, AuditError):
                self.errors.append(_unavailable(self.reference))
            elif self.reference is not None and found.companion != "adapter":
                self._no_adapters(self.reference)
            if found.companion is not None:
                companion = companion_of(self.gguf, found.companion, self.reference)
        return Evidence(
            kind=found.kind,
            model=model,
            reference=self.reference,
            conversion=conversion,
            companion=companion,
            foreign=found.foreign,
            is_local=self.path is not None,
            errors=self.errors,
        )

    def _had(self, read: Callable[[], T]) -> T | Absent:
        """Return what is read; where it can't be, note why."""
        try:
            return read()
        except AuditError as error:
            self.errors.append(error)
            return Absent(error.message)

    # The file

    def _probe(self, kind: SubjectKind) -> Probe | Absent:
        """Return what an installed llama.cpp does with the file; ProbeError."""
        if not self.probe_lengths:
            return NOT_PROBED
        if kind != "model":
            return Absent(f"llama.cpp makes no context of this kind: {kind}")
        if self.path is None:
            raise ProbeError("llama.cpp can only be asked about a file on this machine")
        # Only who asks for it pays for what it takes to run a process.
        from gguf_audit.probes import llama_cpp as installed

        found = installed.probe(_loadable(self.gguf, self.path), self.probe_lengths)
        if isinstance(found, Absent):
            raise ProbeError(found.reason)
        return found

    def _model(self, kind: SubjectKind, probe: Probe | Absent) -> Model:
        name = self.gguf.architecture
        fields = Fields(name or "", self.gguf.fields)
        architecture: Architecture | Absent
        implied: CacheLayout | Refused | Absent
        if kind not in _MODELS:
            architecture = implied = _no_model(kind)
        elif name is None:
            architecture = implied = Absent(f"{_ARCHITECTURE_KEY} is absent")
        elif (known := arch.by_name(name)) is None:
            architecture = implied = Absent(f"{_ARCHITECTURE_KEY} is {name!r}")
            message = f"the cache of architecture {name!r} isn't known"
            where = Where(key=_ARCHITECTURE_KEY)
            self.errors.append(UnknownArchitectureError(message, where=where))
        else:
            architecture = known
            implied = self._had(lambda: _implied(fields, kind))
        chat, tokens = self._chat(kind)
        return Model(
            gguf=self.gguf,
            fields=fields,
            architecture=architecture,
            implied=implied,
            probe=probe,
            file_type=_file_type(self.gguf),
            chat=chat,
            generation=tokens,
        )

    def _chat(self, kind: SubjectKind) -> tuple[Chat | Absent, Generation | None]:
        """Return the file's templates, and what opens and ends the answers that they ask for."""
        analyst = self.analyst
        if analyst is None or kind not in _MODELS:
            return NOT_ANALYSED, None
        if not has_template(self.gguf):
            return Chat(), None

        def analysed() -> tuple[Chat, Generation | None]:
            tokens = generation(self.gguf)
            return chat_of(self.gguf, tokens, analyst), tokens

        found = self._had(analysed)
        return (found, None) if isinstance(found, Absent) else found

    # The file beside its reference

    def _conversion(self, model: Model) -> Conversion | Absent:
        checkpoint = self.reference
        if checkpoint is None:
            return NO_REFERENCE
        if isinstance(checkpoint, AuditError):
            self.errors.append(_unavailable(checkpoint))
            return UNREAD_REFERENCE
        self._no_adapters(checkpoint)
        fields = self._had(lambda: _expected_fields(checkpoint))
        found = Conversion(
            model=model,
            checkpoint=checkpoint,
            expected_architecture=fields if isinstance(fields, Absent) else fields.architecture,
            expected_fields=fields,
            expected=fields if isinstance(fields, Absent) else _expected_layout(fields),
            ideal=_ideal(checkpoint),
            widths=_widths(fields, model),
            expected_chat=self._expected_chat(checkpoint, model.chat),
            load_splitting=lambda: _splitting(checkpoint),
            load_names=lambda: _names(checkpoint),
            load_tokenisation=lambda: self._tokenisation(checkpoint),
        )
        if found.mismatch is None:
            return found
        other = Absent(found.mismatch)
        return replace(found, expected_fields=other, expected=other, ideal=other)

    def _no_adapters(self, checkpoint: Checkpoint) -> None:
        """Note that the reference of what is no adapter is an adapter's folder, if it is."""
        if not isinstance(checkpoint.adapter, Absent) and isinstance(checkpoint.config, Absent):
            message = f"{checkpoint.id} is {checkpoint.config.reason}: this file is no adapter"
            self.errors.append(ReferenceUnavailableError(message))

    def _expected_chat(self, checkpoint: Checkpoint, chat: Chat | Absent) -> Chat | Absent:
        analyst = self.analyst
        if analyst is None or isinstance(chat, Absent):
            return chat
        return self._had(lambda: chat_of_reference(checkpoint, chat, analyst))

    def _tokenisation(self, checkpoint: Checkpoint) -> Tokenisation | Absent:
        """Run the tokenizers of both; AuditError."""
        if not self.probe_lengths or self.path is None:
            return NOT_PROBED
        files = checkpoint.tokenizer_files
        if isinstance(files, Absent):
            return files
        from gguf_audit.probes import tokenizer

        return tokenizer.compare(files, _loadable(self.gguf, self.path))


def _usable(reference: Reference) -> Reference:
    """Return a reference, or why it is none: a GGUF file that is no model."""
    if not isinstance(reference, Checkpoint) or reference.gguf is None:
        return reference
    found = classify(reference.gguf)
    if found.kind in _MODELS:
        return reference
    what = _COMPANIONS.get(found.companion or "") or found.foreign or "no model"
    return ReferenceUnavailableError(
        f"{reference.id} is {what}, which is no reference: give what this file was made from, or"
        " another conversion of that"
    )


def _no_model(kind: SubjectKind) -> Absent:
    return Absent(f"no model: {kind}")


def _unavailable(error: AuditError) -> ReferenceUnavailableError:
    return ReferenceUnavailableError(error.message, where=error.where)


def _loadable(gguf: Gguf, path: str) -> Path:
    """Return what llama.cpp is to open: of a set the first shard, it finds the others."""
    model = Path(path)
    return model if len(gguf.files) == 1 else model.with_name(Path(gguf.files[0].name).name)


def _file_type(gguf: Gguf) -> str | None:
    """Return llama-quantize's name for what the file says of its quantization."""
    number = gguf.integer("general.file_type")
    return None if number is None else FILE_TYPES.get(number)


def _implied(fields: Fields, kind: SubjectKind) -> CacheLayout | Refused | Absent:
    """Return what llama.cpp keeps for a file, or that it refuses it; AuditError."""
    try:
        return arch.implied_layout(fields)
    except Refused as error:
        # A vocabulary by itself needs no hyper-parameters.
        return Absent(error.message) if kind == "vocabulary" else error


def _expected_fields(checkpoint: Checkpoint) -> Fields | Absent:
    """Return the metadata of a right conversion; AuditError."""
    if isinstance(checkpoint.config, Absent) and checkpoint.gguf is None:
        return checkpoint.config
    fields = expected_fields(checkpoint)
    if checkpoint.gguf is not None:
        # Nobody has checked that file: rules may take its types for granted.
        with contextlib.suppress(UnknownArchitectureError):
            arch.implied_layout(fields)
    return fields


def _widths(fields: Fields | Absent, model: Model) -> tuple[int, int] | None:
    """Return the widths of a right conversion and of the file: ``Conversion.widths``."""
    tensor = model.gguf.tensors.get("token_embd.weight")
    if isinstance(fields, Absent) or fields.architecture != model.gguf.architecture:
        return None
    if tensor is None or not tensor.shape:
        return None
    wanted, has = (each.find("embedding_length") for each in (fields, model.fields))
    if wanted is None or has is None or has.value != tensor.shape[0]:
        return None
    match wanted.value, has.value:
        case int(expected), int(actual) if expected != actual:
            return expected, actual
        case _:
            return None


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
