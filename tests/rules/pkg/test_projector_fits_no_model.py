from __future__ import annotations

from gguf_audit.evidence import PairSubject, ProjectorMember, SetMember
from gguf_audit.fields import Fields
from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, Replace, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_fits_no_model import check
from rule_subjects import SETTINGS


def model(name: str, **sizes: Scalar) -> SetMember:
    values = {f"qwen3vl.{key}": value for key, value in sizes.items()}
    return SetMember(
        name=f"models/{name}.gguf",
        architecture="qwen3vl",
        byte_order="little",
        values=values,
        fields=Fields.of("qwen3vl", values),
    )


def said(width: int, *models: SetMember) -> list[object]:
    projector = ProjectorMember(name="models/mmproj.gguf", widths=(width,), type="qwen3vl_merger")
    pair = PairSubject(folder="models", projector=projector, models=models)
    return list(check(pair, SETTINGS))


def test_fires_for_a_model_of_another_width() -> None:
    assert said(192, model("text", embedding_length=64)) == [
        Hit(
            message=(
                "needs a text model of the same width beside it, projector qwen3vl_merger gives"
                " 192 numbers for each token, text.gguf takes 64"
            ),
            where=Where(file="models/mmproj.gguf"),
            expected=[64],
            actual=[192],
            unit="number",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


def test_fires_as_a_warning_where_the_models_differ() -> None:
    # none of them need be the one that it goes with
    found = said(192, model("a", embedding_length=64), model("b", embedding_length=96))
    assert [hit.level for hit in found if isinstance(hit, Hit)] == [Severity.WARNING]


def test_silent_where_one_fits() -> None:
    fits = model("b", embedding_length=64, n_deepstack_layers=2)
    assert said(192, model("a", embedding_length=64), fits) == []
    assert said(192, fits) == []


def test_silent_where_no_width_is_known() -> None:
    assert said(192, model("a"), model("b", embedding_length="wide")) == []
