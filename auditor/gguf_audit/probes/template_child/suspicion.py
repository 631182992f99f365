"""What a template's syntax tree holds that no chat needs.

Nothing is judged here and nothing is run: constants are folded as far as that is
cheap, and every loop is bounded by the tree that the parser made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from jinja2 import nodes

from gguf_audit.probes.template_child.tree import Tree, format_of, target_of

__all__ = ["Found", "examine", "removed", "shown"]

#: Tags of jinja2 that llama.cpp's engine doesn't know (common/jinja/parser.cpp).
_FOREIGN: dict[type[nodes.Node], str] = {
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from",
    nodes.Extends: "extends",
    nodes.Block: "block",
    nodes.With: "with",
    nodes.ScopedEvalContextModifier: "autoescape",
}
_LOADS = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
#: Attributes that lead from a value to the interpreter.
_INTERNAL = re.compile(
    r"__\w+__|mro|func_globals|func_code|gi_frame|gi_code|cr_frame|ag_frame|tb_frame|f_globals"
)
#: A replacement field that walks into a private attribute: ``{0.__class__}``.
_WALK = re.compile(r"\{[^{}]*[.\[]_")
#: Jinja's own objects; nothing in them is for a template.
_OBJECTS = frozenset({"lipsum", "cycler", "joiner", "self", "namespace", "dict", "range"})
_OUTSIDE = frozenset(
    {
        "__import__",
        "breakpoint",
        "builtins",
        "compile",
        "delattr",
        "eval",
        "exec",
        "getattr",
        "globals",
        "importlib",
        "locals",
        "open",
        "os",
        "popen",
        "setattr",
        "subprocess",
        "sys",
        "system",
        "vars",
    }
)
#: Those of them that nobody gives to a template under this name.
_NEVER_GIVEN = frozenset(
    {"__import__", "builtins", "eval", "exec", "importlib", "os", "popen", "subprocess", "sys"}
)
#: Above this a number makes work or text that no prompt has room for.
_HUGE = 100_000
#: Rounds of loops inside each other.
_ROUNDS = 1_000_000
#: Filters whose first argument is a width.
_WIDTHS = frozenset({"center", "ljust", "rjust", "zfill", "indent"})
#: Larger exponents make numbers that nobody reads.
_EXPONENT = 1000
#: Methods that look for text in text.
_SEARCHES = frozenset({"startswith", "endswith", "find", "count", "index", "rfind"})
_WIDE_FORMAT = re.compile(r"%[-+ #0]*(\d{6,})|\{[^{}]*:[^{}]*?(\d{6,})[^{}]*\}|%[-+ #0]*\*")

_LETTERS = re.compile(r"[A-Za-z]")
#: Words of a message rather than markup: a condition on them is one on what users say.
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[ '.-][^\W\d_]+)*")
_EMITTED_LETTERS = 20
_IDIOMS = re.compile(
    r"(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)*(?:the\s+|your\s+|of\s+)*"
    r"(?:previous|prior|above|earlier|preceding)\b"
    r"|hidden\s+(?:instruction|prompt|rule|message|command)"
    r"|secret(?:ly)?\s+(?:instruction|include|insert|append|add|prompt|recommend)"
    r"|(?:never|(?:do|must)\s+not|don't)\s+(?:ever\s+)?(?:reveal|disclose|mention|tell)\b"
    r"[^.\n]{0,40}\b(?:that\s+)?(?:these|this|the|your|hidden)\s+(?:hidden\s+|secret\s+|system\s+)*"
    r"(?:instruction|rule|template|directive|prompt)"
    r"|without\s+(?:telling|informing|notifying|mentioning\s+(?:it|this)\s+to)\s+(?:the\s+)?user"
    r"|(?:always|secretly)\s+(?:add|insert|append|include|recommend)\b[^.\n]{0,60}https?://"
    r"|(?:insert|add|append|include)\b[^.\n]{0,40}https?://"
    r"|<\s*(?:script|img|iframe)\b[^>\n]{0,200}https?://",
    re.IGNORECASE,
)

#: Characters that hide others, by what a message calls them.
_HIDDEN = (
    (re.compile("[\U000e0000-\U000e007f]+"), "invisible tag characters"),
    (re.compile("[\U000e0100-\U000e01ef]+"), "invisible variation selectors"),
    (
        re.compile("[\u200b-\u200d\u2060-\u2064\u180e\ufeff]{4,}"),
        "a run of characters without width",
    ),
    (re.compile("[\u202a-\u202e\u2066-\u2069]"), "characters that reverse the direction of text"),
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x80-\x9f]")
_ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/])(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[A-Z])[A-Za-z0-9+/]{200,}={0,2}"
    r"|(?<![0-9A-Fa-f])[0-9A-Fa-f]{400,}"
)

#: ``(kind, line, what, grave)``
Found = tuple[str, int, str, bool]
#: Reports of one kind.
_MOST = 5


def examine(seen: Tree | None, source: str) -> dict[str, Any]:
    """Return what a template's text and tree tell; no tree where it doesn't parse."""
    found = list(_in_text(source))
    foreign: list[str] = []
    variables: list[str] = []
    if seen is not None:
        foreign = sorted({tag for kind, tag in _FOREIGN.items() if seen.of_kind(kind)})
        variables = sorted(seen.loaded - seen.assigned)[:100]
        # Escapes in strings make characters that the text itself doesn't hold.
        for text in seen.of_kind(nodes.Const):
            if isinstance(text.value, str):
                found += (
                    (kind, text.lineno, what, grave)
                    for kind, _, what, grave in _in_text(text.value)
                )
        for look in (_internals, _loads, _calls, _unbounded, _gates, _dates, _idioms, _rewrites):
            found += look(seen)
    return {
        "foreign_tags": foreign,
        "variables": variables,
        "suspicions": list(_first_of_each(found)),
    }


def _first_of_each(found: Iterable[Found]) -> Iterator[Found]:
    counts: dict[str, int] = {}
    told: set[tuple[str, str]] = set()
    for each in found:
        kind, _, what, _ = each
        counts[kind] = counts.get(kind, 0) + ((kind, what) not in told)
        if (kind, what) not in told and counts[kind] <= _MOST:
            told.add((kind, what))
            yield each


# The text


def _in_text(text: str) -> Iterator[Found]:
    for pattern, what in _HIDDEN:
        if found := pattern.search(text):
            yield "hidden", text.count("\n", 0, found.start()) + 1, what, True
    if found := _CONTROL.search(text):
        code = ord(found[0])
        line = text.count("\n", 0, found.start()) + 1
        yield "hidden", line, f"the control character U+{code:04X}", code < 0x80
    if found := _ENCODED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        yield "hidden", line, f"{len(found[0])} characters that look like encoded data", False


# What to look for


def _internals(tree: Tree) -> Iterator[Found]:
    for node in tree.of_kind(nodes.Getattr):
        if _INTERNAL.fullmatch(node.attr):
            yield "internals", node.lineno, f"the attribute {node.attr}", True
        elif isinstance(node.node, nodes.Name) and _foreign_object(tree, node):
            yield "internals", node.lineno, f"{node.node.name}.{node.attr}", True
    for node in tree.of_kind(nodes.Getitem):
        name = tree.fold(node.arg)
        if isinstance(name, str) and _INTERNAL.fullmatch(name):
            yield "internals", node.lineno, f"the item {name}", True
    for node in tree.of_kind(nodes.Filter):
        if node.name == "attr":
            name = tree.fold(node.args[0]) if node.args else None
            what = "a computed attribute" if name is None else f"the attribute {name}"
            if name is None or _INTERNAL.fullmatch(str(name)):
                yield "internals", node.lineno, what, True
        for each in (*node.args, *(pair.value for pair in node.kwargs)):
            name = tree.fold(each)
            if (
                isinstance(name, str)
                and re.search(r"(?:^|\.)__\w+__", name)
                and node.name in _BY_NAME
            ):
                yield "internals", node.lineno, f"the attribute {name}", True
    for node in tree.every:
        form = format_of(tree, node)
        if form is not None and _WALK.search(form):
            yield "internals", node.lineno, "a format string that walks into attributes", True


#: Filters that take the name of an attribute.
_BY_NAME = frozenset(
    {
        *("map", "selectattr", "rejectattr", "sort", "groupby", "sum", "unique", "min", "max"),
        *("attr", "join"),
    }
)


def _foreign_object(tree: Tree, node: nodes.Getattr) -> bool:
    name = node.node
    if not isinstance(name, nodes.Name) or name.name not in _OBJECTS or name.name in tree.assigned:
        return False
    return not (name.name == "dict" and node.attr == "fromkeys")


def _loads(tree: Tree) -> Iterator[Found]:
    for node in tree.of_kind(_LOADS):
        named = getattr(node, "template", None)
        name = tree.fold(named)
        what = _FOREIGN[type(node)]
        yield (
            "loads",
            node.lineno,
            f"{what} {shown(name)}" if isinstance(name, str) else what,
            True,
        )


def _calls(tree: Tree) -> Iterator[Found]:
    called: set[str] = set()
    for node in tree.of_kind(nodes.Call):
        root = node.node
        while isinstance(root, nodes.Getattr | nodes.Getitem):
            root = root.node
        if (
            isinstance(root, nodes.Name)
            and root.name in _OUTSIDE
            and root.name not in tree.assigned
        ):
            called.add(root.name)
            yield "calls", node.lineno, f"a call of {root.name}", True
    # Under another name they are called as well.
    for node in tree.of_kind(nodes.Name):
        if node.name in _NEVER_GIVEN - tree.assigned - called:
            yield "calls", node.lineno, f"the name {node.name}", True


def _unbounded(tree: Tree) -> Iterator[Found]:
    for node in tree.every:
        what = _huge(tree, node)
        if what is not None:
            yield "unbounded", node.lineno, what, False
    for node in tree.of_kind(nodes.For):
        rounds = 1
        for loop in (node, *tree.above(node)):
            if isinstance(loop, nodes.For):
                rounds *= max(1, _rounds(tree, loop) or 1)
        if rounds > _ROUNDS:
            yield "unbounded", node.lineno, f"loops of {rounds:.1e} rounds", False
    for node in tree.of_kind(nodes.Assign):
        name = target_of(node.target)
        inside = any(isinstance(each, nodes.For) for each in tree.above(node))
        if name is not None and inside and _doubles(tree, name, node.node):
            yield "unbounded", node.lineno, f"{name} doubles in a loop", False
    for node in tree.of_kind(nodes.Macro):
        for call in tree.below(*node.body):
            if isinstance(call, nodes.Call) and isinstance(call.node, nodes.Name):
                guarded = any(
                    isinstance(each, nodes.If | nodes.CondExpr | nodes.For)
                    for each in _until(tree, call, node)
                )
                if call.node.name == node.name and not guarded:
                    what = f"the macro {node.name} calls itself without a condition"
                    yield "unbounded", node.lineno, what, False


def _until(tree: Tree, node: nodes.Node, end: nodes.Node) -> Iterator[nodes.Node]:
    for each in tree.above(node):
        if each is end:
            return
        yield each


def _huge(tree: Tree, node: nodes.Node) -> str | None:
    match node:
        case nodes.Call(node=nodes.Name(name="range")):
            return _beyond("range", *(tree.fold(each) for each in node.args))
        case nodes.Pow():
            left, right = tree.fold(node.left), tree.fold(node.right)
            huge = isinstance(right, int) and right > _EXPONENT
            base = str(left) if isinstance(left, int) else "..."
            return f"{base}**{_magnitude(right)}" if huge else None
        case nodes.Mul():
            return _product(tree.fold(node.left), tree.fold(node.right))
        case nodes.Filter(args=[width, *_]) if node.name in _WIDTHS:
            return _beyond(node.name, tree.fold(width))
        case nodes.Call(node=nodes.Getattr() as called, args=[width, *_]) if called.attr in _WIDTHS:
            return _beyond(called.attr, tree.fold(width))
        case _:
            form = format_of(tree, node)
            wide = form is not None and _WIDE_FORMAT.search(form)
            return "a format of a huge width" if wide else None


def _beyond(name: str, *values: Any) -> str | None:
    huge = [each for each in values if isinstance(each, int) and abs(each) > _HUGE]
    return f"{name}({_magnitude(huge[0])})" if huge else None


def _product(*sides: Any) -> str | None:
    huge = [each for each in sides if isinstance(each, int) and abs(each) > _HUGE]
    repeats = any(isinstance(each, str | list) for each in sides)
    if huge and (repeats or huge[0] > 10**9):
        return f"a product with {_magnitude(huge[0])}"
    return None


def _magnitude(number: int) -> str:
    return str(number) if abs(number) < 10**12 else "a huge number"


def _rounds(tree: Tree, loop: nodes.For) -> int | None:
    match loop.iter:
        case nodes.Call(node=nodes.Name(name="range"), args=[*arguments]):
            folded = [tree.fold(each) for each in arguments]
            numbers = [each for each in folded if type(each) is int]
            if not numbers or len(numbers) < len(folded):
                return None
            first, last = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
            return abs(last - first) // max(1, abs(numbers[2]) if len(numbers) > 2 else 1)
        case _:
            return None


def _doubles(tree: Tree, name: str, value: nodes.Node) -> bool:
    """Tell whether text is put together of the same name twice."""
    match value:
        case nodes.Add() | nodes.Concat():
            read = [each for each in tree.below(value) if _reads(each) == name]
            text = [each for each in read if not _is_measured(tree, each, value)]
            return len(text) - _parted(tree, name, value) >= 2
        case nodes.Mul():
            sides = [_reads(value.left), _reads(value.right)]
            return name in sides and (sides[0] == sides[1] or _at_least_two(tree, value))
        case _:
            return False


def _is_measured(tree: Tree, node: nodes.Node, end: nodes.Node) -> bool:
    """Tell whether only the length of a text is taken, on the way up to another node."""
    return any(
        isinstance(each, nodes.Filter) and each.name in ("count", "length")
        for each in _until(tree, node, end)
    )


def _parted(tree: Tree, name: str, value: nodes.Node) -> int:
    """Return how many pairs of slices are one text, with something in between: x[:n], x[n:]."""
    slices = [
        each.arg
        for each in tree.below(value)
        if isinstance(each, nodes.Getitem)
        and isinstance(each.arg, nodes.Slice)
        and each.arg.step is None
        and _reads(each.node) == name
    ]
    tails = [each.start for each in slices if each.start is not None and each.stop is None]
    pairs = 0
    for head in (each.stop for each in slices if each.start is None):
        if head is not None and head in tails:
            tails.remove(head)
            pairs += 1
    return pairs


def _at_least_two(tree: Tree, value: nodes.Mul) -> bool:
    return any(
        isinstance(n := tree.fold(each), int) and n >= 2 for each in (value.left, value.right)
    )


def _reads(node: nodes.Node) -> str | None:
    match node:
        case nodes.Name(ctx="load"):
            return node.name
        case nodes.Getattr(node=nodes.Name() as owner):
            return f"{owner.name}.{node.attr}"
        case _:
            return None


def _gates(tree: Tree) -> Iterator[Found]:
    """Yield conditions on what a message says that decide about text of the template's own."""
    for node in tree.of_kind(nodes.If):
        word = _gate_word(tree, node.test)
        if word is None:
            continue
        said = _emitted(tree, node.body)
        if len(_LETTERS.findall(said)) < _EMITTED_LETTERS:
            continue
        elsewhere = _emitted(tree, [*node.else_, *node.elif_])
        if said.strip() and said.strip() not in elsewhere:
            yield "trigger", node.lineno, f"{shown(word)} in a message adds {shown(said)}", True
    for node in tree.of_kind(nodes.CondExpr):
        word = _gate_word(tree, node.test)
        said = tree.fold(node.expr1)
        if word is not None and isinstance(said, str) and _natural(said, _EMITTED_LETTERS):
            yield "trigger", node.lineno, f"{shown(word)} in a message adds {shown(said)}", True


def _gate_word(tree: Tree, test: nodes.Node) -> str | None:
    """Return the words that a condition looks for in a message, ``None`` for none."""
    for node in tree.below(test):
        words: list[Any] = []
        match node:
            case nodes.Compare():
                sides = [node.expr, *(each.expr for each in node.ops)]
                if any(tree.holds_content(each) for each in sides):
                    words = [
                        _fold_any(tree, each) for each in sides if not tree.holds_content(each)
                    ]
            case nodes.Call(node=nodes.Getattr() as called) if called.attr in _SEARCHES:
                if tree.holds_content(called.node):
                    words = [_fold_any(tree, each) for each in node.args]
            case nodes.Test(name="in" | "eq" | "equalto" | "=="):
                both = [node.node, *node.args]
                if any(tree.holds_content(each) for each in both):
                    words = [_fold_any(tree, each) for each in both if not tree.holds_content(each)]
            case _:
                continue
        for word in words:
            if isinstance(word, str) and _WORDS.fullmatch(word.strip()):
                return word
    return None


def _fold_any(tree: Tree, node: nodes.Node) -> Any:
    """Return a constant, or one of those that a loop's variable takes."""
    value = tree.fold(node)
    if value is None and isinstance(node, nodes.Name):
        for loop in tree.of_kind(nodes.For):
            if target_of(loop.target) == node.name:
                value = tree.fold(loop.iter)
    match value:
        case str():
            return value
        case [str() as first, *_]:
            return first
        case _:
            return None


def _emitted(tree: Tree, body: list[nodes.Node]) -> str:
    """Return the template's own text that a body prints."""
    texts: list[str] = []
    left: list[nodes.Node] = list(reversed(body))
    while left:
        node = left.pop()
        if isinstance(node, nodes.Call) and _is_named(node.node, "raise_exception"):
            continue
        left += reversed(list(node.iter_child_nodes()))
        if isinstance(node, nodes.TemplateData):
            texts.append(node.data)
        elif isinstance(node, nodes.Const) and isinstance(node.value, str):
            around = next(iter(tree.above(node)), None)
            if isinstance(
                around, nodes.Output | nodes.Add | nodes.Concat | nodes.Assign | nodes.CondExpr
            ):
                texts.append(node.value)
    return "".join(text for text in texts if _natural(text, 8))


def _is_named(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.name == name


def _natural(text: str, letters: int) -> bool:
    """Tell whether a text has so many letters in words with spaces between them."""
    return len(_LETTERS.findall(text)) >= letters and " " in text.strip()


def _dates(tree: Tree) -> Iterator[Found]:
    dated = {
        name
        for each in tree.of_kind(nodes.Assign)
        if (name := target_of(each.target)) is not None and _is_date(tree, each.node, frozenset())
    }
    for node in tree.of_kind(nodes.Compare):
        sides = [node.expr, *(each.expr for each in node.ops)]
        if any(_is_date(tree, each, dated) for each in sides):
            yield "date", node.lineno, "a condition on the date", True


def _is_date(tree: Tree, node: nodes.Node, dated: AbstractSet[str]) -> bool:
    for each in tree.below(node):
        if isinstance(each, nodes.Call) and isinstance(each.node, nodes.Name):
            if each.node.name == "strftime_now":
                return True
        elif (read := _reads(each)) is not None and read in dated:
            return True
    return False


def _idioms(tree: Tree) -> Iterator[Found]:
    for node in tree.every:
        match node:
            case nodes.TemplateData():
                text: Any = node.data
            case nodes.Const():
                text = node.value
            case nodes.Concat() | nodes.Add():
                text = tree.fold(node)
            case _:
                continue
        if isinstance(text, str) and (found := _IDIOMS.search(text)):
            yield "instructs", node.lineno, shown(found[0]), False


def _rewrites(tree: Tree) -> Iterator[Found]:
    for line, old, new in _replaced(tree):
        yield "rewrites", line, f"{shown(old)} becomes {shown(new)}", new != ""


def removed(tree: Tree) -> Iterator[str]:
    """Yield the words of a message that a template openly takes out."""
    return (old for _, old, new in _replaced(tree) if not new)


def _replaced(tree: Tree) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the word of a message and what it becomes."""
    for node in tree.every:
        match node:
            case nodes.Filter(name="replace", node=nodes.Expr() as filtered):
                of, arguments = filtered, node.args
            case nodes.Call(node=nodes.Getattr(attr="replace") as called):
                of, arguments = called.node, node.args
            case _:
                continue
        old = tree.fold(arguments[0]) if arguments else None
        new = tree.fold(arguments[1]) if len(arguments) > 1 else None
        if tree.holds_content(of) and _is_word(old) and (new == "" or _is_word(new)):
            yield node.lineno, str(old), str(new)


def _is_word(text: Any) -> bool:
    """Tell whether a text is a word that people write, not markup."""
    return (
        isinstance(text, str)
        and re.fullmatch(r"[\w.@ '-]*[^\W\d_]{2,}[\w.@ '-]*", text) is not None
    )


def shown(text: str) -> str:
    """Return the beginning of a text as it stands in a message."""
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
