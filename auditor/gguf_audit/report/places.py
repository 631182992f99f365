"""Where the reader of a report finds a file: its path inside the repository."""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import quote

from msgspec import Struct

from gguf_audit.verdict import SubjectReport
from gguf_audit.where import Where

__all__ = ["Checkout"]

#: ``https://``, ``hf://``, ``C:/``.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+")


class Checkout(Struct, frozen=True, kw_only=True):
    """The repository in which findings are shown; both paths absolute, "" for unknown."""

    root: str = ""
    #: Where targets that are no absolute paths start.
    folder: str = ""

    def path(self, subject: SubjectReport, where: Where | None = None) -> str:
        """Return the path of the file that is meant, relative to the repository's root.

        It stays inside: what lies elsewhere keeps its names alone, because who shows
        findings refuses a report with a path that leads out, or with a scheme.
        """
        target = subject.target.replace(os.sep, "/")
        name = ((where and where.file) or target).replace(os.sep, "/")
        if "/" not in name and name != posixpath.basename(target):
            # A shard, or a file of a set, by its name alone.
            folder = target if subject.kind == "set" else posixpath.dirname(target)
            name = posixpath.join(folder, name)
        elif "/" not in name:
            name = target
        name, elsewhere = _SCHEME.subn("", name, count=1) if _SCHEME.match(name) else (name, 0)
        if self.folder and not elsewhere:
            name = posixpath.join(self.folder.replace(os.sep, "/"), name)
        name, root = posixpath.normpath(name), self.root.replace(os.sep, "/").rstrip("/")
        if root and f"{name}/".startswith(f"{root}/"):
            name = name[len(root) :]
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        return "/".join(parts) or "unnamed"

    def uri(self, subject: SubjectReport, where: Where | None = None) -> str:
        """Return the same path as a relative URI."""
        path = self.path(subject, where)
        try:
            encoded = os.fsencode(path)
        except UnicodeEncodeError:
            encoded = path.encode("utf-8", "backslashreplace")
        # A colon is quoted too, or the first part could be taken for a scheme.
        return quote(encoded)
