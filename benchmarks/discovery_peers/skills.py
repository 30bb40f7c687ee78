"""Skills as an agent finds them: `suggest` of the library's index, beside a catalogue section of 1,500 tokens.

With the distractors: whether the right skill comes first, and the results of a search over descriptions only, or over
the names that fit into a catalogue of 1,500 tokens. Without them: the share of unanswerable questions that are
recognised, and its cost in recall.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from clew.llm.tokens import estimate_tokens
from clew.skills.catalogue import BUDGET, build_catalogue
from clew.skills.discovery.memory_index import OWNER, MemoryIndex, open_index
from clew.skills.discovery.skill_records import SKILL_TYPE, select_records
from clew.skills.manifest import Manifest, Skill
from clew.trail.model.query import SearchRequest
from discovery_peers.data import Row, Set
from discovery_peers.scores import Scores, mean, score
from discovery_peers.tables import average, table

NAMED = 500
"""The number of skills in one catalogue section."""
NDCG, TOLD, LOSS = 0.72, 0.6, 0.02
"""The goals."""
Rank = Callable[[str], Awaitable[list[str]]]


async def measure(each: Set) -> list[dict[str, Any]]:
    """One row for each set of skills; sets of tools have none."""
    if each.group != "skills":
        return []
    async with indexed([to_skill(row) for row in each.rows]) as index:
        crowded, searched = await rate(suggesting(index, each), each), await rate(searching(index, each), each)
    async with indexed([to_skill(row, text=False) for row in each.rows]) as index:
        described = await rate(searching(index, each), each)
    async with indexed([to_skill(row, text=False, about=False) for row in each.rows]) as index:
        named = await rate(searching(index, each), each)
    async with indexed([to_skill(row) for row in each.own]) as index:
        alone, whole = await rate(suggesting(index, each), each), await rate(searching(index, each), each)
        told = [not await index.suggest(query) for query in each.foreign]
    many = [to_skill(each.rows[at % len(each.rows)], number=at) for at in range(NAMED)]
    return [
        {
            **{"set": each.name, "rows": len(each.rows), "ndcg": crowded["ndcg"], "suggested": crowded["r10"]},
            **{"searched": searched["r10"], "described": described["r10"], "named": named["r10"]},
            "catalogue_tokens": estimate_tokens(build_catalogue(many)),
            **{"told": average(told), "loss": whole["r10"] - alone["r10"]},
        }
    ]


def to_skill(row: Row, *, text: bool = True, about: bool = True, number: int = 0) -> Skill:
    name = f"{row.name}-{number}" if number else row.name
    return Skill(name=name, description=row.description if about else "", content=row.text if text else "")


@contextlib.asynccontextmanager
async def indexed(skills: Sequence[Skill]) -> AsyncIterator[MemoryIndex]:
    index = await open_index(Manifest(skills={skill.name: skill for skill in skills}))
    try:
        yield index
    finally:
        await index.close()


def suggesting(index: MemoryIndex, each: Set) -> Rank:
    """The suggested skills; none if nothing is close."""
    ids = {row.name: row.id for row in each.rows}

    async def rank(query: str) -> list[str]:
        return [ids[found.skill] for found in await index.suggest(query, limit=10)]

    return rank


def searching(index: MemoryIndex, each: Set) -> Rank:
    """The results of the search, close or not."""
    ids = {row.name: row.id for row in each.rows}

    async def rank(query: str) -> list[str]:
        request = SearchRequest(text=query, selector=select_records(SKILL_TYPE, None), limit=10)
        return [ids[hit.breadcrumb.title] for hit in (await index.trail.index.search(request, by=OWNER)).hits]

    return rank


async def rate(rank: Rank, each: Set) -> Scores:
    return mean([score(await rank(question.query), question) for question in each.questions])


def render(rows: Sequence[dict[str, Any]]) -> str:
    """A line a set, the means, and whether the goals are met."""
    if not rows:
        return "no set of skills"
    measures = ("ndcg", "suggested", "searched", "described", "named", "told", "loss")
    means: dict[str, Any] = {"set": "mean", **{each: average([row[each] for row in rows]) for each in measures}}
    lines = [[row["set"], *(f"{row[each]:.3f}" for each in measures)] for row in (*rows, means)]
    heads = ["set", "nDCG@10", "R@10 suggested", "searched", "descriptions only", "names only", "told", "loss"]
    return f"{table(heads, lines)}\n\n" + "\n".join(f"- {each}" for each in verdicts(rows, means["ndcg"]))


def verdicts(rows: Sequence[dict[str, Any]], ndcg: float) -> list[str]:
    """Each goal, the measured value, and whether it is met. Only the first set has negatives of its own."""
    first, tokens = rows[0], max(row["catalogue_tokens"] for row in rows)
    told, loss = first["told"], max(row["loss"] for row in rows)
    searched, described = (average([row[each] for row in rows]) for each in ("searched", "described"))
    goals = {
        f"nDCG@10 {ndcg:.3f}, at least {NDCG}": ndcg >= NDCG,
        f"{told:.0%} of the negatives of {first['set']} told, at least {TOLD:.0%}": told >= TOLD,
        f"loss of R@10 {loss:.3f}, at most {LOSS}": loss <= LOSS,
        f"R@10 {searched:.3f}, at least the {described:.3f} of full descriptions": searched >= described - 0.005,
        f"{NAMED} skills in {tokens:,} tokens, at most {BUDGET:,}": tokens <= BUDGET,
    }
    return [f"{goal}: {'kept' if is_kept else 'NOT KEPT'}" for goal, is_kept in goals.items()]
