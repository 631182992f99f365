"""What an audit is asked to do, whatever its targets."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gguf_audit.rule import OnFolder, OnPair, OnSet, Rule, Severity

if TYPE_CHECKING:
    from gguf_audit.policies import Policy

__all__ = ["Mandate"]


class Mandate(Struct, frozen=True, kw_only=True):
    """What an audit is asked to do, whatever its targets."""

    #: By code.
    rules: Mapping[str, Rule]
    #: Run as well, so that their echoes are known for what they are, and left out.
    ignored: Mapping[str, Rule] = field(default_factory=dict[str, Rule])
    #: Codes of rules that the user named: one that can't look leaves the audit partial.
    insisted: AbstractSet[str] = frozenset()
    #: Codes of the rules of each family that the user named: where none of a family can
    #: look the audit is partial, too.
    families: tuple[frozenset[str], ...] = ()
    #: Code -> level of every finding of that rule, whatever it says itself.
    severities: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    #: What ``open_checkpoint`` takes, or ``auto`` for what each file names; ``None`` for
    #: what the policy says, or for nothing.
    against: str | None = None
    #: Of ``REQUIRABLE``: parts of the reference without which an audit has failed.
    require: frozenset[str] = frozenset()
    #: What files must keep to. Its rules, levels and requirements are given above.
    policy: Policy | None = None
    #: Context lengths of the cache table, in tokens; the usual ones where there are none.
    lengths: tuple[int, ...] = ()
    #: Ask an installed llama.cpp about every model.
    probe: bool = False
    #: The folder that repositories are held against.
    matches: str | None = None
    #: Tell the sha256 of whole files, as far as nothing has to be fetched for it.
    whole: bool = False
    #: A fault of ours ends the run, so that it can be seen where it is.
    debug: bool = False

    @property
    def publishes(self) -> bool:
        """Whether what a model card says of its files counts."""
        return self.policy is not None and self.policy.provenance

    def compares(self, *checks: type[OnSet | OnPair | OnFolder]) -> bool:
        """Tell whether any rule has a check of one of these kinds."""
        return any(isinstance(rule.check, checks) for rule in self.rules.values())
