from __future__ import annotations

from gguf_audit.checkpoint import StoredTensor
from gguf_audit.evidence import Conversion
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.wt.parameters_changed import check
from rule_subjects import SETTINGS, info_offset
from wt_subjects import changed, converted, llama, stored

NAME = "blk.2.ffn_up.weight"
HF = "model.layers.2.mlp.up_proj.weight"


def found(subject: Conversion) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_fewer_than_in_the_checkpoint() -> None:
    subject = changed(NAME, 64, 96)
    assert found(converted(subject, stored())) == [
        Hit(
            message=f"needs 64 x 128 in {NAME} as in {HF} of the checkpoint, has 64 x 96",
            where=Where(tensor=NAME, layer=2, offset=info_offset(subject, NAME)),
            expected=[64, 128],
            actual=[64, 96],
            level=Severity.ERROR,
            repair=Reconvert(hint="or name the right reference"),
        )
    ]


def test_all_that_differ_are_one_finding() -> None:
    smaller = stored(**{HF.replace(".", "__"): (96, 64), "model__norm__weight": (32,)})
    [hit] = found(converted(llama(), smaller))
    assert isinstance(hit, Hit)
    assert hit.message.endswith(f"; so it is with {NAME}")


def test_silent_where_they_add_up() -> None:
    assert found(converted(llama(), stored())) == []


def test_silent_about_padded_rows() -> None:
    assert found(converted(changed("token_embd.weight", 64, 32), stored())) == []


def test_silent_about_packed_elements() -> None:
    packed = stored() | {HF: StoredTensor(dtype="U8", shape=(128, 32))}
    assert found(converted(llama(), packed)) == []


def test_silent_without_tensors_to_compare_with() -> None:
    assert found(converted(changed(NAME, 64, 96), Absent("none"))) == []
