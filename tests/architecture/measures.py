"""Measures of a source tree: `python -m tests.architecture.measures [FOLDER]` prints them, for ours or any other."""

import ast
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Measures:
    """What a newcomer meets: how long things are, how they are cut, and how much is said about them."""

    function_lines_median: int
    function_lines_p95: int
    function_lines_max: int
    files_over_300_lines: int
    files_over_500_lines: int
    broad_excepts_per_thousand_lines: float
    import_cycles: int
    private_functions_used_once_percent: float
    biggest_flat_package: int
    comments_and_docstrings_percent: float


def measure(folder: Path) -> Measures:
    """Of every Python file below a folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)]
    lengths = sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)
    lines = {path: text.count("\n") + 1 for path, text in texts.items()}
    total = sum(lines.values())
    return Measures(
        function_lines_median=round(statistics.median(lengths)),
        function_lines_p95=lengths[int(len(lengths) * 0.95)],
        function_lines_max=lengths[-1],
        files_over_300_lines=sum(count > 300 for count in lines.values()),
        files_over_500_lines=sum(count > 500 for count in lines.values()),
        broad_excepts_per_thousand_lines=round(1000 * sum(map(broad_excepts, trees.values())) / total, 1),
        import_cycles=import_cycles(folder, trees),
        private_functions_used_once_percent=round(100 * len(used_once(trees)) / len(functions), 1),
        biggest_flat_package=max(Counter(path.parent for path in texts if path.name != "__init__.py").values()),
        comments_and_docstrings_percent=round(100 * sum(said(texts[path], trees[path]) for path in texts) / total, 1),
    )


def broad_excepts(tree: ast.AST) -> int:
    """Handlers of everything: bare, Exception or BaseException."""
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    return sum(
        node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
        for node in handlers
    )


def used_once(trees: dict[Path, ast.Module]) -> list[str]:
    """Private functions and methods that their module names once, besides the definition."""
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for names in [Counter(names_used(tree))]
        for node in ast.walk(tree)
        if isinstance(node, Function) and re.match(r"_[^_]", node.name) and names[node.name] == 1
    ]


def names_used(tree: ast.AST) -> Iterator[str]:
    """Names and attributes, but for those that a definition gives."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def import_cycles(folder: Path, trees: dict[Path, ast.Module]) -> int:
    """Whether modules import each other in a circle, counting imports at the top of a module."""
    modules = {module_name(folder, path): tree for path, tree in trees.items()}
    graph = {
        name: {used for used in imported(tree) if used in modules and used != name} for name, tree in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return 1
    return 0


def module_name(folder: Path, path: Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def said(text: str, tree: ast.Module) -> int:
    """Lines that are a comment or part of a docstring."""
    comments = sum(line.lstrip().startswith("#") for line in text.splitlines())
    return comments + sum(docstring_lines(ast.walk(tree)))


def docstring_lines(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "src" / "recollect"
    found = measure(given)
    for field in fields(found):
        print(f"{field.name.replace('_', ' '):40} {getattr(found, field.name)}")
