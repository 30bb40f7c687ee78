"""`ask`: entry points always, hidden routes never, close resources, and no search for a repeated question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.access import ROLES, Principal
from clew.catalog.domain import Domain, SearchConfig, Segment
from clew.catalog.operations.answers import CatalogAnswer
from clew.catalog.resource import Pipeline, Resource, ResourceNode
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, NotFound, TooLarge
from clew.llm.tokens import count_tokens
from clew.tools import tool
from tests.catalog.sample_domains import MemorySource
from tests.tools.fraud import (
    ANALYST,
    SUPPORT,
    WAREHOUSE,
    ask,
    catalog_at,
    get,
    refresh,
    resources_of,
    routes_of,
    some_tool,
)

NONSENSE = "zzqx blorf wibble"


def document(path: str, description: str, content: str = "text", name: str = "") -> Resource:
    async def fetch(client: Any) -> str:
        return content

    return Resource(path=path, name=name or path, description=description, fetch=fetch)


def docs(*resources: Resource, **more: Any) -> Domain:
    return Domain(name="docs", description="Handbook", resources=resources, **more)


@pytest.mark.req("ERN-09")
@pytest.mark.parametrize("embedder", ["", "wordllama"])
async def test_a_nonsense_question_lists_all_entry_points_and_no_hidden_route(tmp_path: Path, embedder: str) -> None:
    domains = [
        Domain(
            name=f"area-{number}",
            description=f"Area number {number}",
            tools=[*(some_tool(f"open-{at}") for at in range(7)), some_tool("below", searchable=False)],
        )
        for number in range(6)
    ]
    async with catalog_at(tmp_path, *domains, embedder=embedder) as (catalog, _):
        answer = await ask(catalog, NONSENSE)
    assert sorted(routes_of(answer)) == sorted(f"area-{n}://tools/open-{at}" for n in range(6) for at in range(7))
    assert all(route in answer.markdown for route in routes_of(answer))
    assert "hidden" not in answer.markdown
    assert not answer.is_relevant
    assert "Nothing here is close" in answer.markdown


@pytest.mark.req("ERN-09")
async def test_calling_a_hidden_route_by_its_name_does_not_show_it(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        answer = await ask(catalog, "user-investigation warehouse://tools/hidden/user-investigation")
    assert routes_of(answer) == [ANALYST]
    assert "hidden/" not in answer.markdown


@pytest.mark.req("ERN-03")
@pytest.mark.req("ERN-08")
async def test_routes_precede_resources_and_no_domain_gives_more_than_it_was_asked_for(tmp_path: Path) -> None:
    pages = [document(f"fraud/{at}", f"Fraud rules, part {at}", f"SECRET-BODY-{at} fraud rules") for at in range(9)]
    async with catalog_at(tmp_path, WAREHOUSE, docs(*pages, tools=[some_tool("search-rules")])) as (catalog, _):
        answer = await ask(catalog, "fraud rules", per_domain=3)
        one = await ask(catalog, "fraud rules", domain="docs", per_domain=9)
        whole = await get(catalog, "docs://resources/fraud/4")
    handbook = next(each for each in answer.sections if each.domain == "docs")
    assert len(handbook.resources) == 3
    text = answer.markdown
    assert text.index("docs://tools/search-rules") < text.index("docs://resources/fraud/")
    assert [each.domain for each in one.sections] == ["docs"]
    assert len(resources_of(one)) == 9
    assert "Fraud rules, part" in text
    assert "SECRET-BODY" not in text + one.markdown, "discovery shows route and description only"
    assert whole.results[0].data is not None
    assert "SECRET-BODY-4" in whole.results[0].data.content


@pytest.mark.req("ERN-08")
async def test_an_unknown_domain_is_named_with_its_nearest(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        with pytest.raises(NotFound, match="Did you mean warehouse"):
            await ask(catalog, "orders", domain="warehose")


@pytest.mark.req("ERN-06")
@pytest.mark.parametrize("embedder", ["", "wordllama"])
async def test_a_hit_in_the_description_outranks_the_same_hit_in_the_content(tmp_path: Path, embedder: str) -> None:
    told, plain = "settlement delay rules", "a page about nothing much"
    config = SearchConfig(query_by=("description", "name", "content"), weights=(4, 2, 1))
    domain = docs(document("body", plain, told, "One"), document("head", told, plain, "Two"), search=config)
    async with catalog_at(tmp_path, domain, embedder=embedder) as (catalog, _):
        answer = await ask(catalog, told)
    assert resources_of(answer)[0] == "docs://resources/head"


@pytest.mark.req("ERN-06")
@pytest.mark.parametrize("embedder", ["", "wordllama"])
async def test_only_the_fields_that_query_by_names_are_searched(tmp_path: Path, embedder: str) -> None:
    told, plain = "settlement delay rules", "a page about nothing much"
    pages = (document("body", plain, told, "One"), document("head", told, plain, "Two"))
    named = document("name", plain, plain, told)
    for field, route in (("description", "head"), ("content", "body"), ("name", "name")):
        domain = docs(*pages, named, search=SearchConfig(query_by=(field,)))  # type: ignore[arg-type]  # a field's name
        (tmp_path / field).mkdir()
        async with catalog_at(tmp_path / field, domain, embedder=embedder) as (catalog, _):
            answer = await ask(catalog, told)
        assert resources_of(answer) == [f"docs://resources/{route}"]


@pytest.mark.req("ERN-08")
async def test_a_question_shows_up_to_ten_resources_of_each_domain_unless_it_says_otherwise(tmp_path: Path) -> None:
    pages = [document(f"fraud/{at}", f"Fraud rules, part {at}") for at in range(14)]
    async with catalog_at(tmp_path, docs(*pages)) as (catalog, _):
        assert len(resources_of(await ask(catalog, "fraud rules", budget=5_000))) == 10


@pytest.mark.req("ERN-09")
async def test_entry_points_that_had_no_room_are_counted_and_the_answer_says_how_to_see_them(tmp_path: Path) -> None:
    tools = [some_tool(f"a-tool-with-a-rather-long-name-number-{at}") for at in range(200)]
    domain = Domain(name="area", description="An area", tools=tools)
    async with catalog_at(tmp_path, domain) as (catalog, _):
        for question in (NONSENSE, "does one thing well"):
            answer = await ask(catalog, question, domain="area", budget=1_000)
            left = 200 - len(routes_of(answer))
            assert left > 0
            assert f"{left} entry points of area" in answer.cut
            assert "Ask with a `domain`, in words closer to what you need" in answer.markdown
        last = await ask(catalog, "area://tools/a-tool-with-a-rather-long-name-number-199", budget=1_000)
        assert routes_of(last)[0].endswith("-199")


@pytest.mark.req("ERN-06")
async def test_weights_turn_the_order_around(tmp_path: Path) -> None:
    told, plain = "settlement delay rules", "a page about nothing much"
    config = SearchConfig(query_by=("content", "name", "description"), weights=(4, 2, 1))
    domain = docs(document("head", told, plain, "Two"), document("body", plain, told, "One"), search=config)
    async with catalog_at(tmp_path, domain) as (catalog, _):
        answer = await ask(catalog, told)
    assert resources_of(answer)[0] == "docs://resources/body"


class Tables:
    """A format that makes a table with columns of each document."""

    name = "tables"

    def can_handle(self, content_type: str) -> bool:
        return True

    def parse(self, content: Any, base_path: str) -> list[ResourceNode]:
        def node(path: str, kind: str) -> ResourceNode:
            return ResourceNode(
                id=path, name=path, path=path, content=f"{kind} of orders", description=f"orders {kind}", type=kind
            )

        return [node(content.name, "table"), *(node(f"{content.name}/c{at}", "column") for at in range(15))]


@pytest.mark.req("ERN-06")
async def test_results_arrive_segment_by_segment_each_within_its_limit(tmp_path: Path) -> None:
    source = MemorySource({f"t{at}": f"orders {at}" for at in range(8)})
    config = SearchConfig(
        segments=[
            Segment(name="tables", types=["table"], limit=5, priority=2),
            Segment(name="columns", types=["column"], limit=10, priority=1),
        ]
    )
    pipeline = Pipeline(source=source, formats=(Tables(),))
    schema = Domain(name="schema", description="Tables", extractors=[pipeline], search=config)
    async with catalog_at(tmp_path, schema) as (catalog, _):
        answer = await ask(catalog, "orders", per_domain=50)
        few = await ask(catalog, "orders", per_domain=12)
    kinds = ["column" if "/c" in route else "table" for route in resources_of(answer)]
    assert kinds == ["column"] * 10 + ["table"] * 5
    assert len(resources_of(few)) == 12


@pytest.mark.req("ERN-10")
async def test_the_markdown_of_an_answer(tmp_path: Path) -> None:
    @tool
    async def query(sql: str, limit: int = 10, tags: list[str] | None = None) -> str:
        """Run a query over orders."""
        return sql

    domain = Domain(name="warehouse", description="Data warehouse: orders, users", tools=[query])
    async with catalog_at(tmp_path, domain, docs(document("orders", "How orders are counted"))) as (catalog, _):
        answer = await ask(catalog, "orders")
    assert answer.markdown == (
        "## docs\n"
        "*Handbook*\n"
        "\n"
        "- **`docs://resources/orders`**: How orders are counted\n"
        "\n"
        "## warehouse\n"
        "*Data warehouse: orders, users*\n"
        "\n"
        "- **`warehouse://tools/query`**: Run a query over orders.\n"
        "  *Parameters: sql (string), limit (integer), tags (array); needed: sql*\n"
        "\n"
        f"*Handle: `{answer.handle}`. Pass it to `get` and to further calls of `ask`.*"
    )


@pytest.mark.req("ERN-10")
async def test_the_parameters_of_a_tool_are_named_once_a_session(tmp_path: Path) -> None:
    @tool
    async def query(sql: str) -> str:
        """Run a query over orders."""
        return sql

    domain = Domain(name="warehouse", description="Data warehouse", tools=[query])
    async with catalog_at(tmp_path, domain) as (catalog, _):
        first = await ask(catalog, "orders")
        again = await ask(catalog, "a query over all orders", handle=first.handle)
        named = await ask(catalog, "how is warehouse://tools/query called", handle=first.handle)
        other = await ask(catalog, "a query over all orders")
    shown = ["*Parameters: sql (string)*" in each.markdown for each in (first, again, named, other)]
    assert shown == [True, False, True, True]
    assert "- **`warehouse://tools/query`**: Run a query over orders." in again.markdown


@pytest.mark.req("ERN-11")
async def test_the_same_question_is_answered_without_a_search_and_with_a_hint(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, docs(document("orders", "How orders are counted"))) as (catalog, _):
        first = await ask(catalog, "How are orders counted?")
        searches = catalog.discovery.searches
        again = await ask(catalog, "  how are ORDERS counted ", handle=first.handle)
        assert catalog.discovery.searches == searches
        assert (first.is_repeated, again.is_repeated) == (False, True)
        assert again.sections == first.sections
        assert "instead of asking" in again.hint
        assert again.markdown.startswith(again.hint)
        other = await ask(catalog, "How are users counted?", handle=first.handle)
        assert not other.is_repeated
        assert catalog.discovery.searches > searches


@pytest.mark.req("ERN-11")
async def test_a_session_remembers_without_a_handle_and_nobody_else_is_served_from_it(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, shared=True) as (catalog, _):
        mine = Principal(owner_id="acme", agent_id="ann", session="s1")
        assert not (await ask(catalog, "orders", by=mine)).is_repeated
        assert (await ask(catalog, "orders", by=mine)).is_repeated
        for other in (
            Principal(owner_id="acme", agent_id="bob", session="s1"),
            Principal(owner_id="acme", agent_id="ann", session="s2"),
            Principal(owner_id="other", agent_id="ann", session="s1"),
            Principal(owner_id="acme", agent_id="ann", session="s1", scopes=frozenset({"vip"})),
        ):
            assert not (await ask(catalog, "orders", by=other)).is_repeated


@pytest.mark.req("RCR-43")
async def test_fourteen_tools_take_no_more_than_about_two_thousand_tokens(tmp_path: Path) -> None:
    tools = [
        some_tool(f"tool-{at}", f"Work on part {at} of the orders, and say what was found. " * 4) for at in range(14)
    ]
    async with catalog_at(tmp_path, Domain(name="work", description="Orders", tools=tools)) as (catalog, _):
        answer = await ask(catalog, "work on the orders")

    assert sum(f"tool-{at}`" in answer.markdown for at in range(14)) == 14
    assert count_tokens(answer.markdown) <= 2_100


@pytest.mark.req("ERN-11")
@pytest.mark.req("RCR-43")
async def test_a_new_tool_is_in_the_very_next_answer(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        first = await ask(catalog, "complaints of customers")
        await catalog.add(SUPPORT)
        again = await ask(catalog, "complaints of customers", handle=first.handle)
        assert not again.is_repeated
        assert routes_of(again)[0] == "support://tools/tickets"
        await catalog.remove("support")
        last = await ask(catalog, "complaints of customers", handle=first.handle)
        assert not last.is_repeated
        assert routes_of(last) == [ANALYST]


@pytest.mark.req("ERN-11")
async def test_a_write_or_delete_of_another_process_invalidates_the_cached_answer(tmp_path: Path) -> None:
    texts = {"returns": "how goods come back"}
    source = MemorySource(texts, is_local=True)

    def domain() -> Domain:
        return Domain(name="docs", description="Handbook", extractors=[Pipeline(source=source, formats=(Plain(),))])

    async with catalog_at(tmp_path, domain()) as (here, _), catalog_at(tmp_path, domain()) as (there, elsewhere):
        first = await ask(here, "refunds")
        assert (await ask(here, "refunds", handle=first.handle)).is_repeated
        texts["refunds"] = "how refunds are paid"
        await refresh(there, elsewhere)
        second = await ask(here, "refunds", handle=first.handle)
        assert not second.is_repeated
        assert resources_of(second) == ["docs://resources/refunds"]
        assert (await ask(here, "refunds", handle=first.handle)).is_repeated
        del texts["refunds"]
        await refresh(there, elsewhere)
        third = await ask(here, "refunds", handle=first.handle)
        assert not third.is_repeated
        assert "docs://resources/refunds" not in resources_of(third)


class Plain:
    name = "plain"

    def can_handle(self, content_type: str) -> bool:
        return True

    def parse(self, content: Any, base_path: str) -> list[ResourceNode]:
        return [
            ResourceNode(
                id=content.id, name=content.id, path=content.id, content=content.text, description=content.text
            )
        ]


@pytest.mark.req("ERN-09")
@pytest.mark.req("ERN-21")
async def test_each_caller_sees_the_entry_points_and_resources_whose_scopes_it_holds(tmp_path: Path) -> None:
    secret = Resource(path="fraud/plan", name="Plan", description="fraud plan", fetch=document("x", "x").fetch)
    pipeline = Pipeline(
        source=MemorySource({"fraud-admin": "fraud plan for admins"}), formats=(Plain(),), scopes=frozenset({"admin"})
    )
    domain = Domain(
        name="inner",
        description="Internal",
        scopes=frozenset({"internal"}),
        tools=[some_tool("fraud-care", "fraud care", scopes=["support"]), some_tool("fraud-view", "fraud view")],
        resources=[secret],
        extractors=[pipeline],
    )
    async with catalog_at(tmp_path, domain, WAREHOUSE) as (catalog, _):
        shown = {}
        for scopes in [(), ("support",), ("internal",), ("internal", "support"), ("internal", "admin")]:
            by = Principal(owner_id="acme", agent_id="ann", scopes=frozenset(scopes))
            answer = await ask(catalog, "fraud", by=by)
            shown[scopes] = {route for route in (*routes_of(answer), *resources_of(answer)) if "inner" in route}
            assert ("inner" in answer.markdown) == ("internal" in scopes)
    view, care = "inner://tools/fraud-view", "inner://tools/fraud-care"
    plan, admin = "inner://resources/fraud/plan", "inner://resources/fraud-admin"
    assert shown == {
        (): set(),
        ("support",): set(),
        ("internal",): {view, plan},
        ("internal", "support"): {view, care, plan},
        ("internal", "admin"): {view, plan, admin},
    }


async def test_callers_of_another_owner_see_nothing_unless_the_catalog_is_shared(
    tmp_path: Path, stranger: Principal
) -> None:
    async with catalog_at(tmp_path / "own", WAREHOUSE, docs(document("orders", "orders"))) as (catalog, _):
        answer = await ask(catalog, "orders", by=stranger)
        assert list(answer.sections) == []
        assert "warehouse" not in answer.markdown
        assert "nothing here for you" in answer.hint
        with pytest.raises(NotFound) as unknown:
            await ask(catalog, "orders", by=stranger, domain="warehouse")
        assert "acme" not in str(unknown.value)
        assert catalog.domains(by=stranger) == []
    async with catalog_at(tmp_path / "shared", WAREHOUSE, docs(document("orders", "orders")), shared=True) as (
        open_,
        _,
    ):
        seen = await ask(open_, "orders", by=stranger)
        assert routes_of(seen) == [ANALYST]
        assert resources_of(seen) == ["docs://resources/orders"]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in ("own", "shared"):
        (tmp_path / name).mkdir(exist_ok=True)


async def test_only_who_may_read_may_ask(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        for role in sorted(ROLES):
            by = Principal(owner_id="acme", agent_id="ann", roles=frozenset({role}))
            if role == "emitter":
                with pytest.raises(AccessDenied):
                    await ask(catalog, "orders", by=by)
                with pytest.raises(AccessDenied):
                    await get(catalog, ANALYST, by=by)
            else:
                assert routes_of(await ask(catalog, "orders", by=by)) == [ANALYST]
                assert (await get(catalog, ANALYST, by=by)).summary.success == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": " \n"},
        {"query": "half \ud800 of a character"},
        {"per_domain": 0},
        {"per_domain": 51},
        {"budget": 10},
        {"budget": 100_001},
    ],
)
async def test_a_question_that_asks_for_nothing_or_too_much_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        with pytest.raises(InvalidInput):
            await ask(catalog, **{"query": "orders", **wrong})
        with pytest.raises(TooLarge):
            await ask(catalog, "x" * 4_001)


@pytest.mark.parametrize("query", ["\x00", "🦜" * 500, "ключ 鍵 مفتاح", "' OR 1=1 --", 'a" NEAR (', "*" * 300])
async def test_odd_questions_are_answered(tmp_path: Path, query: str) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, docs(document("orders", "orders"))) as (catalog, _):
        answer = await ask(catalog, query)
        assert ANALYST in routes_of(answer)


@pytest.mark.req("BEY-02")
async def test_a_hundred_repeats_are_identical(tmp_path: Path) -> None:
    pages = [document(f"page-{at}", "How orders are counted and paid") for at in range(40)]
    tools = [some_tool(f"orders-{at}", "Looks at orders and payments.") for at in range(40)]
    domain = Domain(name="shop", description="Shop", tools=tools)
    async with catalog_at(tmp_path, domain, docs(*pages), WAREHOUSE, embedder="wordllama") as (catalog, _):
        seen = {stripped(await ask(catalog, "how are orders paid?")) for _ in range(100)}
    assert len(seen) == 1
    async with catalog_at(tmp_path, domain, docs(*pages), WAREHOUSE, embedder="wordllama") as (catalog, _):
        assert stripped(await ask(catalog, "how are orders paid?")) in seen, "also after a restart"


def stripped(answer: CatalogAnswer) -> str:
    return answer.markdown.replace(answer.handle, "")


@pytest.mark.req("PLA-07")
async def test_words_alone_and_meaning_alone_both_find_the_tool(tmp_path: Path) -> None:
    tools = [
        some_tool("qx-17-export", "Exports the QX-17 ledger."),
        some_tool("weather", "Tells temperature, rain and wind of a city."),
        some_tool("mail", "Sends letters to colleagues."),
        some_tool("tax", "Computes value added tax of invoices."),
        some_tool("travel", "Books flights and hotels."),
        some_tool("translate", "Turns text into another language."),
    ]
    domain = Domain(name="office", description="Office", tools=tools)
    async with catalog_at(tmp_path, domain, embedder="wordllama") as (catalog, _):
        keyword = await ask(catalog, "QX-17")
        paraphrase = await ask(catalog, "will I need an umbrella, what is the forecast")
    assert routes_of(keyword)[0] == "office://tools/qx-17-export"
    assert keyword.is_relevant
    assert routes_of(paraphrase)[0] == "office://tools/weather"


@pytest.mark.req("BEY-02")
async def test_every_exact_name_among_three_hundred_tools_comes_first(tmp_path: Path) -> None:
    verbs = ["create", "list", "delete", "update", "get", "find", "export", "import", "merge", "close"]
    nouns = ["order", "user", "invoice", "issue", "branch", "ticket", "page", "report", "device", "payment"]
    domains = [
        Domain(
            name=f"system-{letter}",
            description=f"System {letter}",
            tools=[some_tool(f"{verb}-{noun}-{letter}", f"Can {verb} a {noun}.") for verb in verbs for noun in nouns],
        )
        for letter in "abc"
    ]
    async with catalog_at(tmp_path, *domains, embedder="wordllama") as (catalog, _):
        for domain in domains:
            for each in domain.tools[::9]:
                answer = await ask(catalog, each.name)
                assert routes_of(answer)[0] == f"{domain.name}://tools/{each.name}"
        assert routes_of(await ask(catalog, "please run merge-branch-b for me"))[0] == "system-b://tools/merge-branch-b"


async def test_an_answer_says_what_is_not_there_yet(tmp_path: Path, clock: ManualClock) -> None:
    async with catalog_at(tmp_path, clock=clock) as (catalog, _):
        answer = await ask(catalog, "orders")
        assert "nothing here for you yet" in answer.markdown
        assert answer.handle in answer.markdown
