"""Files that go with a model: what each is taken for, and every fault in each of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from adapter_subjects import (
    ADAPTER,
    DIRECTIONS,
    ENTRIES,
    MATRIX,
    PAIRS,
    PEFT,
    PEFT_TENSORS,
    VECTOR,
)
from companion_faults import FAULTS, CompanionFault, broken
from companion_subjects import (
    AUDIO,
    AUDIO_STORED,
    AUDIO_TENSORS,
    GEMMA,
    GEMMA_COLOURS,
    GEMMA_CONFIG,
    GEMMA_STORED,
    GEMMA_TENSORS,
    Tensors,
)
from engine_subjects import ALL, KEYS, TENSORS, audit, write_checkpoint, write_model
from gguf_audit.checkpoint import Json, StoredTensor
from gguf_audit.companions import encoder_of
from gguf_audit.engine import audit_targets
from gguf_audit.errors import SourceError
from gguf_audit.formats.gguf import open_gguf
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.rule import Severity
from gguf_audit.testing import FieldValue, write_gguf
from gguf_audit.verdict import Status, SubjectReport
from rule_subjects import checkpoint, gguf

VISION: Mapping[str, Json] = {
    **GEMMA_CONFIG,
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "sliding_window": 512,
        "vocab_size": 100,
    },
}
HEARING: Mapping[str, Json] = {
    "architectures": ["Qwen2AudioForConditionalGeneration"],
    "model_type": "qwen2_audio",
    "text_config": {
        "model_type": "qwen2",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
    },
    "audio_config": {
        "model_type": "qwen2_audio_encoder",
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "num_mel_bins": 32,
    },
}


def write(folder: Path, name: str, fields: Mapping[str, FieldValue], tensors: Tensors) -> Path:
    specs = [(tensor, tuple(shape), "F32") for tensor, shape in tensors.items()]
    return write_gguf(folder / f"{name}.gguf", fields, specs)


def write_json(folder: Path, name: str, document: Mapping[str, Json]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(document), "utf-8")


def write_safetensors(file: Path, tensors: Tensors) -> None:
    """Write a header and as many zeros as it tells of."""
    end, header = 0, {}
    for name, shape in tensors.items():
        size = 4
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))


@pytest.fixture
def companions(tmp_path: Path) -> Mapping[str, tuple[Path, str | None]]:
    """Write a right file of each kind; by name, with the reference that it has."""
    write_json(tmp_path / "seeing", "config.json", VISION)
    write_json(tmp_path / "seeing", "preprocessor_config.json", GEMMA_COLOURS)
    write_json(tmp_path / "hearing", "config.json", HEARING)
    write_safetensors(tmp_path / "seeing" / "model.safetensors", GEMMA_STORED)
    write_safetensors(tmp_path / "hearing" / "model.safetensors", AUDIO_STORED)
    write_json(tmp_path / "peft", "adapter_config.json", PEFT)
    write_safetensors(tmp_path / "peft" / "adapter_model.safetensors", PEFT_TENSORS)
    return {
        "vision": (write(tmp_path, "vision", GEMMA, GEMMA_TENSORS), str(tmp_path / "seeing")),
        "audio": (write(tmp_path, "audio", AUDIO, AUDIO_TENSORS), str(tmp_path / "hearing")),
        "adapter": (write(tmp_path, "adapter", ADAPTER, PAIRS), str(tmp_path / "peft")),
        "imatrix": (write(tmp_path, "imatrix", MATRIX, ENTRIES), None),
        "vector": (write(tmp_path, "vector", VECTOR, DIRECTIONS), None),
    }


def bad(subject: SubjectReport) -> list[str]:
    return [found.rule for found in subject.findings if found.severity is not Severity.INFO]


KINDS = {
    "vision": "mmproj",
    "audio": "mmproj",
    "adapter": "adapter",
    "imatrix": "imatrix",
    "vector": "other",
}


@pytest.mark.parametrize("name", KINDS)
def test_right_ones_are_silent(
    companions: Mapping[str, tuple[Path, str | None]], name: str
) -> None:
    file, reference = companions[name]
    alone = audit(file)
    assert (alone.kind, alone.status, alone.findings) == (KINDS[name], Status.CLEAN, ())
    if reference is not None:
        beside = audit(file, against=reference)
        assert (beside.kind, beside.findings, beside.errors) == (KINDS[name], (), ())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}: {fault.name}")
def test_every_fault_is_told(
    companions: Mapping[str, tuple[Path, str | None]], fault: CompanionFault, tmp_path: Path
) -> None:
    told = 0
    for file, reference in companions.values():
        made = broken(open_gguf(file), fault)
        if made is None or (fault.needs_reference and reference is None):
            continue
        other = write_gguf(tmp_path / "broken.gguf", *made)
        found = bad(audit(other, against=reference))
        assert set(found) & set(fault.told_by), (file.name, found)
        assert len(found) == 1, (file.name, found)
        told += 1
    assert told


def test_a_label_switches_no_audit_off(tmp_path: Path) -> None:
    for type_ in ("adapter", "mmproj", "imatrix"):
        file = write_gguf(tmp_path / "model.gguf", {**KEYS, "general.type": type_}, TENSORS)
        assert audit(file).kind == "model"


def test_an_adapter_with_norms_is_no_model(tmp_path: Path) -> None:
    norms = {"blk.0.attn_norm.weight": (64,), "output_norm.weight": (64,)}
    file = write(tmp_path, "adapter", ADAPTER, {**PAIRS, **norms})
    assert (audit(file).kind, bad(audit(file))) == ("adapter", ["PKG043"])


@pytest.mark.parametrize(
    ("fields", "tensors", "kind"),
    [
        (
            {"general.architecture": "flux"},
            {"double_blocks.0.img_attn.qkv.weight": (64, 192)},
            "other",
        ),
        ({"general.name": "x"}, {"model.diffusion_model.out.2.weight": (64, 4)}, "other"),
        ({"general.architecture": "wan"}, {"blocks.0.self_attn.q.weight": (64, 64)}, "other"),
        ({}, {"decoder.conv_in.weight": (3, 3, 4, 64), "encoder.conv_in.weight": (3,)}, "other"),
        ({}, {"unet_proj_in.lora_down.weight": (64, 4)}, "other"),
        ({"general.architecture": "mimi"}, {"decoder.model.0.conv.weight": (7, 64)}, "other"),
        ({}, {"conv.weight": (64, 4), "blk.0.attn_q.weight": (64, 64)}, "model"),
        ({}, {"conv.weight": (64, 4), "token_embd.weight": (64, 64)}, "model"),
        ({"tokenizer.ggml.model": "gpt2"}, {"conv.weight": (64, 4)}, "model"),
        ({"general.architecture": "llama"}, {"conv.weight": (64, 4)}, "model"),
        ({}, PAIRS, "adapter"),
        ({}, ENTRIES, "imatrix"),
        ({}, DIRECTIONS, "other"),
        ({"clip.projector_type": "gemma3"}, GEMMA_TENSORS, "mmproj"),
    ],
)
def test_content_tells_what_a_file_is(
    tmp_path: Path, fields: Mapping[str, FieldValue], tensors: Tensors, kind: str
) -> None:
    assert audit(write(tmp_path, "file", fields, tensors)).kind == kind


def test_an_image_model_is_said_to_be_one(tmp_path: Path) -> None:
    file = write(tmp_path, "flux", {"general.architecture": "flux"}, {"double_blocks.0.x": (64,)})
    subject = audit(file)
    assert (subject.status, subject.errors, subject.incomplete()) == (Status.PARTIAL, (), False)
    reasons = {skip.reason for skip in subject.skips if skip.kind == "no-evidence"}
    assert reasons == {
        "only the file structure of this kind is audited: flux: an image model, none of llama.cpp's"
    }


@pytest.mark.parametrize(("architecture", "named"), [(None, ""), ("mimi", "mimi: ")])
def test_what_has_nothing_of_a_language_model_is_said_to_be_none(
    tmp_path: Path, architecture: str | None, named: str
) -> None:
    fields = {} if architecture is None else {"general.architecture": architecture}
    subject = audit(write(tmp_path, "vae", fields, {"decoder.conv_in.weight": (3, 3, 4, 64)}))
    assert (subject.kind, subject.findings, subject.errors) == ("other", (), ())
    assert (subject.status, subject.incomplete()) == (Status.PARTIAL, False)
    [reason] = {skip.reason for skip in subject.skips if skip.kind == "no-evidence"}
    assert reason == (
        f"only the file structure of this kind is audited: {named}no language model, it has neither"
        " a tokenizer nor the tensors of one"
    )


def test_a_language_model_that_lost_its_architecture_is_still_wrong(tmp_path: Path) -> None:
    fields = {key: value for key, value in KEYS.items() if key != "general.architecture"}
    subject = audit(write_gguf(tmp_path / "model.gguf", fields, TENSORS))
    assert (subject.kind, bad(subject)) == ("model", ["ARCH001"])


@pytest.mark.parametrize(
    ("fields", "tensors"),
    [
        ({}, {"encoder.x": (64,), "blk.0.attn_q.weight": (64, 64)}),
        ({"tokenizer.ggml.model": "gpt2"}, {"encoder.x": (64,)}),
    ],
)
def test_an_unknown_architecture_is_still_unknown(
    tmp_path: Path, fields: Mapping[str, FieldValue], tensors: Tensors
) -> None:
    subject = audit(write(tmp_path, "odd", {"general.architecture": "odd", **fields}, tensors))
    assert (subject.kind, subject.incomplete()) == ("model", True)


def test_an_importance_matrix_of_old_is_named(tmp_path: Path) -> None:
    name = b"blk.0.attn_q.weight"
    head = (14).to_bytes(4, "little") + len(name).to_bytes(4, "little") + name
    file = tmp_path / "model-imatrix.dat"
    file.write_bytes(head + bytes(64))
    subject = audit(file)
    assert subject.kind == "imatrix"
    [problem] = subject.errors
    assert "an importance matrix in the format from before GGUF" in problem.message


def test_an_adapters_folder_is_no_reference_of_a_model(tmp_path: Path) -> None:
    write_json(tmp_path / "peft", "adapter_config.json", PEFT)
    subject = audit(write_model(tmp_path), against=tmp_path / "peft")
    assert subject.incomplete()
    assert "without its model's config.json: this file is no adapter" in subject.errors[0].message


def test_an_adapters_folder_is_no_reference_of_a_projector(
    companions: Mapping[str, tuple[Path, str | None]], tmp_path: Path
) -> None:
    subject = audit(companions["vision"][0], against=tmp_path / "peft")
    assert subject.incomplete()
    assert "without its model's config.json: this file is no adapter" in subject.errors[0].message


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("vision", "a projector file (mmproj)"),
        ("adapter", "an adapter"),
        ("imatrix", "an importance matrix"),
        ("vector", "a control vector"),
    ],
)
@pytest.mark.parametrize("name", ["model", "audio", "adapter", "imatrix"])
def test_what_goes_with_a_model_is_nobodys_reference(
    companions: Mapping[str, tuple[Path, str | None]],
    tmp_path: Path,
    name: str,
    reference: str,
    what: str,
) -> None:
    file = write_model(tmp_path) if name == "model" else companions[name][0]
    other = tmp_path / "other.gguf"
    other.write_bytes(companions[reference][0].read_bytes())
    subject = audit(file, against=other)
    [problem] = subject.errors
    assert problem.message == (
        f"{other} is {what}, which is no reference: give what this file was made from, or another "
        "conversion of that"
    )
    assert (subject.incomplete(), subject.findings) == (True, ())


def test_a_model_is_the_reference_of_what_goes_with_it(
    companions: Mapping[str, tuple[Path, str | None]], tmp_path: Path
) -> None:
    model = write_model(tmp_path)
    for name in ("vision", "adapter", "imatrix"):
        assert audit(companions[name][0], against=model).errors == ()


@pytest.mark.parametrize("beside", ["", "mmproj-audio", "audio"])
def test_an_encoder_may_be_in_a_projector_file_beside(tmp_path: Path, beside: str) -> None:
    both: Mapping[str, Json] = {
        "model_type": "qwen2_5_omni",
        "thinker_config": {"vision_config": {}, "audio_config": {"encoder_layers": 2}},
    }
    write_json(tmp_path / "both", "config.json", both)
    fields = {**GEMMA, "clip.projector_type": "qwen2.5o"}
    file = write(tmp_path, "mmproj-vision", fields, GEMMA_TENSORS)
    if beside:
        write(tmp_path, beside, AUDIO, AUDIO_TENSORS)
    found = [
        each.rule
        for each in audit(file, against=tmp_path / "both").findings
        if each.severity is Severity.INFO
    ]
    # What is called otherwise is not opened for that.
    assert found == ([] if beside == "mmproj-audio" else ["PKG039"])


def test_an_adapter_is_held_against_the_model_it_is_for(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path)
    adapter = write(tmp_path, "adapter", ADAPTER, PAIRS)
    assert bad(audit(adapter, against=checkpoint)) == []
    assert bad(audit(adapter, against=write_model(tmp_path))) == []
    wide = {**PAIRS, "blk.2.attn_q.weight.lora_b": (8, 128)}
    other = write(tmp_path, "other", ADAPTER, wide)
    assert bad(audit(other, against=checkpoint)) == ["PKG042"]
    assert bad(audit(other, against=write_model(tmp_path))) == ["PKG042"]


# Pairs in a folder


def told(folder: Path) -> list[tuple[str, str, str]]:
    report = audit_targets([str(folder)], Mandate(rules=ALL))
    return [
        (subject.kind, found.rule, Path(found.where.file or "").name)
        for subject in report.subjects
        for found in subject.findings
    ]


@pytest.mark.parametrize("width", [64, 128])
def test_a_projector_beside_a_model_is_held_against_it(tmp_path: Path, width: int) -> None:
    write_model(tmp_path)  # 64 wide
    sizes = {**GEMMA_TENSORS, "mm.input_projection.weight": (width, 32)}
    write(tmp_path, "mmproj", GEMMA, sizes)
    mismatch = [("set", "PKG036", "mmproj.gguf")]
    assert told(tmp_path) == ([] if width == 64 else mismatch)


def test_a_projector_in_another_folder_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_model(tmp_path / "a")
    write(
        tmp_path / "b", "mmproj", GEMMA, {**GEMMA_TENSORS, "mm.input_projection.weight": (128, 32)}
    )
    assert told(tmp_path) == []


def test_a_projector_beside_its_quants_is_held_against_them(tmp_path: Path) -> None:
    (tmp_path / "Q4_K_M").mkdir()
    write_model(tmp_path / "Q4_K_M")
    write(tmp_path, "mmproj", GEMMA, {**GEMMA_TENSORS, "mm.input_projection.weight": (128, 32)})
    assert told(tmp_path) == [("set", "PKG036", "mmproj.gguf")]


def test_the_folder_of_a_pair_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Q4_K_M").mkdir()
    write_model(tmp_path / "Q4_K_M")
    wide = {**GEMMA_TENSORS, "mm.input_projection.weight": (128, 32)}
    write(tmp_path / "Q4_K_M", "mmproj", GEMMA, wide)
    monkeypatch.chdir(tmp_path)
    report = audit_targets(["Q4_K_M"], Mandate(rules=ALL))
    assert [each.target for each in report.subjects if each.kind == "set"] == ["."]


# Encoders that a model has elsewhere


@pytest.mark.parametrize(
    ("architecture", "tags", "says"),
    [
        ("qwen3vl", ["a"], "its architecture is qwen3vl"),
        ("gemma3", ["chat", "image-text-to-text"], "general.tags has image-text-to-text"),
        ("gemma3", ["any-to-any"], "general.tags has any-to-any"),
        ("gemma3", ["text-generation", "image"], ""),
        # There it may be an encoder that llama.cpp doesn't know.
        ("llama", ["image-text-to-text"], ""),
    ],
)
def test_what_a_file_says_of_its_encoder(architecture: str, tags: list[str], says: str) -> None:
    keys: dict[str, FieldValue] = {"general.architecture": architecture, "general.tags": tags}
    assert encoder_of(gguf(keys), None) == says


TEXT_ONLY: Mapping[str, Json] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
}
#: A card keeps only what the text model is made of.
CUT: Mapping[str, Json] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
}
MLLAMA: Mapping[str, Json] = {
    "architectures": ["MllamaForConditionalGeneration"],
    "model_type": "mllama",
    "vision_config": {"model_type": "mllama_vision_model"},
}


NONE: Tensors = {}


@pytest.mark.parametrize(
    ("config", "stored", "has"),
    [
        (GEMMA_CONFIG, GEMMA_STORED, True),
        (GEMMA_CONFIG, NONE, True),
        (CUT, NONE, True),
        (HEARING, AUDIO_STORED, True),
        ({**GEMMA_CONFIG, "architectures": None}, NONE, True),
        # Its text part alone was published.
        (GEMMA_CONFIG, {"model.layers.0.mlp.up_proj.weight": (1,)}, False),
        (TEXT_ONLY, NONE, False),
        ({**CUT, "architectures": ["Gemma3ForCausalLM"]}, NONE, False),
        (MLLAMA, NONE, False),
    ],
)
def test_what_a_reference_says_of_the_encoder(
    config: Mapping[str, Json], stored: Tensors, has: bool
) -> None:
    found = {name: StoredTensor(dtype="F32", shape=tuple(stored[name])) for name in stored}
    reference = replace(
        checkpoint(config=config),
        load_tensors=lambda: found or Absent("no weights"),
    )
    text = gguf({"general.architecture": "gemma3"})
    assert encoder_of(text, reference) == ("org/model has an encoder" if has else "")


def test_weights_that_cannot_be_read_say_nothing_against_an_encoder() -> None:
    def unread() -> NoReturn:
        raise SourceError("gone")

    reference = replace(checkpoint(config=GEMMA_CONFIG), load_tensors=unread)
    assert encoder_of(gguf({"general.architecture": "gemma3"}), reference) != ""


def test_a_reference_speaks_for_the_models_made_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(VISION), "utf-8")
    made = tmp_path / "made"
    made.mkdir()
    rules = {"PKG014": ALL["PKG014"]}

    def said() -> list[str]:
        report = audit_targets([str(made)], Mandate(against=str(folder), rules=rules))
        return [found.message for subject in report.subjects for found in subject.findings]

    write_model(made)  # a Llama: it was made of something else
    assert said() == []
    keys = {key.replace("llama.", "gemma3."): value for key, value in KEYS.items()}
    write_gguf(made / "text.gguf", {**keys, "general.architecture": "gemma3"}, TENSORS)
    [message] = said()
    assert message.endswith(f": text.gguf can take text alone, though {folder} has an encoder")
    write(made, "any", GEMMA, GEMMA_TENSORS)
    assert said() == []
