"""What a Python script that is seen calls with which literals: its model, batch and Trainer.

    text, variables -> Arguments

Nothing is executed or imported. A name counts if the file assigns it once; a value may be a
literal, such a name, a variable of the environment with its default, or plain arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from admission.detect.python_literals import (
    MAX_EVENTS,
    UNKNOWN,
    Module,
    Unknown,
    dotted,
    read_module,
    value_of,
)

Variable = Callable[[str], object]
"""Name of a variable of the environment -> its text, None if it is not set, or `UNKNOWN`."""
_CASTS: dict[str, Callable[[str], object]] = {"int": int, "float": float, "str": str}
_GETTERS = ("os.environ.get", "os.getenv", "environ.get", "getenv")
_ENVIRONMENTS = ("os.environ", "environ")
_MAX_DEPTH = 24
_BINDING = frozenset(
    {
        ast.Assign,
        ast.AnnAssign,
        ast.AugAssign,
        ast.For,
        ast.NamedExpr,
        ast.comprehension,
        ast.withitem,
        ast.arg,
        ast.Global,
        ast.Nonlocal,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A value that a call is given, and the variable that it comes from."""

    value: object
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSite:
    """One call: `transformers.AutoModelForCausalLM.from_pretrained(…)`."""

    owner: str
    """What stands before the last dot, as the file writes it; empty if nothing does."""
    name: str
    first: Argument | None
    """The first positional argument."""
    keywords: dict[str, Argument]


@dataclass(slots=True)
class Source:
    """One file, ready to be asked for values."""

    module: Module
    expressions: Mapping[str, ast.expr]
    """Of the names that the file binds once."""
    variable: Variable
    used: list[str] = field(default_factory=list)
    """Variables of the environment that the last value took."""

    def argument(self, node: ast.expr) -> Argument:
        """Return the value of *node*, and the one variable that it comes from."""
        self.used.clear()
        value = self._value(node, 0)
        return Argument(value=value, variable=self.used[0] if len(self.used) == 1 else "")

    def _value(self, node: ast.expr, depth: int) -> object:
        if depth > _MAX_DEPTH:
            return UNKNOWN
        if isinstance(node, ast.Name):
            held = self.expressions.get(node.id)
            return UNKNOWN if held is None else self._value(held, depth + 1)
        if isinstance(node, ast.Attribute):
            name = dotted(node)
            return name.removeprefix("torch.") if name.startswith("torch.") else UNKNOWN
        if isinstance(node, ast.Subscript) and dotted(node.value) in _ENVIRONMENTS:
            return self._variable(node.slice, None, depth)
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return value_of(node, self.module)

    def _called(self, node: ast.Call, depth: int) -> object:
        name = dotted(node.func)
        if name in _GETTERS and node.args:
            return self._variable(node.args[0], node.args[1] if node.args[1:] else None, depth)
        if name not in _CASTS or len(node.args) != 1:
            return UNKNOWN
        value = self._value(node.args[0], depth + 1)
        if isinstance(value, Unknown) or not isinstance(value, int | float | str):
            return UNKNOWN
        try:
            return _CASTS[name](str(value))
        except ValueError:
            return UNKNOWN

    def _variable(self, name: ast.expr, default: ast.expr | None, depth: int) -> object:
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return UNKNOWN
        found = self.variable(name.value)
        if found is not None:
            self.used.append(name.value)
            return found
        return self._value(default, depth + 1) if default is not None else UNKNOWN


def call_sites(text: str, names: Container[str], variable: Variable) -> list[CallSite] | None:
    """Return the calls of *names* in the Python file *text*, in order; None if it is not read."""
    module = read_module(text)
    if module is None:
        return None
    nodes = _nodes(module.tree)
    calls = [node for node in nodes if isinstance(node, ast.Call) and _name(node) in names]
    if len(calls) > MAX_EVENTS:
        return None
    source = Source(module=module, expressions=_constants(nodes), variable=variable)
    for name, expression in source.expressions.items():
        module.names[name] = source.argument(expression).value
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    return [_site(node, source) for node in calls]


def _nodes(tree: ast.Module) -> list[ast.AST]:
    """Return every node, but for the `Load` and `Store` that half of `ast.walk` are."""
    found: list[ast.AST] = [tree]
    for node in found:
        found += [
            child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)
        ]
    return found


def _name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else dotted(function)


def _site(node: ast.Call, source: Source) -> CallSite:
    function = node.func
    return CallSite(
        owner=dotted(function.value) if isinstance(function, ast.Attribute) else "",
        name=_name(node),
        first=source.argument(node.args[0]) if node.args else None,
        keywords={item.arg: source.argument(item.value) for item in node.keywords if item.arg},
    )


def _constants(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Return the expressions of names that the file binds once, and that no call binds."""
    bound: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        if type(node) in _BINDING:
            for name, value in _bindings(node):
                bound.setdefault(name, []).append(value)
    return {name: values[0] for name, values in bound.items() if len(values) == 1 and values[0]}


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that *node* binds, with the expression they are given if there is one."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            else:
                yield from ((inner.id, None) for inner in _names(target))
    elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr | ast.comprehension):
        yield from ((inner.id, None) for inner in _names(node.target))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from ((inner.id, None) for inner in _names(node.optional_vars))
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from ((name, None) for name in node.names)


def _names(target: ast.expr) -> Iterator[ast.Name]:
    return (inner for inner in ast.walk(target) if isinstance(inner, ast.Name))
