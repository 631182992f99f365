"""The metadata says one thing, the shapes of the tensors another.

## What it does
Compares what llama.cpp computes from the metadata with the tensors that are in the file:
embedding length, number of blocks, and the rows of each block's query, key and value
projections. Defaults count: an absent `head_count_kv` means as many as query heads. Which
projections don't fit tells the key: key and value share the number of heads, key and query
the length of a head.

## Why it matters
llama.cpp refuses the file (`wrong shape`, `wrong number of tensors`), or loads it where the
difference happens to fit and computes something else.

## Fix
Trust the tensors: set the key if it is present, else reconvert.

## Authority
llama.cpp b11434, `src/llama-model-loader.cpp: check_tensor_dims, done_getting_tensors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.errors import Refused
from gguf_audit.evidence import Model, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Tensor
from gguf_audit.layout import CacheLayout, Chunked, Full, Sliding, Store
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, OnModel, Outcome, Reconvert, Repair, Rule, SetKey, Severity
from gguf_audit.where import Where
from gguf_audit_rules._fields import integer

Attention = Full | Sliding | Chunked

HEADS = "attention.head_count"
KV_HEADS = "attention.head_count_kv"
KEY_LENGTH = "attention.key_length"
VALUE_LENGTH = "attention.value_length"
LATENT_KEY = "attention.key_length_mla"
#: Any of these may make a projection look wrong; a reference tells which.
TOGETHER = (HEADS, KV_HEADS, KEY_LENGTH, VALUE_LENGTH)
BLOCK = re.compile(r"blk\.([0-9]{1,9})\.")

#: Blocks may be unrolled: more of them run than are stored (hrm_text.cpp).
UNROLLED = frozenset({"hrm_text"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that the tensors contradict."""
    del settings
    if isinstance(model.architecture, Absent) or not model.gguf.tensors:
        return
    embedding = list(_embedding(model))
    yield from embedding
    yield from _blocks(model)
    # Heads that have no length of their own are a share of the embedding.
    if not embedding or KEY_LENGTH in model.fields:
        yield from _projections(model)


def _embedding(model: Model) -> Iterator[Outcome]:
    tensor = model.gguf.tensors.get("token_embd.weight")
    key = "embedding_length"
    stated = integer(model.fields, key)
    if tensor is None or not tensor.shape or stated is None or tensor.shape[0] == stated:
        return
    yield Hit(
        message=(
            f"needs rows of {stated} elements as {model.fields.key(key)} says, "
            f"token_embd.weight has rows of {tensor.shape[0]}"
        ),
        where=Where(key=model.fields.key(key), tensor=tensor.name, offset=tensor.info_offset),
        expected=tensor.shape[0],
        actual=stated,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _blocks(model: Model) -> Iterator[Outcome]:
    key = "block_count"
    stated = integer(model.fields, key)
    found = [int(match[1]) for name in model.gguf.tensors if (match := BLOCK.match(name))]
    if stated is None or not found or model.fields.architecture in UNROLLED:
        return
    count = max(found) + 1
    if count == stated or _idle(model, range(count, stated), stated):
        return
    yield Hit(
        message=(
            f"needs tensors of {stated} blocks as {model.fields.key(key)} says, "
            f"the last one is blk.{count - 1}"
        ),
        where=Where(key=model.fields.key(key)),
        expected=count,
        actual=stated,
        origin=Origin.KEY,
        level=Severity.ERROR,
        repair=Reconvert(),
    )


def _idle(model: Model, blocks: range, stated: int) -> bool:
    """Tell whether blocks have neither heads nor a feed-forward part: no tensor either."""
    heads = _per_block(model, HEADS, stated)
    feed_forward = _per_block(model, "feed_forward_length", stated)
    if not blocks or heads is None or feed_forward is None:
        return False
    return not any(heads[index] or feed_forward[index] for index in blocks)


def _projections(model: Model) -> Iterator[Outcome]:
    """Yield one hit for each key, on the first block whose tensors contradict it."""
    if not isinstance(model.implied, CacheLayout):
        return
    if latent := _latent(model, model.implied):
        yield latent
        return
    heads = _per_block(model, HEADS, integer(model.fields, "block_count") or 0) or ()
    told: set[str] = set()
    for index, store in _attention(model, model.implied):
        if isinstance(store, Full | Sliding | Chunked):
            block = _Block(model, index, store, heads[index] if index < len(heads) else 0)
            for contradiction in block.contradictions():
                if contradiction.key not in told:
                    told.add(contradiction.key)
                    yield _hit(model, index, contradiction)


def _attention(model: Model, implied: CacheLayout) -> Iterator[tuple[int, Store]]:
    """Yield what each block's heads are made for, kept or, in an encoder, not."""
    yield from implied.stores()
    if any(layer.stores for layer in implied.layers):
        return
    blocks = len(implied.layers)
    heads = _per_block(model, KV_HEADS if KV_HEADS in model.fields else HEADS, blocks) or ()
    key, value = _effective(model, KEY_LENGTH), _effective(model, VALUE_LENGTH)
    if key is not None and value is not None:
        for index, kv_heads in enumerate(heads):
            yield index, Full(kv_heads=kv_heads, key_length=key, value_length=value)


def _latent(model: Model, implied: CacheLayout) -> Hit | None:
    """Return the hit for a latent's tensors without the keys that say there is one."""
    key = model.fields.key(LATENT_KEY)
    for index, store in implied.stores():
        tensor = model.gguf.tensors.get(f"blk.{index}.attn_k_b.weight")
        if tensor is not None and isinstance(store, Full | Sliding | Chunked):
            state = "not in effect" if LATENT_KEY in model.fields else "absent"
            return Hit(
                message=f"needs {key} to go with {tensor.name}, which projects from a latent, "
                f"but it is {state}: llama.cpp expects other shapes and refuses the file",
                where=Where(key=key, tensor=tensor.name, layer=index, offset=tensor.info_offset),
                expected="a latent (MLA)",
                actual="unpacked heads",
                origin=Origin.KEY if LATENT_KEY in model.fields else Origin.RUNTIME_DEFAULT,
                level=Severity.ERROR,
                repair=Reconvert(),
            )
    return None


class _Contradiction(Struct, frozen=True):
    """A key that a projection contradicts."""

    key: str
    tensor: Tensor
    #: What the metadata makes of the projection's rows: heads, elements of each.
    count: int
    length: int
    #: What the key would have to be, ``None`` where that can't be told.
    right: int | None = None
    #: A key that is the wrong one, if this one isn't.
    instead: str | None = None
    #: The length is a share of the embedding, and known to be the wrong one.
    shares: bool = False


class _Block:
    """The projections of one block beside what the metadata makes of them."""

    def __init__(self, model: Model, index: int, store: Attention, heads: int) -> None:
        self.model = model
        self.index = index
        self.store = store
        self.heads = heads
        self.query = self._tensor(index, "attn_q")
        self.keys = self._tensor(index, "attn_k")
        self.values = self._tensor(index, "attn_v")
        self.output = self._tensor(index, "attn_output")

    def contradictions(self) -> Iterator[_Contradiction]:
        """Yield one for each key that has to be wrong."""
        store, query, keys, values = self.store, self.query, self.keys, self.values
        wrong_query = query is not None and not self._query_fits(query)
        wrong_keys = keys is not None and keys.shape[1] != store.kv_heads * store.key_length
        wrong_values = values is not None and values.shape[1] != store.kv_heads * store.value_length
        # A gate can make a query fit the wrong length; values then still have their heads.
        suspect = wrong_keys and (wrong_query or not wrong_values)
        length = self._common_length() if suspect else None
        if keys is not None and length is not None:
            # Queries and keys have the heads they should, of another length.
            key = self._length_key(KEY_LENGTH)
            yield _Contradiction(key, keys, store.kv_heads, store.key_length, length)
            wrong_query = wrong_keys = False
            if values is not None and values.shape[1] == store.kv_heads * length:
                # Without a key of its own a value's length comes from the same default.
                wrong_values = wrong_values and self._length_key(VALUE_LENGTH) in self.model.fields
        if wrong_values and not wrong_keys and keys is not None and values is not None:
            right = _share(values, store.kv_heads)
            key = self._length_key(VALUE_LENGTH)
            yield _Contradiction(key, values, store.kv_heads, store.value_length, right)
        elif wrong_keys and keys is not None and not wrong_query and self._shared_out():
            yield self._share_wrong(keys)
        elif wrong_keys and keys is not None:
            right = self._kv_heads() if wrong_values or values is None else None
            yield _Contradiction(KV_HEADS, keys, store.kv_heads, store.key_length, right)
        elif wrong_values and values is not None:
            yield _Contradiction(
                KV_HEADS, values, store.kv_heads, store.value_length, self._kv_heads()
            )
        if wrong_query and query is not None:
            right = _share(query, store.key_length)
            yield _Contradiction(HEADS, query, self.heads, store.key_length, right)

    def _shared_out(self) -> bool:
        """Tell whether heads are shares of the embedding: queries fit any number of them."""
        return self.query is not None and KEY_LENGTH not in self.model.fields

    def _share_wrong(self, keys: Tensor) -> _Contradiction:
        """Blame the heads where something else has the length that keys call for."""
        store, query = self.store, self.query
        length = _share(keys, store.kv_heads)
        if query is not None and length is not None and length in self._lengths():
            right = _share(query, length)
            return _Contradiction(HEADS, keys, store.kv_heads, store.key_length, right, shares=True)
        return _Contradiction(KV_HEADS, keys, store.kv_heads, store.key_length, instead=HEADS)

    def _lengths(self) -> Iterator[int]:
        """Yield what else is as long as a head: its norms, what RoPE turns of it."""
        for name in ("attn_q_norm", "attn_k_norm"):
            norm = self.model.gguf.tensors.get(f"blk.{self.index}.{name}.weight")
            if norm is not None and len(norm.shape) == 1:
                yield norm.shape[0]
        rotated = integer(self.model.fields, "rope.dimension_count")
        if rotated is not None:
            yield rotated

    def _tensor(self, index: int, name: str) -> Tensor | None:
        tensor = self.model.gguf.tensors.get(f"blk.{index}.{name}.weight")
        return tensor if tensor is not None and len(tensor.shape) == 2 else None

    def _query_fits(self, query: Tensor) -> bool:
        wanted = self.heads * self.store.key_length
        if self.heads == 0 or query.shape[1] == wanted:
            return True
        # Some architectures store the query's gate behind the query itself; what goes
        # into the output projection tells such a query from one with more heads.
        attended = self.heads * self._value_length()
        gated = self.output is None or self.output.shape[0] == attended
        return query.shape[1] == 2 * wanted and gated

    def _value_length(self) -> int:
        """Return the length of a value, by the tensor where the keys vouch for the heads."""
        store, keys, values = self.store, self.keys, self.values
        if keys is None or values is None or keys.shape[1] != store.kv_heads * store.key_length:
            return store.value_length
        return _share(values, store.kv_heads) or store.value_length

    def _common_length(self) -> int | None:
        """Return the length that heads have by queries and keys alike."""
        if self.query is None or self.keys is None:
            return None
        length = _share(self.keys, self.store.kv_heads)
        of_query = _share(self.query, self.heads)
        return length if length is not None and of_query in (length, 2 * length) else None

    def _kv_heads(self) -> int | None:
        """Return the number of heads that keys and values have alike."""
        found = {
            _share(tensor, length)
            for tensor, length in (
                (self.keys, self.store.key_length),
                (self.values, self.store.value_length),
            )
            if tensor is not None
        }
        return found.pop() if len(found) == 1 else None

    def _length_key(self, key: str) -> str:
        windowed = isinstance(self.store, Sliding | Chunked)
        return f"{key}_swa" if windowed and f"{key}_swa" in self.model.fields else key


def _share(tensor: Tensor, parts: int) -> int | None:
    """Return a tensor's rows in each of equal parts, ``None`` where they don't divide."""
    count, rest = divmod(tensor.shape[1], parts) if parts else (0, 1)
    return None if rest else count


def _hit(model: Model, index: int, found: _Contradiction) -> Hit:
    full_key = model.fields.key(found.key)
    field = model.fields.find(found.key)
    wanted, rows = found.count * found.length, found.tensor.shape[1]
    # A length that is a share of the embedding moves with the heads: then either may
    # be what went wrong, if nothing else has that length.
    certain = found.key not in (HEADS, KV_HEADS) or KEY_LENGTH in model.fields or found.shares
    repair: Repair = Reconvert()
    if found.right and certain and field is not None and isinstance(field.value, int):
        repair = SetKey(key=full_key, value=found.right, present=True)
    state = "says so" if field is not None else "is absent, so by default"
    if found.shares:
        state = "shares the embedding out so"
    instead = "" if found.instead is None else f"; or {model.fields.key(found.instead)} is wrong"
    return Hit(
        message=(
            f"needs {wanted} rows ({found.count} heads of {found.length} elements, "
            f"{full_key} {state}), {found.tensor.name} has {rows}{instead}"
        ),
        where=Where(
            key=full_key, tensor=found.tensor.name, layer=index, offset=found.tensor.info_offset
        ),
        expected=rows,
        actual=wanted,
        unit="row",
        origin=Origin.KEY if field is not None else Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=repair,
        also=tuple(model.fields.key(key) for key in TOGETHER if key != found.key),
    )


def _per_block(model: Model, key: str, blocks: int) -> tuple[int, ...] | None:
    """Read a key whose wrong length is another rule's cause."""
    try:
        return model.fields.per_block(key, blocks)
    except Refused:
        return None


def _effective(model: Model, key: str) -> int | None:
    found = arch.effective(model.fields, key)
    return found.value if found is not None and isinstance(found.value, int) else None


RULE = Rule(
    id="ARCH003",
    name="metadata-shape-mismatch",
    levels=(Severity.ERROR,),
    check=OnModel(check),
    defers_to=("KV102", "KV106", "ARCH002", "ARCH006"),
    authority="llama.cpp b11434 src/llama-model-loader.cpp check_tensor_dims, done_getting_tensors",
)
