from __future__ import annotations

from collections import Counter

import pytest

from gguf_audit import arch
from gguf_audit.arch.tensors._expressions import parse
from gguf_audit.arch.tensors._names import CONVERTED
from gguf_audit.arch.tensors._sizes import ANY, NAMES
from gguf_audit.arch.tensors._tables import FILES, Row, known, rows_of, sections

NAMES_WE_HAVE = sorted(known())
#: Architectures whose tensors depend on more than metadata: drafts of other models, a
#: vocoder, a model that unrolls its blocks, a head of its own.
UNKNOWN = {"clef", "dflash", "eagle3", "hrm_text", "wavtokenizer-dec"}


def test_every_architecture_is_covered_but_these() -> None:
    named = {name for found in arch.architectures() for name in found.names}
    assert named - known() == UNKNOWN
    assert known() <= named


def test_no_architecture_is_there_twice() -> None:
    names = Counter(name for file in FILES for section, _ in sections(file) for name in section)
    assert [name for name, count in names.items() if count > 1] == []


def test_what_is_converted_is_in_the_tables() -> None:
    assert known() >= CONVERTED


@pytest.mark.parametrize("name", NAMES_WE_HAVE)
def test_every_name_has_a_meaning(name: str) -> None:
    rows = rows_of(name)
    assert rows
    for row in rows:
        texts = [*(size for size in row.sizes if size != "_"), row.condition or "1"]
        used = frozenset[str]().union(*(parse(text).names for text in texts))
        presence = {word for word in used if word.startswith("@")}
        assert used - presence <= NAMES | ANY, (row.name, used - presence - NAMES - ANY)
        assert row.scope in ("model", "each", "encoder", "decoder")
        assert row.sizes, row.name


def test_a_section_is_read() -> None:
    rows = {(row.scope, row.name, row.condition): row for row in rows_of("deepseek2") or ()}
    assert rows["each", "attn_k_b.weight", "mla"] == Row(
        scope="each",
        name="attn_k_b.weight",
        sizes=("key_mla-rot", "kv_rank", "heads"),
        required=True,
        any_shape=False,
        condition="mla",
    )
    assert not rows["model", "output.weight", ""].required
    gate = rows["each", "ffn_gate_exps.weight", "!lead & !@ffn_gate_up_exps"]
    assert gate.sizes == ("embd", "expert_ff", "experts")


def test_an_unknown_architecture_has_no_table() -> None:
    assert rows_of("no-such-model") is None
