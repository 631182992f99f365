from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from gguf_audit.expectation import REQUIRABLE
from gguf_audit.limits import LIMITS
from gguf_audit.policies import Budget, Policy, PolicyError, Suppression, files, matches
from gguf_audit.policies.quantizations import bits_of
from gguf_audit.policies.reading import PROFILES, parse_policy, profile, read_policy
from gguf_audit.policies.sizes import size_bytes

EVERYTHING = """\
profile = "deploy"
select = ["KV", "PKG"]
ignore = ["KV109"]
fail-on = "warning"
require = ["reference", "tokenizer"]
provenance = true

[severity]
TPL = "warning"
TPL001 = "error"

[allow]
licenses = ["apache-2.0"]
architectures = ["gemma3", "llama"]

[budget]
cache = "4GiB"
context = 32768
file-size = 20_000_000_000
quantization = "Q4_K_M"

[references]
"gemma-*.gguf" = "google/gemma-3-270m@main"
"*" = "auto"

[hashes]
"models/a.gguf" = "ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789"

[[suppress]]
rule = "KV103"
file = "old/*.gguf"
key = "gemma3.attention.sliding_window"
fingerprint = "0123456789abcdef"
reason = "served with --swa-full until the next upload"
expires = 2027-03-01

[[suppress]]
rule = "chat-template-lost"
file = "*.gguf"
reason = "a base model"
expires = "2027-04-01"
"""


def parsed(text: str) -> Policy:
    return parse_policy(text, name="p.toml", requirable=REQUIRABLE)


def test_every_field_is_read() -> None:
    assert parsed(EVERYTHING) == Policy(
        profile="deploy",
        select=("KV", "PKG"),
        ignore=("KV109",),
        fail_on="warning",
        require=("reference", "tokenizer"),
        provenance=True,
        severity={"TPL": "warning", "TPL001": "error"},
        licenses=("apache-2.0",),
        architectures=("gemma3", "llama"),
        budget=Budget(
            cache_bytes=4 << 30,
            context_tokens=32768,
            file_bytes=20_000_000_000,
            quantization="Q4_K_M",
            least_bits=Fraction(9, 2),
        ),
        references={"gemma-*.gguf": "google/gemma-3-270m@main", "*": "auto"},
        hashes={"models/a.gguf": "abcdef0123456789" * 4},
        suppressions=(
            Suppression(
                rule="KV103",
                file="old/*.gguf",
                key="gemma3.attention.sliding_window",
                fingerprint="0123456789abcdef",
                reason="served with --swa-full until the next upload",
                expires=date(2027, 3, 1),
            ),
            Suppression(
                rule="chat-template-lost",
                file="*.gguf",
                reason="a base model",
                expires=date(2027, 4, 1),
            ),
        ),
    )


def test_nothing_demands_nothing() -> None:
    assert parsed("") == Policy()


SUPPRESS = '[[suppress]]\nrule = "KV103"\nfile = "*.gguf"\n'
UNTIL = "expires = 2027-01-01\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('selct = ["KV"]', "p.toml, line 1: unknown key 'selct', did you mean select?"),
        ('fail_on = "error"', "p.toml, line 1: unknown key 'fail_on', did you mean fail-on?"),
        (
            '\n[budget]\ncontext = 1\ncashe = "1G"',
            "p.toml, line 4: unknown key 'budget.cashe', did you mean cache?",
        ),
        (
            "[[suppres]]\nrule = 'x'",
            "p.toml, line 1: unknown key 'suppres', did you mean suppress?",
        ),
        (
            'ignore = []\n\n[budgets]\ncache = "1G"',
            "p.toml, line 3: unknown key 'budgets', did you mean budget?",
        ),
        (
            "budget.nonesuch = 1",
            "p.toml: unknown key 'budget.nonesuch'; known are quantization, cache, context, file-size",
        ),
        (
            f"{SUPPRESS}reason = 'x'\n{UNTIL}{SUPPRESS}resaon = 'x'\nreason = 'y'\n{UNTIL}",
            "p.toml, line 9: unknown key 'suppress.resaon', did you mean reason?",
        ),
        (SUPPRESS + UNTIL, "p.toml, line 1: every [[suppress]] needs reason"),
        (f"{SUPPRESS}{UNTIL}reason = ' '", "p.toml, line 5: every [[suppress]] needs reason"),
        (
            f"{SUPPRESS}reason = 'x'",
            "p.toml, line 1: every [[suppress]] needs expires, a date such as 2027-03-01",
        ),
        (
            f"{SUPPRESS}reason = 'x'\nexpires = 'soon'",
            "p.toml, line 5: suppress.expires needs a date such as 2027-03-01",
        ),
        (
            f"{SUPPRESS}fingerprint = '12'",
            "p.toml, line 4: suppress.fingerprint needs 16 hexadecimal digits, as in the JSON report",
        ),
        ("[[suppress]]\nrule = 'KV103'", "p.toml, line 1: every [[suppress]] needs file"),
        ("suppress = ['KV103']", "p.toml, line 1: suppress needs [[suppress]] for each entry"),
        (
            "fail-on = 'errors'",
            (
                "p.toml, line 1: fail-on is 'errors', none of error, warning, info, never, "
                "did you mean error?"
            ),
        ),
        (
            "require = ['reference', 'refrence']",
            (
                f"p.toml, line 1: require has 'refrence', none of {', '.join(REQUIRABLE)}, "
                "did you mean reference?"
            ),
        ),
        (
            "[severity]\nKV101 = 'fatal'",
            "p.toml, line 2: severity.KV101 is 'fatal', none of error, warning, info",
        ),
        ("provenance = 1", "p.toml, line 1: provenance needs true or false"),
        ("select = 'KV'", "p.toml, line 1: select needs a list of strings"),
        ("select = ['KV', 1]", "p.toml, line 1: select needs a list of strings"),
        ("allow = 1", "p.toml, line 1: allow needs a table"),
        (
            "[budget]\ncache = '8 potatoes'",
            'p.toml, line 2: budget.cache needs a size such as "8GiB"',
        ),
        ("[budget]\ncache = -1", 'p.toml, line 2: budget.cache needs a size such as "8GiB"'),
        ("[budget]\ncontext = true", "p.toml, line 2: budget.context needs a number of tokens"),
        (
            "[budget]\nquantization = 'Q9'",
            'p.toml, line 2: budget.quantization needs a quantization such as "Q4_K_M"',
        ),
        (
            '[hashes]\n"a.gguf" = "12"',
            "p.toml, line 2: hashes.a.gguf needs a sha256: 64 hexadecimal digits",
        ),
        (
            '[references]\n"a.gguf" = 1',
            "p.toml, line 2: references.a.gguf needs a string",
        ),
        (
            '[references]\n"." = "owner/repo"',
            'p.toml, line 2: references needs lines such as "*.gguf" = "owner/repo"',
        ),
        (
            '[references]\n"a=[b" = 1',
            "p.toml, line 2: references.a=[b needs a string",
        ),
        (
            f'[references]\n"{"a" * 513}" = "owner/repo"',
            "p.toml, line 2: a pattern has 512 characters at most",
        ),
        (
            SUPPRESS.replace("*.gguf", "*a" * 257) + UNTIL,
            "p.toml, line 3: a pattern has 512 characters at most",
        ),
        (
            "profile = 'deplyo'",
            "p.toml, line 1: profile is 'deplyo', none of publish, deploy, did you mean deploy?",
        ),
    ],
)
def test_a_mistake_is_an_error_that_says_where(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as error:
        parsed(text)
    assert str(error.value) == says


@pytest.mark.parametrize("line", ["[" + " " * 50_000, "[" * 50_000, "selct." + " " * 50_000])
def test_a_line_is_found_below_any_text(line: str) -> None:
    # What backtracks over them takes hours.
    with pytest.raises(PolicyError) as error:
        parsed(f'select = ["""\n{line}\n"""]\nselct = 1')
    says = "p.toml, line 4: unknown key 'selct', did you mean select?"
    assert str(error.value) == says


def test_a_pattern_may_name_a_folder_and_a_file() -> None:
    pattern = "/".join(["a" * 255, "b" * 255]) + "*"
    assert parsed(f'[references]\n"{pattern}" = "a/b"').references == {pattern: "a/b"}


def test_what_is_no_toml_says_where() -> None:
    with pytest.raises(PolicyError, match=r"^p\.toml: .*line 2, column"):
        parsed("select = []\nignore = ]")


def test_what_cant_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"can't read .*nowhere: No such file"):
        read_policy(tmp_path / "nowhere", requirable=REQUIRABLE)
    (tmp_path / "latin").write_bytes(b"# caf\xe9")
    with pytest.raises(PolicyError, match="is not UTF-8"):
        read_policy(tmp_path / "latin", requirable=REQUIRABLE)
    (tmp_path / "long").write_bytes(b"#" * (LIMITS.policy_bytes + 1))
    with pytest.raises(PolicyError, match="more are not read"):
        read_policy(tmp_path / "long", requirable=REQUIRABLE)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("folder", "a folder"),
        ("pipe", "a named pipe"),
        ("socket", "a socket"),
        ("/dev/zero", "a device"),
        ("/dev/tty", "a device"),
    ],
)
def test_what_is_no_file_is_refused_before_it_is_opened(
    place: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with pytest.raises(PolicyError) as error:
            read_policy(Path(place), requirable=REQUIRABLE)
    assert str(error.value) == f"can't read {place}: it is {kind}, not a regular file"


def test_the_empty_device_is_an_empty_policy() -> None:
    assert read_policy(Path("/dev/null"), requirable=REQUIRABLE) == Policy(file="/dev/null")


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="the kernel's log can't be read")
def test_a_regular_file_without_an_end_is_not_waited_for() -> None:
    with pytest.raises(PolicyError) as error:
        read_policy(Path("/proc/kmsg"), requirable=REQUIRABLE)
    assert str(error.value) == "can't read /proc/kmsg: its end didn't come"


def test_a_pipe_of_a_shell_is_waited_for_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", """import time; time.sleep(0.2); print('fail-on = "info"')"""],
        stdout=subprocess.PIPE,
    ) as writing:
        assert writing.stdout is not None
        place = Path(f"/dev/fd/{writing.stdout.fileno()}")
        found = read_policy(place, requirable=REQUIRABLE)
    assert found == Policy(file=str(place), fail_on="info")
    monkeypatch.setattr(files, "LIMITS", LIMITS._replace(pipe_seconds=0.1))
    reader, writer = os.pipe()
    os.write(writer, b"# begun, and never ended")
    place = Path(f"/dev/fd/{reader}")
    with pytest.raises(PolicyError) as error:
        read_policy(place, requirable=REQUIRABLE)
    os.close(reader)
    os.close(writer)
    assert str(error.value) == f"can't read {place}: its end didn't come in 0.1 s"


def test_a_stronger_policy_replaces_and_adds() -> None:
    base = Policy(
        profile="deploy",
        ignore=("PKG",),
        fail_on="error",
        require=("reference",),
        severity={"KV": "info", "KV101": "info"},
        licenses=("mit",),
        budget=Budget(cache_bytes=1, context_tokens=2),
        references={"*": "auto", "b.gguf": "owner/b"},
    )
    mine = Policy(
        file="p.toml",
        fail_on="warning",
        require=("hub",),
        severity={"KV": "error"},
        licenses=(),
        budget=Budget(cache_bytes=0),
        references={"a.gguf": "owner/a", "b.gguf": "owner/c"},
    )
    both = mine.over(base)
    assert both == Policy(
        file="p.toml",
        profile="deploy",
        ignore=("PKG",),
        fail_on="warning",
        require=("reference", "hub"),
        severity={"KV101": "info", "KV": "error"},
        licenses=(),
        budget=Budget(cache_bytes=0, context_tokens=2),
        references={"a.gguf": "owner/a", "b.gguf": "owner/c", "*": "auto"},
    )
    # A later level wins, and mine are the later ones.
    assert list(both.severity) == ["KV101", "KV"]
    assert [both.reference_of(name) for name in ("x/a.gguf", "b.gguf", "c.gguf")] == [
        "owner/a",
        "owner/c",
        "auto",
    ]


@pytest.mark.parametrize("name", PROFILES)
def test_built_in_profiles_are_read(name: str) -> None:
    found = profile(name)
    assert found.profile == name
    assert found.require == ("reference",)
    assert found.reference_of("any.gguf") == "auto"


def test_a_profile_that_nobody_knows_is_a_bug() -> None:
    with pytest.raises(KeyError):
        profile("../deploy")


@pytest.mark.parametrize(
    ("pattern", "file", "expected"),
    [
        ("*.gguf", "/models/deep/a.gguf", True),
        ("a.gguf", "models/a.gguf", True),
        ("models/*.gguf", "/srv/models/a.gguf", True),
        ("models/*.gguf", "/srv/models/deep/a.gguf", False),
        ("models/*.gguf", "models\\a.gguf", True),
        ("b*.gguf", "owner/repo:b-Q4_0.gguf", True),
        ("owner/repo/*.gguf", "owner/repo:b-Q4_0.gguf", True),
        ("repo/b.gguf", "other:b.gguf", False),
        ("*.gguf", "model.bin", False),
    ],
)
def test_patterns_match_from_the_right(pattern: str, file: str, expected: bool) -> None:
    assert matches(pattern, file) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("1K", 1024),
        ("8GiB", 8 << 30),
        ("8 GiB", 8 << 30),
        ("1.5G", 3 << 29),
        ("500MB", 500_000_000),
        ("90B", 90),
        ("1.5TiB", 3 << 39),
        ("GiB", None),
        ("8gib", None),
        ("-1G", None),
        ("1e9", None),
        ("9" * 5000, None),
        ("", None),
    ],
)
def test_sizes_are_read(text: str, expected: int | None) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Q4_K_M", Fraction(9, 2)),
        ("q4_k_s", Fraction(9, 2)),
        ("Q4_0", Fraction(9, 2)),
        ("Q8_0", Fraction(17, 2)),
        ("BF16", Fraction(16)),
        ("IQ3_M", Fraction(55, 16)),
        ("IQ2_M", Fraction(41, 16)),
        ("IQ3_XXS", Fraction(41, 16)),
        ("MXFP4_MOE", Fraction(17, 4)),
        ("Q9_Z", None),
        ("", None),
    ],
)
def test_bits_of_a_quantization(name: str, expected: Fraction | None) -> None:
    assert bits_of(name) == expected


def test_nothing_is_imported_where_there_is_no_policy(tmp_path: Path) -> None:
    code = (
        "import sys; from gguf_audit.cli.policy import Asked, govern; "
        "print(govern(Asked(), lengths=(), rules={}, requirable=()).policy, "
        "[m for m in sys.modules if m == 'tomllib' or m.startswith('gguf_audit.polic')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("None []\n", "")
