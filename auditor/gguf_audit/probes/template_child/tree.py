"""A template's syntax tree, with what its names and constants are as far as that is cheap."""

# A constant of a template may be anything, and what a list of them holds as well.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import nodes

from gguf_audit.limits import LIMITS

__all__ = ["Tree", "format_of", "target_of"]

#: Methods and filters whose value is as much text of a message as what they are given.
_KEEPING = frozenset(
    {
        "casefold",
        "default",
        "lower",
        "lstrip",
        "replace",
        "rstrip",
        "split",
        "string",
        "strip",
        "title",
        "trim",
        "upper",
    }
)


class Tree:
    """Every node of a tree, found without recursion, and who holds it."""

    def __init__(self, root: nodes.Template) -> None:
        """Go through what the parser made."""
        self.every: list[nodes.Node] = []
        self.parents: dict[int, nodes.Node] = {}
        #: Names that are read, and names that the template itself sets.
        self.loaded: set[str] = set()
        self.assigned: set[str] = set()
        #: Name -> what it is set to, where that happens once.
        self.values: dict[str, nodes.Expr] = {}
        #: Names that hold text of a message.
        self.content: set[str] = set()
        left: list[nodes.Node] = [root]
        while left:
            node = left.pop()
            self.every.append(node)
            children = list(node.iter_child_nodes())
            for child in children:
                self.parents[id(child)] = node
            left += reversed(children)
        self._name()

    def of_kind(self, kind: Any) -> list[Any]:
        """Return nodes of a kind, in the order of the text."""
        return [node for node in self.every if isinstance(node, kind)]

    def above(self, node: nodes.Node) -> Iterator[nodes.Node]:
        """Yield what a node is in, innermost first."""
        while (parent := self.parents.get(id(node))) is not None:
            yield parent
            node = parent

    def below(self, *roots: nodes.Node) -> Iterator[nodes.Node]:
        """Yield nodes and everything in them."""
        left = list(reversed(roots))
        while left:
            node = left.pop()
            yield node
            left += reversed(list(node.iter_child_nodes()))

    def _name(self) -> None:
        times: dict[str, int] = {}
        for node in self.every:
            match node:
                case nodes.Name(ctx="load"):
                    self.loaded.add(node.name)
                case nodes.Name():
                    self.assigned.add(node.name)
                case nodes.Macro():
                    self.assigned.add(node.name)
                case _:
                    pass
        for assign in self.of_kind(nodes.Assign):
            target = target_of(assign.target)
            if target is not None:
                times[target] = times.get(target, 0) + 1
                self.values[target] = assign.node
        self.values = {name: value for name, value in self.values.items() if times[name] == 1}
        self._taint()

    def _taint(self) -> None:
        pairs: list[tuple[str | None, nodes.Node]] = [
            (target_of(each.target), each.node) for each in self.of_kind(nodes.Assign)
        ]
        pairs += [(target_of(each.target), each.iter) for each in self.of_kind(nodes.For)]
        # Once more for each name that a chain of them could go through.
        for _ in range(4):
            for name, value in pairs:
                if name is not None and self.holds_content(value):
                    self.content.add(name)

    def holds_content(self, node: nodes.Node, depth: int = 0) -> bool:
        """Tell whether an expression's value is text of a message."""
        if depth > LIMITS.template_depth:
            return False
        deeper = depth + 1
        match node:
            case nodes.Name():
                return node.name in self.content
            case nodes.NSRef():
                return f"{node.name}.{node.attr}" in self.content
            case nodes.Getattr():
                if node.attr in ("content", "text"):
                    return True
                if isinstance(node.node, nodes.Name):
                    return f"{node.node.name}.{node.attr}" in self.content
                return False
            case nodes.Getitem():
                if isinstance(node.arg, nodes.Const):
                    if node.arg.value in ("content", "text"):
                        return True
                    if isinstance(node.arg.value, str):
                        return False
                return self.holds_content(node.node, deeper)
            case nodes.Filter():
                kept = node.name in _KEEPING
                return kept and node.node is not None and self.holds_content(node.node, deeper)
            case nodes.Call():
                called = node.node
                if not isinstance(called, nodes.Getattr):
                    return False
                kept = called.attr in _KEEPING
                return kept and self.holds_content(called.node, deeper)
            case nodes.CondExpr():
                both = (node.expr1, node.expr2)
                return any(each is not None and self.holds_content(each, deeper) for each in both)
            case nodes.Concat():
                return any(self.holds_content(each, deeper) for each in node.nodes)
            case nodes.Add():
                return self.holds_content(node.left, deeper) or self.holds_content(
                    node.right, deeper
                )
            case _:
                return False

    def fold(self, node: nodes.Node | None, depth: int = 0) -> Any:
        """Return the value of a constant expression, ``None`` where it isn't a cheap one."""
        if node is None or depth > LIMITS.template_depth:
            return None
        deeper = depth + 1
        match node:
            case nodes.Const():
                return node.value
            case nodes.TemplateData():
                return node.data
            case nodes.Name(ctx="load"):
                value = self.values.get(node.name)
                return None if value is None else self.fold(value, depth + 8)
            case nodes.Concat():
                return _joined([self.fold(each, deeper) for each in node.nodes])
            case nodes.List() | nodes.Tuple():
                items = [self.fold(each, deeper) for each in node.items]
                return None if any(item is None for item in items) else items
            case nodes.Neg():
                value = self.fold(node.node, deeper)
                return -value if isinstance(value, int) else None
            case nodes.BinExpr():
                return _computed(node, self.fold(node.left, deeper), self.fold(node.right, deeper))
            case nodes.Filter():
                return self._filtered(node, self.fold(node.node, deeper), deeper)
            case nodes.Getitem(arg=nodes.Slice() as part):
                value = self.fold(node.node, deeper)
                step = self.fold(part.step, deeper)
                return value[::-1] if step == -1 and isinstance(value, str | list) else value
            case nodes.Call(node=nodes.Getattr() as called):
                value = self.fold(called.node, deeper)
                arguments = [self.fold(each, deeper) for each in node.args]
                return _called(value, called.attr, arguments)
            case _:
                return None

    def _filtered(self, node: nodes.Filter, value: Any, depth: int) -> Any:
        arguments = [self.fold(each, depth) for each in node.args]
        match node.name, value, arguments:
            case "join", list(), []:
                return _joined(value)
            case "join", list(), [str() as between]:
                return between.join(map(str, value))[: LIMITS.folded_characters]
            # Escaping changes nothing of what a way into the interpreter is spelled with.
            case "join" | "trim" | "string" | "safe" | "e" | "escape" | "forceescape", str(), _:
                return value
            case "reverse", str() | list(), _:
                return value[::-1]
            case "lower" | "upper", str(), _:
                return value.lower() if node.name == "lower" else value.upper()
            case "replace", str(), [str() as old, str() as new]:
                return value.replace(old, new)[: LIMITS.folded_characters]
            case "first", str() | list(), _ if value:
                return value[0]
            case "last", str() | list(), _ if value:
                return value[-1]
            case "map", list(), ["reverse"]:
                return [item[::-1] if isinstance(item, str) else item for item in value]
            case "map", list(), ["join" | "string" | "trim"]:
                return value
            case "list", str() | list(), _:
                return list(value)
            case "format", str(), [*texts] if all(text is not None for text in texts):
                return _percent(value, texts)
            case _:
                return None


def target_of(node: nodes.Node) -> str | None:
    """Return the name that an assignment sets, ``space.name`` in a namespace."""
    match node:
        case nodes.Name():
            return node.name
        case nodes.NSRef():
            return f"{node.name}.{node.attr}"
        case _:
            return None


def _joined(items: list[Any]) -> str | None:
    if any(item is None for item in items):
        return None
    return "".join(map(str, items))[: LIMITS.folded_characters]


def _called(value: Any, method: str, arguments: list[Any]) -> Any:
    match value, method, arguments:
        case str(), "join", [list() as items]:
            return value.join(map(str, items))[: LIMITS.folded_characters]
        case str(), "replace", [str() as old, str() as new]:
            return value.replace(old, new)[: LIMITS.folded_characters]
        case str(), "lower" | "upper" | "strip", []:
            return getattr(value, method)()
        case _:
            return None


def _percent(form: str, values: list[Any]) -> str | None:
    """Format what has only ``%s`` in it, ``None`` for anything else."""
    if form.count("%") != len(values) or form.count("%s") != len(values):
        return None
    parts = form.split("%s")
    return "".join(part + str(value) for part, value in zip(parts, [*values, ""], strict=True))[
        : LIMITS.folded_characters
    ]


def _computed(node: nodes.BinExpr, left: Any, right: Any) -> Any:
    match node, left, right:
        case nodes.Add(), str(), str():
            return (left + right)[: LIMITS.folded_characters]
        case nodes.Add(), list(), list():
            return left + right
        case (
            (nodes.Add(), int(), int()) | (nodes.Sub(), int(), int()) | (nodes.Mul(), int(), int())
        ):
            if max(abs(left), abs(right)) > 10**30:
                return None
            if isinstance(node, nodes.Add):
                return left + right
            return left - right if isinstance(node, nodes.Sub) else left * right
        case nodes.Pow(), int(), int():
            # Beyond any bound that matters; never computed.
            return left**right if 0 <= right <= 30 and abs(left) <= 10**6 else 10**30
        case nodes.Mul(), str(), int():
            return (
                (left * right)[: LIMITS.folded_characters]
                if right * len(left) <= LIMITS.folded_product
                else None
            )
        case nodes.Mod(), str(), _ if right is not None:
            return _percent(left, right if isinstance(right, list) else [right])
        case _:
            return None


def format_of(tree: Tree, node: nodes.Node) -> str | None:
    """Return the constant string that a node formats, ``None`` where it does no such thing."""
    match node:
        case nodes.Call(node=nodes.Getattr(attr="format" | "format_map") as called):
            form = tree.fold(called.node)
        case nodes.Filter(name="format"):
            form = tree.fold(node.node)
        case nodes.Mod():
            form = tree.fold(node.left)
        case _:
            return None
    return form if isinstance(form, str) else None
