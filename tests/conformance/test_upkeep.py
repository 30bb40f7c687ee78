"""`Upkeep`: expiry, counts, checks, and the change to another embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import EmbedderMismatch, NotFound
from clew.llm.wordllama import WordLlamaEmbedder
from clew.trail.model.breadcrumb import Change, Ttl
from clew.trail.model.edge import Edge
from clew.trail.model.event import Consumer, Webhook
from clew.trail.model.prepare import embedding_text
from clew.trail.model.readable import ReadableText
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Purged, Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import (
    LetterEmbedder,
    found_titles,
    is_there,
    lasting,
    list_titles,
    make,
    make_all,
    read_log,
    unpack,
)

# -- expiry -----------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-12")
@pytest.mark.req("O11")
async def test_a_purge_removes_exactly_what_has_expired_of_every_owner(
    trail: Trail, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    await make(trail, me, "never")
    await make(trail, me, "soon", ttl=lasting(clock, seconds=1))
    await make(trail, me, "late", ttl=lasting(clock, days=1))
    used = await make(trail, me, "used", ttl=Ttl(kind="usage", max_reads=1))
    await make(trail, me, "unused", ttl=Ttl(kind="usage", max_reads=1))
    await make(trail, stranger, "theirs", ttl=lasting(clock, seconds=1))
    await trail.records.read(used.id, by=me)
    clock.advance(seconds=1)
    assert await trail.upkeep.purge() == Purged(breadcrumbs=3, agents=0, subscriptions=0)
    assert await list_titles(trail, me) == ["never", "late", "unused"]
    assert [event.type for event in await read_log(trail, me)][-2:] == ["breadcrumb.deleted"] * 2
    assert [event.type for event in await read_log(trail, stranger)] == ["breadcrumb.created", "breadcrumb.deleted"]
    assert await trail.upkeep.purge() == Purged(breadcrumbs=0, agents=0, subscriptions=0)


async def test_many_expired_breadcrumbs_are_purged_while_others_write(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await make_all(trail, me, *(f"old {number}" for number in range(1_200)), ttl=lasting(clock, seconds=1))
    clock.advance(seconds=1)
    purged, *_ = await asyncio.gather(trail.upkeep.purge(), *(make(trail, me, "new") for _ in range(20)))
    assert purged.breadcrumbs == 1_200
    assert await list_titles(trail, me) == ["new"] * 20


@pytest.mark.req("RCR-12")
async def test_idle_agents_go_with_their_subscriptions_and_nothing_else(
    trail: Trail, me: Principal, stranger: Principal, clock: ManualClock
) -> None:
    for by in (me, stranger):
        await trail.deliveries.register(Consumer(name="idle", agent_id="idle"), by=by)
    await trail.deliveries.register(Consumer(name="nobody's"), by=me)
    clock.advance(days=6)
    await trail.deliveries.register(Consumer(name="busy", agent_id="busy"), by=me)
    clock.advance(days=2)
    assert await trail.upkeep.purge() == Purged(breadcrumbs=0, agents=2, subscriptions=2)
    assert [state.consumer.name for state in await trail.deliveries.consumers(by=me)] == ["busy", "nobody's"]
    assert await trail.upkeep.purge(idle_after=timedelta(days=1)) == Purged(breadcrumbs=0, agents=1, subscriptions=1)


@pytest.mark.req("RCR-12")
async def test_an_agent_that_claims_its_events_is_not_idle(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await trail.deliveries.register(Consumer(name="c", agent_id="busy"), by=me)
    for day in range(9):
        clock.advance(days=1)
        await make(trail, me, f"Day {day}")
        for held in await trail.deliveries.claim("c", by=me, worker="w"):
            await trail.deliveries.finish(held, [], by=me)
    assert await trail.upkeep.purge() == Purged(breadcrumbs=0, agents=0, subscriptions=0)


@pytest.mark.req("RCR-12")
async def test_a_consumer_that_went_with_its_idle_agent_is_gone_for_its_workers(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await trail.deliveries.register(Consumer(name="c", agent_id="idle"), by=me)
    await make(trail, me, "a")
    (held,) = await trail.deliveries.claim("c", by=me, worker="w")
    clock.advance(days=8)
    assert (await trail.upkeep.purge()).subscriptions == 1
    with pytest.raises(NotFound):
        await trail.deliveries.finish(held, [], by=me)
    with pytest.raises(NotFound):
        await trail.deliveries.claim("c", by=me, worker="w")


# -- counts -----------------------------------------------------------------------------------------------


async def test_stats_count_what_the_caller_may_see(trail: Trail, stranger: Principal, clock: ManualClock) -> None:
    me, wide = Principal(owner_id="acme"), Principal(owner_id="acme", scopes=frozenset({"hr"}))
    a, b = await make_all(trail, me, "a", "b", schema_name="note.v1")
    (c,) = await make_all(trail, wide, "c", schema_name="pay.v1", scopes=["hr"])
    await make(trail, me, "d")
    await trail.edges.add([Edge(source=a, target=b, type="calls"), Edge(source=a, target=c, type="calls")], by=wide)
    await trail.records.update(c, Change(title="C"), expect=1, by=wide)
    mine, all_, theirs = [await trail.upkeep.stats(by=by) for by in (me, wide, stranger)]
    assert (mine.breadcrumbs, mine.events, mine.edges, mine.schemas) == (3, 3, 1, {"note.v1": 2, "": 1})
    assert (all_.breadcrumbs, all_.events, all_.edges) == (4, 5, 2)
    assert all_.schemas == {"note.v1": 2, "pay.v1": 1, "": 1}
    assert (theirs.breadcrumbs, theirs.events, theirs.edges, theirs.schemas) == (0, 0, 0, {})


async def test_stats_count_no_edge_of_what_has_expired(trail: Trail, me: Principal, clock: ManualClock) -> None:
    a, b = await make(trail, me, "a"), await make(trail, me, "b", ttl=lasting(clock, seconds=1))
    await trail.edges.add([Edge(source=a.id, target=b.id, type="calls")], by=me)
    clock.advance(seconds=1)
    stats = await trail.upkeep.stats(by=me)
    assert (stats.breadcrumbs, stats.edges) == (1, 0)


WEBHOOK = Webhook(url="https://example.org/hook", secret="key")


async def test_for_each_owner_with_webhooks_there_is_one_who_may_work_for_all_of_them(trail: Trail) -> None:
    assert await trail.upkeep.webhook_senders() == []
    for name, scopes in (("one", "a"), ("two", "bc"), ("three", "")):
        by = Principal(owner_id="other", scopes=frozenset(scopes))
        await trail.deliveries.register(Consumer(name=name, webhook=WEBHOOK), by=by)
    await trail.deliveries.register(Consumer(name="plain"), by=Principal(owner_id="acme", scopes=frozenset("d")))
    (sender,) = await trail.upkeep.webhook_senders()
    assert (sender.owner_id, sender.scopes) == ("other", frozenset("abc"))
    await make(trail, Principal(owner_id="other"), "Sent")
    for name in ("one", "two", "three"):
        assert len(await trail.deliveries.claim(name, by=sender, worker="w")) == 1
    await trail.deliveries.register(Consumer(name="hook", webhook=WEBHOOK), by=Principal(owner_id="acme"))
    assert [each.owner_id for each in await trail.upkeep.webhook_senders()] == ["acme", "other"]


async def test_a_consumer_with_a_nul_in_its_selector_does_not_stop_the_webhooks_of_others(trail: Trail) -> None:
    odd = Selector(context_match=(ContextMatch(path="name", value="a\0b"),))
    await trail.deliveries.register(Consumer(name="odd", selector=odd), by=Principal(owner_id="other"))
    await trail.deliveries.register(Consumer(name="hook", webhook=WEBHOOK), by=Principal(owner_id="acme"))
    assert [each.owner_id for each in await trail.upkeep.webhook_senders()] == ["acme"]


async def test_a_scope_may_have_a_comma_in_its_name(trail: Trail) -> None:
    by = Principal(owner_id="acme", scopes=frozenset({"a,b"}))
    await trail.deliveries.register(Consumer(name="hook", webhook=WEBHOOK), by=by)
    (sender,) = await trail.upkeep.webhook_senders()
    assert sender.scopes == {"a,b"}


async def test_a_healthy_trail_has_nothing_to_report(trail: Trail, me: Principal, clock: ManualClock) -> None:
    assert await trail.upkeep.check() == []
    a, b = await make_all(trail, me, "a", "b", tags=["x"], embedding=[1.0], ttl=lasting(clock, days=1))
    await trail.edges.add([Edge(source=a, target=b, type="calls")], by=me)
    await trail.records.update(a, Change(title="A"), expect=1, by=me)
    await trail.records.delete(b, by=me)
    assert await trail.upkeep.check() == []


# -- changing the embedder --------------------------------------------------------------------------------


async def reembed(trail: Trail, batch: int = 500) -> list[tuple[int, int]]:
    return await finish(trail.upkeep.reembed(batch=batch))


async def finish(change: AsyncIterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """The steps of a complete change."""
    steps = []
    async for step in change:
        steps.append(step)
        assert len(steps) < 100, "the change does not end"
    return steps


async def vector_of(trail: Trail, by: Principal, id: str) -> tuple[float, ...] | None:
    return (await trail.records.get(id, by=by, vector=True)).embedding


def letters_of(title: str, content: str = "") -> tuple[float, ...]:
    return unpack(LetterEmbedder.pack(embedding_text(ReadableText(title, "", content))))


async def test_another_embedder_is_refused_until_the_trail_has_changed_over(
    meaning: Trail, open_again: OpenAgain, me: Principal
) -> None:
    made = await make(meaning, me, "Unwind the thread")
    await meaning.close()
    other = await open_again(LetterEmbedder())
    with pytest.raises(EmbedderMismatch):
        await make(other, me, "Another")
    with pytest.raises(EmbedderMismatch):
        await other.records.update(made.id, Change(title="Another"), expect=1, by=me)
    with pytest.raises(EmbedderMismatch):
        await found_titles(other, me, "thread")
    assert await found_titles(other, me, "thread", ranking="text") == ["Unwind the thread"]
    assert await list_titles(other, me) == ["Unwind the thread"]
    assert await other.log.head() == 1
    assert (await make(other, me, "Without a vector", embed="never")).version == 1
    assert await reembed(other) == [(1, 1), (1, 1)]
    assert await vector_of(other, me, made.id) == pytest.approx(letters_of("Unwind the thread"))
    await make(other, me, "Another")
    assert (await found_titles(other, me, "unwind thread", ranking="vector"))[0] == "Unwind the thread"
    await other.close()
    assert await found_titles(await open_again(LetterEmbedder()), me, "another", limit=1) == ["Another"]


async def test_an_embedder_of_the_same_name_has_nothing_to_change(open_again: OpenAgain, me: Principal) -> None:
    trail = await open_again(LetterEmbedder())
    await make(trail, me, "a")
    await trail.close()
    embedder = LetterEmbedder()
    again = await open_again(embedder)
    await reembed(again)
    assert embedder.embedded == []


async def test_a_change_that_was_interrupted_goes_on_where_it_stopped(
    meaning: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids = await make_all(meaning, me, *(f"Note {number}" for number in range(10)))
    old = await vector_of(meaning, me, ids[0])
    await meaning.close()
    first = LetterEmbedder()
    trail = await open_again(first)
    async for done, total in trail.upkeep.reembed(batch=3):
        assert (done, total) == (3, 10)
        break
    assert len(first.embedded) == 3
    assert await vector_of(trail, me, ids[0]) == old
    await trail.close()
    second = LetterEmbedder()
    again = await open_again(second)
    steps = await reembed(again, batch=3)
    assert steps[-1] == (10, 10)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert len(second.embedded) == 7
    for number, id in enumerate(ids):
        assert await vector_of(again, me, id) == pytest.approx(letters_of(f"Note {number}"))


async def test_the_old_vectors_serve_until_the_last_is_replaced(
    meaning: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await make_all(meaning, me, "The cat sat", "Quarterly revenue", "A kitten slept")
    changing = await open_again(LetterEmbedder())
    steps = changing.upkeep.reembed(batch=1)
    for _ in range(2):
        await anext(steps)
        found = await found_titles(meaning, me, "feline pets", ranking="vector")
        assert set(found[:2]) == {"The cat sat", "A kitten slept"}
    await finish(steps)
    assert len(await found_titles(changing, me, "cat", ranking="vector")) == 3


async def test_a_record_that_is_deleted_during_a_change_stays_deleted(
    meaning: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids = await make_all(meaning, me, *"abcd")
    changing = await open_again(LetterEmbedder())
    steps = changing.upkeep.reembed(batch=2)
    await anext(steps)
    for id in (ids[0], ids[3]):
        await meaning.records.delete(id, by=me)
    await finish(steps)
    assert sorted(await found_titles(changing, me, "b", ranking="vector")) == ["b", "c"]
    assert await changing.upkeep.check() == []


async def test_a_record_that_is_updated_during_a_change_gets_the_vector_of_its_new_text(
    meaning: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids = await make_all(meaning, me, *"abcd")
    changing = await open_again(LetterEmbedder())
    steps = changing.upkeep.reembed(batch=2)
    await anext(steps)
    await meaning.records.update(ids[0], Change(title="zzz"), expect=1, by=me)
    await finish(steps)
    assert await vector_of(changing, me, ids[0]) == pytest.approx(letters_of("zzz"))


async def test_a_third_embedder_starts_the_change_anew(meaning: Trail, open_again: OpenAgain, me: Principal) -> None:
    ids = await make_all(meaning, me, *"abcd")
    await meaning.close()
    second = await open_again(LetterEmbedder("second"))
    async for _ in second.upkeep.reembed(batch=2):
        break
    await second.close()
    embedder = LetterEmbedder("third")
    third = await open_again(embedder)
    await reembed(third)
    assert len(embedder.embedded) == 4
    assert await vector_of(third, me, ids[0]) == pytest.approx(letters_of("a"))


async def test_a_trail_that_had_no_embedder_gets_its_vectors(
    trail: Trail, open_again: OpenAgain, wordllama: WordLlamaEmbedder, me: Principal
) -> None:
    made = await make(trail, me, "A kitten slept")
    await trail.close()
    again = await open_again(wordllama)
    await reembed(again)
    assert await vector_of(again, me, made.id) is not None
    assert await found_titles(again, me, "feline pets", ranking="vector") == ["A kitten slept"]


async def test_a_trail_of_foreign_vectors_gets_those_of_its_embedder_for_all(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids = [(await make(trail, me, "a", embedding=[1.0, 0.0])).id, (await make(trail, me, "b")).id]
    await trail.close()
    again = await open_again(LetterEmbedder())
    await reembed(again)
    assert [await vector_of(again, me, id) for id in ids] == [letters_of("a"), letters_of("b")]


async def test_a_write_during_the_first_change_does_not_end_it(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids = await make_all(trail, me, *"abcd")
    await trail.close()
    changing = await open_again(LetterEmbedder())
    steps = changing.upkeep.reembed(batch=2)
    await anext(steps)
    ids.append((await make(changing, me, "e")).id)
    await changing.close()
    again = await open_again(LetterEmbedder())
    await reembed(again)
    assert [await vector_of(again, me, id) for id in ids] == [letters_of(title) for title in "abcde"]


async def test_a_record_that_its_schema_does_not_embed_gets_no_vector_by_the_change(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await make(trail, me, "Schema", schema_name="schema.def.v1", context={"schema_name": "log.v1", "embed": "never"})
    made = await make(trail, me, "Private", schema_name="log.v1")
    await trail.close()
    again = await open_again(LetterEmbedder())
    await reembed(again)
    assert await vector_of(again, me, made.id) is None


async def test_without_an_embedder_there_is_nothing_to_change_to(trail: Trail, me: Principal) -> None:
    made = await make(trail, me)
    with pytest.raises(EmbedderMismatch):
        await reembed(trail)
    assert await is_there(trail, me, made.id)
    with pytest.raises(NotFound):
        await trail.records.get("absent", by=me)
