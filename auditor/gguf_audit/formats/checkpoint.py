"""A Hugging Face checkpoint as a reference: a folder, its config.json, or a card."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from gguf_audit.errors import ReferenceUnavailableError, SourceError, UnsupportedError
from gguf_audit.formats._departures import architecture_of
from gguf_audit.formats._json import parse_object, read_bytes, read_object, read_text
from gguf_audit.formats.card import find_card, is_card, list_cards, read_card
from gguf_audit.formats.safetensors import read_tensors
from gguf_audit.formats.tokenizer import from_config, has_vocabulary, read_tokenizer
from gguf_audit.limits import LIMITS
from gguf_audit.sources import ByteSource, FileSource, LocalTree, Tree
from gguf_audit.subject import Absent, Checkpoint, Json, ReferenceOrigin
from gguf_audit.where import Where

__all__ = ["open_checkpoint", "read_checkpoint"]

_CONFIG = "config.json"
_ADDITIONAL = "additional_chat_templates"
_HUB_ID = re.compile(r"(?:hf://)?(?P<id>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^\s:]+))?", re.ASCII)


def open_checkpoint(path_or_id: str) -> Checkpoint:
    """Open a reference: a folder, a ``config.json``, a reference card, or a card's id.

    What exists as a path is taken as one. Raises ReferenceUnavailableError where
    there is neither a path nor a built-in card, or a folder holds no checkpoint;
    MalformedError and LimitError where its files can't be read.
    """
    path = Path(path_or_id)
    try:
        is_there = bool(path_or_id) and path.exists()
        is_folder = is_there and path.is_dir()
    except OSError as error:
        raise SourceError(
            f"can't read {path_or_id}: {error.strerror}", where=Where(file=path_or_id)
        ) from error
    if is_folder:
        return read_checkpoint(LocalTree(path), id=path_or_id)
    if is_there:
        return _read_file(FileSource(path), id=path_or_id)
    return _built_in(path_or_id)


def read_checkpoint(
    tree: Tree,
    *,
    id: str,  # noqa: A002 - what a Hub id is called everywhere
    revision: str | None = None,
    origin: ReferenceOrigin = "folder",
) -> Checkpoint:
    """Read a checkpoint folder; safetensors headers and tokenizer when asked for.

    Raises ReferenceUnavailableError where there is no ``config.json``; MalformedError
    and LimitError for files that aren't what their names say.
    """
    names = frozenset(tree.names())
    if _CONFIG not in names:
        hint = " (params.json alone is Mistral's own format)" if "params.json" in names else ""
        raise ReferenceUnavailableError(
            f"{tree.identity} has no config.json{hint}: a reference is a folder with a"
            " checkpoint as on the Hub, its config.json, or a reference card",
            where=Where(file=_CONFIG),
        )
    config = read_object(tree.open(_CONFIG), limit_bytes=LIMITS.config_bytes)
    tokenizer_config = _optional(tree, names, "tokenizer_config.json")
    return Checkpoint(
        id=id,
        revision=revision,
        origin=origin,
        config=config,
        generation_config=_optional(tree, names, "generation_config.json"),
        tokenizer_config=tokenizer_config,
        chat_templates=_chat_templates(tree, names, config, tokenizer_config),
        load_tensors=functools.cache(lambda: read_tensors(tree)),
        load_tokenizer=functools.cache(
            lambda: read_tokenizer(tree, config=config, tokenizer_config=tokenizer_config)
        ),
    )


def _read_file(source: ByteSource, *, id: str) -> Checkpoint:  # noqa: A002
    if source.size >= 4 and source.read(0, 4) == b"GGUF":
        raise UnsupportedError(
            f"{source.name} is a GGUF file, expected a checkpoint folder, a config.json"
            " or a reference card",
            where=Where(file=source.name),
        )
    data = read_bytes(source, limit_bytes=LIMITS.index_bytes)
    document = parse_object(data, name=source.name)
    if is_card(document):
        return read_card(document, name=source.name)
    unknown = Absent(f"only {source.name} was given, not its folder")
    return Checkpoint(
        id=id,
        origin="folder",
        config=document,
        generation_config=unknown,
        tokenizer_config=unknown,
        chat_templates=unknown,
        load_tensors=lambda: unknown,
        load_tokenizer=lambda: from_config(document),
    )


def _built_in(path_or_id: str) -> Checkpoint:
    match = _HUB_ID.fullmatch(path_or_id)
    card = find_card(match["id"]) if match else None
    if card is not None and match is not None:
        if match["revision"] in (None, card.revision):
            return card
        raise ReferenceUnavailableError(
            f"the built-in card of {card.id} doesn't know revision {match['revision']};"
            " give a folder with that checkpoint"
        )
    import difflib  # only to say what else there is

    known = {name.lower(): name for name in list_cards()}
    close = difflib.get_close_matches(path_or_id.lower(), known, n=3, cutoff=0.7)
    repo = path_or_id.lower().rpartition("/")[2]
    close += [name for name in known if name.partition("/")[2] == repo and name not in close]
    hint = f"; did you mean {', '.join(known[name] for name in close)}?" if close else ""
    raise ReferenceUnavailableError(
        f"{path_or_id}: no such file or folder, and no built-in card of that name;"
        f" give a checkpoint folder, its config.json or a reference card{hint}"
    )


def _optional(tree: Tree, names: frozenset[str], name: str) -> dict[str, Json] | Absent:
    if name not in names:
        return Absent(f"no {name} in the folder")
    return read_object(tree.open(name), limit_bytes=LIMITS.config_bytes)


def _chat_templates(
    tree: Tree,
    names: frozenset[str],
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> dict[str, str] | Absent:
    """Return the templates that the converter writes, by the name it gives them.

    gguf-py/gguf/vocab.py, ``SpecialVocab._try_load_from_tokenizer_json``: none
    without ``tokenizer_config.json``; its own key first, even where that holds null,
    then the files beside it.
    """
    if not has_vocabulary(names):
        return Absent("no tokenizer in the folder")
    found = {}
    if not isinstance(tokenizer_config, Absent) and tokenizer_config:
        found = _templates(tree, names, tokenizer_config)
    if not found and "rwkv" in architecture_of(config).lower():
        # conversion/base.py, _set_vocab_rwkv_world
        return Absent("the converter has a template of its own for RWKV")
    return found


def _templates(
    tree: Tree, names: frozenset[str], tokenizer_config: Mapping[str, Json]
) -> dict[str, str]:
    if "chat_template" in tokenizer_config:
        return _from_config(tokenizer_config["chat_template"])
    if "chat_template.jinja" in names:
        files = {"default": "chat_template.jinja"}
        for name in tree.names(_ADDITIONAL):
            stem = name.removeprefix(f"{_ADDITIONAL}/").removesuffix(".jinja")
            if name.endswith(".jinja") and stem:
                files[_key_of(stem)] = name
        return {
            name: read_text(tree.open(file), limit_bytes=LIMITS.string_bytes)
            for name, file in files.items()
        }
    if "chat_template.json" in names:
        source = tree.open("chat_template.json")
        document = read_object(source, limit_bytes=LIMITS.config_bytes)
        return _from_config(document.get("chat_template"))
    return {}


def _from_config(value: Json) -> dict[str, str]:
    """Return the templates of a string or of a list of name and template.

    What is neither is ignored, as is a template without a name. A list's ``default``
    comes first.
    """
    if isinstance(value, str):
        return {"default": value}
    templates: dict[str, str] = {}
    for entry in value if isinstance(value, list) else []:
        name = entry.get("name", "") if isinstance(entry, dict) else ""
        template = entry.get("template") if isinstance(entry, dict) else None
        if isinstance(name, str) and name and isinstance(template, str):
            templates[_key_of(name)] = template
    return dict(sorted(templates.items(), key=lambda item: item[0] != "default"))


def _key_of(name: str) -> str:
    """Return a template's name as it stands in the key (gguf_writer.py, add_chat_template)."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)
