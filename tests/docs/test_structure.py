"""The shape of the source tree: small folders, modules named by nouns, and one meaning for each class name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "clew"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if not path.name.startswith("__"))
OWN_CODE = ("src", "tests", "benchmarks", "examples", "tools")
MAX_MODULES, MAX_LINES = 20, 450
VERB_FORM = re.compile(r"(?:.*_)?\w+(?:ing|ed)")
TERMS = {"backtracking", "encoding", "indexing", "linking", "linting", "listing", "mapping", "packing", "parsing"}
TERMS |= {"ranking", "reembedding", "rendering", "routing", "sampling", "scoring"}
"""Terms of the field that end like a gerund or a participle."""


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=lambda folder: folder.name)
def test_no_folder_holds_more_than_twenty_modules(folder: Path) -> None:
    assert len([path for path in MODULES if path.parent == folder]) <= MAX_MODULES


def test_no_module_is_named_by_a_gerund_or_a_participle() -> None:
    names = [path.stem for path in MODULES if VERB_FORM.fullmatch(path.stem)]
    assert [name for name in names if name.rpartition("_")[2] not in TERMS] == []


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lines = {path.relative_to(SOURCE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    trees = ((path, ast.parse(path.read_text("utf-8"))) for path in SOURCE.rglob("*.py"))
    assert [path.as_posix() for path, tree in trees if not ast.get_docstring(tree)] == []


def test_no_docstring_and_no_test_name_has_a_clause_as_its_subject() -> None:
    """A docstring and a test name their subject: "The user who …", not "Who …"."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    paths = [path for folder in OWN_CODE for path in (SOURCE.parents[1] / folder).rglob("*.py")]
    nodes = [(path, node) for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = [(path, ast.get_docstring(node) or "") for path, node in nodes if isinstance(node, documented)]
    names = [(path, node.name) for path, node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    assert [(path.name, text) for path, text in texts if re.match(r"(What|Who|Whom|Whose)\b", text)] == []
    assert [(path.name, name) for path, name in names if re.match(r"test_(what|whatever|who|whom|whose)_", name)] == []


def test_no_class_name_is_defined_twice() -> None:
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.4, such as that of Debian 12, matches `(?:a|b)*+` wrongly; `(?>(?:a|b)*)` means the same."""
    possessive = re.compile(r"(?<!\()\)(?:[*+?]|\{[\d,]+\})\+")
    lines = ((path.name, line) for path in MODULES for line in path.read_text("utf-8").splitlines())
    assert [found for found in lines if possessive.search(found[1])] == []
