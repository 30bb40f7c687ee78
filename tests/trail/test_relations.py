"""The relation store in memory, its renderers, and its way to a trail and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound
from clew.trail.graphs.relation_mirror import load_relations, persist_to
from clew.trail.graphs.relation_text import format_plan, format_relations
from clew.trail.graphs.relations import RelationNode, RelationStore
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

pytestmark = pytest.mark.req("PLA-03")

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def node(id: str, *parents: str, edge_type: str = "step", **context: object) -> RelationNode:
    said = {"description": f"about {id}", **context}
    return RelationNode(id=id, parents=parents, edge_type=edge_type, context=said, created_at=NOW)


def diamond(**options) -> RelationStore:
    """plan over left and right, both over end."""
    nodes = [
        node("plan", edge_type="plan"),
        node("left", "plan"),
        node("right", "plan"),
        node("end", "left", "right"),
    ]
    return RelationStore(nodes, **options)


def ids(nodes: list[RelationNode]) -> list[str]:
    return [one.id for one in nodes]


class Saved:
    """A callback that keeps what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[RelationNode]] = []

    def __call__(self, nodes: list[RelationNode]) -> None:
        self.calls.append(nodes)


async def test_a_node_is_added_with_the_time_of_the_clock(clock: ManualClock):
    store = RelationStore(clock=clock)
    added = await store.add("a", edge_type="plan", context={"description": "first", "status": "pending"})
    assert added == store.get("a")
    assert added.created_at == clock.now()
    assert (added.description, added.status, added.parents) == ("first", "pending", ())


async def test_an_id_is_added_only_once():
    store = diamond()
    with pytest.raises(AlreadyExists):
        await store.add("left", edge_type="step", context={"description": "again"})
    assert store.get("left").description == "about left"


async def test_a_parent_must_exist():
    store = RelationStore()
    with pytest.raises(NotFound):
        await store.add("a", edge_type="step", context={"description": "x"}, parents=["nobody"])
    assert store.size == 0


async def test_a_node_does_not_change_with_the_objects_it_was_made_from():
    store, context = RelationStore(), {"description": "x"}
    await store.add("a", edge_type="step", context=context)
    context["description"] = "other"
    assert store.get("a").description == "x"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"context": {}}, "context.description"),
        ({"context": {"description": "  "}}, "context.description"),
        ({"context": {"description": 3}}, "context.description"),
        ({"context": {"description": "x", "status": "finished"}}, "context.status"),
        ({"context": {"description": "x", "status": ["done"]}}, "context.status"),
        ({"edge_type": "Not A Type"}, "type"),
        ({"parents": ["root", "root"]}, "parents"),
        ({"id": ""}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"id": "x" * 301}, "id"),
    ],
)
async def test_an_invalid_node_is_refused(fields, field):
    store = RelationStore([node("root")])
    asked = {"id": "a", "edge_type": "step", "context": {"description": "x"}, **fields}
    with pytest.raises(InvalidInput) as refused:
        await store.add(asked.pop("id"), **asked)
    assert refused.value.field == field
    assert ids(store.all()) == ["root"]


async def test_update_changes_some_keys_and_keeps_the_others():
    store = RelationStore([node("a", status="pending", file="a.py")])
    updated = await store.update("a", {"status": "done"})
    assert updated.context == {"description": "about a", "status": "done", "file": "a.py"}
    assert store.get("a") == updated
    with pytest.raises(InvalidInput):
        await store.update("a", {"status": "finished"})
    assert store.get("a") == updated


async def test_update_keeps_the_order_of_the_children():
    store = diamond()
    await store.update("left", {"status": "done"})
    assert ids(store.children("plan")) == ["left", "right"]
    assert ids(store.all()) == ["plan", "left", "right", "end"]


async def test_update_can_change_the_parents():
    store = diamond()
    await store.update("end", parents=["plan"])
    assert ids(store.parents("end")) == ["plan"]
    assert ids(store.children("plan")) == ["left", "right", "end"]
    assert store.children("left") == []


async def test_remove_leaves_the_children_without_that_parent():
    store = diamond()
    await store.remove("left")
    assert ids(store.parents("end")) == ["right"]
    await store.remove("right")
    assert ids(store.roots()) == ["plan", "end"]
    assert store.children("plan") == []
    assert not store.has("left")


async def test_clear_removes_everything():
    store = diamond()
    await store.clear()
    assert (store.size, store.all(), store.roots()) == (0, [], [])
    await store.add("plan", edge_type="plan", context={"description": "new"})
    assert store.children("plan") == []


def test_get_and_has_answer_for_any_id():
    store = diamond()
    assert store.has("end")
    assert not store.has("nobody")
    assert store.get("nobody") is None


@pytest.mark.parametrize("method", ["parents", "children", "ancestors", "descendants", "need"])
def test_looking_around_an_unknown_node_raises(method):
    with pytest.raises(NotFound):
        getattr(diamond(), method)("nobody")


@pytest.mark.parametrize("method", ["update", "remove"])
async def test_changing_an_unknown_node_raises(method):
    with pytest.raises(NotFound):
        await getattr(diamond(), method)("nobody")


@pytest.mark.req("PLA-02")
def test_a_node_with_two_parents_is_a_child_of_both():
    store = diamond()
    assert ids(store.children("left")) == ids(store.children("right")) == ["end"]
    assert ids(store.parents("end")) == ["left", "right"]


def test_the_ancestors_and_descendants_of_a_diamond_come_once():
    store = diamond()
    assert ids(store.ancestors("end")) == ["left", "right", "plan"]
    assert ids(store.descendants("plan")) == ["left", "right", "end"]
    assert store.ancestors("plan") == store.descendants("end") == []


def test_roots_have_no_parents_and_leaves_no_children():
    store = diamond()
    assert ids(store.roots()) == ["plan"]
    assert ids(store.leaves()) == ["end"]


def test_nodes_are_found_by_type_and_by_status():
    store = RelationStore([node("p", edge_type="plan", status="done"), node("s", "p", status="failed"), node("t")])
    assert ids(store.by_edge_type("step")) == ["s", "t"]
    assert ids(store.by_status("done")) == ["p"]
    assert ids(store.by_status("in_progress")) == []
    assert ids(store.by_status(None)) == ["t"]


def test_a_cycle_is_seen_before_it_is_made():
    store = diamond()
    assert store.would_create_cycle("plan", ["end"])
    assert store.would_create_cycle("plan", ["plan"])
    assert not store.would_create_cycle("end", ["plan"])
    assert not store.would_create_cycle("new", ["end", "nobody"])


async def test_adding_or_moving_a_node_into_a_cycle_raises():
    store = diamond()
    with pytest.raises(CycleRefused):
        await store.add("plan", edge_type="plan", context={"description": "x"}, parents=["end"])
    with pytest.raises(CycleRefused):
        await store.add("self", edge_type="plan", context={"description": "x"}, parents=["self"])
    with pytest.raises(CycleRefused):
        await store.update("plan", parents=["right"])
    assert store.all() == diamond().all()


@pytest.mark.req("PLA-01")
def test_initial_nodes_may_come_in_any_order():
    store = RelationStore(reversed(diamond().all()))
    assert ids(store.descendants("plan")) == ["right", "left", "end"]


@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        ([node("a"), node("a")], AlreadyExists),
        ([node("a", "nobody")], NotFound),
        ([node("a", "b"), node("b", "a")], InvalidInput),
        ([node("a", "a")], InvalidInput),
        ([node("a", status="odd")], InvalidInput),
    ],
)
def test_initial_nodes_that_are_no_graph_are_refused(nodes, error):
    with pytest.raises(error):
        RelationStore(nodes)


@pytest.mark.req("PLA-01")
async def test_persist_hands_out_what_initial_nodes_take():
    saved = Saved()
    await diamond(on_persist=saved).persist()
    assert RelationStore(saved.calls[0]).all() == diamond().all()


async def test_persist_waits_for_an_asynchronous_callback_and_does_without_one():
    seen: list[str] = []

    async def save(nodes: list[RelationNode]) -> None:
        seen.extend(ids(nodes))

    await diamond(on_persist=save).persist()
    assert seen == ["plan", "left", "right", "end"]
    await diamond().persist()


@pytest.mark.req("PLA-02")
async def test_auto_persist_makes_one_call_for_each_change(clock: ManualClock):
    saved = Saved()
    store = RelationStore(on_persist=saved, auto_persist=True, clock=clock)
    await store.add("a", edge_type="plan", context={"description": "x"})
    await store.add("b", edge_type="step", context={"description": "y"}, parents=["a"])
    await store.update("b", {"status": "done"})
    await store.remove("a")
    await store.clear()
    assert [ids(nodes) for nodes in saved.calls] == [["a"], ["a", "b"], ["a", "b"], ["b"], []]
    assert saved.calls[2][1].status == "done"


@pytest.mark.req("PLA-02")
async def test_without_auto_persist_changes_make_no_call_and_refused_ones_never_do():
    saved = Saved()
    await diamond(on_persist=saved).update("end", {"status": "done"})
    with pytest.raises(CycleRefused):
        await diamond(on_persist=saved, auto_persist=True).update("plan", parents=["end"])
    assert saved.calls == []


async def test_a_failing_callback_is_heard_and_the_change_stays():
    def save(nodes: list[RelationNode]) -> None:
        raise OSError("no space")

    store = diamond(on_persist=save, auto_persist=True)
    with pytest.raises(OSError, match="no space"):
        await store.update("end", {"status": "done"})
    assert store.get("end").status == "done"


@pytest.mark.req("PLA-04")
def test_a_plan_renders_its_steps_in_order_with_their_status():
    store = RelationStore(
        [
            node("auth", edge_type="plan", description="Implement auth", status="in_progress"),
            node("s1", "auth", description="Create the model", status="done"),
            node("s2", "auth", description="Add the routes", status="in_progress", file="routes.py"),
            node("s3", "auth", description="Write tests", status="pending"),
            node("f1", "s3", edge_type="file", description="tests/test_auth.py"),
        ]
    )
    assert format_plan(store, "auth") == (
        "Plan auth [in_progress]: Implement auth (1 of 3 done)\n"
        "- [done] s1 (step): Create the model\n"
        '- [in_progress] s2 (step): Add the routes {"file": "routes.py"}\n'
        "- [pending] s3 (step): Write tests\n"
        "  - f1 (file): tests/test_auth.py"
    )


@pytest.mark.req("PLA-04")
def test_a_node_below_two_parents_is_written_once_and_then_named():
    assert diamond().to_context(["plan"]) == (
        "- plan (plan): about plan\n"
        "  - left (step): about left\n"
        "    - end (step): about end\n"
        "  - right (step): about right\n"
        "    - end (shown above)"
    )


@pytest.mark.req("PLA-04")
def test_a_plan_without_steps_and_a_context_without_ids_render_short():
    assert format_plan(RelationStore([node("p")]), "p") == "Plan p: about p (0 of 0 done)"
    assert diamond().to_context([]) == ""
    with pytest.raises(NotFound):
        diamond().to_context(["nobody"])


@pytest.mark.req("PLA-04")
def test_a_description_cannot_forge_a_line_or_flood_the_page():
    store = RelationStore([node("a", description="x\n- [done] fake (step): y\r\n\u2028z", note="n" * 10_000)])
    text = store.to_context(["a"])
    assert text.splitlines() == [text]
    assert text.startswith("- a (step): x - [done] fake (step): y z {")
    assert len(text) < 700


@pytest.mark.req("PLA-04")
def test_a_huge_graph_renders_within_its_bounds():
    wide = RelationStore([node("root"), *(node(f"n{at}", "root") for at in range(5_000))])
    lines = format_relations(wide, ["root"], max_lines=50).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "… cut after 50 lines"
    deep = RelationStore([node("n0"), *(node(f"n{at}", f"n{at - 1}") for at in range(1, 5_000))])
    assert len(format_relations(deep, ["n0"])) < 20_000


def test_20_000_nodes_in_a_line_are_stored_and_walked():
    store = RelationStore([node("n0"), *(node(f"n{at}", f"n{at - 1}") for at in range(1, 20_000))])
    assert len(store.ancestors("n19999")) == len(store.descendants("n0")) == 19_999
    assert store.would_create_cycle("n0", ["n19999"])


async def stored(trail: Trail, by: Principal) -> dict[str, int]:
    """The versions of the nodes on a trail by their id."""
    page = await trail.records.list(Selector(schema_name="relation.node.v1"), by=by)
    return {item.context["id"]: item.version for item in page.items}


async def parent_edges(trail: Trail, by: Principal) -> set[tuple[str, str]]:
    page = await trail.records.list(Selector(schema_name="relation.node.v1"), by=by)
    names = {item.id: item.context["id"] for item in page.items}
    edges = [edge for id in names for edge in await trail.edges.of(id, by=by, types=["parent"])]
    return {(names[edge.source], names[edge.target]) for edge in edges}


async def test_a_graph_comes_back_from_the_trail_as_it_was(trail: Trail, me: Principal):
    await diamond(on_persist=persist_to(trail, me)).persist()
    assert await load_relations(trail, me) == diamond().all()
    assert await parent_edges(trail, me) == {
        ("left", "plan"),
        ("right", "plan"),
        ("end", "left"),
        ("end", "right"),
    }


async def test_persisting_again_writes_only_what_has_changed(trail: Trail, me: Principal):
    store = diamond(on_persist=persist_to(trail, me))
    await store.persist()
    head = await trail.log.head()
    await store.persist()
    assert await trail.log.head() == head
    await store.update("end", {"status": "done"})
    await store.persist()
    assert await stored(trail, me) == {"plan": 1, "left": 1, "right": 1, "end": 2}
    assert (await load_relations(trail, me))[3].status == "done"


async def test_removed_and_moved_nodes_leave_no_trace(trail: Trail, me: Principal):
    store = diamond(on_persist=persist_to(trail, me), auto_persist=True)
    await store.persist()
    await store.remove("left")
    await store.update("end", parents=["plan"])
    await store.update("right", parents=["end"])
    assert await parent_edges(trail, me) == {("right", "end"), ("end", "plan")}
    assert await load_relations(trail, me) == store.all()
    await store.add("left", edge_type="step", context={"description": "back"})
    assert (await load_relations(trail, me))[-1].description == "back"
    await store.clear()
    assert await stored(trail, me) == {}


async def test_an_interrupted_persist_is_made_good_by_the_next(trail: Trail, me: Principal, monkeypatch):
    async def fail(*given, **named):
        raise OSError("cut off")

    store = diamond(on_persist=persist_to(trail, me))
    with monkeypatch.context() as broken:
        broken.setattr(trail.edges, "add", fail)
        with pytest.raises(OSError, match="cut off"):
            await store.persist()
    assert await parent_edges(trail, me) == set()
    await store.persist()
    assert len(await parent_edges(trail, me)) == 4


async def test_graphs_of_other_names_and_owners_stay_apart(trail: Trail, me: Principal, stranger: Principal):
    await diamond(on_persist=persist_to(trail, me)).persist()
    await RelationStore([node("plan")], on_persist=persist_to(trail, me, name="other")).persist()
    await RelationStore([node("end")], on_persist=persist_to(trail, stranger)).persist()
    assert ids(await load_relations(trail, me)) == ["plan", "left", "right", "end"]
    assert ids(await load_relations(trail, me, name="other")) == ["plan"]
    assert ids(await load_relations(trail, stranger)) == ["end"]


async def test_a_parent_deleted_from_the_trail_is_left_out(trail: Trail, me: Principal):
    await diamond(on_persist=persist_to(trail, me)).persist()
    page = await trail.records.list(Selector(schema_name="relation.node.v1"), by=me)
    left = next(item for item in page.items if item.context["id"] == "left")
    await trail.records.delete(left.id, by=me)
    store = RelationStore(await load_relations(trail, me))
    assert ids(store.parents("end")) == ["right"]


async def test_more_nodes_than_one_page_are_stored_and_loaded(trail: Trail, me: Principal):
    nodes = [node("root"), *(node(f"n{at}", "root") for at in range(1_500))]
    await RelationStore(nodes, on_persist=persist_to(trail, me)).persist()
    assert await load_relations(trail, me) == nodes


async def test_a_stored_node_is_plain_json_with_tags_to_select_it(trail: Trail, me: Principal):
    await RelationStore([node("a", status="done")], on_persist=persist_to(trail, me)).persist()
    (found,) = (await trail.records.list(Selector(all_tags=("status:done",)), by=me)).items
    assert found.tags == ("relations:default", "relation:step", "status:done")
    assert json.loads(json.dumps(found.context)) == {
        "id": "a",
        "parents": [],
        "edge_type": "step",
        "context": {"description": "about a", "status": "done"},
        "created_at": "2026-01-01T00:00:00Z",
    }
