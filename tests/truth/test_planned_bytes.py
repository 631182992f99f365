"""Every architecture of llama.cpp, planned and measured, to the byte."""

from __future__ import annotations

import pytest

from gguf_audit.arch import by_name
from truth_tables import Row, by, fields_of, measured, outcome, rows

pytestmark = pytest.mark.truth

ARCHITECTURES = rows("llama_cpp_by_arch")
LOST = rows("llama_cpp_lost_keys")
VARIANTS = rows("llama_cpp_variants")


def compare(row: Row) -> None:
    fields = fields_of(row["metadata"])
    planned = [(run["settings"], outcome(fields, run["settings"])) for run in row["runs"]]
    assert planned == [(run["settings"], measured(run)) for run in row["runs"]]


@pytest.mark.parametrize("row", ARCHITECTURES, ids=by(ARCHITECTURES, "arch"))
def test_a_plan_is_what_llama_cpp_takes(row: Row) -> None:
    compare(row)


@pytest.mark.parametrize("row", LOST, ids=by(LOST, "arch", "lost"))
def test_a_file_without_a_key_does_what_llama_cpp_does(row: Row) -> None:
    compare(row)


@pytest.mark.parametrize("row", VARIANTS, ids=by(VARIANTS, "arch", "variant"))
def test_a_variant_of_a_file_takes_what_llama_cpp_takes(row: Row) -> None:
    compare(row)


@pytest.mark.parametrize("row", ARCHITECTURES, ids=by(ARCHITECTURES, "arch"))
def test_an_architecture_that_is_said_to_be_verified_is(row: Row) -> None:
    found = by_name(row["arch"])
    assert found is not None
    assert found.verified or not any("bytes" in run for run in row["runs"])
