"""Which reference is meant, and where it is to be had.

A path is taken as one: a folder, a ``config.json``, a card, another GGUF. A Hub id is
looked for on the Hub, then in the local Hub cache, then among the built-in cards.
``auto`` asks the file itself, and the README beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import ReferenceUnavailableError, SourceError
from gguf_audit.formats.card import find_card, list_cards
from gguf_audit.formats.checkpoint import (
    OPTIONAL,
    checkpoint_of,
    read_checkpoint,
    read_checkpoint_file,
)
from gguf_audit.formats.gguf import MAGIC, open_gguf
from gguf_audit.formats.readme import BaseModel
from gguf_audit.gguf import Gguf
from gguf_audit.once import settled
from gguf_audit.sources import FileSource, LocalTree
from gguf_audit.sources.hub_ids import HubId, hub_id, hub_reference
from gguf_audit.where import Where

if TYPE_CHECKING:
    from gguf_audit.sources.hub import Hub

__all__ = ["References", "open_checkpoint"]

_SOURCES = (
    "general.source.huggingface.repository",
    "general.source.repo_url",
    "general.source.url",
)


def open_checkpoint(path_or_id: str) -> Checkpoint:
    """Open a reference: a path, or a Hub id ``owner/repo[@revision]``.

    What exists as a path is taken as one: a folder, a ``config.json``, a reference card
    or a GGUF file. A Hub id is looked for on the Hub, in its local cache, then among
    the built-in cards; ``HF_HUB_OFFLINE`` skips the Hub. Raises
    ReferenceUnavailableError where it is nowhere; else an AuditError where its files
    can't be read.
    """
    return References().open(path_or_id)


class References:
    """The references of one audit: each is opened once, by one Hub's patience."""

    def __init__(self, hub: Hub | None = None) -> None:
        """Take a Hub; by default the one that the environment means, unless offline."""
        self._hub = hub
        self._opened: dict[tuple[str, str], Callable[[], Checkpoint]] = {}

    def open(self, reference: str) -> Checkpoint:
        """Open a reference as ``open_checkpoint`` does; the second time without reading."""
        return self._once(reference, self._open)

    def _once(self, reference: str, opens: Callable[[str], Checkpoint]) -> Checkpoint:
        key = (opens.__name__, reference)
        if key not in self._opened:
            self._opened[key] = settled(opens, reference)
        return self._opened[key]()

    def named_by(
        self,
        gguf: Gguf,
        card: Callable[[], BaseModel | None],
        disagreement: Callable[[Checkpoint, Gguf], str],
    ) -> Checkpoint:
        """Open the reference that a file names; ``card`` reads the README.md beside it.

        First its own ``general.source.*``; else the ``base_model`` of the README.md
        beside it, if that says that the file is a quantization of it; else the
        built-in card of exactly its ``general.name``, unless ``disagreement`` says in what
        the two can't be the same model. ``general.base_model.*`` names the parent of
        its checkpoint, so it is a hint in the error and never the reference. Raises as
        ``open`` does.
        """
        for key in _SOURCES:
            reference = hub_reference(gguf.string(key) or "")
            if reference is not None:
                return self._named(reference, f"named by {key} of the file")
        hint = ""
        base = card()
        if base is not None and hub_reference(base.name) is not None:
            if base.relation == "quantized":
                return self._named(
                    base.name, "named as base_model by the README.md beside the file"
                )
            hint = f"; README.md has {base.name} as base_model " + (
                f"with {base.relation}, not quantized"
                if base.relation
                else "and no base_model_relation: add base_model_relation: quantized to the card"
            )
        named = _card_by_name(gguf.string("general.name"))
        if named is not None:
            other = disagreement(named, gguf)
            if not other:
                return replace(named, found="chosen by general.name alone")
            hint += f"; general.name fits the built-in card of {named.id}, but {other}"
        parent = gguf.string("general.base_model.0.repo_url")
        if parent and not hint:
            hint = f"; general.base_model names {parent}, the parent of its checkpoint"
        raise ReferenceUnavailableError(f"the file names no reference: give --against REF{hint}")

    def _named(self, reference: str, how: str) -> Checkpoint:
        # Never a path: a file must not bring its own reference along.
        checkpoint = self._once(reference, self._by_id)
        return replace(checkpoint, found="; ".join(filter(None, (how, checkpoint.found))))

    def _open(self, reference: str) -> Checkpoint:
        path = Path(reference)
        kind = _kind_of(path, reference)
        if kind == "folder":
            return read_checkpoint(LocalTree(path), id=reference)
        if kind == "file":
            source = FileSource(path)
            if source.size >= len(MAGIC) and source.read(0, len(MAGIC)) == MAGIC:
                return checkpoint_of(open_gguf(path))
            return read_checkpoint_file(source, id=reference)
        return self._by_id(_id_in(reference))

    def _by_id(self, reference: str) -> Checkpoint:
        parsed = hub_id(reference)
        if parsed is None:
            card = find_card(reference)
            if card is None:
                raise _nowhere(reference, None, "")
            return card
        return self._on_the_hub(reference, parsed)

    def _on_the_hub(self, reference: str, wanted: HubId) -> Checkpoint:
        """Open a Hub id: the Hub, else its cache, else the built-in card."""
        # Only who names a Hub id pays for what speaks to the Hub.
        from gguf_audit.sources.hub import Hub, HubUnavailableError, is_offline

        why = ""
        if self._hub is not None or not is_offline():
            self._hub = self._hub or Hub.of_environment()
            try:
                tree = self._hub.pin(wanted.repo, wanted.revision)
                found = read_checkpoint(tree, id=wanted.repo, revision=tree.commit, origin="hub")
            except HubUnavailableError as error:
                why = error.message
            else:
                tree.remember(OPTIONAL)
                return found
        return self._cached(wanted, why) or self._built_in(reference, wanted, why)

    def _cached(self, wanted: HubId, why: str) -> Checkpoint | None:
        from gguf_audit.sources.hub import Hub, find_snapshot

        cache = Hub.of_environment().cache if self._hub is None else self._hub.cache
        snapshot = find_snapshot(wanted.repo, wanted.revision, cache=cache)
        if snapshot is None or "config.json" not in snapshot.tree.names():
            return None
        meant = "" if snapshot.meant else "whether that commit is main isn't known"
        return read_checkpoint(
            snapshot.tree,
            id=wanted.repo,
            revision=snapshot.commit,
            origin="cache",
            found="; ".join(filter(None, (why, meant))),
            absent=snapshot.absent,
        )

    def _built_in(self, reference: str, wanted: HubId, why: str) -> Checkpoint:
        card = find_card(wanted.repo)
        if card is None or wanted.revision not in (None, "main", card.revision):
            raise _nowhere(reference, card, why)
        return replace(card, found=why)


def _kind_of(path: Path, given: str) -> Literal["folder", "file", "nothing"]:
    try:
        if not given or not (path.exists() or path.is_symlink()):
            return "nothing"
        return "folder" if path.is_dir() else "file"
    except OSError as error:
        where = Where(file=given)
        raise SourceError(f"can't read {given}: {error.strerror}", where=where) from error


def _id_in(reference: str) -> str:
    """Return the id in an address of the Hub, else what was given.

    Raises ReferenceUnavailableError for what names a file of a repository, as targets do.
    """
    address = reference.removeprefix("hf://")
    is_file = address.lower().endswith(".gguf")
    if "://" in address:
        from gguf_audit.sources.hub import Hub  # only who names an address pays for it

        endpoint = Hub.of_environment().connection.endpoint
        meant = hub_reference(address, endpoint=endpoint)
    elif ":" in address or (is_file and address != reference):
        meant, is_file = "/".join(address.partition(":")[0].split("/")[:2]), True
    else:
        return reference
    found = None if meant is None else hub_id(meant)
    if meant is None or found is None:
        return reference
    if is_file:
        raise ReferenceUnavailableError(
            f"{reference} names a GGUF file of {found.repo}, and a reference is the checkpoint"
            " that it was made from: give that one's owner/repo, or a GGUF on this machine"
        )
    return meant


def _card_by_name(name: str | None) -> Checkpoint | None:
    """Return the one card whose repository has this name, as the converter writes it.

    ``gemma-3-270m`` becomes ``Gemma 3 270m`` (gguf-py/gguf/metadata.py, ``id_to_title``).
    """
    wanted = (name or "").replace(" ", "-").lower()
    found = [id_ for id_ in list_cards() if id_.partition("/")[2].lower() == wanted]
    return find_card(found[0]) if len(found) == 1 else None


def _nowhere(reference: str, card: Checkpoint | None, why: str) -> ReferenceUnavailableError:
    """Return the error for a reference that is nowhere, with what comes close."""
    said = f"{why}; " if why else ""
    if card is not None:
        return ReferenceUnavailableError(
            f"{said}the built-in card of {card.id} doesn't know revision"
            f" {reference.partition('@')[2]}; give a folder with that checkpoint"
        )
    import difflib  # only to say what else there is

    known = {name.lower(): name for name in list_cards()}
    close = difflib.get_close_matches(reference.lower(), known, n=3, cutoff=0.7)
    repo = reference.lower().rpartition("/")[2]
    close += [name for name in known if name.partition("/")[2] == repo and name not in close]
    hint = f"; did you mean {', '.join(known[name] for name in close)}?" if close else ""
    cache = "not in the local Hub cache, " if hub_id(reference) is not None else ""
    return ReferenceUnavailableError(
        f"{said}{reference}: no such file or folder, {cache}and no built-in card of that"
        f" name; give a checkpoint folder, its config.json, a reference card or another GGUF{hint}"
    )
