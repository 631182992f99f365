from __future__ import annotations

from gguf_audit.evidence import FolderSubject, SetMember
from gguf_audit.fields import Fields
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_missing import check
from rule_subjects import SETTINGS


def model(name: str, encoder: str = "") -> SetMember:
    return SetMember(
        name=f"models/{name}.gguf",
        architecture="gemma3",
        byte_order="little",
        values={},
        fields=Fields.of("gemma3", {}),
        encoder=encoder,
    )


def said(*models: SetMember, projector: bool = False) -> list[Outcome]:
    subject = FolderSubject(folder="models", models=models, has_projector=projector)
    return list(check(subject, SETTINGS))


TAG = "general.tags has image-text-to-text"


def test_fires_once_for_all_models_of_a_folder() -> None:
    assert said(model("text"), model("a-Q4_0", TAG), model("a-Q8_0", TAG)) == [
        Hit(
            message=(
                "needs a projector file (mmproj) in models, there is none: a-Q4_0.gguf and 1 more"
                " can take text alone, though general.tags has image-text-to-text"
            ),
            where=Where(file="models/a-Q4_0.gguf"),
            expected="a projector file (mmproj)",
            level=Severity.INFO,
            repair=Reconvert(hint="convert_hf_to_gguf.py --mmproj writes the projector"),
        )
    ]


def test_silent_beside_a_projector_and_for_text() -> None:
    assert said(model("a", TAG), projector=True) == []
    assert said(model("a"), model("b")) == []
