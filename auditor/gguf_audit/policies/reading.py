"""Reads a policy from TOML: every key is known, of its type, and said where if it isn't.

.gguf-audit.toml, line 3: unknown key 'budget.cashe', did you mean cache?
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from importlib import resources
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from gguf_audit.limits import LIMITS
from gguf_audit.policies import Budget, Policy, PolicyError, Suppression
from gguf_audit.policies.files import read_file
from gguf_audit.policies.quantizations import bits_of
from gguf_audit.policies.sizes import size_bytes

__all__ = ["PROFILES", "parse_policy", "profile", "read_policy"]

#: Policies that ship with the program.
PROFILES = ("publish", "deploy")
_LEVELS = ("error", "warning", "info")
_FAIL_ON = (*_LEVELS, "never")
_DOTS = 200
_HASH = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


#: Told the codes, families or names under a key, and whether they have to mean one rule
#: alone; returns what is wrong with them, "" for nothing.
Refusal = Callable[[Sequence[str], bool], str]


def _none(names: Sequence[str], one: bool) -> str:
    del names, one
    return ""


def read_policy(path: Path, *, requirable: Collection[str], refusal: Refusal = _none) -> Policy:
    """Return the policy of a file; the profile that it may name is not yet under it.

    ``requirable`` are the words that ``require`` may use; ``refusal`` knows the rules.
    Raises PolicyError.
    """
    content = read_file(path, limit_bytes=LIMITS.policy_bytes)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"{path} is not UTF-8, so it is no TOML") from None
    policy = parse_policy(text, name=str(path), requirable=requirable, refusal=refusal)
    return replace(policy, file=str(path))


def profile(name: str) -> Policy:
    """Return a built-in policy; KeyError for another name than those of ``PROFILES``."""
    if name not in PROFILES:
        raise KeyError(name)
    text = resources.files("gguf_audit.policies").joinpath(f"{name}.toml").read_text("utf-8")
    policy = parse_policy(text, name=f"profile {name}", requirable=("reference",))
    return replace(policy, profile=name)


def parse_policy(
    text: str, *, name: str, requirable: Collection[str], refusal: Refusal = _none
) -> Policy:
    """Return the policy of a TOML text; ``name`` is what messages call it."""
    for number, line in enumerate(text.split("\n"), 1):
        # tomllib takes time that grows with the square of a dotted key's parts.
        if line.count(".") > _DOTS:
            raise PolicyError(f"{name}, line {number}: more than {_DOTS} dots in a line")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise PolicyError(f"{name} is nested too deeply") from None
    except ValueError as error:  # of TOML, and of numbers with thousands of digits
        raise PolicyError(f"{name}: {error}") from None
    root = _Table(document, _Places(name, text), refusal=refusal)
    allow, budget = root.table("allow"), root.table("budget")
    quantization = budget.quantization("quantization")
    policy = Policy(
        profile=root.word("profile", PROFILES),
        select=root.rules("select"),
        ignore=root.rules("ignore"),
        fail_on=root.word("fail-on", _FAIL_ON),
        require=root.words("require", requirable),
        provenance=root.flag("provenance"),
        severity=root.table("severity").levels(),
        licenses=allow.strings("licenses"),
        architectures=allow.strings("architectures"),
        budget=Budget(
            cache_bytes=budget.size("cache"),
            context_tokens=budget.tokens("context"),
            file_bytes=budget.size("file-size"),
            quantization=quantization,
            least_bits=None if quantization is None else bits_of(quantization),
        ),
        references=root.table("references").patterns(),
        hashes=root.table("hashes").hashes(),
        suppressions=tuple(_suppression(entry) for entry in root.tables("suppress")),
    )
    for table in (root, allow, budget):
        table.refuse_the_rest()
    return policy


def _suppression(table: _Table) -> Suppression:
    found = Suppression(
        rule=table.one_rule("rule"),
        file=table.pattern("file"),
        key=table.string("key"),
        fingerprint=table.fingerprint("fingerprint"),
        reason=table.needed((table.string("reason") or "").strip() or None, "reason"),
        expires=table.needed_date("expires"),
    )
    table.refuse_the_rest()
    return found


class _Places:
    """Which line of a text a key stands on, as far as lines can tell."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.splitlines()

    def at(self, table: str, index: int | None, key: str) -> str:
        """Return ``name, line 3`` for a key of a table, the ``index``-th of its name."""
        number = self._line(table, -1 if index is None else index, key)
        return self.name if number is None else f"{self.name}, line {number}"

    def _line(self, table: str, index: int, key: str) -> int | None:
        # No patterns: any text may stand here, and be long.
        spelled = (key, f'"{key}"', f"'{key}'")
        inside, seen, first = table == "", -1, None
        for number, line in enumerate(map(str.strip, self.lines), start=1):
            name, bracket, _ = line.lstrip("[").partition("]")
            if line.startswith("[") and bracket:
                name = name.strip()
                seen += name == table
                inside = name == table and (index < 0 or seen == index)
                if inside:
                    first = number
                if not table and any(_begins(f"{name}.", each, ".") for each in spelled):
                    return number
            elif inside and any(
                _begins(line, each, "=") or (not table and "=" in line and _begins(line, each, "."))
                for each in spelled
            ):
                return number
        return first


def _begins(line: str, key: str, mark: str) -> bool:
    """Tell whether a line begins with a key and, behind it, a mark."""
    return line.startswith(key) and line[len(key) :].lstrip().startswith(mark)


class _Table:
    """A TOML table of which every key is taken once, with the type that it must have."""

    def __init__(
        self,
        values: Mapping[str, object],
        places: _Places,
        *,
        refusal: Refusal,
        name: str = "",
        index: int | None = None,
    ) -> None:
        self.values = values
        self.places = places
        self.refusal = refusal
        self.name = name
        self.index = index
        self.known: list[str] = []

    def error(self, key: str, what: str) -> PolicyError:
        """Return an error that says where a key stands."""
        return PolicyError(f"{self.places.at(self.name, self.index, key)}: {what}")

    def full(self, key: str) -> str:
        """Return a key with the table that it is in."""
        return f"{self.name}.{key}" if self.name else key

    def take(self, key: str) -> object:
        """Return a key's value, ``None`` without one, and note that it is known."""
        self.known.append(key)
        return self.values.get(key)

    def wrong(self, key: str, needs: str) -> PolicyError:
        """Return the error for a value of another type."""
        return self.error(key, f"{self.full(key)} needs {needs}")

    def needed(self, value: str | None, key: str) -> str:
        """Return a value that must be there."""
        if value is None:
            raise self.error(key, f"every [[{self.name}]] needs {key}")
        return value

    def string(self, key: str) -> str | None:
        value = self.take(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def strings(self, key: str) -> tuple[str, ...] | None:
        value = self.take(key)
        if value is None:
            return None
        items = cast("list[object]", value) if isinstance(value, list) else [None]
        if not all(isinstance(item, str) and item for item in items):
            raise self.wrong(key, "a list of strings")
        return tuple(cast("list[str]", items))

    def word(self, key: str, words: Collection[str]) -> str | None:
        value = self.string(key)
        if value is not None and value not in words:
            what = f"{self.full(key)} is {value!r}, none of {', '.join(words)}"
            raise self.error(key, what + _meant(value, words))
        return value

    def words(self, key: str, words: Collection[str]) -> tuple[str, ...]:
        values = self.strings(key) or ()
        for value in values:
            if value not in words:
                what = f"{self.full(key)} has {value!r}, none of {', '.join(words)}"
                raise self.error(key, what + _meant(value, words))
        return values

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value is True

    def size(self, key: str) -> int | None:
        value = self.take(key)
        if value is None:
            return None
        found = size_bytes(value) if isinstance(value, str) else value
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise self.wrong(key, 'a size such as "8GiB"')
        return found

    def tokens(self, key: str) -> int | None:
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**32:
            raise self.wrong(key, "a number of tokens")
        return value

    def quantization(self, key: str) -> str | None:
        value = self.string(key)
        if value is not None and bits_of(value) is None:
            raise self.wrong(key, 'a quantization such as "Q4_K_M"')
        return value

    def fingerprint(self, key: str) -> str | None:
        value = self.string(key)
        if value is not None and not _FINGERPRINT.fullmatch(value):
            raise self.wrong(key, "16 hexadecimal digits, as in the JSON report")
        return value

    def pattern(self, key: str) -> str:
        value = self.needed(self.string(key), key)
        if not value.strip("/. "):
            raise self.wrong(key, "the pattern of a file")
        self.refuse_long(key, value)
        return value

    def refuse_long(self, key: str, pattern: str) -> None:
        """Raise for a pattern that takes too long to compile."""
        if len(pattern) > LIMITS.pattern_characters:
            what = f"a pattern has {LIMITS.pattern_characters} characters at most"
            raise self.error(key, what)

    def needed_date(self, key: str) -> date:
        value = self.take(key)
        if isinstance(value, str):
            # "2027-03-01" in quotes is what people write who don't know TOML's dates.
            try:
                value = date.fromisoformat(value)
            except ValueError:
                value = None
        if not isinstance(value, date):
            if key not in self.values:
                raise self.error(
                    key, f"every [[{self.name}]] needs {key}, a date such as 2027-03-01"
                )
            raise self.wrong(key, "a date such as 2027-03-01")
        return value.date() if isinstance(value, datetime) else value

    def table(self, key: str) -> _Table:
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "a table")
        values = cast("dict[str, object]", value or {})
        return _Table(values, self.places, refusal=self.refusal, name=self.full(key))

    def tables(self, key: str) -> Iterator[_Table]:
        value = self.take(key)
        entries = cast("list[object]", value) if isinstance(value, list) else [value]
        for index, entry in enumerate(() if value is None else entries):
            if not isinstance(value, list) or not isinstance(entry, dict):
                raise self.wrong(key, f"[[{key}]] for each entry")
            values = cast("dict[str, object]", entry)
            yield _Table(
                values, self.places, refusal=self.refusal, name=self.full(key), index=index
            )

    def rules(self, key: str) -> tuple[str, ...]:
        """Return a list of codes, families and names, each of which somebody knows."""
        values = self.strings(key) or ()
        self._refuse_rules(key, values, one=False)
        return values

    def one_rule(self, key: str) -> str:
        """Return the code or the name of one rule."""
        value = self.needed(self.string(key), key)
        self._refuse_rules(key, (value,), one=True)
        return value

    def levels(self) -> dict[str, str]:
        """Return every code, family or name of the table with its level."""
        found: dict[str, str] = {}
        for key in self.values:
            self._refuse_rules(key, (key,), one=False)
            found[key] = self.word(key, _LEVELS) or ""
        return found

    def _refuse_rules(self, key: str, names: Sequence[str], *, one: bool) -> None:
        wrong = self.refusal(names, one) if names else ""
        if wrong:
            raise self.error(key, wrong)

    def patterns(self) -> dict[str, str]:
        """Return every pattern of the table with its string."""
        found: dict[str, str] = {}
        for key in self.values:
            value = self.string(key)
            if not value or not key.strip("/. "):
                raise self.error(key, f'{self.name} needs lines such as "*.gguf" = "owner/repo"')
            self.refuse_long(key, key)
            found[key] = value
        return found

    def hashes(self) -> dict[str, str]:
        """Return every pattern of the table with its sha256."""
        found = self.patterns()
        for key, value in found.items():
            if not _HASH.fullmatch(value):
                raise self.error(key, f"{self.full(key)} needs a sha256: 64 hexadecimal digits")
        return {key: value.lower() for key, value in found.items()}

    def refuse_the_rest(self) -> None:
        """Raise for a key that nobody has taken: a typing error must not go unseen."""
        for key in self.values:
            if key not in self.known:
                hint = _meant(key, self.known) or f"; known are {', '.join(self.known)}"
                raise self.error(key, f"unknown key {self.full(key)!r}{hint}")


def _meant(said: str, words: Collection[str]) -> str:
    from difflib import get_close_matches  # only where something is wrong

    near = get_close_matches(said.replace("_", "-"), list(words), n=1)
    return f", did you mean {near[0]}?" if near else ""
