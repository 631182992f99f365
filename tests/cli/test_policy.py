from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gguf_audit.cli.policy import FILE_NAME, find_policy
from gguf_audit.testing import write_gguf

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]

SUPPRESS = """\
[[suppress]]
rule = "TOK003"
file = "wrong.gguf"
reason = "nobody generates with it"
expires = {expires}
"""


@pytest.fixture
def policy(models: Path) -> Callable[..., None]:
    """Return a function that writes the policy of the working directory."""

    def write(text: str) -> None:
        (models / FILE_NAME).write_text(text, "utf-8")

    return write


def document(done: Done) -> Any:
    return json.loads(done.stdout)


# What a policy does to an audit


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        ("", ["wrong.gguf"], 1),
        ('ignore = ["TOK003"]', ["wrong.gguf"], 0),
        ('ignore = ["TOK003"]', ["wrong.gguf", "--ignore", "KV"], 1),
        ('select = ["KV"]', ["wrong.gguf"], 0),
        ('select = ["KV"]', ["wrong.gguf", "--select", "TOK"], 1),
        ('fail-on = "never"', ["wrong.gguf"], 0),
        ('fail-on = "never"', ["wrong.gguf", "--fail-on", "error"], 1),
        ("[severity]\nTOK003 = 'warning'", ["wrong.gguf"], 0),
        ("[severity]\nTOK003 = 'warning'", ["wrong.gguf", "--severity", "TOK003=error"], 1),
        ('require = ["reference"]', ["sound.gguf"], 3),
        ('require = ["reference"]', ["sound.gguf", "--require", "tokenizer"], 3),
        ('profile = "deploy"', ["sound.gguf", "--offline"], 3),
        ("[allow]\nlicenses = ['mit']", ["sound.gguf"], 1),
        ("[allow]\narchitectures = ['llama']", ["sound.gguf"], 0),
        ("[allow]\narchitectures = ['gemma3']", ["sound.gguf"], 1),
        ("[allow]\narchitectures = ['gemma3']", ["sound.gguf", "--ignore", "PKG011"], 0),
        ("[budget]\ncache = '1KiB'", ["sound.gguf"], 1),
        ("[budget]\ncache = '1KiB'", ["sound.gguf", "--max-cache", "1G"], 0),
        ("select = ['KV']\n[budget]\ncache = '1KiB'", ["sound.gguf"], 1),
        ("select = ['KV']\nignore = ['RUN']\n[budget]\ncache = '1KiB'", ["sound.gguf"], 0),
        ("[budget]\ncache = '1KiB'", ["sound.gguf", "--select", "KV"], 1),
        ("[budget]\nfile-size = '1KiB'", ["sound.gguf"], 1),
        ("[budget]\nquantization = 'F16'", ["sound.gguf"], 0),
        ("[budget]\nquantization = 'F32'", ["sound.gguf"], 1),
        ("[references]\n'*' = 'nowhere/at-all'", ["sound.gguf", "--offline"], 3),
        ("[references]\n'other.gguf' = 'nowhere/at-all'", ["sound.gguf", "--offline"], 0),
        (
            "[references]\n'*' = './sound.gguf'",
            ["wrong.gguf", "--require", "reference", "--ignore", "TOK"],
            0,
        ),
        (f"[hashes]\n'sound.gguf' = '{'0' * 64}'", ["sound.gguf"], 1),
        (f"[hashes]\n'other.gguf' = '{'0' * 64}'", ["sound.gguf"], 0),
        (SUPPRESS.format(expires="2999-01-01"), ["wrong.gguf"], 0),
        (SUPPRESS.format(expires="2001-01-01"), ["wrong.gguf"], 1),
    ],
)
def test_a_policy_decides_what_the_command_line_leaves_open(
    run: Run, policy: Callable[..., None], text: str, arguments: list[str], code: int
) -> None:
    policy(text)
    done = run("check", *arguments)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_pinned_hash_is_that_of_the_whole_file(
    run: Run, models: Path, policy: Callable[..., None]
) -> None:
    import hashlib

    sha256 = hashlib.sha256((models / "sound.gguf").read_bytes()).hexdigest()
    policy(f"[hashes]\n'sound.gguf' = '{sha256}'")
    assert run("check", "sound.gguf").returncode == 0
    with (models / "sound.gguf").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    done = run("check", "sound.gguf", "--format", "json")
    [finding] = document(done)["subjects"][0]["findings"]
    assert (finding["rule"], finding["expected"]) == ("PKG012", sha256)


def test_a_pinned_reference_that_the_command_line_overrules_is_said(
    run: Run, policy: Callable[..., None], write: Callable[..., None]
) -> None:
    policy("[references]\n'*' = 'google/gemma-3-270m'")
    write("good.gguf", {})
    done = run("check", "sound.gguf", "--against", "good.gguf", "--format", "json")
    found = document(done)["subjects"][0]["findings"]
    assert [(each["rule"], each["severity"]) for each in found] == [("PKG013", "warning")]


# What it says of itself


def test_the_report_names_the_policy_and_what_it_hides(
    run: Run, policy: Callable[..., None]
) -> None:
    policy(SUPPRESS.format(expires="2999-01-01"))
    text = run("check", "wrong.gguf").stdout
    assert text.startswith("CLEAN  wrong.gguf: nothing else found, 1 accepted, llama\n")
    assert f"{FILE_NAME} (found from the working directory upwards)" in text
    said = "error TOK003 special-id-out-of-range in wrong.gguf: nobody generates with it"
    assert f"    accepted  {said}, until 2999-01-01\n" in text
    assert text.endswith("0 infos, 1 accepted\n")
    found = document(run("check", "wrong.gguf", "--format", "json"))
    [subject] = found["subjects"]
    assert (subject["status"], subject["findings"]) == ("clean", [])
    [hidden] = subject["suppressed"]
    assert (hidden["rule"], hidden["suppression"]) == (
        "TOK003",
        {"by": "policy", "reason": "nobody generates with it", "expires": "2999-01-01"},
    )
    assert found["policy"]["found"] is True
    assert found["summary"]["suppressed"] == 1


def test_even_one_line_names_the_policy(
    run: Run, models: Path, policy: Callable[..., None]
) -> None:
    policy('ignore = ["TOK003"]\n')
    by = f"by {models / FILE_NAME}"
    assert (
        run("check", "wrong.gguf", "-q").stdout
        == f"CLEAN  wrong.gguf: nothing found, llama, {by}\n"
    )
    done = run("check", "wrong.gguf", "-q", "--profile", "deploy", "--against", "sound.gguf")
    assert done.stdout == f"CLEAN  wrong.gguf: nothing found, llama, {by}, profile deploy\n"


def test_an_expired_suppression_is_told_where_it_would_have_hidden_something(
    run: Run, policy: Callable[..., None]
) -> None:
    policy(SUPPRESS.format(expires="2001-01-01"))
    note = (
        "TOK003 in wrong.gguf is suppressed no longer: it expired on 2001-01-01 "
        "(nobody generates with it)"
    )
    assert f"    expired   {note}\n" in run("check", "wrong.gguf").stdout
    assert "no longer" not in run("check", "sound.gguf").stdout
    assert document(run("check", "wrong.gguf", "--format", "json"))["policy"]["notes"] == [note]


@pytest.mark.parametrize(
    ("narrowed", "hidden"),
    [
        ("", 1),
        ('key = "tokenizer.ggml.eos_token_id"', 1),
        ('key = "tokenizer.ggml.bos_token_id"', 0),
        ('fingerprint = "0123456789abcdef"', 0),
    ],
)
def test_a_suppression_can_be_narrowed(
    run: Run, policy: Callable[..., None], narrowed: str, hidden: int
) -> None:
    policy(SUPPRESS.format(expires="2999-01-01") + narrowed)
    found = document(run("check", "wrong.gguf", "--format", "json"))
    assert found["summary"]["suppressed"] == hidden


# Which file it is


def test_it_is_found_above_but_not_beside_a_target(
    run: Run,
    models: Path,
    tmp_path: Path,
    policy: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy('ignore = ["TOK003"]')
    inside = models / "deep" / "er"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert run("check", "../../wrong.gguf").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run("check", "../models/wrong.gguf").returncode == 1


@pytest.mark.parametrize("stops", ["repository", "home"])
def test_the_search_ends_with_a_repository_or_home(
    models: Path, policy: Callable[..., None], monkeypatch: pytest.MonkeyPatch, stops: str
) -> None:
    policy("")
    inner = models / "inner"
    (inner / "deep").mkdir(parents=True)
    monkeypatch.chdir(inner / "deep")
    assert find_policy() == models / FILE_NAME
    if stops == "repository":
        (inner / ".git").write_text("gitdir: elsewhere", "utf-8")
    else:
        monkeypatch.setenv("HOME", str(inner))
    assert find_policy() is None
    (inner / FILE_NAME).write_text("", "utf-8")
    assert find_policy() == inner / FILE_NAME


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 100_000, "is nested too deeply"),
        ("a = " + "{a = " * 20_000, "is nested too deeply"),
        ("\na" + ".a" * 50_000 + " = 1", "line 2: more than 200 dots in a line"),
        ("a = " + "9" * 5000, "Exceeds the limit (4300 digits)"),
    ],
)
def test_a_policy_that_takes_long_to_read_is_none(
    run: Run, policy: Callable[..., None], text: str, why: str
) -> None:
    policy(text)
    done = run("check", "sound.gguf")
    assert (done.returncode, done.stdout) == (2, "")
    assert why in " ".join(done.stderr.split())


@pytest.mark.parametrize("option", ["--policy", "--baseline", None])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    run: Run, models: Path, option: str | None
) -> None:
    os.mkfifo(models / FILE_NAME)
    done = run("check", "sound.gguf", *([option, FILE_NAME] if option else []))
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is a named pipe" in " ".join(done.stderr.split())


def test_a_policy_whose_link_leads_nowhere_is_not_no_policy(run: Run, models: Path) -> None:
    for target in ("nowhere", FILE_NAME):
        (models / FILE_NAME).symlink_to(target)
        done = run("check", "sound.gguf")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"can't read {models / FILE_NAME}" in " ".join(done.stderr.split())
        (models / FILE_NAME).unlink()


def test_one_that_anybody_could_have_put_there_must_be_named(
    run: Run, models: Path, policy: Callable[..., None]
) -> None:
    policy("")
    models.chmod(0o777)
    done = run("check", "sound.gguf")
    assert done.returncode == 2
    assert "in a folder that anybody may write to" in done.stderr
    assert run("check", "sound.gguf", "--policy", FILE_NAME).returncode == 0
    assert run("check", "sound.gguf", "--policy", "/dev/null").returncode == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('selct = ["KV"]', f"{FILE_NAME}, line 1: unknown key 'selct', did you mean select?"),
        (
            'fail-on = "error"\nselect = ["KV999"]',
            f"{FILE_NAME}, line 2: no rule is called 'KV999': did you mean",
        ),
        ('ignore = ["KV999"]', f"{FILE_NAME}, line 1: no rule is called 'KV999'"),
        (
            '[severity]\nKV = "info"\nnonsense = "info"',
            f"{FILE_NAME}, line 3: no rule is called 'nonsense'",
        ),
        (
            SUPPRESS.format(expires="2999-01-01").replace("TOK003", "TOK"),
            f"{FILE_NAME}, line 2: a suppression of 'TOK' would hide a family: name one rule",
        ),
        (
            SUPPRESS.format(expires="2999-01-01")
            + SUPPRESS.format(expires="2999-01-01").replace("TOK003", "TOK999"),
            "line 7: no rule is called 'TOK999'",
        ),
    ],
)
def test_a_policy_with_a_mistake_is_wrong_usage(
    run: Run, policy: Callable[..., None], text: str, says: str
) -> None:
    policy(text)
    done = run("check", "sound.gguf")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert f"Invalid value for {FILE_NAME}: " in told
    assert says in told
    named = " ".join(run("check", "sound.gguf", "--policy", FILE_NAME).stderr.split())
    assert "Invalid value for --policy: " in named
    assert says in named


def test_what_a_policy_says_is_shown_as_one_line_of_letters(
    run: Run, policy: Callable[..., None]
) -> None:
    policy('[hashes]\n"a\\u001b[2J\\nb" = "x"')
    *_, said = run("check", "sound.gguf").stderr.splitlines()
    assert said.endswith(
        f"{FILE_NAME}, line 1: hashes.a\\x1b[2J\\nb needs a sha256: 64 hexadecimal digits"
    ), said
    policy(f'"{"k" * 500_000}" = 1')
    assert len(run("check", "sound.gguf").stderr) < 2500


# --max-cache


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--max-cache", "16KiB"], 1),
        (["--max-cache", "32KiB"], 0),
        (["--max-cache", "16KiB", "--select", "KV"], 1),
        (["--max-cache", "16KiB", "--ignore", "RUN010"], 0),
        (["--max-cache", "32KiB", "--ctx", "64,1024"], 1),
        (["--max-cache", "a lot"], 2),
    ],
)
def test_a_budget_of_the_command_line(run: Run, arguments: list[str], code: int) -> None:
    # One layer, one head of 32 + 32 in f16: 128 bytes a token, padded to 256 tokens.
    assert run("check", "sound.gguf", *arguments).returncode == code


def test_a_cache_that_nobody_knows_is_not_within_its_budget(run: Run, models: Path) -> None:
    tensors = [("token_embd.weight", (64, 2), "F16")]
    write_gguf(models / "unknown.gguf", {"general.architecture": "nonesuch"}, tensors)
    unknown = "check", "unknown.gguf", "--allow-unknown"
    assert run(*unknown).returncode == 0
    assert run(*unknown, "--max-cache", "1T").returncode == 3


# --baseline


def test_a_baseline_lets_what_it_knows_pass_and_nothing_new(
    run: Run, write: Callable[..., None]
) -> None:
    run("check", "wrong.gguf", "--format", "json", "-o", "baseline.json")
    held = "check", "wrong.gguf", "--baseline", "baseline.json"
    done = run(*held)
    assert done.returncode == 0
    assert (
        "    known     error TOK003 special-id-out-of-range in wrong.gguf: in the baseline\n"
        in done.stdout
    )
    assert run("check", "sound.gguf", *held[1:]).returncode == 0
    write("wrong.gguf", {"tokenizer.ggml.bos_token_id": 9, "tokenizer.ggml.eos_token_id": 7})
    [subject] = document(run(*held, "--format", "json"))["subjects"]
    assert [each["key"] for each in subject["findings"]] == ["tokenizer.ggml.bos_token_id"]
    assert [each["key"] for each in subject["suppressed"]] == ["tokenizer.ggml.eos_token_id"]


def test_findings_of_one_rule_in_one_file_are_counted(run: Run, write: Callable[..., None]) -> None:
    write("wrong.gguf", {"tokenizer.ggml.bos_token_id": 9, "tokenizer.ggml.eos_token_id": 7})
    run("check", "wrong.gguf", "--format", "json", "-o", "baseline.json")
    done = run("check", "wrong.gguf", "--baseline", "baseline.json")
    assert (
        "    known     error TOK003 special-id-out-of-range (2 findings) in wrong.gguf:"
        " in the baseline\n" in done.stdout
    )


def test_what_has_become_worse_is_new(run: Run) -> None:
    milder = "--severity", "TOK003=warning"
    run("check", "wrong.gguf", *milder, "--format", "json", "-o", "baseline.json")
    held = "check", "wrong.gguf", "--baseline", "baseline.json"
    assert run(*held).returncode == 1
    assert run(*held, *milder, "--fail-on", "warning").returncode == 0


def test_what_is_found_no_more_is_stale(run: Run, write: Callable[..., None]) -> None:
    run("check", "wrong.gguf", "--format", "json", "-o", "baseline.json")
    held = "check", "wrong.gguf", "--baseline", "baseline.json"
    # A rule that did not look can't have missed anything.
    assert document(run(*held, "--select", "KV", "--format", "json"))["baseline"]["stale"] == []
    write("wrong.gguf", {})
    [stale] = document(run(*held, "--format", "json"))["baseline"]["stale"]
    assert (stale["target"], stale["rule"]) == ("wrong.gguf", "TOK003")
    said = "TOK003 %s in wrong.gguf is in the baseline and not in the file any more"
    assert f"    stale     {said % stale['fingerprint']}\n" in run(*held).stdout


def test_a_baseline_knows_a_file_by_its_name_unless_two_share_it(
    run: Run, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        (models / folder).mkdir()
    (models / "wrong.gguf").rename(models / "a" / "wrong.gguf")
    run("check", "a/wrong.gguf", "--format", "json", "-o", "baseline.json")
    monkeypatch.chdir(models / "a")
    assert run("check", "wrong.gguf", "--baseline", "../baseline.json").returncode == 0
    monkeypatch.chdir(models)
    (models / "b" / "wrong.gguf").write_bytes((models / "a" / "wrong.gguf").read_bytes())
    done = run("check", "a", "b", "--baseline", "baseline.json", "--format", "json")
    found = [len(subject["findings"]) for subject in document(done)["subjects"]]
    assert found == [0, 1], "the baseline has seen the one in a, not the one in b"


def test_a_report_held_against_a_baseline_is_one_itself(run: Run) -> None:
    run("check", "wrong.gguf", "--format", "json", "-o", "1.json")
    run("check", "wrong.gguf", "--baseline", "1.json", "--format", "json", "-o", "2.json")
    assert run("check", "wrong.gguf", "--baseline", "2.json").returncode == 0


def test_what_a_policy_suppressed_is_not_known_for_ever(
    run: Run, policy: Callable[..., None]
) -> None:
    policy(SUPPRESS.format(expires="2999-01-01"))
    run("check", "wrong.gguf", "--format", "json", "-o", "baseline.json")
    policy("")
    assert run("check", "wrong.gguf", "--baseline", "baseline.json").returncode == 1


def test_what_was_not_audited_stays_so(run: Run) -> None:
    run("check", "missing.gguf", "--format", "json", "-o", "baseline.json")
    assert run("check", "missing.gguf", "--baseline", "baseline.json").returncode == 3


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', "[" * 100_000])
def test_a_baseline_that_is_none_is_wrong_usage(run: Run, models: Path, text: str) -> None:
    (models / "baseline.json").write_text(text, "utf-8")
    done = run("check", "sound.gguf", "--baseline", "baseline.json")
    assert done.returncode == 2
    assert "is no report of gguf-audit" in " ".join(done.stderr.split())


# Names and cards


def test_who_publishes_is_told_what_is_missing(run: Run, write: Callable[..., None]) -> None:
    write("good.gguf", {})
    done = run("check", "sound.gguf", "--profile", "publish", "--against", "good.gguf")
    assert done.returncode == 1
    assert "warning PKG006 provenance-missing" in done.stdout
    assert run("check", "sound.gguf").stdout.startswith("CLEAN  ")
    done = run("check", "sound.gguf", "--profile", "deploy", "--against", "good.gguf")
    assert (done.returncode, "PKG006" in done.stdout) == (0, False)


@pytest.mark.parametrize(
    ("card", "rules"),
    [
        ("# no card at all", []),
        ("---\nlicense: mit\n---\n", ["PKG006"]),
        ("---\nlicense: mit\nbase_model:\n- owner/x\n---\n", []),
    ],
)
def test_the_card_beside_a_file_is_read(
    run: Run, models: Path, card: str, rules: list[str]
) -> None:
    (models / "README.md").write_text(card, "utf-8")
    [subject] = document(run("check", "sound.gguf", "--format", "json"))["subjects"]
    assert [each["rule"] for each in subject["findings"]] == rules
    assert {each["severity"] for each in subject["findings"]} <= {"info"}
    if rules:
        (models / "config.json").write_text("{}", "utf-8")
        [subject] = document(run("check", "sound.gguf", "--format", "json"))["subjects"]
        assert subject["findings"] == [], "beside a checkpoint the origin is plain"


#: What publishers call their files, and what general.file_type they have.
HABITS = {
    "M-8B-Q4_K_M.gguf": 15,
    "M-8B-Q4_K_L.gguf": 15,
    "M-8B-Q6_K_L.gguf": 18,
    "M-8B-Q3_K_XL.gguf": 13,
    "M-8B-UD-Q4_K_XL.gguf": 15,
    "M-8B-UD-IQ1_S.gguf": 10,
    "M-8B.i1-IQ4_XS.gguf": 30,
    "M-8B.i1-Q4_K_M.gguf": 15,
    "M-8B-f16.gguf": 1,
    "BF16/M-8B-BF16-00001-of-00001.gguf": 32,
}
_TYPES = {15: "Q4_K", 18: "Q6_K", 13: "Q3_K", 10: "Q2_K", 30: "IQ4_XS", 32: "BF16", 1: "F16"}


def test_habits_of_publishers_are_no_findings(run: Run, models: Path) -> None:
    folder = models / "habits"
    (folder / "BF16").mkdir(parents=True)
    for name, file_type in HABITS.items():
        # 8 billion parameters: what the name says.
        layer = ("blk.0.ffn_up.weight", (1 << 20, 7600), _TYPES[file_type])
        fields: dict[str, Any] = {
            "general.architecture": "llama",
            "general.file_type": file_type,
        }
        write_gguf(folder / name, fields, [layer])
    (folder / "M-8B.imatrix.dat").write_bytes(b"\x01\x00")
    write_gguf(folder / "imatrix_unsloth.gguf", {"general.type": "imatrix"})
    table = "\n".join(f"| [{name}](x) |" for name in HABITS)
    (folder / "README.md").write_text(
        f"---\nlicense: mit\nbase_model: owner/M-8B\n---\n{table}\n", "utf-8"
    )
    naming = ",".join(f"PKG00{number}" for number in range(2, 10))
    done = run("check", "habits", "--select", naming, "--format", "json")
    subjects = document(done)["subjects"]
    assert len(subjects) >= len(HABITS)
    assert [each["message"] for subject in subjects for each in subject["findings"]] == []
