"""Measure the structure of the package, and fail if a figure is worse than the recorded one.

``python tools/structure.py`` prints the figures, ``--check`` (in ``make lint``) compares them with those recorded in
``tools/structure.json``, and ``--write`` records them. Record figures that got better, so that they stay better.

* ``codeLines``: lines with code, not blank lines, comments or docstrings; ``statements``: those of the syntax tree.
* ``modules``; ``oneImporter``: those that exactly one module imports.
* ``cycles``: groups of modules that import each other, also if an import is late or only for type checkers.
* ``medianFunction``, ``p95Function``: lines of a function with its signature and docstring.
* ``longSignatures``: functions with more than eight parameters, ``self`` and ``cls`` not counted.
* ``undocumented``: classes, functions and methods without a leading underscore or a docstring.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "kpreempt"
RECORD = Path(__file__).with_suffix(".json")
MAX_PARAMETERS = 8
# All other figures improve by getting smaller.
_BETTER_IF_GREATER = {"medianFunction"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code_lines(source: str, nodes: Iterable[ast.AST]) -> int:
    """How many lines have code: blank lines, comments and docstrings have none."""
    texts = {line for node in nodes if _is_text(node) for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(source.splitlines(), 1)
    return sum(number not in texts and not line.lstrip().startswith("#") for number, line in lines if line.strip())


def imports_of(nodes: Iterable[ast.AST], modules: Iterable[str]) -> Iterator[str]:
    """The modules of the package that the nodes of a module import, at any place in it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                if inner in modules or node.module in modules:
                    yield inner if inner in modules else node.module


def cycles_of(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, sorted (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in imports[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in imports:
        if name not in index:
            visit(name)
    return sorted(found)


def _num_parameters(function: _Function) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    variable = [each for each in (given.vararg, given.kwarg) if each is not None]
    return len(named) + len(variable) - (bool(named) and named[0].arg in ("self", "cls"))


def measure(root: Path) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The figures, and for those that count things the things that they count."""
    paths = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    lines, statements = 0, 0
    sizes: list[int] = []
    undocumented, signatures = [], []
    imports: dict[str, set[str]] = {}
    for name, path in paths.items():
        source = path.read_text("utf-8")
        nodes = list(ast.walk(ast.parse(source)))
        lines += code_lines(source, nodes)
        statements += sum(isinstance(node, ast.stmt) and not _is_text(node) for node in nodes)
        imports[name] = set(imports_of(nodes, paths)) - {name}
        for node in nodes:
            if not isinstance(node, _Function | ast.ClassDef):
                continue
            if not node.name.startswith("_") and ast.get_docstring(node, clean=False) is None:
                undocumented.append(f"{name}.{node.name}")
            if isinstance(node, _Function):
                sizes.append(node.end_lineno - node.lineno + 1)
                if _num_parameters(node) > MAX_PARAMETERS:
                    signatures.append(f"{name}.{node.name}")
    importers: dict[str, list[str]] = {name: [] for name in paths}
    for name, imported in imports.items():
        for other in imported:
            importers[other].append(name)
    lists = {
        "cycles": [" <-> ".join(group) for group in cycles_of(imports)],
        "longSignatures": signatures,
        "oneImporter": [f"{name} (by {by[0]})" for name, by in importers.items() if len(by) == 1],
        "undocumented": undocumented,
    }
    figures = {
        "codeLines": lines,
        "statements": statements,
        "modules": len(paths),
        "medianFunction": statistics.median(sizes),
        "p95Function": sorted(sizes)[len(sizes) * 95 // 100],
        **{key: len(value) for key, value in lists.items()},
    }
    return figures, lists


def main() -> int:
    """Print, check or record the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a figure is not the recorded one")
    parser.add_argument("--write", action="store_true", help="record the figures")
    parser.add_argument("--list", metavar="FIGURE", help="print what a figure counts")
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    options = parser.parse_args()
    figures, lists = measure(options.root)
    if options.list:
        print("\n".join(lists[options.list]))
        return 0
    if options.write:
        RECORD.write_text(json.dumps(figures, indent=2) + "\n")
    if not options.check:
        print("\n".join(f"{name:<16}{value:>10,}" for name, value in figures.items()))
        return 0
    worse = []
    for name, recorded in json.loads(RECORD.read_text()).items():
        sign = -1 if name in _BETTER_IF_GREATER else 1
        if sign * figures[name] > sign * recorded:
            worse.append(f"{name} is {figures[name]:,}, recorded is {recorded:,}")
    if worse:
        print("The structure got worse (python tools/structure.py --list FIGURE shows what counts):", file=sys.stderr)
        print("\n".join(worse), file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
