"""``gguf-audit check``: audit files and say what is wrong with them."""

from __future__ import annotations

import enum
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from gguf_audit.cli import policy as policies
from gguf_audit.cli.options import Debug, Offline, settle_hub
from gguf_audit.cli.outcome import complain, end
from gguf_audit.cli.progress import progress_bar
from gguf_audit.cli.reports import Format, Output, open_outputs, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gguf_audit.mandate import Mandate
    from gguf_audit.policies import Policy
    from gguf_audit.report.style import Style
    from gguf_audit.rule import Rule

__all__ = ["HELP", "command"]

HELP = """\
Audit GGUF files, alone or against a reference.

TARGET is a file, any shard of a split set, a folder, a Hub repository owner/repo[@revision]
or of one owner/repo:file.gguf, owner/repo:Q4_K_M or hf://owner/repo/path, an http(s) or
s3:// address, ollama:name[:tag], lmstudio:owner/repo or cache:owner/repo. What exists as a
path is taken as one; of what is remote only headers are fetched. REF is a Hub id
owner/repo[@revision] or its address, a checkpoint folder, a config.json, a reference
card, another GGUF, or auto: what the file itself names. A Hub id is looked for on the Hub, in its
local cache, then among the built-in cards; of weights only headers are fetched.

\b
Examples:
  gguf-audit check model.gguf
  gguf-audit check model.gguf --against google/gemma-3-270m
  gguf-audit check owner/repo:Q4_K_M --against auto
  gguf-audit check models/ --fail-on warning --format json -o report.json
  gguf-audit check model.gguf --select KV,TOK --severity CTX=warning
  gguf-audit check models/ --report sarif=audit.sarif --report html=audit.html

\b
Exit codes:
  0  audited, nothing at or above --fail-on
  1  a finding at or above --fail-on
  2  wrong usage
  3  something that was asked for could not be audited
"""

_SHARD = r"(?P<number>[0-9]{1,6})/(?P<parts>[0-9]{1,6})"
#: ``n_ctx`` of llama.cpp is an unsigned 32-bit integer.
_LONGEST_CONTEXT = 2**32 - 1


class FailOn(enum.StrEnum):
    """The lowest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


class Profile(enum.StrEnum):
    """A built-in policy."""

    PUBLISH = "publish"
    DEPLOY = "deploy"


class _Wanted(Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    targets: list[str]
    against: str | None
    select: list[str]
    ignore: list[str]
    severity: list[str]
    #: ``None`` leaves it to the policy.
    fail_on: FailOn | None
    require: list[str]
    ctx: list[str]
    format: Format
    output: Path | None
    report: list[str]
    allow_unknown: bool
    probe: bool
    matches: Path | None
    sums: Path | None
    jobs: int | None
    shard: str | None
    quiet: bool
    verbose: bool
    debug: bool
    governed_by: policies.Asked


def command(
    targets: Annotated[
        list[str], typer.Argument(metavar="TARGET...", help="What to audit.", show_default=False)
    ],
    against: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The checkpoint it was made from.", show_default=False),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="C,..", help="Only these codes, families or names."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="C,..", help="Not these codes, families or names.")
    ] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE=LEVEL", help="Another severity for a rule; repeatable."),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(help="Lowest severity that fails. Default: error.", show_default=False),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="E,..",
            help="Evidence without which it isn't an audit: reference, hub, tokenizer, template.",
        ),
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(
            help="A built-in policy: before an upload, before serving.", show_default=False
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What files must keep to. Default: .gguf-audit.toml here or above.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Earlier JSON report: only what is new fails.", show_default=False
        ),
    ] = None,
    ctx: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,..",
            help="Context lengths of the cache table. Default: 4096, 32768, the training length.",
        ),
    ] = None,
    max_cache: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most cache for one sequence, such as 8GiB, at the longest --ctx or the training length.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Format, typer.Option(help="What to write.")
    ] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write there, whole or not at all; - is stdout.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMAT=FILE",
            help="Another report of the same audit, beside --format; repeatable.",
            show_default=False,
        ),
    ] = None,
    offline: Offline = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="An unknown architecture is no failure.")
    ] = False,
    matches: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder that a repository on the Hub was uploaded from: are they the same?",
            show_default=False,
        ),
    ] = None,
    sums: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write which bytes were audited: sha256 of headers and whole files.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            metavar="N",
            help="Processes at work. Default: one, for many files as many as there are cores.",
            show_default=False,
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="i/n",
            help="Only the i-th of n parts of the models that are found.",
            show_default=False,
        ),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask the installed llama.cpp about every model too.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only the verdict.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Everything, skipped rules too.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Audit, print the report, exit with its code."""
    settle_hub(offline=offline)
    wanted = _Wanted(
        targets=targets,
        against=against,
        select=_items(select),
        ignore=_items(ignore),
        severity=_items(severity),
        fail_on=fail_on,
        require=_items(require),
        ctx=_items(ctx),
        format=format,
        output=None if output == Path("-") else output,
        report=report or [],
        allow_unknown=allow_unknown,
        probe=probe,
        matches=matches,
        sums=sums,
        jobs=jobs,
        shard=shard,
        quiet=quiet,
        verbose=verbose,
        debug=debug,
        governed_by=policies.Asked(
            file=policy,
            profile=None if profile is None else profile.value,
            max_cache=max_cache,
            baseline=baseline,
        ),
    )
    end(lambda: _check(wanted), debug=debug)


def _check(wanted: _Wanted) -> int:
    """Audit, write what was asked for, and return the exit code."""
    from gguf_audit import catalogue, engine
    from gguf_audit.expectation import REQUIRABLE
    from gguf_audit.rule import Severity

    if wanted.quiet and wanted.verbose:
        raise typer.BadParameter("choose one", param_hint="-q / -v")
    part = None if wanted.shard is None else _part(wanted.shard)
    lengths = _lengths(wanted.ctx)
    _refuse_unknown_evidence(wanted.require)
    outputs, sums = open_outputs(wanted.format, wanted.output, wanted.report, wanted.sums)
    installed = catalogue.load()
    governed = policies.govern(
        wanted.governed_by, lengths=lengths, rules=installed, requirable=REQUIRABLE
    )
    if governed.policy is not None:
        wanted = _under(wanted, governed.policy)
    mandate = _mandate(wanted, installed, governed.policy)
    with progress_bar(sys.stderr, wanted=not wanted.quiet) as progress:
        report = engine.audit_targets(
            wanted.targets, mandate, jobs=wanted.jobs, part=part, progress=progress
        )
    report = governed.judge(report, ran=mandate.rules.keys())
    pages = {code: catalogue.page(rule) for code, rule in mandate.rules.items()}
    fail_on = wanted.fail_on or FailOn.ERROR
    lowest = None if fail_on is FailOn.NEVER else Severity(fail_on)
    texts = [
        render(
            report,
            output.format,
            pages=pages,
            style=_style(wanted, output),
            fail_on=lowest,
            allow_unknown=wanted.allow_unknown,
        )
        for output in outputs
    ]
    # What goes to stdout is first: it is there, should a file fail.
    for output, text in zip(outputs, texts, strict=True):
        output.write(text)
    if sums is not None:
        from gguf_audit.sums import render as render_sums

        sums.write(render_sums(report))
    code = report.exit_code(lowest, allow_unknown=wanted.allow_unknown)
    if code and not wanted.quiet and outputs[0].place is not None:
        from gguf_audit.report.wording import summary

        complain(f"{summary(report)} (the report is in {wanted.output})")
    return code


def _mandate(wanted: _Wanted, installed: Mapping[str, Rule], policy: Policy | None) -> Mandate:
    """Return what the engine is asked to do; BadParameter for a rule that nobody knows."""
    from gguf_audit import catalogue
    from gguf_audit.mandate import Mandate

    choice = option = "--select / --ignore"
    try:
        selected = catalogue.choose(installed, select=wanted.select, ignore=wanted.ignore)
        ignored = catalogue.choose(installed, select=wanted.ignore) if wanted.ignore else {}
        option = "--severity"
        severities = catalogue.levels(installed, wanted.severity)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if not selected:
        raise typer.BadParameter("no rule is left to run", param_hint=choice)
    rules = {
        code: rule
        for code, rule in installed.items()
        if code in selected or (code not in ignored and _demanded(rule, wanted, policy))
    }
    return Mandate(
        rules=rules,
        ignored=ignored,
        insisted=catalogue.named(selected, wanted.select),
        families=catalogue.families(selected, wanted.select),
        severities=severities,
        against=wanted.against,
        require=frozenset(wanted.require),
        policy=policy,
        lengths=_lengths(wanted.ctx),
        probe=wanted.probe,
        matches=None if wanted.matches is None else str(wanted.matches),
        whole=wanted.sums is not None,
        debug=wanted.debug,
    )


def _demanded(rule: Rule, wanted: _Wanted, policy: Policy | None) -> bool:
    """Whether a rule looks at what somebody demands, which no selection leaves out.

    A bound that is set and never looked at would pass every file.
    """
    from gguf_audit.rule import Need, OnUpload

    return (
        (policy is not None and Need.POLICY in rule.needs)
        or (wanted.probe and Need.PROBE in rule.needs)
        or (wanted.matches is not None and isinstance(rule.check, OnUpload))
    )


def _under(wanted: _Wanted, policy: Policy) -> _Wanted:
    """Return what is wanted under a policy: it says what the command line doesn't."""
    levels = (f"{code}={level}" for code, level in policy.severity.items())
    return replace(
        wanted,
        select=wanted.select or [*policy.select],
        ignore=wanted.ignore or [*policy.ignore],
        severity=[*levels, *wanted.severity],
        fail_on=wanted.fail_on or (None if policy.fail_on is None else FailOn(policy.fail_on)),
        require=[*wanted.require, *policy.require],
    )


def _style(wanted: _Wanted, output: Output) -> Style:
    from gguf_audit.cli.terminal import style_of
    from gguf_audit.report.style import Detail

    detail = Detail.NORMAL
    if wanted.quiet or wanted.verbose:
        detail = Detail.VERDICT if wanted.quiet else Detail.EVERYTHING
    return style_of(detail, sys.stdout if output.place is None else None)


def _items(options: list[str] | None) -> list[str]:
    """Split the commas of a repeatable option."""
    return [item.strip() for option in options or [] for item in option.split(",") if item.strip()]


def _lengths(items: list[str]) -> tuple[int, ...]:
    for item in items:
        digits = item.isascii() and item.isdigit()
        if not digits or len(item) > 10 or not 0 < int(item) <= _LONGEST_CONTEXT:
            what = f"{item[:40]!r} is no number of tokens from 1 to {_LONGEST_CONTEXT}"
            raise typer.BadParameter(what, param_hint="--ctx")
    return tuple(int(item) for item in items)


def _part(shard: str) -> tuple[int, int]:
    found = re.fullmatch(_SHARD, shard)
    if found is None or not 1 <= int(found["number"]) <= int(found["parts"]):
        raise typer.BadParameter("expected i/n with i from 1 to n", param_hint="--shard")
    return int(found["number"]), int(found["parts"])


def _refuse_unknown_evidence(items: list[str]) -> None:
    from gguf_audit.expectation import REQUIRABLE

    if unknown := [item for item in items if item not in REQUIRABLE]:
        what = f"{unknown[0]!r} is none of {', '.join(REQUIRABLE)}"
        raise typer.BadParameter(what, param_hint="--require")
