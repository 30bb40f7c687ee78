"""Edges between symbols over files: Python by following its values."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from clew.knowledge.code.linking.linker import Linker
from clew.knowledge.code.models import CodeEdge
from clew.knowledge.code.python_calls.statements import summarize
from tests.knowledge.code.linked import all_edges, facts, read_project, shown

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


def test_who_calls_a_symbol_is_known_through_aliases_methods_reexports_and_decorators(project: Path) -> None:
    files, summaries = read_project(project)
    calls = shown(all_edges(Linker(files, summaries), files), "calls")
    assert "tests/test_shop.py#test_buy -> src/shop/log.py#traced.wrapper" in calls
    assert "src/shop/log.py#traced.wrapper -> src/shop/orders.py#place" in calls
    assert "src/shop/orders.py# -> src/shop/log.py#traced" in calls
    assert "src/shop/orders.py#place -> src/shop/orders.py#Order.total" in calls
    assert "tests/test_shop.py#test_total -> src/shop/orders.py#Order.total" in calls
    assert "src/shop/special.py#Gift.wrap -> src/shop/orders.py#Order.total" in calls
    assert "src/shop/orders.py#Order.total -> src/shop/special.py#Gift._sum" in calls


def test_what_only_the_name_speaks_for_is_marked_as_a_guess(project: Path) -> None:
    files, summaries = read_project(project)
    edges = all_edges(Linker(files, summaries), files)
    guesses = [edge for edge in edges if edge.is_guess]
    wrap = CodeEdge("tests/test_shop.py", "test_total", "src/shop/special.py", "Gift.wrap", "calls", 9, is_guess=True)
    assert guesses == [wrap]


def test_imports_and_bases_lead_to_where_things_are(project: Path) -> None:
    files, summaries = read_project(project)
    edges = all_edges(Linker(files, summaries), files)
    assert "src/shop/special.py# -> src/shop/orders.py#Order" in shown(edges, "imports")
    assert "tests/test_shop.py# -> src/shop/__init__.py#" in shown(edges, "imports")
    assert shown(edges, "inherits") == {"src/shop/special.py#Gift -> src/shop/orders.py#Order"}


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
