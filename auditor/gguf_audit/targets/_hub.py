"""Models in repositories of the Hub: all of one, a file, or what a quantization's name picks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from gguf_audit.errors import SourceError
from gguf_audit.formats.gguf import shard_name
from gguf_audit.limits import LIMITS
from gguf_audit.sources.hub import Hub, HubTree, HubUnavailableError, find_snapshot, is_offline
from gguf_audit.sources.hub_ids import HOSTS, hub_id
from gguf_audit.targets._local import ENDING, local
from gguf_audit.targets._located import Located, Source, few_enough

__all__ = ["Wanted", "cached", "on_the_hub", "parse", "picked", "selects"]

_HOST = re.compile(r"(?:https?://)?(?P<host>[^/:?#]+)/", re.ASCII)
#: How the Hub's own addresses go on behind the repository.
_PAGES = frozenset({"resolve", "blob", "raw", "tree"})
#: A revision with slashes in its name, as pull requests and conversions have.
_DEEP = re.compile(r"refs/(?:pr|convert)/[^/]+")
#: What llama.cpp takes where no quantization is named, the first that is there
#: (common/download.cpp, ``find_best_model``).
_DEFAULTS = ("Q4_K_M", "Q8_0")
#: Files that it takes for companions of a model, not for one (``gguf_filename_is_model``).
_COMPANIONS = ("mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-")


class Wanted(Struct, frozen=True, kw_only=True):
    """What a target asks a repository for: everything, or what stands at a path."""

    repo: str
    revision: str | None = None
    #: A file or a folder in it.
    path: str = ""
    #: A quantization, ``latest`` for the default.
    tag: str = ""
    #: It might as well be a path that isn't there.
    bare: bool = False

    @property
    def address(self) -> str:
        """The repository as ``hf://`` has it, a slash at the end."""
        revision = "" if self.revision is None else f"@{self.revision}"
        return f"hf://{self.repo}{revision}/"


def parse(target: str) -> Wanted | None:
    """Return what a target asks the Hub for, ``None`` where it is nothing of the Hub's."""
    if target.startswith("hf://"):
        return _address(target.removeprefix("hf://"))
    host = _HOST.match(target)
    if host is not None and host["host"].lower() in HOSTS:
        return _page(target[host.end() :])
    endpoint = Hub.of_environment().connection.endpoint
    if target.startswith(f"{endpoint}/"):
        return _page(target.removeprefix(f"{endpoint}/"))
    return _plain(target, bare=True)


def selects(target: str) -> bool:
    """Tell whether a target names something in a repository, not the repository."""
    found = parse(target)
    return found is not None and bool(found.path or found.tag)


def _plain(target: str, *, bare: bool = False) -> Wanted | None:
    """Take ``owner/repo[@revision][:file.gguf|:QUANT]``."""
    name, colon, selector = target.partition(":")
    found = hub_id(name)
    if found is None or name.startswith("hf://") or (colon and not selector):
        return None
    is_file = selector.lower().endswith(ENDING)
    return Wanted(
        repo=found.repo,
        revision=found.revision,
        path=selector if is_file else "",
        tag="" if is_file else selector,
        bare=bare and not selector,
    )


def _address(rest: str) -> Wanted | None:
    """Take what stands behind ``hf://``: ``owner/repo[@revision][/path]``."""
    owner, _, rest = rest.partition("/")
    repo, at, revision = rest.partition("@")
    if "/" in repo or not at:
        repo, _, path = rest.partition("/")
        if ":" in repo:
            return _plain(f"{owner}/{rest}")
        found = hub_id(f"{owner}/{repo}")
        return None if found is None else Wanted(repo=found.repo, path=path.strip("/"))
    if ":" in revision:
        return _plain(f"{owner}/{rest}")
    deep = _DEEP.match(revision)
    end = deep.end() if deep is not None else len(revision.partition("/")[0])
    found = hub_id(f"{owner}/{repo}@{unquote(revision[:end])}")
    if found is None:
        return None
    return Wanted(repo=found.repo, revision=found.revision, path=revision[end:].strip("/"))


def _page(rest: str) -> Wanted | None:
    """Take what stands behind the host in an address of the Hub."""
    if ":" in rest:  # Ollama's hf.co/owner/repo:Q4_K_M
        return _plain(rest)
    parts = urlsplit(rest)
    owner, repo, page, *deeper = [*unquote(parts.path).strip("/").split("/"), "", ""]
    if not page:
        found = hub_id(f"{owner}/{repo}")
        return None if found is None else Wanted(repo=found.repo, revision=found.revision)
    path = "/".join(deeper).strip("/")
    if page not in _PAGES or not path:
        return None
    return _address(f"{owner}/{repo}@{path}")


def on_the_hub(wanted: Wanted, target: str, hub: Callable[[], Hub]) -> Iterator[Located]:
    """Yield what is wanted of a repository; raises SourceError.

    The Hub is asked first; then, or if it may not be asked, the local Hub cache has what
    was downloaded once.
    """
    if is_offline():
        why = "--offline or HF_HUB_OFFLINE is set"
    else:
        try:
            tree = hub().pin(wanted.repo, wanted.revision)
        except HubUnavailableError as error:
            why = error.message
        else:
            return _in_tree(wanted, target, tree)
    found = list(cached(wanted, target, hub().cache, note=why))
    if not found:
        no_path = "no such file or folder here; " if wanted.bare else ""
        raise SourceError(
            f"{no_path}{why}, and the local Hub cache has no {ENDING} file of {wanted.repo}"
        )
    return iter(found)


def _in_tree(wanted: Wanted, target: str, tree: HubTree) -> Iterator[Located]:
    models = [name for name in tree.files() if name.lower().endswith(ENDING)]
    if wanted.path and wanted.path in tree.files():
        chosen, found = [wanted.path], False
    else:
        chosen, found = picked(models, wanted, tree.identity)
    source = Source(id=wanted.repo, revision=tree.commit, origin="hub")
    for name in few_enough(chosen, tree.identity):
        yield Located(
            _called(wanted, target, name, found=found),
            found=found,
            listed=wanted.address.rstrip("/") if found and not wanted.path else "",
            tree=tree,
            file=name,
            source=source,
            traffic=tree.traffic,
        )


def _called(wanted: Wanted, target: str, name: str, *, found: bool) -> str:
    """Return what the report calls a file: as the user did, if that is one file's name."""
    web = target.startswith(("http:", "https:"))  # A signature may stand in it.
    return wanted.address + name if found or web else target


def cached(wanted: Wanted, target: str, cache: Path, *, note: str) -> Iterator[Located]:
    """Yield what the local Hub cache has of what is wanted; raises SourceError."""
    snapshot = find_snapshot(wanted.repo, wanted.revision, cache=cache, holding=f"**/*{ENDING}")
    if snapshot is None:
        return
    folder = snapshot.tree.identity
    known = {
        Path(each.name).relative_to(folder).as_posix(): each.name
        for each in local(folder)
        if each.error is None
    }
    if not known:
        return
    notes = [note, "only what was downloaded once is known of it"]
    if not snapshot.meant:
        notes.append("whether that commit is main isn't known")
    source = Source(
        id=wanted.repo,
        revision=snapshot.commit,
        origin="cache",
        note="; ".join(filter(None, notes)),
    )
    chosen, found = picked(list(known), wanted, f"the local Hub cache of {wanted.repo}")
    for name in chosen:
        called = _called(wanted, target, name, found=found)
        yield Located(called, found=found, path=known[name], source=source)


def picked(names: Sequence[str], wanted: Wanted, where: str) -> tuple[list[str], bool]:
    """Return the files that are wanted, and whether they are all that were found.

    Raises SourceError where there is none.
    """
    if wanted.path:
        if wanted.path in names:
            return [wanted.path], False
        below = [name for name in names if name.startswith(f"{wanted.path}/")]
        if below:
            return below, True
        raise SourceError(f"{where} has no {wanted.path}{_there(names)}")
    if wanted.tag:
        best = _best(names, "" if wanted.tag == "latest" else wanted.tag)
        if best is None:
            raise SourceError(f"{where} has no model that {wanted.tag} names{_there(names)}")
        return [best], False
    if not names:
        raise SourceError(f"{where} has no {ENDING} file in it")
    return list(names), True


def _best(names: Sequence[str], tag: str) -> str | None:
    """Return the file that llama.cpp takes for a quantization, by its own rule.

    The first whose name has it in front of a dot or a dash, so that ``Q4_K`` doesn't
    mean ``Q4_K_M`` (common/download.cpp, ``find_best_model``).
    """
    models = [name for name in names if _is_model(name)]
    for each in (tag,) if tag else _DEFAULTS:
        pattern = re.compile(rf"{re.escape(each)}[.-]", re.IGNORECASE)
        found = next((name for name in models if pattern.search(name)), None)
        if found is not None:
            return found
    return models[0] if models and not tag else None


def _is_model(path: str) -> bool:
    name = path.rpartition("/")[2]
    shard = shard_name(name)
    companion = any(mark in name for mark in _COMPANIONS)
    return not companion and (shard is None or shard.number == 1)


def _there(names: Sequence[str]) -> str:
    if not names:
        return f": there is no {ENDING} file in it"
    shown = ", ".join(names[: LIMITS.shown_items])
    more = len(names) - LIMITS.shown_items
    return f"; there are {shown}" + (f" and {more} more" if more > 0 else "")
