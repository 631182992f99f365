# The child is looked at where it runs.
# pyright: reportPrivateUsage=false
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat_subjects import CHATML
from gguf_audit.chat import (
    ANSWER,
    CONVERSATIONS,
    QUESTION,
    RESULT,
    SYSTEM,
    TOOL,
    Analysis,
    Exceeded,
    Failed,
    Raised,
    Rendered,
)
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.probes.templates import _PROGRAM, _REMEMBERED, Analyst, _folders


@pytest.fixture
def analyst(monkeypatch: pytest.MonkeyPatch) -> Iterator[Analyst]:
    # Whatever else this machine has to do, CPU time runs out first.
    monkeypatch.setattr(TEMPLATES_LIMITS, LIMITS._replace(template_seconds=120.0))
    with Analyst() as made:
        yield made


TEMPLATES_LIMITS = "gguf_audit.probes.templates.LIMITS"


def analysed(analyst: Analyst, template: str, *, bos: str = "<s>", eos: str = "</s>") -> Analysis:
    found = analyst.analyse(template, bos=bos, eos=eos)
    assert not isinstance(found, Absent)
    return found


def process_of(analyst: Analyst) -> int:
    assert analyst._process is not None
    return analyst._process.pid


def test_every_conversation_is_rendered_with_the_tokens(analyst: Analyst) -> None:
    found = analysed(analyst, "{{ bos_token }}" + CHATML + "{{ eos_token }}", eos="<end>")
    assert found.fault is None
    assert found.renderings.keys() == CONVERSATIONS.keys()
    assert found.text("a question") == (
        f"<s><|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n<end>"
    )
    assert found.text("a system message") == (
        f"<s><|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n"
        "<|im_start|>assistant\n<end>"
    )
    assert ANSWER in (found.text("an answer") or "")
    assert RESULT in (found.text("a tool call") or "")
    assert found.variables == {"messages", "bos_token", "eos_token", "add_generation_prompt"}


def test_it_is_the_jinja_of_transformers(analyst: Analyst) -> None:
    template = (
        "  {% if true %}\n"
        "{{ tools | tojson if tools else '-' }}|{{ strftime_now('%d %b %Y') }}\n"
        "{% endif %}\n"
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
        "{% if ns.n > 1 %}{% break %}{% endif %}{{ dict(a=1).a }}{% endfor %}"
        "{% generation %}{{ messages[0].content }}{% endgeneration %}"
    )
    found = analysed(analyst, template)
    assert found.text("a question") == f"-|01 Jul 2026\n1{QUESTION}"
    with_tools = found.text("tools") or ""
    assert f'"name": "{TOOL}"' in with_tools
    assert "&#34;" not in with_tools


def test_content_comes_in_parts_where_a_template_wants_it_so(analyst: Analyst) -> None:
    template = "{% for m in messages %}{{ m.role }}:{% for p in m.content %}{{ p.text }}{% endfor %};{% endfor %}"
    found = analysed(analyst, template)
    assert found.text("a question") == f"user:{QUESTION};"
    assert found.text("a system message") == f"system:{SYSTEM};user:{QUESTION};"


OUTCOMES = [
    ("{{ raise_exception('No ' ~ 1) }}", Raised("No 1")),
    ("{{ messages[0].content.nothing.more }}", "UndefinedError"),
    ("{{ messages.append(1) }}", "SecurityError"),
    ("{{ ''.__class__.__mro__ }}", "SecurityError"),
    ("{{ namespace(_x=1) }}", "SecurityError"),
    ("{{ x | nothing }}", "TemplateAssertionError"),
]


@pytest.mark.parametrize(("template", "expected"), OUTCOMES)
def test_what_goes_wrong_is_told(analyst: Analyst, template: str, expected: Raised | str) -> None:
    found = analysed(analyst, template).renderings["a question"]
    if isinstance(expected, str):
        assert isinstance(found, Failed)
        assert found.message.startswith(expected)
    else:
        assert found == expected


def test_what_is_no_template_is_told_with_its_line(analyst: Analyst) -> None:
    found = analysed(analyst, "\n\n{{ messages[0]['content'")
    assert isinstance(found.fault, Failed)
    assert found.fault.message == "unexpected end of template, expected ','."
    assert (found.line, found.renderings) == (3, {})


MEMORY = "it takes more memory than it is given"
DEEP = "it is nested too deeply, or calls itself without an end"
CPU = f"it takes more than {LIMITS.template_cpu_seconds} s of CPU time"
PROMPT = f"the prompt has over {LIMITS.prompt_characters} characters"
ROUNDS = (
    "{% set n = messages|length * 9999 %}"
    "{% for i in range(n) %}{% for j in range(n) %}{% endfor %}{% endfor %}"
)
#: Numbers that the look at the tree doesn't see, so that the limits have to do it.
BOUNDLESS = [
    ("{% set n = messages|length * 9999999 %}{{ ('x' * n) * 99 }}", MEMORY),
    (
        "{% set n = messages|length * 9999 %}{% for i in range(n * 10) %}{{ loop.index }}{% endfor %}",
        PROMPT,
    ),
    (ROUNDS, CPU),
    ("{% macro f(x) %}{% if x %}{{ f(x) }}{% endif %}{% endmacro %}{{ f(1) }}", DEEP),
]


@pytest.mark.parametrize(("template", "reason"), BOUNDLESS)
def test_a_template_has_bounds(analyst: Analyst, template: str, reason: str) -> None:
    found = analysed(analyst, template)
    assert found.fault is None
    assert found.renderings["a question"] == Exceeded(reason, certain=True)
    assert found.exceeded == Exceeded(reason, certain=True)
    # The next one isn't hurt by it.
    assert isinstance(analysed(analyst, CHATML).renderings["a question"], Rendered)


UNPARSED = [
    ("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", DEEP),
    ("{% if true %}" * 5_000 + "{% endif %}" * 5_000, DEEP),
    ("{{ " + "1+" * 150_000 + "1 }}", CPU),
]


@pytest.mark.parametrize(("template", "reason"), UNPARSED)
def test_parsing_has_bounds(analyst: Analyst, template: str, reason: str) -> None:
    assert analysed(analyst, template) == Analysis(
        fault=Exceeded(reason, certain=True), renderings={}
    )
    assert analysed(analyst, CHATML).fault is None


def test_a_template_that_is_too_long_reaches_nobody(analyst: Analyst) -> None:
    found = analysed(analyst, "x" * (LIMITS.template_characters + 1))
    assert found.fault == Exceeded("it has 1048577 characters, over 1048576")
    assert analyst._process is None


def test_text_that_is_no_unicode_goes_both_ways(analyst: Analyst) -> None:
    assert analysed(analyst, "\udcff{{ messages[0].content }}").text("a question") == (
        f"\udcff{QUESTION}"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")
def test_the_child_has_nothing_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with (tmp_path / "open").open("w") as ours, Analyst() as analyst:
        os.set_inheritable(ours.fileno(), True)
        analysed(analyst, CHATML)
        child = Path("/proc") / str(process_of(analyst))
        assert (child / "environ").read_bytes() == b""
        assert {entry.name for entry in (child / "fd").iterdir()} == {"0", "1", "2", "3"}
        assert (child / "cwd").readlink() == Path("/")
        limits = (child / "limits").read_text()
    for line in ("Max file size 0 0", "Max open files 4 4", "Max core file size 0 0"):
        assert line in " ".join(limits.split()), line
    assert f"Max address space {LIMITS.template_memory_bytes}" in " ".join(limits.split())


def test_the_child_imports_nothing_but_itself_and_jinja2() -> None:
    folders = _folders()
    assert not isinstance(folders, Absent)
    program = _PROGRAM.replace("serve()", "print(*sys.modules)")
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, *folders],
        capture_output=True,
        check=True,
        text=True,
    )
    packages = {name.partition(".")[0] for name in child.stdout.split()}
    foreign = packages - sys.stdlib_module_names - {"__main__"}
    assert foreign == {"gguf_audit", "jinja2", "markupsafe"}


def test_there_is_one_child_and_it_ends_with_its_analyst() -> None:
    with Analyst() as analyst:
        assert analyst._process is None
        analysed(analyst, CHATML)
        first = process_of(analyst)
        analysed(analyst, CHATML + "x")
        assert process_of(analyst) == first
    assert analyst._process is None
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_equal_templates_are_asked_for_once(analyst: Analyst) -> None:
    assert analysed(analyst, CHATML) is analysed(analyst, CHATML)
    assert analysed(analyst, CHATML) is not analysed(analyst, CHATML, bos="")


def test_a_few_templates_are_remembered_and_no_more(analyst: Analyst) -> None:
    first = analysed(analyst, CHATML)
    others = [analysed(analyst, f"{number}") for number in range(_REMEMBERED)]
    assert analysed(analyst, "0") is others[0]
    assert analysed(analyst, CHATML) is not first


def test_a_signal_without_a_name_is_told_by_its_number(
    analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gguf_audit.probes.templates._PROGRAM", "import os; os.kill(0, 40)")
    reason = "it ends its process with signal 40"
    assert analysed(analyst, CHATML).fault == Exceeded(reason, certain=True)


NONSENSE = [
    "os.write(1, (3).to_bytes(4, 'big') + b'[1]')",
    "os.write(1, (1 << 30).to_bytes(4, 'big'))",
    "os.write(1, (2).to_bytes(4, 'big') + b'{}')",
    "os.write(1, (2).to_bytes(4, 'big') + b'{[')",
]


@pytest.mark.parametrize("code", NONSENSE)
def test_what_the_child_says_is_not_believed(
    analyst: Analyst, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(
        "gguf_audit.probes.templates._PROGRAM", f"import os, time; {code}; time.sleep(9)"
    )
    fault = analysed(analyst, CHATML).fault
    assert isinstance(fault, Exceeded)
    assert fault.reason in (
        "its process gives no answer that we know",
        f"its process answers {1 << 30} bytes",
    )


def test_a_child_that_says_nothing_is_not_waited_for(
    analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gguf_audit.probes.templates._PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(TEMPLATES_LIMITS, LIMITS._replace(template_seconds=0.2))
    assert analysed(analyst, CHATML).fault == Exceeded("it takes longer than 0.2 s")


def test_without_jinja_nobody_is_asked(analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        del name

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    assert analyst.analyse(CHATML, bos="", eos="") == Absent(
        "chat templates can't be parsed: jinja2 isn't installed"
    )
