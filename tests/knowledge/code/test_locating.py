"""A traceback says where in a file."""

from __future__ import annotations

from pathlib import Path

from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sample_project import opened

FILES = {
    "src/shop/prices.py": """
        class Prices:
            def total(self):
                return self.prices

        def total(prices):
            return tally(prices)

        def tally(prices):
            return sum(prices)
    """,
    "src/shop/other.py": "def total():\n    return 1\n",
}
TRACE = """It fails when prices are added up
  File "{path}", line {line}, in {name}
    return self.prices
AttributeError: no prices"""


async def test_the_function_of_the_innermost_frame_is_the_place(tmp_path: Path) -> None:
    async with opened(make_repository(tmp_path, FILES)) as graph:
        await graph.refresh()
        for path, line, name, symbol in (
            ("/home/ann/venv/src/shop/prices.py", 4, "total", "Prices.total"),
            ("shop/prices.py", 900, "total", "Prices.total"),
            ("prices.py", 7, "total", "total"),
            ("C:\\work\\src\\shop\\prices.py", 9, "tally", "tally"),
        ):
            found = await graph.locate(TRACE.format(path=path, line=line, name=name))
            assert (found[0].path, found[0].symbol) == ("src/shop/prices.py", symbol), path


async def test_a_frame_of_a_function_that_there_is_not_says_nothing(tmp_path: Path) -> None:
    async with opened(make_repository(tmp_path, FILES)) as graph:
        await graph.refresh()
        plain = await graph.locate("tally of prices")
        found = await graph.locate("tally of prices\n" + TRACE.format(path="shop/prices.py", line=1, name="gone"))
    assert plain[0].symbol == found[0].symbol == "tally"
