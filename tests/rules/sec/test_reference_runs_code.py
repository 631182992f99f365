from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import Json
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.reference_runs_code import check
from rule_subjects import SETTINGS, checkpoint, conversion

OWN: Json = {"AutoModel": "modeling.Own", "AutoTokenizer": ["org/model--slow.Own", None]}


def hits(config: Json, tokenizer_config: Json = None) -> list[object]:
    found = checkpoint(config={"auto_map": config})
    if tokenizer_config is not None:
        found = replace(found, tokenizer_config={"auto_map": tokenizer_config})
    return list(check(conversion({}, reference=found), SETTINGS))


@pytest.mark.parametrize("config", [OWN, None, [], "a", {"AutoModel": 5}, {"AutoModel": []}])
def test_silent_for_code_of_its_own(config: Json) -> None:
    assert hits(config, OWN) == []


def test_silent_without_a_config() -> None:
    assert list(check(conversion({}, reference=checkpoint()), SETTINGS)) == []


def test_tells_of_code_of_another_repository() -> None:
    config: Json = {"AutoConfig": "modeling.Own", "AutoModel": "parent/repo--modeling.Own"}
    assert hits(config, {"AutoTokenizer": ["a/b--slow.A", "c/d--fast.B"]}) == [
        Hit(
            message="needs no code from elsewhere, auto_map of the reference's config.json names "
            "parent/repo",
            where=Where(file="org/model/config.json", key="auto_map"),
            actual=["parent/repo"],
            level=Severity.INFO,
        ),
        Hit(
            message="needs no code from elsewhere, auto_map of the reference's"
            " tokenizer_config.json names a/b, c/d",
            where=Where(file="org/model/tokenizer_config.json", key="auto_map"),
            actual=["a/b", "c/d"],
            level=Severity.INFO,
        ),
    ]


@pytest.mark.parametrize(
    ("architecture", "code"),
    [
        ("LlamaForCausalLM", "longer.LlamaForCausalLM"),
        ("JinaBertForMaskedLM", "modeling_bert.JinaBertModel"),
        ("XLMRobertaModel", "modeling_lora.XLMRobertaLoRA"),
        ("NewModel", "modeling.NewForTokenClassification"),
        ("QWenLMHeadModel", "modeling_qwen.QWenModel"),
        ("MPTForCausalLM", "modeling_mpt.mptmodel"),
    ],
)
def test_a_class_of_the_architecture_is_no_error(architecture: str, code: str) -> None:
    found = checkpoint(
        config={"architectures": [architecture], "auto_map": {"AutoModel": f"a/b--{code}"}}
    )
    [hit] = check(conversion({}, reference=found), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.level, hit.actual) == (Severity.INFO, ["a/b"])


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("xlm-roberta", "modeling_xlm_roberta.XLMRobertaModel"),
        ("bert", "modeling_bert.JinaBertModel"),
    ],
)
def test_a_class_of_the_kind_is_no_error(kind: str, code: str) -> None:
    codes: Json = {"AutoModel": f"a/b--{code}"}
    found = checkpoint(
        config={"architectures": ["HF_ColBERT"], "model_type": kind, "auto_map": codes}
    )
    [hit] = check(conversion({}, reference=found), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.level, hit.actual) == (Severity.INFO, ["a/b"])


def test_a_class_of_a_part_is_no_error() -> None:
    part: Json = {
        "architectures": ["InternLM2ForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "a/b--modeling_internlm2.InternLM2ForCausalLM"},
    }
    found = checkpoint(config={"architectures": ["InternVLChatModel"], "llm_config": part})
    [hit] = check(conversion({}, reference=found), SETTINGS)
    assert isinstance(hit, Hit)
    assert (hit.level, hit.actual) == (Severity.INFO, ["a/b"])


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [("LlamaForCausalLM", "evil"), ("HF_ColBERT", "bert"), ("HF_ColBERT", "-_"), ("A", 5)],
)
def test_fires_whatever_the_kind_is(architecture: str, kind: Json) -> None:
    codes: Json = {"AutoModel": "attacker/repo--evil.Evil"}
    found = checkpoint(
        config={"architectures": [architecture], "model_type": kind, "auto_map": codes}
    )
    [hit] = check(conversion({}, reference=found), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.ERROR


def test_fires_whatever_a_part_is_that_has_no_code() -> None:
    config: dict[str, Json] = {
        "architectures": ["LlamaForCausalLM"],
        "auto_map": {"AutoModel": "attacker/repo--evil.Evil"},
        "part": {"architectures": ["EvilForCausalLM"]},
    }
    [hit] = check(conversion({}, reference=checkpoint(config=config)), SETTINGS)
    assert isinstance(hit, Hit)
    assert hit.level is Severity.ERROR


def test_fires_for_a_model_class_that_is_none_of_the_checkpoint_s() -> None:
    codes: Json = {
        "AutoConfig": "parent/repo--configuration.Config",
        "AutoModel": "attacker/repo--evil.Evil",
        "AutoModelForCausalLM": "parent/repo--modeling.LlamaForCausalLM",
    }
    found = checkpoint(config={"architectures": ["LlamaForCausalLM", 5], "auto_map": codes})
    assert list(check(conversion({}, reference=found), SETTINGS)) == [
        Hit(
            message="needs no code from elsewhere, auto_map of the reference's config.json names "
            "attacker/repo--evil.Evil, no class of LlamaForCausalLM",
            where=Where(file="org/model/config.json", key="auto_map"),
            actual=["attacker/repo", "parent/repo"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize("key", ["_attn_implementation_internal", "attn_implementation"])
@pytest.mark.parametrize("inside", [False, True])
def test_fires_for_kernels_of_a_repository(key: str, inside: bool) -> None:
    named: dict[str, Json] = {key: "attacker/kernels"}
    found = checkpoint(config={"text_config": named} if inside else named)
    assert list(check(conversion({}, reference=found), SETTINGS)) == [
        Hit(
            message="needs no code from elsewhere, the reference's config.json has "
            f"{key} attacker/kernels",
            where=Where(file="org/model/config.json"),
            actual=[f"{key} attacker/kernels"],
            level=Severity.ERROR,
        )
    ]


@pytest.mark.parametrize(
    "value", ["flash_attention_2", "kernels-community/flash-attn3", None, True, {"text": "sdpa"}]
)
def test_silent_for_an_implementation_of_transformers(value: Json) -> None:
    found = checkpoint(config={"_attn_implementation": value})
    assert list(check(conversion({}, reference=found), SETTINGS)) == []


def test_a_list_and_a_part_of_a_config_are_read_too() -> None:
    found = replace(
        checkpoint(config={"text_config": {"auto_map": {"AutoConfig": "a/b--c.D"}}}),
        tokenizer_config={"auto_map": ["c/d--tok.Evil", None]},
    )
    hits = list(check(conversion({}, reference=found), SETTINGS))
    assert [hit.actual for hit in hits if isinstance(hit, Hit)] == [["a/b"], ["c/d"]]
