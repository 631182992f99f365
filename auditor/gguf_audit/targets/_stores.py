"""Models by the names that other programs keep them under on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gguf_audit.errors import MalformedError, SourceError, UnsupportedError
from gguf_audit.formats.ollama import Layer, read_manifest
from gguf_audit.limits import LIMITS
from gguf_audit.sources import FileSource, LocalTree, contained
from gguf_audit.sources.hub import cache_folder
from gguf_audit.targets import _hub as hub
from gguf_audit.targets._local import ENDING, local
from gguf_audit.targets._located import Located, Source, few_enough

__all__ = ["stored"]

#: What a name leaves out (ollama types/model/name.go, ``DefaultName``).
_REGISTRY, _NAMESPACE, _TAG = "registry.ollama.ai", "library", "latest"
#: Layers of which Ollama makes GGUF files for llama.cpp.
_GGUF_LAYERS = ("model", "projector", "adapter")


def stored(store: str, target: str) -> Iterator[Located]:
    """Yield what ``ollama:``, ``lmstudio:`` or ``cache:`` names; raises an AuditError."""
    name = target.partition(":")[2]
    match store:
        case "ollama":
            return _ollama(name, target)
        case "lmstudio":
            return _lm_studio(_wanted(name, target), target)
        case _:
            wanted = _wanted(name, target)
            cache = cache_folder()
            found = list(hub.cached(wanted, target, cache, note=""))
            if not found:
                raise SourceError(f"{cache} has no {ENDING} file of {wanted.repo}")
            return iter(found)


def _wanted(name: str, target: str) -> hub.Wanted:
    found = hub.parse(name)
    if found is None:
        raise SourceError(f"{target}: expected owner/repo, owner/repo:file or owner/repo:QUANT")
    return found


# Ollama


def _ollama(name: str, target: str) -> Iterator[Located]:
    """Yield the files of a model in Ollama's store, the model itself first."""
    folder = _ollama_folder(os.environ)
    *place, last = name.split("/")
    model, _, tag = last.partition(":")
    match place:
        case []:
            host = [_REGISTRY, _NAMESPACE]
        case [_]:
            host = [_REGISTRY, *place]
        case _:
            host = place
    if not model or len(host) != 2:
        raise SourceError(f"{target}: expected ollama:name, ollama:name:tag or ollama:user/name")
    store = LocalTree(folder, follow_links=True)
    try:
        path = contained("/".join(("manifests", *host, model, tag or _TAG)))
    except MalformedError as error:
        raise SourceError(error.message) from None
    if not Path(folder, path).is_file():
        raise SourceError(f"{folder} has no model {name}{_others(folder, host, model)}")
    layers = read_manifest(store.open(path))
    chosen = sorted(
        (layer for layer in layers if layer.kind in _GGUF_LAYERS),
        key=lambda layer: _GGUF_LAYERS.index(layer.kind),
    )
    if not chosen:
        kinds = ", ".join(sorted({layer.kind for layer in layers})) or "none"
        raise UnsupportedError(f"{name} has no GGUF file in it; its layers are {kinds}")
    source = Source(id=f"{'/'.join((*host, model))}:{tag or _TAG}", origin="ollama")
    for layer in few_enough(chosen, path):
        called = target if layer.kind == "model" else f"{target} ({layer.kind})"
        yield _blob(store, folder, layer, Located(called, source=source))


def _blob(store: LocalTree, folder: Path, layer: Layer, located: Located) -> Located:
    try:
        found = store.open(layer.blob).size
    except SourceError as error:
        return replace(located, error=error)
    if found != layer.size_bytes:
        reason = f"{layer.blob} has {found} bytes, the manifest says {layer.size_bytes}"
        return replace(located, error=SourceError(f"{reason}; pull the model again"))
    return replace(located, path=str(folder / layer.blob))


def _ollama_folder(environment: Mapping[str, str]) -> Path:
    """Return where Ollama keeps models (envconfig/config.go, ``Models``)."""
    given = environment.get("OLLAMA_MODELS", "").strip().strip("\"'")
    # Its Linux service runs as a user of its own (scripts/install.sh).
    service = Path("/usr/share/ollama/.ollama/models")
    tried = [Path(given)] if given else [_home() / ".ollama/models", service]
    for folder in tried:
        if (folder / "manifests").is_dir():
            return folder
    names = " or ".join(map(str, tried))
    raise SourceError(f"there is no store of Ollama's in {names}; OLLAMA_MODELS names another")


def _others(folder: Path, host: Sequence[str], model: str) -> str:
    """Name the tags of a model that are there, or the models beside it."""
    beside = folder.joinpath("manifests", *host)
    tags = _entries(beside / model)
    if tags:
        return f"; there is {', '.join(f'{model}:{tag}' for tag in tags)}"
    models = _entries(beside)
    return f"; there is {', '.join(models)}" if models else ""


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())[: LIMITS.shown_items]
    except OSError:
        return []


# LM Studio


def _lm_studio(wanted: hub.Wanted, target: str) -> Iterator[Located]:
    """Yield what is wanted of ``publisher/repo`` among the models of LM Studio."""
    store = _lm_studio_folder()
    folder = store / wanted.repo
    found = [each for each in local(str(folder)) if each.error is None] if folder.is_dir() else []
    paths = {Path(each.name).relative_to(folder).as_posix(): each.name for each in found}
    if not paths:
        publisher = wanted.repo.partition("/")[0]
        there = _entries(store / publisher)
        hint = f"; there is {', '.join(f'{publisher}/{name}' for name in there)}" if there else ""
        raise SourceError(f"{store} has no {ENDING} file of {wanted.repo}{hint}")
    chosen, several = hub.picked(list(paths), wanted, str(folder))
    source = Source(id=wanted.repo, origin="lmstudio")
    for name in chosen:
        called = paths[name] if several else target
        yield Located(called, found=several, path=paths[name], source=source)


def _lm_studio_folder() -> Path:
    """Return where LM Studio keeps models: its settings say so, else its home has them."""
    home = _home() / ".lmstudio"
    pointer = _text(_home() / ".lmstudio-home-pointer")
    if pointer.strip():
        home = Path(pointer.strip())
    try:
        settings: Any = json.loads(_text(home / "settings.json") or "{}")
        named = settings.get("downloadsFolder")
    except (ValueError, RecursionError, AttributeError):
        named = None
    # Before 0.3.5 it used the cache folder.
    older = _home() / ".cache/lm-studio/models"
    places = [*([Path(named)] if isinstance(named, str) and named else []), home / "models", older]
    for folder in places:
        if folder.is_dir():
            return folder
    raise SourceError(f"there is no store of LM Studio's in {' or '.join(map(str, places))}")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise SourceError("nobody knows where your home folder is: HOME isn't set") from None


def _text(path: Path) -> str:
    try:
        file = FileSource(path)
        return file.read(0, min(file.size, LIMITS.store_settings_bytes)).decode("utf-8", "replace")
    except SourceError:
        return ""
