"""A Python file's literals: what is assigned and called with which values, in order.

text -> statements -> events

Nothing is executed or imported. What depends on anything but literals is `UNKNOWN`, and so is what
is assigned under a condition that is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

MAX_TEXT = 64 << 10
MAX_EVENTS = 5_000
_MAX_BITS = 128
_MAX_DEPTH = 24


class Unknown:
    """Stands for a value that the text alone does not tell."""


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An assignment (`target` is set), a call (`function` is set), or both."""

    target: str = ""
    """Dotted: `recipe.trainer.num_nodes`."""
    value: object = UNKNOWN
    function: str = ""
    """Dotted, as it is imported: `nemo.collections.llm.recipes.llama3_8b.pretrain_recipe`."""
    keywords: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Module:
    """One file, and the names it has."""

    tree: ast.Module
    imports: dict[str, str]
    names: dict[str, object] = field(default_factory=dict)

    def function(self, name: str) -> ast.FunctionDef | None:
        """Return the function called *name*, if the file defines it at the top."""
        found = [
            node
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        return found[-1] if found else None


def read_module(text: str) -> Module | None:
    """Return the file in *text*, or None if it is no Python or too long."""
    if len(text) > MAX_TEXT:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    imports: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            imports |= {item.asname or item.name: item.name for item in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {
                item.asname or item.name: f"{node.module}.{item.name}" for item in node.names
            }
    return Module(tree=tree, imports=imports)


def events_of(module: Module, statements: Sequence[ast.stmt]) -> list[Event]:
    """Return what *statements* assign and call; `module.names` has their names afterwards."""
    found: list[Event] = []
    for event in _events(module, statements, is_sure=True, depth=0):
        found.append(event)
        if len(found) >= MAX_EVENTS:
            break
    return found


def parameters_of(module: Module, function: ast.FunctionDef) -> dict[str, object]:
    """Return the parameters of *function* with their defaults; one without is `UNKNOWN`."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    values: dict[str, object] = {item.arg: UNKNOWN for item in (*positional, *arguments.kwonlyargs)}
    if arguments.defaults:
        for item, node in zip(
            positional[-len(arguments.defaults) :], arguments.defaults, strict=False
        ):
            values[item.arg] = value_of(node, module)
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        if default is not None:
            values[item.arg] = value_of(default, module)
    return values


def call_of(text: str) -> tuple[str, Mapping[str, object]] | None:
    """Return name and keywords of `name` or `name(key=literal)`."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    empty = Module(tree=ast.Module(body=[], type_ignores=[]), imports={})
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        return (name, _keywords(node, empty)) if name else None
    name = dotted(node)
    return (name, {}) if name else None


def value_of(node: ast.expr, module: Module, depth: int = 0) -> object:
    """Return the value of a literal, a known name, or plain arithmetic on them."""
    if depth > _MAX_DEPTH:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return module.names.get(node.id, UNKNOWN)
    if isinstance(node, ast.List | ast.Tuple):
        items = [value_of(item, module, depth + 1) for item in node.elts]
        return UNKNOWN if UNKNOWN in items else items
    if isinstance(node, ast.UnaryOp):
        inner = value_of(node.operand, module, depth + 1)
        if isinstance(node.op, ast.Not):
            return UNKNOWN if inner is UNKNOWN else not inner
        if isinstance(node.op, ast.USub) and isinstance(inner, int | float):
            return -inner
        return UNKNOWN
    if isinstance(node, ast.BinOp):
        return _arithmetic(
            node.op, value_of(node.left, module, depth + 1), value_of(node.right, module, depth + 1)
        )
    return UNKNOWN


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, else an empty text."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((node.id, *reversed(parts)))


def _arithmetic(operator: ast.operator, left: object, right: object) -> object:
    if not (isinstance(left, int) and isinstance(right, int)):
        return UNKNOWN
    if max(left.bit_length(), right.bit_length()) > _MAX_BITS:
        return UNKNOWN
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.FloorDiv) and right:
        return left // right
    return UNKNOWN


def _events(
    module: Module, statements: Sequence[ast.stmt], *, is_sure: bool, depth: int
) -> Iterator[Event]:
    if depth > _MAX_DEPTH:
        return
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from _assigned(module, target, statement.value, is_sure=is_sure)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            yield from _assigned(module, statement.target, statement.value, is_sure=is_sure)
        elif isinstance(statement, ast.AugAssign):
            yield from _assigned(module, statement.target, None, is_sure=False)
        elif isinstance(statement, ast.Expr | ast.Return) and statement.value is not None:
            yield from _called(module, statement.value, "")
        elif isinstance(statement, ast.If):
            test = value_of(statement.test, module)
            for branch, is_taken in ((statement.body, True), (statement.orelse, False)):
                if test is UNKNOWN or bool(test) is is_taken:
                    sure = is_sure and test is not UNKNOWN
                    yield from _events(module, branch, is_sure=sure, depth=depth + 1)
        elif isinstance(statement, ast.For | ast.While | ast.Try):
            yield from _events(module, statement.body, is_sure=False, depth=depth + 1)
        elif isinstance(statement, ast.With):
            yield from _events(module, statement.body, is_sure=is_sure, depth=depth + 1)


def _assigned(
    module: Module, target: ast.expr, node: ast.expr | None, *, is_sure: bool
) -> Iterator[Event]:
    if isinstance(target, ast.Tuple):
        values = node.elts if isinstance(node, ast.Tuple) else ()
        for index, part in enumerate(target.elts):
            item = values[index] if len(values) == len(target.elts) else None
            yield from _assigned(module, part, item, is_sure=is_sure)
        return
    name = dotted(target)
    value = value_of(node, module) if node is not None and is_sure else UNKNOWN
    if isinstance(target, ast.Name):
        module.names[name] = value
    if isinstance(node, ast.Call):
        yield from _called(module, node, name)
    elif name:
        yield Event(target=name, value=value)


def _called(module: Module, node: ast.expr, target: str) -> Iterator[Event]:
    if not isinstance(node, ast.Call):
        return
    name = dotted(node.func)
    first, _, rest = name.partition(".")
    full = module.imports.get(first, first) + (f".{rest}" if rest else "")
    yield Event(target=target, function=full, keywords=_keywords(node, module))


def _keywords(node: ast.Call, module: Module) -> Mapping[str, object]:
    return {item.arg: value_of(item.value, module) for item in node.keywords if item.arg}
