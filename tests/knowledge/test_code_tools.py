"""The tools of the domain `code`, called through the catalog as an agent calls them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from clew.app import App, open_app
from clew.catalog.operations.answers import Question
from clew.config import Config, HygieneConfig
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sample_project import SAMPLE
from tests.knowledge.doors import get

CYCLE = {
    "shop/stock.py": "from shop import orders\n\n\ndef left() -> int:\n    return orders.open_orders()\n",
    "shop/orders.py": "from shop import stock\n\n\ndef open_orders() -> int:\n    return stock.left()\n",
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def trust_file(trust_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One trust file for all tests here: the app outlives a test."""
    path = trust_folder / "code_tools.json"
    monkeypatch.setenv("CLEW_TRUST", str(path))
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory, trust_folder: Path) -> AsyncIterator[App]:
    root = make_repository(tmp_path_factory.mktemp("tools") / "shop", SAMPLE | CYCLE)
    config = Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLEW_TRUST", str(trust_folder / "code_tools.json"))
        async with open_app(config) as opened:
            await opened.bootstrap()
            yield opened


async def hidden(app: App, name: str, **params: object) -> str:
    return await get(app, f"code://tools/hidden/{name}", **params)


@pytest.mark.req("SYL-26")
@pytest.mark.req("SYL-95")
async def test_search_code_finds_by_name_kind_and_path(app: App) -> None:
    assert "shop/prices.py" in await get(app, "code://tools/search_code", query="add_tax")
    only = await get(app, "code://tools/search_code", query="basket", symbol_type="class", file_pattern="shop/**")
    assert "Basket" in only
    assert "render" not in only
    none = await get(app, "code://tools/search_code", query="zeppelin_xyz")
    assert "No code matches that." in none
    assert "search_all" in none


@pytest.mark.req("SYL-95")
async def test_get_symbol_gives_the_source_only_where_it_is_asked_for(app: App) -> None:
    assert "return price" not in await hidden(app, "get_symbol", symbol_id="add_tax")
    assert "return price" in await hidden(app, "get_symbol", symbol_id="add_tax", include_source=True)


@pytest.mark.req("SYL-26")
async def test_get_context_gives_the_source_and_both_directions(app: App) -> None:
    told = await hidden(app, "get_context", symbol_id="Basket.total")
    source, used_by, uses = told.index("rounded(add_tax(10.0))"), told.index("## Used by"), told.index("## Uses")
    assert source < used_by < told.index("pay", used_by) < uses < told.index("add_tax", uses)


@pytest.mark.req("SYL-95")
async def test_dependencies_and_dependents_honour_type_and_depth(app: App) -> None:
    assert "pay" not in await hidden(app, "get_dependents", symbol_id="add_tax", edge_type="calls")
    further = await hidden(app, "get_dependents", symbol_id="add_tax", edge_type="calls", depth=3)
    assert "pay" in further
    assert "main" in further
    used = await hidden(app, "get_dependencies", symbol_id="Basket", edge_type="extends")
    assert "Container" in used
    assert "add_tax" not in used


@pytest.mark.req("SYL-95")
async def test_similar_symbols_file_symbols_and_history(app: App) -> None:
    similar = await hidden(app, "find_similar_symbols", symbol_id="add_tax", same_type_only=True)
    assert "round_cents" in similar
    assert "add_tax" not in similar
    symbols = await hidden(app, "get_file_symbols", file_path="shop/prices.py")
    assert symbols.index("VAT") < symbols.index("add_tax") < symbols.index("round_cents")
    only = await hidden(app, "get_file_symbols", file_path="shop/prices.py", symbol_type="constant")
    assert "VAT" in only
    assert "add_tax" not in only
    assert "begin" in await hidden(app, "get_history_for_code", file_path="shop/prices.py")


@pytest.mark.req("SYL-26")
async def test_files_and_structure(app: App) -> None:
    files = await hidden(app, "list_files", pattern="shop/*.py", limit=2)
    assert "shop/__init__.py" in files
    assert "… and 4 more" in files
    top = await hidden(app, "get_structure", depth=1)
    assert top.startswith("- ./ (8 files")
    assert "  - README.md" in top
    assert "- shop/ (6 files" in top
    assert "  - shop/prices.py" not in top
    assert "  - prices.py" in await hidden(app, "get_structure", path="./shop/")
    with pytest.raises(AssertionError, match="no folder 'nowhere'"):
        await hidden(app, "get_structure", path="nowhere")


@pytest.mark.req("SYL-26")
@pytest.mark.parametrize("query", ["depend", "what does the basket depend on"])
async def test_a_question_about_dependencies_finds_the_tool(app: App, query: str) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query=query), by=app.me)
    assert "code://tools/analyze_dependencies" in answer.markdown


@pytest.mark.req("SYL-93")
async def test_search_all_groups_by_domain_and_says_where_nothing_matches(app: App) -> None:
    told = await hidden(app, "search_all", query="add_tax")
    code, history, academic = (told.index(f"## {name}") for name in ("code", "history", "academic"))
    assert code < told.index("add_tax", code) < history < academic
    assert "no matches" in told[academic:]


@pytest.mark.req("SYL-92")
@pytest.mark.req("SYL-94")
async def test_smart_search_keeps_to_its_budget_and_says_that_nothing_matches(app: App) -> None:
    told = await hidden(app, "smart_search", query="basket price", token_budget=300)
    used = re.search(r"(\d+) of 300 tokens used", told)
    assert used is not None
    assert 0 < int(used[1]) <= 300
    assert "\n0 of 1,000 tokens used" in await hidden(app, "smart_search", query="zeppelin_xyz_qqq")
