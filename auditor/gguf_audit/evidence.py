"""What a rule is given: a model alone, beside its reference, or among others of a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from gguf_audit.arch import Architecture
from gguf_audit.chat import Chat
from gguf_audit.checkpoint import Checkpoint, PeftAdapter
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.gguf import Card, Gguf, Scalar
from gguf_audit.layout import CacheLayout
from gguf_audit.parts import Absent, Loading
from gguf_audit.runtime.generation import Generation
from gguf_audit.runtime.measured import Probe
from gguf_audit.runtime.splitting import Splitting
from gguf_audit.runtime.tokenisation import Tokenisation

if TYPE_CHECKING:
    from gguf_audit.policies import Policy

__all__ = [
    "NOT_ANALYSED",
    "NOT_PROBED",
    "NO_REFERENCE",
    "UNREAD_REFERENCE",
    "Companion",
    "CompanionKind",
    "Conversion",
    "Digest",
    "FolderSubject",
    "Model",
    "PairSubject",
    "ProjectorMember",
    "SetMember",
    "SetSubject",
    "Settings",
    "UploadSubject",
    "UploadedFile",
]

#: Nobody gave a reference. Nothing that was asked for is missing then, but people should
#: hear what they could ask for.
NO_REFERENCE = Absent("a reference is needed: give --against")
#: Somebody did, and why it can't be had is in the errors.
UNREAD_REFERENCE = Absent("no reference could be read")
#: Nobody asked an installed runtime.
NOT_PROBED = Absent("asks an installed llama.cpp: give --probe")
#: Nobody ran the reference's tokenizer.
NOT_SPLIT = Absent("the reference's tokenizer wasn't run")
#: No rule that was chosen looks at chat templates.
NOT_ANALYSED = Absent("chat templates weren't looked at")


class Settings(Struct, frozen=True, kw_only=True):
    """What the user asked for, as far as rules may know it."""

    #: Context lengths, in tokens, at which bytes are stated.
    lengths: tuple[int, ...] = ()
    #: A reference says what a right conversion keeps, so nobody needs to guess.
    has_expected_layout: bool = False
    #: What somebody demands of every file, ``None`` where nobody does.
    policy: Policy | None = None
    #: Ids at which the reference ends generation; ``None`` where nobody says so.
    reference_ends: frozenset[int] | None = None


class Model(Loading, frozen=True, kw_only=True):
    """A GGUF model by itself."""

    gguf: Gguf
    fields: Fields
    #: Absent where ``general.architecture`` is missing or names none that we know.
    architecture: Architecture | Absent
    #: What llama.cpp keeps for this file; ``Refused`` where it won't load it.
    implied: CacheLayout | Refused | Absent
    #: What an installed llama.cpp did with it.
    probe: Probe | Absent = NOT_PROBED
    #: What ``general.file_type`` means, by llama-quantize's name.
    file_type: str | None = None
    #: Reads the model card beside the file, ``None`` where there is none.
    load_card: Callable[[], Card | None] = lambda: None
    #: sha256 by file, of those that a policy pins: they are read whole.
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Its chat templates, and what became of them in a process of their own.
    chat: Chat | Absent = NOT_ANALYSED
    #: What opens and ends its answers; ``None`` where it has no vocabulary or no template.
    generation: Generation | None = None


class Conversion(Loading, frozen=True, kw_only=True):
    """A GGUF model and the checkpoint it was made from."""

    model: Model
    checkpoint: Checkpoint
    #: ``general.architecture`` of a right conversion.
    expected_architecture: str | Absent
    #: Metadata of a right conversion; absent too where the reference is another model's.
    expected_fields: Fields | Absent
    #: What llama.cpp keeps for a right conversion.
    expected: CacheLayout | Absent
    #: What the architecture itself needs.
    ideal: CacheLayout | Absent
    #: The reference's chat templates, with the file's tokens.
    expected_chat: Chat | Absent = NOT_ANALYSED
    #: ``embedding_length`` of a right conversion and of the file, where those differ and the
    #: file's tensors have its own: no conversion makes that of this checkpoint.
    widths: tuple[int, int] | None = None
    #: Runs the splitter of the reference's tokenizer when somebody asks.
    load_splitting: Callable[[], Splitting | Absent] = lambda: NOT_SPLIT
    #: Asks the converter's question of the reference's tokenizer.
    load_names: Callable[[], tuple[str, ...] | Absent] = lambda: NOT_SPLIT
    #: Runs both tokenizers on texts.
    load_tokenisation: Callable[[], Tokenisation | Absent] = lambda: NOT_PROBED

    @property
    def mismatch(self) -> str | None:
        """Why nothing else of the two can be compared, ``None`` where it can."""
        becomes, found = self.expected_architecture, self.model.gguf.architecture
        if isinstance(becomes, str) and becomes != found:
            return f"the reference becomes {becomes!r}, the file is {found!r}"
        if self.widths is not None:
            return "the reference is {} elements wide, the file {}".format(*self.widths)
        return None

    @property
    def splitting(self) -> Splitting | Absent:
        """How the reference splits texts; reads its tokenizer (AuditError) and runs that."""
        return self.load_splitting()

    @property
    def names(self) -> tuple[str, ...] | Absent:
        """What the converter calls the reference's splitter, none where it knows none."""
        return self.load_names()

    @property
    def tokenisation(self) -> Tokenisation | Absent:
        """What the reference and an installed llama.cpp make of texts (AuditError)."""
        return self.load_tokenisation()


#: A file that goes with a model and is none.
CompanionKind = Literal["mmproj", "adapter", "imatrix", "controlvector"]


class Companion(Struct, frozen=True, kw_only=True):
    """A GGUF file that goes with a model, and what it was made of or goes with."""

    kind: CompanionKind
    gguf: Gguf
    #: What it was converted from, or the model that it goes with.
    checkpoint: Checkpoint | Absent
    #: Metadata of a right conversion of the model that it goes with.
    base: Fields | Absent
    #: Returns the encoders, ``audio``, that projector files beside it have.
    load_beside: Callable[[], frozenset[str]] = frozenset

    @property
    def adapter(self) -> PeftAdapter | Absent:
        """The PEFT adapter that it was converted from; the first call reads it (AuditError)."""
        return self.checkpoint if isinstance(self.checkpoint, Absent) else self.checkpoint.adapter


class Digest(Struct, frozen=True, kw_only=True):
    """An array or a long string, by what tells it from another."""

    #: Type of the items, or ``characters``.
    kind: str
    count: int
    #: Of the bytes as they are stored, in hex.
    sha256: str


class SetMember(Struct, frozen=True, kw_only=True):
    """What one file says of the model that several files claim to be."""

    #: As the user would name it.
    name: str
    architecture: str
    byte_order: Literal["little", "big"]
    #: Full key -> what it says; ``general.*``, ``tokenizer.*`` and hyper-parameters.
    values: Mapping[str, Scalar | Digest]
    #: Hyper-parameters that are scalars, for what llama.cpp makes of absent ones.
    fields: Fields
    #: Keys that the file's own audit has found to be wrong.
    told: frozenset[str] = frozenset()
    #: What says that it has an encoder, of images or sounds, that llama.cpp takes from
    #: another file; "" for nothing.
    encoder: str = ""


class SetSubject(Struct, frozen=True, kw_only=True):
    """Files of one folder that claim to be one model: its quants."""

    folder: str
    architecture: str
    members: tuple[SetMember, ...]


class ProjectorMember(Struct, frozen=True, kw_only=True):
    """What a projector file says of the text model that it wants."""

    #: As the user would name it.
    name: str
    #: Of what it puts in the place of tokens, one for each encoder.
    widths: tuple[int, ...]
    #: The type of its first encoder's projector.
    type: str


class PairSubject(Struct, frozen=True, kw_only=True):
    """A projector file and the text models that it stands beside in a folder."""

    folder: str
    projector: ProjectorMember
    #: At least one.
    models: tuple[SetMember, ...]


class FolderSubject(Loading, frozen=True, kw_only=True):
    """The models of one folder or repository of which all files are known."""

    folder: str
    #: At least one.
    models: tuple[SetMember, ...]
    #: A projector stands where it may be theirs, or a file that nobody could read.
    has_projector: bool
    #: Somebody says that this is all there will be.
    published: bool = False
    #: Lists its files, and those of its sub-folders, by their names alone.
    load_names: Callable[[], frozenset[str]] = lambda: frozenset()
    #: Reads its model card, ``None`` where there is none.
    load_card: Callable[[], Card | None] = lambda: None


class UploadedFile(Struct, frozen=True, kw_only=True):
    """What a repository of the Hub and a folder say of one file."""

    name: str
    #: The repository has it.
    is_listed: bool
    #: As the Hub lists them; ``None`` where it doesn't say.
    size_bytes: int | None
    sha256: str | None
    #: ``None`` where the folder doesn't have it.
    local_bytes: int | None
    #: ``None`` where there was no need to read it.
    local_sha256: str | None


class UploadSubject(Struct, frozen=True, kw_only=True):
    """A repository, and the folder that it was uploaded from."""

    #: As it was named.
    repository: str
    #: ``owner/name``, and the branch or tag that was named.
    repo: str
    revision: str | None = None
    folder: str
    files: tuple[UploadedFile, ...]
