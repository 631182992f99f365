"""What can keep us from auditing: one family of exceptions, one class per reason.

A fault of the model is a finding, never an exception. An exception of this family
means that something which was asked for could not be looked at; the run goes on
with the next target and ends with exit code 3.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from gguf_audit.where import Where

__all__ = [
    "AuditError",
    "CatalogueError",
    "CrashedError",
    "LimitError",
    "MalformedError",
    "ProbeError",
    "ReferenceUnavailableError",
    "Refused",
    "SourceError",
    "UnknownArchitectureError",
    "UnlistedError",
    "UnsupportedError",
]


class AuditError(Exception):
    """Something that was asked for could not be audited."""

    #: Stable identifier of the reason, in the ``errors`` of the JSON report.
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: Where | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where or Where()

    def forget(self) -> None:
        """Let go of where it was raised: those frames hold all that was read, and it them."""
        self.__traceback__ = self.__context__ = self.__cause__ = None


class SourceError(AuditError):
    """The bytes can't be had: no such file, no permission, not a regular file."""

    code = "source"


class UnlistedError(SourceError):
    """A place that can be asked for a file by name, and can't be listed."""


class MalformedError(AuditError):
    """The bytes are there but are not what they claim to be."""

    code = "malformed"


class LimitError(AuditError):
    """Looking further would cost more than ``limits`` allows."""

    code = "limit"


class UnsupportedError(AuditError):
    """A known kind of input that this version doesn't audit."""

    code = "unsupported"


class UnknownArchitectureError(AuditError):
    """The architecture isn't one whose cache layout we know."""

    code = "unknown-architecture"


class ReferenceUnavailableError(AuditError):
    """The reference can't be found or read."""

    code = "reference"


class ProbeError(AuditError):
    """An installed runtime was to be asked about the file and can't be."""

    code = "probe"


class CatalogueError(AuditError):
    """The rules can't be loaded as they should: none, one twice, a broken provider."""

    code = "catalogue"


class CrashedError(AuditError):
    """The audit of a target ended before it was done: by a fault of ours, or its process."""

    code = "crashed"

    @classmethod
    def of(cls, error: Exception) -> CrashedError:
        """Return what becomes of an exception that is a fault of ours."""
        return cls(f"internal error: {type(error).__name__}: {error} (see --debug)")


class Refused(AuditError):  # noqa: N818 - it is the runtime's verdict, not our error
    """The runtime itself won't run this model with these settings.

    ``kind`` is ``refused`` for a clean error of the runtime and ``aborts`` where
    an assertion or a crash ends its process.
    """

    code = "refused"

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["refused", "aborts"] = "refused",
        where: Where | None = None,
    ) -> None:
        super().__init__(message, where=where)
        self.kind: Literal["refused", "aborts"] = kind
