"""What names a repository of the Hub, wherever somebody writes one."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from msgspec import Struct

__all__ = ["HOSTS", "NAME", "REVISION", "HubId", "hub_id", "hub_reference"]

HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
#: As huggingface_hub has it (utils/_validators.py, ``validate_repo_id``).
NAME = r"(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[\w.-]{0,94}[A-Za-z0-9_])?"
#: A branch may have slashes in its name, ``refs/pr/1``; what isn't text has none.
REVISION = r"[^\s:@\ud800-\udfff]+"
_HUB_ID = re.compile(rf"(?:hf://)?(?P<repo>{NAME}/{NAME})(?:@(?P<revision>{REVISION}))?", re.ASCII)
#: How the Hub's addresses go on behind the repository, before a revision.
_PAGES = frozenset({"tree", "blob", "resolve", "raw"})
#: Names of files that aren't there, not of repositories.
_FILES = (".json", ".gguf", ".safetensors")


class HubId(Struct, frozen=True):
    """A repository, ``owner/name``, and the revision that is meant, if one was given."""

    repo: str
    revision: str | None


def hub_id(reference: str) -> HubId | None:
    """Return what ``owner/repo[@revision]`` names, ``None`` where it isn't of that form."""
    found = _HUB_ID.fullmatch(reference)
    if found is None or found["repo"].endswith(_FILES):
        return None
    return HubId(found["repo"], found["revision"])


def hub_reference(value: str, *, endpoint: str = "") -> str | None:
    """Return ``owner/repo[@revision]`` for an id or a URL of the Hub, else ``None``.

    ``endpoint`` is the address of another Hub than the one that all know.
    """
    if hub_id(value) is not None:
        return value
    if endpoint and value.startswith(f"{endpoint}/"):
        path = value.removeprefix(endpoint)
    else:
        try:
            parts = urlsplit(value)
            host = parts.hostname
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or host not in HOSTS:
            return None
        path = parts.path
    owner, repo, page, named, *_ = [*path.strip("/").split("/"), "", "", ""]
    revision = f"@{unquote(named)}" if page in _PAGES and named else ""
    reference = f"{owner}/{repo}{revision}"
    return reference if hub_id(reference) is not None else None
