"""Which files a target means: itself, every model of a folder or a repository, a store's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from gguf_audit.errors import AuditError, SourceError
from gguf_audit.targets._local import local
from gguf_audit.targets._located import Located, Source, SourceOrigin

if TYPE_CHECKING:
    from gguf_audit.sources.hub import Hub

__all__ = ["Located", "Source", "SourceOrigin", "Targets", "is_model"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")
_STORE = re.compile(r"(?:ollama|lmstudio|cache)(?=:)")


class Targets:
    """The targets of one audit: all that are on the Hub use up one Hub's patience."""

    def __init__(self) -> None:
        self._hub: Hub | None = None

    def locate(self, target: str) -> Iterator[Located]:
        """Yield the files that a target means: of a repository or a folder every GGUF file.

        What exists as a path is taken as one, whatever else it may look like. Never raises
        AuditError: what can't be had is in what is yielded.
        """
        try:
            yield from self._located(target)
        except AuditError as error:
            yield Located(_shown(target), error)
        except OSError as error:  # where a store should be, say
            reason = f"can't read {error.filename}: {error.strerror}"
            yield Located(_shown(target), SourceError(reason))

    def _located(self, target: str) -> Iterator[Located]:
        if target == "-":
            raise SourceError(
                "a model can't be read from stdin: its header says how long the file has to be, and"
                " a pipe doesn't; give a file, an address or a repository"
            )
        if _exists(target):
            return local(target)
        scheme = _SCHEME.match(target)
        store = _STORE.match(target)
        if store is not None:
            from gguf_audit.targets._stores import stored

            return stored(store[0], target)
        if scheme is not None and scheme[0].lower() == "file":
            return _named(target, local(unquote(urlsplit(target).path)))
        # Only who names something remote pays for what fetches it.
        from gguf_audit.targets import _hub as hub

        found = hub.parse(target)
        if found is not None:
            return hub.on_the_hub(found, target, self._its_hub)
        if scheme is None:
            return local(target)
        if scheme[0].lower() == "hf":
            # Nor by fsspec, which would ask the Hub without our limits.
            raise SourceError(f"{target}: expected hf://owner/repo[@revision][/path]")
        if scheme[0].lower() in ("http", "https"):
            from gguf_audit.targets._web import on_the_web

            return on_the_web(target)
        from gguf_audit.targets._fsspec import in_a_file_system

        return in_a_file_system(target)

    def _its_hub(self) -> Hub:
        from gguf_audit.sources.hub import Hub  # only who names something remote pays for it

        self._hub = self._hub or Hub.for_targets()
        return self._hub


def is_model(target: str) -> bool:
    """Tell whether a target that is no path can only mean a model, never a reference."""
    from gguf_audit.targets._hub import selects

    scheme = _SCHEME.match(target)
    if target == "-" or _STORE.match(target):
        return True
    return selects(target) or (scheme is not None and scheme[0].lower() != "hf")


def _exists(target: str) -> bool:
    try:
        # A link that leads nowhere was meant as a path, too.
        return Path(target).exists() or Path(target).is_symlink()
    except (OSError, ValueError):
        return True  # Whoever reads it says what is wrong with it.


def _named(target: str, found: Iterator[Located]) -> Iterator[Located]:
    """Let the one file that a target means be called as the user called it."""
    for each in found:
        plain = not each.found and each.path is None
        yield replace(each, name=target, path=each.name) if plain else each


def _shown(target: str) -> str:
    if _SCHEME.match(target) is None:
        return target
    from gguf_audit.sources.addresses import shown_url

    return shown_url(target)
