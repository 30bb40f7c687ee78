"""Edges between symbols of several files: Python values are followed, and a changed file is relinked with its
importers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from clew.knowledge.code.linking.linker import Linker
from clew.knowledge.code.models import CodeEdge
from clew.knowledge.code.python_calls.statements import summarize
from tests.knowledge.code.linked_projects import all_edges, facts, python_facts, read_project, shown

PROJECT = {
    "src/shop/__init__.py": "from .orders import Order, place as place_order\n",
    "src/shop/orders.py": """
        from shop.log import traced
        class Order:
            def total(self): return self._sum()
            def _sum(self): ...
        @traced
        def place(order: Order):
            order.total()
    """,
    "src/shop/log.py": """
        def traced(function):
            def wrapper(*args):
                return function(*args)
            return wrapper
    """,
    "src/shop/special.py": """
        from shop import Order
        class Gift(Order):
            def _sum(self): ...
            def wrap(self): self.total()
    """,
    "tests/test_shop.py": """
        import shop
        from shop import place_order, Order
        buy = place_order
        def test_buy():
            buy(Order())
        def test_total(unknown):
            shop.Order().total()
            unknown.wrap()
    """,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    return tmp_path


def test_callers_are_found_through_aliases_methods_reexports_and_decorators(project: Path) -> None:
    files, summaries = read_project(project)
    calls = shown(all_edges(Linker(files, summaries), files), "calls")
    assert "tests/test_shop.py#test_buy -> src/shop/log.py#traced.wrapper" in calls
    assert "src/shop/log.py#traced.wrapper -> src/shop/orders.py#place" in calls
    assert "src/shop/orders.py# -> src/shop/log.py#traced" in calls
    assert "src/shop/orders.py#place -> src/shop/orders.py#Order.total" in calls
    assert "tests/test_shop.py#test_total -> src/shop/orders.py#Order.total" in calls
    assert "src/shop/special.py#Gift.wrap -> src/shop/orders.py#Order.total" in calls
    assert "src/shop/orders.py#Order.total -> src/shop/special.py#Gift._sum" in calls


def test_a_match_by_name_alone_is_marked_as_a_guess(project: Path) -> None:
    files, summaries = read_project(project)
    edges = all_edges(Linker(files, summaries), files)
    guesses = [edge for edge in edges if edge.is_guess]
    wrap = CodeEdge("tests/test_shop.py", "test_total", "src/shop/special.py", "Gift.wrap", "calls", 9, is_guess=True)
    assert guesses == [wrap]


def test_imports_bases_and_definitions_lead_to_where_things_are(project: Path) -> None:
    files, summaries = read_project(project)
    edges = all_edges(Linker(files, summaries), files)
    assert "src/shop/special.py# -> src/shop/orders.py#Order" in shown(edges, "imports")
    assert "tests/test_shop.py# -> src/shop/__init__.py#" in shown(edges, "imports")
    assert shown(edges, "inherits") == {"src/shop/special.py#Gift -> src/shop/orders.py#Order"}
    assert "src/shop/orders.py#Order -> src/shop/orders.py#Order.total" in shown(edges, "defines")
    assert "src/shop/orders.py# -> src/shop/orders.py#Order" in shown(edges, "defines")


def test_after_a_change_the_edges_are_those_of_linking_anew(project: Path) -> None:
    files, summaries = read_project(project)
    linker = Linker(files, summaries)
    before = shown(linker.edges("tests/test_shop.py"), "calls")
    path = "src/shop/orders.py"
    changed = summarize(b"class Order:\n    def total(self): ...\ndef place(order: Order): tell()\ndef tell(): ...\n")
    files[path], summaries[path] = python_facts(changed), changed
    changes = linker.update({path: files[path]}, {path: changed})
    fresh = Linker(files, summaries)
    for name in files:
        assert linker.edges(name) == fresh.edges(name)
    assert changes == sorted({*changes, path, "tests/test_shop.py"})
    assert "src/shop/orders.py#place -> src/shop/orders.py#tell" in shown(linker.edges(path), "calls")
    gone = before - shown(linker.edges("tests/test_shop.py"), "calls")
    assert gone == {"tests/test_shop.py#test_buy -> src/shop/log.py#traced.wrapper"}


def test_files_that_come_and_go_change_the_edges_of_those_that_name_them(project: Path) -> None:
    files, summaries = read_project(project)
    whole = Linker(files, summaries)
    without = "src/shop/log.py"
    rest = {name: known for name, known in files.items() if name != without}
    linker = Linker(rest, {name: known for name, known in summaries.items() if name != without})
    assert linker.edges("src/shop/orders.py") != whole.edges("src/shop/orders.py")
    linker.update({without: files[without]}, {without: summaries[without]})
    assert set(all_edges(linker, files)) == set(all_edges(whole, files))
    changes = linker.update({}, removed=[without])
    assert without in changes
    assert all(without not in (edge.source_path, edge.target_path) for edge in all_edges(linker, files))


def test_a_change_that_changes_no_edge_says_so(project: Path) -> None:
    files, summaries = read_project(project)
    linker = Linker(files, summaries)
    path = "src/shop/log.py"
    assert linker.update({path: files[path]}, {path: summaries[path]}) == []


def test_a_python_file_without_a_summary_is_linked_by_name() -> None:
    files = {
        "old.py": facts(
            "python",
            symbols={"run": "function"},
            imports=[("lib", "help_me"), ("lib", "", "short")],
            uses=[
                ("call", "help_me", "run"),
                ("call", "short.other", "run"),
                ("call", "short.Tool().use", "run"),
                ("call", "print", "run"),
            ],
        ),
        "lib.py": facts(
            "python",
            symbols={"help_me": "function", "other": "function", "Tool": "class", "Tool.use": "method"},
        ),
    }
    broken = {"old.py": summarize(b"print 'x'\n")}
    found = {f"old.py#run -> lib.py#{name}" for name in ("help_me", "other", "Tool.use")}
    assert shown(all_edges(Linker(files, broken), files), "calls") == found


def test_an_empty_project_has_no_edges() -> None:
    linker = Linker({})
    assert linker.update({}, removed=["never.py"]) == []
    assert linker.edges("never.py") == ()
