"""What each file is held against: what ``--against`` or a policy says, or the file itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import AuditError, CrashedError, ReferenceUnavailableError
from gguf_audit.expectation import Part, disagreement, why_missing
from gguf_audit.gguf import Gguf
from gguf_audit.targets import Located

if TYPE_CHECKING:
    from gguf_audit.policies import Policy
    from gguf_audit.reference import References

__all__ = ["AUTO", "Against", "Reference", "unmet"]

#: Instead of a reference: the one that each file names itself.
AUTO = "auto"
#: The reference, the reason why it can't be had, or ``None`` if none was asked for.
Reference = Checkpoint | AuditError | None


class Against:
    """The references of one run, each of them opened once."""

    def __init__(self, against: str | None, policy: Policy | None, *, debug: bool = False) -> None:
        """Open what all files are held against; a policy speaks where ``against`` doesn't."""
        self._against = against
        self._policy = policy
        self._references: References | None = None
        #: Whether others are held against it too: then one of them may be the reference.
        self.several = False
        #: What every file is held against; ``None`` too where that depends on the file.
        self.common: Reference = None
        if against is None and (policy is None or not policy.references):
            return
        # Only who compares pays for what opens checkpoints, cards and the Hub.
        from gguf_audit.reference import References

        self._references = References()
        if against is not None and against != AUTO:
            try:
                self.common = self._references.open(against)
            except AuditError as error:
                self.common = error
            except Exception as error:
                # A reference that we fail on must not hide what files say of themselves.
                if debug:
                    raise
                self.common = CrashedError.of(error)

    def of(self, gguf: Gguf, located: Located) -> Reference:
        """Return what one file is held against, or why it can't be."""
        reference = self._meant_by(gguf, located)
        if isinstance(reference, Checkpoint) and _is_itself(reference, gguf, located):
            if self.several:
                return None  # All quants of a folder, against the one that they were made of.
            return ReferenceUnavailableError(
                "the file itself is no reference: give what it was made from, or another"
                " conversion of that"
            )
        return reference

    def _meant_by(self, gguf: Gguf, located: Located) -> Reference:
        if self.common is not None or self._references is None:
            return self.common
        against = self._against
        if against is None and self._policy is not None:
            against = self._policy.reference_of(located.name)
        if against is None:
            return None
        try:
            if against == AUTO:
                return self._references.named_by(gguf, located.base_model, disagreement)
            return self._references.open(against)
        except AuditError as error:
            return error

    def read_ahead(self) -> None:
        """Read what is common now: once, and not in every process that is forked."""
        if isinstance(self.common, Checkpoint):
            for read in (self.common.load_tokenizer, self.common.load_tensors):
                # Whoever needs it meets the error again, and says so.
                with contextlib.suppress(Exception):
                    read()


def _is_itself(reference: Checkpoint, gguf: Gguf, located: Located) -> bool:
    """Tell whether a reference is the very file that is held against it, or a shard of it."""
    path = located.local_path()
    if reference.gguf is None or path is None:
        return False
    return not _inodes(reference.gguf.name, reference.gguf).isdisjoint(_inodes(path, gguf))


def _inodes(path: str, gguf: Gguf) -> set[tuple[int, int]]:
    """Return what the files of a model are on this machine, by whatever path they are named."""
    found: set[tuple[int, int]] = set()
    for file in gguf.files:
        # A file that has gone since it was read is nobody's reference either.
        with contextlib.suppress(OSError):
            stat = Path(path).with_name(Path(file.name).name).stat()
            found.add((stat.st_dev, stat.st_ino))
    return found


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
