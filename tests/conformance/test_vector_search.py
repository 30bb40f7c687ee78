"""Search by vector: as good as a full comparison, with any filters, deletions and replacements."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from clew.access import Principal
from clew.errors import EmbedderMismatch
from clew.trail.model.breadcrumb import Change
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft, found_titles, list_titles, make, make_all

pytestmark = pytest.mark.req("O3")

Vectors = npt.NDArray[np.float64]
WIDTH = 64


def random_vectors(count: int, seed: int, width: int = WIDTH) -> Vectors:
    """Unit vectors around a few centres, as texts on a few subjects give."""
    dice = np.random.default_rng(seed)
    centres = dice.standard_normal((20, width))
    vectors = centres[dice.integers(20, size=count)] + 0.8 * dice.standard_normal((count, width))
    found: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def exact(vectors: Vectors, query: Vectors, among: Sequence[int], k: int = 10) -> set[int]:
    scores = vectors[among] @ query
    return {among[place] for place in np.argsort(-scores, kind="stable")[:k]}


async def nearest(
    trail: Trail, by: Principal, query: Vectors, selector: Selector = EVERYTHING, limit: int = 10
) -> list[str]:
    request = SearchRequest(vector=query.tolist(), ranking="vector", limit=limit, selector=selector)
    return [hit.breadcrumb.title for hit in (await trail.index.search(request, by=by)).hits]


@pytest.mark.req("SYL-74")
@pytest.mark.req("RCR-15")
async def test_the_ten_nearest_of_ten_thousand_are_found_with_any_filter_and_after_reloading(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    vectors, queries = random_vectors(10_000, seed=1), random_vectors(5, seed=1)
    shares = {"one": 100, "ten": 10, "half": 2}
    drafts = [
        draft(str(at), tags=[tag for tag, step in shares.items() if at % step == 0], embedding=vector)
        for at, vector in enumerate(vectors.tolist())
    ]
    await trail.records.create_many(drafts, by=me)
    filters = [(EVERYTHING, range(10_000)), *((Selector(all_tags=[t]), range(0, 10_000, s)) for t, s in shares.items())]
    answers, recalls = [], []
    for query in queries:
        for selector, among in filters:
            found = await nearest(trail, me, query, selector)
            assert len(found) == 10
            answers.append(found)
            recalls.append(len(exact(vectors, query, among) & {int(title) for title in found}) / 10)
    assert float(np.mean(recalls)) >= 0.95
    await trail.close()
    again = await open_again()
    assert [await nearest(again, me, query, selector) for query in queries for selector, _ in filters] == answers


async def test_the_nearest_of_a_few_hundred_vectors_are_exact(trail: Trail, me: Principal) -> None:
    vectors = random_vectors(400, seed=2)
    await trail.records.create_many([draft(str(at), embedding=row) for at, row in enumerate(vectors.tolist())], by=me)
    for query in random_vectors(10, seed=3):
        ordered = [str(at) for at in np.argsort(-(vectors @ query), kind="stable")]
        assert await nearest(trail, me, query, limit=100) == ordered[:100]


@pytest.mark.req("SYL-75")
async def test_a_thousand_random_adds_and_deletes_never_bring_back_what_is_gone(trail: Trail, me: Principal) -> None:
    dice, vectors = random.Random(5), random_vectors(1_600, seed=5, width=24)
    waiting = list(range(1_600))
    ids: dict[int, str] = {}
    at: dict[str, int] = {}

    async def add(number: int) -> None:
        made = await make(trail, me, str(number), embedding=vectors[number].tolist())
        ids[number], at[made.title] = made.id, number

    async def delete(number: int) -> None:
        await trail.records.delete(ids.pop(number), by=me)

    await asyncio.gather(*(add(waiting.pop()) for _ in range(200)))
    for cycle in range(100):
        gone = dice.sample(sorted(ids), 10)
        await asyncio.gather(*(delete(number) for number in gone), *(add(waiting.pop()) for _ in range(10)))
        query = vectors[gone[0]] if cycle % 2 else vectors[dice.choice(sorted(ids))]
        found = [at[title] for title in await nearest(trail, me, query)]
        assert set(found) <= ids.keys()
        assert set(found) == exact(vectors, query, sorted(ids))


@pytest.mark.req("SYL-75")
async def test_an_update_replaces_the_vector(trail: Trail, me: Principal) -> None:
    ids = await make_all(trail, me, "a", "b", embedding=[1.0, 0.0])
    await trail.records.update(ids[0], Change(embedding=[0.0, 1.0]), expect=1, by=me)
    assert await nearest(trail, me, np.array([0.0, 1.0])) == ["a", "b"]
    assert await nearest(trail, me, np.array([1.0, 0.0])) == ["b", "a"]


async def test_breadcrumbs_without_a_vector_are_not_found_by_one(trail: Trail, me: Principal) -> None:
    await make_all(trail, me, "with", embedding=[1.0, 0.0])
    await make_all(trail, me, "without")
    assert await nearest(trail, me, np.array([-1.0, 0.0])) == ["with"]
    assert await nearest(trail, me, np.array([0.0, 0.0])) == []


@pytest.mark.parametrize("wrong", [[1.0], [1.0, 2.0, 3.0]])
async def test_vectors_of_another_dimension_are_refused_and_nothing_is_written(
    trail: Trail, open_again: OpenAgain, me: Principal, wrong: list[float]
) -> None:
    made = await make(trail, me, "first", embedding=[1.0, 0.0])
    for each in (trail, await open_again()):
        with pytest.raises(EmbedderMismatch):
            await make(each, me, "second", embedding=wrong)
        with pytest.raises(EmbedderMismatch):
            await each.records.create_many([draft("a"), draft("b", embedding=wrong)], by=me)
        with pytest.raises(EmbedderMismatch):
            await each.records.update(made.id, Change(embedding=wrong), expect=1, by=me)
        with pytest.raises(EmbedderMismatch):
            await found_titles(each, me, vector=wrong)
    assert await list_titles(trail, me) == ["first"]
    assert await trail.log.head() == 1


@pytest.mark.req("RCR-19")
async def test_the_dimension_is_the_trails_and_all_that_another_owner_learns(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    await make(trail, me, "Secret title", tags=["secret:tag"], embedding=[1.0, 0.0])
    for attempt in (make(trail, stranger, embedding=[1.0, 0.0, 0.0]), found_titles(trail, stranger, vector=[1.0] * 3)):
        with pytest.raises(EmbedderMismatch) as caught:
            await attempt
        assert caught.value.expected == "external:2"
        assert not any(word in f"{caught.value} {caught.value.hint}" for word in ("ecret", me.owner_id))
    assert (await make(trail, stranger, "Same width", embedding=[0.0, 1.0])).version == 1
    assert await found_titles(trail, stranger, vector=[1.0, 0.0]) == ["Same width"]


async def test_a_vector_must_have_the_dimension_of_the_embedder(meaning: Trail, me: Principal) -> None:
    with pytest.raises(EmbedderMismatch):
        await make(meaning, me, embedding=[1.0, 0.0])
    made = await make(meaning, me, "own", embedding=[0.0, 2.0] + [0.0] * 254)
    assert (await meaning.records.get(made.id, by=me, vector=True)).embedding == (0.0, 1.0, *[0.0] * 254)
    with pytest.raises(EmbedderMismatch):
        await found_titles(meaning, me, vector=[1.0, 0.0])


async def test_a_trail_of_foreign_vectors_does_not_take_those_of_an_embedder(
    trail: Trail, open_again: OpenAgain, me: Principal, wordllama: object
) -> None:
    """The dimension may be equal, but the vectors of another embedder are not comparable."""
    await make(trail, me, "foreign", embedding=[1.0] * 256)
    await trail.close()
    again = await open_again(wordllama)  # type: ignore[arg-type]
    with pytest.raises(EmbedderMismatch):
        await make(again, me, "own")
    assert await list_titles(again, me) == ["foreign"]
