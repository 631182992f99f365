"""What a reference says: a checkpoint's folder, its config.json, a card, another GGUF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gguf_audit.chat import DEFAULT, template_key, template_name
from gguf_audit.checkpoint import (
    Checkpoint,
    Json,
    ReferenceOrigin,
    StoredTensor,
    TemplateFile,
    Tokenizer,
    TokenizerFiles,
    Vocabulary,
)
from gguf_audit.errors import (
    LimitError,
    MalformedError,
    ReferenceUnavailableError,
    UnsupportedError,
)
from gguf_audit.extents import extents
from gguf_audit.formats._departures import departure_of
from gguf_audit.formats._foreign import FOREIGN_BYTES, is_json_object, known_kind
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._json import parse_object, read_bytes, read_object, read_text
from gguf_audit.formats._tokenizer_files import tokenizer_files
from gguf_audit.formats.card import is_card, read_card
from gguf_audit.formats.companions import ADAPTER, adapter_reader, preprocessor_reader
from gguf_audit.formats.pooling import pooling_reader
from gguf_audit.formats.safetensors import INDEX, read_tensors
from gguf_audit.formats.tokenizer import (
    TOKENIZER,
    VOCABULARIES,
    from_config,
    has_vocabulary,
    read_tokenizer,
)
from gguf_audit.formats.vocabulary import deciding_files, read_vocabulary, stored_vocabulary
from gguf_audit.gguf import Gguf
from gguf_audit.limits import LIMITS
from gguf_audit.once import once
from gguf_audit.parts import Absent
from gguf_audit.sources import ByteSource, Tree
from gguf_audit.text_model import TEXT_PARTS, class_of
from gguf_audit.where import Where

__all__ = ["OPTIONAL", "checkpoint_of", "read_checkpoint", "read_checkpoint_file"]

_CONFIG = "config.json"
#: What any config.json has, in one of its forms.
_SAYS_WHAT_IT_IS = frozenset({"architectures", "model_type", "text_config", *TEXT_PARTS, "ssm_cfg"})
_JINJA = "chat_template.jinja"
_ADDITIONAL = "additional_chat_templates"
#: What a checkpoint may have beside its config.json: where one of them isn't, that counts.
OPTIONAL = VOCABULARIES | {
    *("generation_config.json", TOKENIZER, "tokenizer_config.json", "added_tokens.json"),
    *("special_tokens_map.json", "tekken.json", _JINJA, "chat_template.json"),
    *("processor_config.json", "preprocessor_config.json", "modules.json"),
}
#: Name of a special token -> how its key in a GGUF spells it (gguf-py/gguf/constants.py).
_STORED = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
    "eot": "eot",
    "eom": "eom",
}


def read_checkpoint(
    tree: Tree,
    *,
    id: str,  # noqa: A002 - what a Hub id is called everywhere
    revision: str | None = None,
    origin: ReferenceOrigin = "folder",
    found: str = "",
    absent: frozenset[str] | None = None,
) -> Checkpoint:
    """Read a checkpoint folder; safetensors headers and tokenizer when asked for.

    ``absent`` are the files that it is known not to have, where the tree holds only
    some of it: what the others would say is then Absent. Raises
    ReferenceUnavailableError where there is no ``config.json``; MalformedError and
    LimitError for files that aren't what their names say.
    """
    files = Inventory(names=frozenset(tree.names()), absent=absent)
    if _CONFIG not in files.names and ADAPTER in files.names:
        return _adapter(tree, files, id=id, revision=revision, origin=origin, found=found)
    if _CONFIG not in files.names:
        raise ReferenceUnavailableError(_without_config(tree.identity, files.names))
    config = read_object(tree.open(_CONFIG), limit_bytes=LIMITS.config_bytes)
    tokenizer_config = _optional(tree, files, "tokenizer_config.json")
    tokenizer = tokenizer_files(tree, files)
    return Checkpoint(
        id=id,
        revision=revision,
        origin=origin,
        note=_code(files.names),
        found=found,
        config=config,
        generation_config=_optional(tree, files, "generation_config.json"),
        tokenizer_config=tokenizer_config,
        chat_templates=_chat_templates(tree, files, config, tokenizer_config),
        load_tensors=once(lambda: _tensors(tree, files)),
        load_tokenizer=once(
            lambda: _tokenizer(tokenizer, files, config=config, tokenizer_config=tokenizer_config)
        ),
        load_preprocessor=preprocessor_reader(tree, files),
        load_adapter=adapter_reader(tree, files),
        load_pooling=pooling_reader(tree, files),
        tokenizer_files=tokenizer,
        load_vocabulary=once(
            lambda: _vocabulary(tokenizer, files, config=config, tokenizer_config=tokenizer_config)
        ),
        load_template_files=once(lambda: tuple(_template_files(tree, files, tokenizer_config))),
    )


def _without_config(identity: str, names: frozenset[str]) -> str:
    if any(name.lower().endswith(".gguf") for name in names):
        return (
            f"{identity} holds GGUF files and no config.json: the checkpoint is needed that they"
            " were made from"
        )
    hint = " (params.json alone is Mistral's own format)" if "params.json" in names else ""
    return (
        f"{identity} has no config.json{hint}: a reference is a folder with a checkpoint as on"
        " the Hub, its config.json, or a reference card"
    )


def _code(names: frozenset[str]) -> str:
    """Say what of a folder would be run by who trusts it, and never is here."""
    code = sorted(name for name in names if name.endswith(".py"))
    more = f" (and {len(code) - 1} more)" if len(code) > 1 else ""
    return f"its {code[0]}{more} is never run" if code else ""


def _adapter(
    tree: Tree,
    files: Inventory,
    *,
    id: str,  # noqa: A002
    revision: str | None,
    origin: ReferenceOrigin,
    found: str,
) -> Checkpoint:
    """Return a folder that holds a PEFT adapter and not the model that it changes."""
    alone = Absent("a PEFT adapter's folder, without its model's config.json")
    return Checkpoint(
        id=id,
        revision=revision,
        origin=origin,
        found=found,
        config=alone,
        generation_config=alone,
        tokenizer_config=alone,
        chat_templates=alone,
        load_tensors=lambda: alone,
        load_tokenizer=lambda: alone,
        load_adapter=adapter_reader(tree, files),
    )


def read_checkpoint_file(source: ByteSource, *, id: str) -> Checkpoint:  # noqa: A002
    """Read a ``config.json`` by itself, or a reference card.

    Raises MalformedError, LimitError and UnsupportedError for what is neither.
    """
    head = source.read(0, min(source.size, FOREIGN_BYTES))
    kind = known_kind(head, source.size)
    if kind is not None or not is_json_object(head):
        raise _no_reference(source.name, f"is {kind or 'no JSON object'}")
    if source.size > LIMITS.config_bytes and Path(source.name).name != _CONFIG:
        raise _no_reference(source.name, "is larger than any config.json")
    data = read_bytes(source, limit_bytes=LIMITS.config_bytes)
    document = parse_object(data, name=source.name)
    if is_card(document):
        return read_card(document, name=source.name)
    if not _SAYS_WHAT_IT_IS & document.keys():
        raise _no_reference(source.name, "has neither architectures nor model_type")
    unknown = Absent(f"only {source.name} was given, not its folder")
    return Checkpoint(
        id=id,
        origin="config",
        config=document,
        generation_config=unknown,
        tokenizer_config=unknown,
        chat_templates=unknown,
        load_tensors=lambda: unknown,
        load_tokenizer=lambda: from_config(document),
    )


def _no_reference(name: str, why: str) -> UnsupportedError:
    """Return the error for a file of a checkpoint, most likely, that says nothing by itself."""
    return UnsupportedError(
        f"{name} {why}: give the folder of the checkpoint, its config.json, a reference card or"
        " another GGUF",
        where=Where(file=name),
    )


def checkpoint_of(gguf: Gguf) -> Checkpoint:
    """Return a GGUF model as a reference for others: its metadata are the expected ones."""
    other = Absent(f"{gguf.name} is a GGUF file, not its checkpoint")
    return Checkpoint(
        id=gguf.name,
        origin="gguf",
        found=f"that file's own metadata are taken for right{_cut_off(gguf)}",
        config=other,
        generation_config=other,
        tokenizer_config=other,
        chat_templates=_stored_templates(gguf),
        load_tensors=lambda: other,
        load_tokenizer=lambda: _stored_tokenizer(gguf),
        load_vocabulary=once(lambda: stored_vocabulary(gguf)),
        load_template_files=lambda: tuple(
            TemplateFile(name=name, place=template_key(name), text=text)
            for name, text in _stored_templates(gguf).items()
        ),
        gguf=gguf,
    )


def _cut_off(gguf: Gguf) -> str:
    """Return what to say of a reference whose data ends too early; a header alone may be meant."""
    for file in gguf.files:
        needed = max((each.end for each in extents(file) if each.end is not None), default=0)
        if file.data_offset < file.size_bytes < needed:
            which = "it" if len(gguf.files) == 1 else file.name
            return f"; its data is cut off, {which} has {file.size_bytes:,} of {needed:,} bytes"
    return ""


def _stored_templates(gguf: Gguf) -> dict[str, str]:
    named = {
        name: template
        for key in gguf.fields
        if (name := template_name(key)) is not None and (template := gguf.string(key)) is not None
    }
    return dict(sorted(named.items(), key=lambda item: item[0] != DEFAULT))


def _stored_tokenizer(gguf: Gguf) -> Tokenizer | Absent:
    tokens = gguf.array("tokenizer.ggml.tokens")
    if tokens is None:
        return Absent(f"{gguf.name} has no vocabulary")
    ids = {name: gguf.integer(f"tokenizer.ggml.{key}_token_id") for name, key in _STORED.items()}
    return Tokenizer(
        special_ids={name: id_ for name, id_ in ids.items() if id_ is not None},
        size=tokens.count,
    )


def _optional(tree: Tree, files: Inventory, name: str) -> dict[str, Json] | Absent:
    if name not in files.names:
        return Absent(files.missing(name))
    return read_object(tree.open(name), limit_bytes=LIMITS.config_bytes)


def _tensors(tree: Tree, files: Inventory) -> Mapping[str, StoredTensor] | Absent:
    if files.absent is None:
        return read_tensors(tree)
    if files.names.isdisjoint({INDEX, "model.safetensors"}):
        return Absent("the weights aren't in the local Hub cache")
    try:
        return read_tensors(tree)
    except ReferenceUnavailableError as error:
        return Absent(f"in the local Hub cache {error.message}")


def _tokenizer(
    found: TokenizerFiles,
    files: Inventory,
    *,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> Tokenizer | Absent:
    decisive = departure_of(config).file
    if files.unknown(TOKENIZER, "tokenizer_config.json", *filter(None, (decisive,))) is not None:
        return from_config(config)
    return read_tokenizer(found, config=config, tokenizer_config=tokenizer_config)


def _vocabulary(
    found: TokenizerFiles,
    files: Inventory,
    *,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> Vocabulary | Absent:
    # Which files there are decides what the converter reads.
    unknown = files.unknown(*deciding_files(config, files.names))
    if unknown is not None:
        return Absent(files.missing(unknown))
    if not has_vocabulary(files.names):
        return Absent("no tokenizer in the folder")
    return read_vocabulary(found, config=config, tokenizer_config=tokenizer_config)


def _chat_templates(
    tree: Tree,
    files: Inventory,
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | Absent,
) -> dict[str, str] | Absent:
    """Return the templates that the converter writes, by the name it gives them.

    gguf-py/gguf/vocab.py, ``SpecialVocab._try_load_from_tokenizer_json``: none
    without ``tokenizer_config.json``; its own key first, even where that holds null,
    then the files beside it.
    """
    unknown = files.unknown(TOKENIZER, "tokenizer_config.json")
    if unknown is not None:
        return Absent(files.missing(unknown))
    if not has_vocabulary(files.names):
        return Absent("no tokenizer in the folder")
    found = {}
    if not isinstance(tokenizer_config, Absent) and tokenizer_config:
        if "chat_template" not in tokenizer_config and _JINJA not in files.names:
            unknown = files.unknown(_JINJA, "chat_template.json")
            if unknown is not None:
                return Absent(files.missing(unknown))
        found = _templates(tree, files.names, tokenizer_config)
    if not found and "rwkv" in _class_name(config).lower():
        # conversion/base.py, _set_vocab_rwkv_world
        return Absent("the converter has a template of its own for RWKV")
    return found


def _class_name(config: Mapping[str, Json]) -> str:
    try:
        return class_of(config) or ""
    except MalformedError:
        # The hyper-parameters' error, not a reason to read nothing else of a checkpoint.
        return ""


def _templates(
    tree: Tree, names: frozenset[str], tokenizer_config: Mapping[str, Json]
) -> dict[str, str]:
    if "chat_template" in tokenizer_config:
        return _from_config(tokenizer_config["chat_template"])
    if _JINJA in names:
        files = {"default": _JINJA}
        for name in tree.names(_ADDITIONAL):
            stem = name.removeprefix(f"{_ADDITIONAL}/").removesuffix(".jinja")
            if name.endswith(".jinja") and stem:
                files[_key_of(stem)] = name
        return {name: text for name, _, text in _texts(tree, files.items())}
    if "chat_template.json" in names:
        source = tree.open("chat_template.json")
        document = read_object(source, limit_bytes=LIMITS.config_bytes)
        return _from_config(document.get("chat_template"))
    return {}


def _texts(tree: Tree, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield name, file and text of templates; LimitError where they are too long together."""
    left = LIMITS.string_bytes
    for name, file in files:
        source = tree.open(file)
        left -= source.size
        if left < 0:
            raise LimitError(
                f"with {file} the chat templates have more than {LIMITS.string_bytes} bytes",
                where=Where(file=file),
            )
        yield name, file, read_text(source, limit_bytes=LIMITS.string_bytes)


def _template_files(
    tree: Tree, files: Inventory, tokenizer_config: Mapping[str, Json] | Absent
) -> Iterator[TemplateFile]:
    """Yield every template of a folder, those first that transformers prefers.

    tokenization_utils_base.py, ``_from_pretrained``: the files go before what
    ``tokenizer_config.json`` says. Processors have templates of their own.
    """
    found = [("default", _JINJA)] if _JINJA in files.names else []
    found += [
        (file.removeprefix(f"{_ADDITIONAL}/").removesuffix(".jinja"), file)
        for file in tree.names(_ADDITIONAL)
        if file.endswith(".jinja")
    ]
    # One more says that there are more than are looked at.
    for name, file, text in _texts(tree, found[: LIMITS.templates + 1]):
        yield TemplateFile(name=name, place=file, text=text)
    documents = {"tokenizer_config.json": tokenizer_config}
    for file in ("chat_template.json", "processor_config.json"):
        documents[file] = _optional(tree, files, file)
    for file, document in documents.items():
        value = None if isinstance(document, Absent) else document.get("chat_template")
        for name, text in _named(value):
            yield TemplateFile(name=name, place=file, text=text)


def _named(value: Json) -> Iterator[tuple[str, str]]:
    """Yield name and text of the templates that a value holds, in any form."""
    match value:
        case str():
            yield "default", value
        case dict():
            yield from ((name, text) for name, text in value.items() if isinstance(text, str))
        case list():
            for entry in value[: LIMITS.templates]:
                match entry:
                    case str():
                        yield "default", entry
                    case {"name": str() as name, "template": str() as text}:
                        yield name, text
                    case {"template": str() as text}:
                        yield "", text
                    case _:
                        pass
        case _:
            pass


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
    return dict(sorted(templates.items(), key=lambda item: item[0] != DEFAULT))


def _key_of(name: str) -> str:
    """Return a template's name as it stands in the key (gguf_writer.py, add_chat_template)."""
    return re.sub(r"[^A-Za-z0-9]", "_", name)
