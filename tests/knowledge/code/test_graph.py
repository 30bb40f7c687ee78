"""Queries about code, with a citation for each answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.file_content import blob_id
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from tests.knowledge.code.repositories import make_repository, write
from tests.knowledge.code.sample_project import SAMPLE, opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", SAMPLE)


@pytest.fixture
async def graph(root: Path) -> AsyncIterator[CodeGraph]:
    async with opened(root) as opened_graph:
        await opened_graph.refresh()
        yield opened_graph


def names(links: object) -> set[str]:
    return {link.node.name for link in links}  # type: ignore[attr-defined]


@pytest.mark.req("SYL-95")
@pytest.mark.req("SYL-26")
async def test_search_code_finds_symbols_by_name_and_by_words(graph: CodeGraph) -> None:
    best = (await graph.search("add_tax"))[0]
    assert (best.node.id, best.similarity) == ("code:shop/prices.py#add_tax", 1.0)
    assert (best.node.domain, best.node.node_type) == (NodeDomain.CODE, NodeType.FUNCTION)
    by_words = await graph.search("things that somebody wants to buy")
    assert "code:shop/basket.py#Basket" in {hit.node.id for hit in by_words}
    assert (await graph.search("Basket.total"))[0].node.id == "code:shop/basket.py#Basket.total"


@pytest.mark.req("SYL-95")
async def test_search_code_keeps_to_kind_pattern_and_limit(graph: CodeGraph) -> None:
    kinds = {hit.node.node_type for hit in await graph.search("basket", symbol_type="class")}
    assert kinds == {NodeType.STRUCT}
    paths = {hit.node.path for hit in await graph.search("basket total", file_pattern="web/**")}
    assert paths == {"web/app.js"}
    assert len(await graph.search("basket", limit=1)) == 1
    with pytest.raises(InvalidInput, match="limit"):
        await graph.locate("basket", limit=0)


@pytest.mark.req("SYL-95")
async def test_get_symbol_gives_place_signature_and_blob(graph: CodeGraph, root: Path) -> None:
    node = await graph.symbol("shop/prices.py#add_tax")
    assert (node.line_start, node.line_end, node.path) == (6, 8, "shop/prices.py")
    assert node.content_hash == blob_id((root / "shop/prices.py").read_bytes())
    assert node.signature is not None
    assert "price: float" in node.signature
    assert "The price with tax." in node.content
    assert node.trust == 100
    assert await graph.source(node.id) == (
        '6: def add_tax(price: float) -> float:\n7:     """The price with tax."""\n8:     return price * (1 + VAT)'
    )


async def test_a_symbol_is_named_by_line_by_file_or_by_a_name_that_one_has(graph: CodeGraph) -> None:
    assert (await graph.symbol("shop/basket.py:12")).name == "Basket.total"
    assert (await graph.symbol("code:shop/basket.py")).node_type == NodeType.FILE
    assert (await graph.symbol("Basket.total")).path == "shop/basket.py"
    assert (await graph.symbol("shop.prices.round_cents")).name == "round_cents"
    for missing in ("shop/none.py", "shop/prices.py#none", "nobody", "shop/prices.py:9999"):
        with pytest.raises(NotFound):
            await graph.symbol(missing)
    with pytest.raises(InvalidInput, match="is empty"):
        await graph.symbol(" ")


async def test_an_ambiguous_name_is_refused(graph: CodeGraph, root: Path) -> None:
    write(root, "a.py", "class A:\n    def run(self): ...\n")
    write(root, "b.py", "class B:\n    def run(self): ...\n")
    await graph.refresh()
    with pytest.raises(InvalidInput, match=r"Name one: a.py#A.run, b.py#B.run$"):
        await graph.symbol("run")


@pytest.mark.req("SYL-95")
@pytest.mark.req("SYL-26")
async def test_dependents_and_dependencies_honour_depth_and_kind(graph: CodeGraph) -> None:
    direct = await graph.dependents("shop/prices.py#add_tax", edge_type="calls")
    assert [(link.node.id, link.depth, link.line) for link in direct] == [("code:shop/basket.py#Basket.total", 1, 12)]
    further = await graph.dependents("shop/prices.py#add_tax", edge_type="calls", depth=3)
    assert {(link.node.name, link.depth) for link in further} == {("Basket.total", 1), ("pay", 2), ("main", 3)}
    assert {link.node.name: link.via for link in further}["pay"] == "code:shop/basket.py#Basket.total"
    used = await graph.dependencies("shop/basket.py#Basket.total", edge_type="calls")
    assert names(used) == {"add_tax", "round_cents"}
    assert "Container" in names(await graph.dependencies("shop/basket.py#Basket", edge_type="extends"))
    assert "shop/prices.py" in {link.node.path for link in await graph.dependencies("shop/basket.py")}
    for wrong in (0, 99):
        with pytest.raises(InvalidInput):
            await graph.callers("add_tax", depth=wrong)


@pytest.mark.req("SYL-26")
async def test_files_are_listed_by_pattern(graph: CodeGraph) -> None:
    assert [file.path for file in await graph.files("shop/*.py")] == [
        "shop/__init__.py",
        "shop/basket.py",
        "shop/checkout.py",
        "shop/prices.py",
    ]


async def test_locate_names_files_with_a_reason_and_a_line(graph: CodeGraph) -> None:
    found = await graph.locate("The tax is computed wrongly: the price should not be multiplied")
    assert found[0].path == "shop/prices.py"
    assert found[0].line >= 1
    assert found[0].why


async def test_contains_says_whether_there_is_such_a_name(graph: CodeGraph) -> None:
    assert graph.contains("add_tax")
    assert graph.contains("Basket.total")
    assert graph.contains("shop/basket.py")
    assert not graph.contains("authz")
    assert not graph.contains("")


@pytest.mark.req("BEY-06")
async def test_an_edit_is_seen_by_the_next_question_though_nobody_refreshed(graph: CodeGraph, root: Path) -> None:
    write(root, "shop/prices.py", "\n\n" + SAMPLE["shop/prices.py"])
    assert (await graph.symbol("shop/prices.py#add_tax")).line_start == 8
    os.unlink(root / "shop/prices.py")
    with pytest.raises(NotFound):
        await graph.symbol("shop/prices.py#add_tax")
    assert not any(hit.node.path == "shop/prices.py" for hit in await graph.search("add_tax"))


@pytest.mark.req("BEY-06")
async def test_a_file_that_stops_using_a_symbol_is_no_dependent_any_more(graph: CodeGraph, root: Path) -> None:
    write(root, "shop/basket.py", SAMPLE["shop/basket.py"].replace("rounded(add_tax(10.0))", "rounded(10.0)"))
    assert await graph.dependents("shop/prices.py#add_tax", edge_type="calls") == []
    assert names(await graph.dependents("shop/prices.py#round_cents", edge_type="calls")) == {"Basket.total"}


async def test_a_path_with_a_hash_and_an_accent_is_found(graph: CodeGraph, root: Path) -> None:
    write(root, "é #1.py", "def odd():\n    pass\n")
    await graph.refresh()
    node = await graph.symbol("é #1.py#odd")
    assert node.name == "odd"
    assert (await graph.symbol(node.id)).id == node.id


async def test_questions_are_answered_side_by_side(graph: CodeGraph) -> None:
    asked = [graph.symbol("add_tax"), graph.dependents("add_tax"), graph.search("basket"), graph.refresh()] * 10
    assert len(await asyncio.gather(*asked)) == 40


async def test_keys_in_a_file_are_not_shown(graph: CodeGraph, root: Path) -> None:
    key = "ghp_" + "a1B2" * 9
    write(root, "settings.py", f'GITHUB = "{key}"\n\n\ndef use():\n    return "{key}"\n')
    await graph.refresh()
    node = await graph.symbol("settings.py#GITHUB")
    shown = f"{node} {await graph.source('settings.py')} {await graph.search('GITHUB')}"
    assert key not in shown
    graph.store.close()
    assert not any(key.encode() in file.read_bytes() for file in (root / ".clew").iterdir())


GO = {
    "go.mod": "module shop\n",
    "render/render.go": (
        "package render\n\ntype Named interface {\n\tName() string\n}\n\n"
        "type Render interface {\n\tNamed\n\tRender(to Writer) error\n}\n\ntype Closer interface {\n\tClose()\n}\n"
    ),
    "render/json.go": (
        "package render\n\ntype JSON struct{}\n\nfunc (j JSON) Render(to Writer) error { return nil }\n\n"
        "type Half struct{}\n\nfunc (h *Half) Render(to Writer) error { return nil }\n"
    ),
    "render/names.go": 'package render\n\nfunc (j JSON) Name() string { return "json" }\n',
    "other/json.go": (
        'package other\n\ntype JSON struct{}\n\nfunc (j *JSON) Name() string { return "" }\n\n'
        "func (j *JSON) Close() {}\n"
    ),
}


@pytest.mark.req("SYL-72")
async def test_types_of_go_implement_an_interface_by_having_its_methods(tmp_path: Path) -> None:
    async with opened(make_repository(tmp_path / "go", GO)) as graph:
        await graph.refresh()
        implementing = await graph.dependents("render/render.go#Render", edge_type="implements")
        assert [(link.node.path, link.node.name, link.line, link.is_guess) for link in implementing] == [
            ("render/json.go", "JSON", 3, False)
        ]
        closing = await graph.dependents("render/render.go#Closer", edge_type="implements")
        assert [(link.node.path, link.node.name, link.is_guess) for link in closing] == [
            ("other/json.go", "JSON", True)
        ]
        assert await graph.dependents("render/json.go#JSON", edge_type="implements") == []
