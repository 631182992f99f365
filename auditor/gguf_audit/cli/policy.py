"""Which policy an audit goes by: the command line over a file over a profile.

Nothing of policies is imported where there is none.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from gguf_audit.accepted import Baseline
    from gguf_audit.policies import Policy
    from gguf_audit.rule import Rule
    from gguf_audit.verdict import PolicyFacts, Report

__all__ = ["FILE_NAME", "Asked", "Governed", "find_policy", "govern"]

#: What a policy is called where nobody names one.
FILE_NAME = ".gguf-audit.toml"


class Asked(Struct, frozen=True, kw_only=True):
    """What the command line says of policies."""

    file: Path | None = None
    profile: str | None = None
    max_cache: str | None = None
    baseline: Path | None = None


class Governed(Struct, frozen=True, kw_only=True):
    """What an audit goes by; ``None`` where there is nothing of the kind."""

    policy: Policy | None = None
    facts: PolicyFacts | None = None
    baseline: Baseline | None = None

    def judge(self, report: Report, *, ran: AbstractSet[str]) -> Report:
        """Set aside what the policy and the baseline accept, and name both in the report."""
        if self.policy is None and self.baseline is None:
            return report
        from datetime import UTC, datetime

        from gguf_audit import accepted

        report = replace(report, policy=self.facts)
        if self.policy is not None:
            report = accepted.suppressed_by(self.policy, report, today=datetime.now(UTC).date())
        if self.baseline is not None:
            report = accepted.held_against(self.baseline, report, ran=ran)
        return report


def find_policy() -> Path | None:
    """Return the nearest ``.gguf-audit.toml`` from the working directory upwards.

    Never in a target's folder: whoever wrote a model must not choose how it is judged.
    The search ends with the first repository (``.git``) or home directory. Raises
    BadParameter for one in a folder that anybody may write to, such as ``/tmp``.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - a home may be missing
    try:
        folder = Path.cwd()
        # A link that leads nowhere is a policy that can't be read, not none.
        while not os.path.lexists(folder / FILE_NAME):
            if str(folder) == home or (folder / ".git").exists() or folder.parent == folder:
                return None
            folder = folder.parent
        everybodys = os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return None  # What can't be looked into holds no policy for us.
    if everybodys:
        what = f"{folder / FILE_NAME} is in a folder that anybody may write to: name it by --policy"
        raise typer.BadParameter(what, param_hint=FILE_NAME)
    return folder / FILE_NAME


def govern(
    asked: Asked,
    *,
    lengths: tuple[int, ...],
    rules: Mapping[str, Rule],
    requirable: Collection[str],
) -> Governed:
    """Return what the command line, a file and a profile say together.

    Raises BadParameter for what can't be read: a gate that doesn't know what is demanded
    of it can't pass anything.
    """
    file = asked.file or find_policy()
    if file is None and asked == Asked():
        return Governed()
    from gguf_audit import accepted
    from gguf_audit.policies import PolicyError

    policy = _policy(file, asked, rules=rules, requirable=requirable)
    if policy is not None and lengths:
        budget = replace(policy.budget, context_tokens=max(lengths))
        policy = replace(policy, budget=budget)
    facts = None
    if policy is not None and (file is not None or policy.profile is not None):
        from gguf_audit.verdict import PolicyFacts

        found = file is not None and asked.file is None
        facts = PolicyFacts(file=policy.file, found=found, profile=policy.profile)
    baseline = None
    if asked.baseline is not None:
        try:
            baseline = accepted.read_baseline(asked.baseline)
        except PolicyError as error:
            raise typer.BadParameter(str(error), param_hint="--baseline") from None
    return Governed(policy=policy, facts=facts, baseline=baseline)


def _policy(
    file: Path | None, asked: Asked, *, rules: Mapping[str, Rule], requirable: Collection[str]
) -> Policy | None:
    if file is None and asked.profile is None and asked.max_cache is None:
        return None
    from gguf_audit.policies import Policy
    from gguf_audit.policies.reading import profile, read_policy
    from gguf_audit.policies.sizes import size_bytes

    policy = Policy()
    if file is not None:
        try:
            policy = read_policy(
                file, requirable=requirable, refusal=lambda names, one: _unknown(rules, names, one)
            )
        except ValueError as error:
            # Whoever named none would look in vain for what is wrong with the option.
            hint = FILE_NAME if asked.file is None else "--policy"
            raise typer.BadParameter(str(error), param_hint=hint) from None
    name = asked.profile or policy.profile
    if name is not None:
        policy = replace(policy, profile=name).over(profile(name))
    if asked.max_cache is not None:
        size = size_bytes(asked.max_cache)
        if size is None:
            what = f"{asked.max_cache!r} is no size such as 8GiB"
            raise typer.BadParameter(what, param_hint="--max-cache")
        policy = replace(policy, budget=replace(policy.budget, cache_bytes=size))
    return policy


def _unknown(rules: Mapping[str, Rule], names: Sequence[str], one: bool) -> str:
    """Say what is wrong with names of rules, "" for nothing.

    What a rule that nobody has is asked for would not be done.
    """
    from gguf_audit import catalogue

    try:
        meant = catalogue.choose(rules, select=names)
    except ValueError as error:
        return str(error)
    if one and len(meant) != 1:
        return f"a suppression of {names[0]!r} would hide a family: name one rule"
    return ""
