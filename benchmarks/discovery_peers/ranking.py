"""The right tools first: every contender on every question of a set, and every tool by its own name."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from discovery_peers.data import Row, Set
from discovery_peers.fts5 import Fts5
from discovery_peers.ours import OurCatalog, open_catalog
from discovery_peers.scores import MEASURES, mean, score
from discovery_peers.tables import average, table, tell, with_best

Rank = Callable[[str], Awaitable[list[str]]]
OURS = "clew"
OWN_PARTS = (OURS, "clew by closeness", "text arm", "vectors", "rrf")
NO_PEERS = frozenset(OWN_PARTS[:3])
MARGIN = 0.01
"""The allowed difference to the best peer on one set."""


async def measure(each: Set) -> list[dict[str, Any]]:
    is_skill = each.group == "skills"
    async with open_catalog(each.rows, as_documents=is_skill) as ours:
        contenders = {**own_contenders(ours), **peers(each.rows, with_texts=is_skill)}
        rows = []
        for name, rank in contenders.items():
            began = time.perf_counter()
            scores = mean([score(await rank(question.query), question) for question in each.questions])
            took = (time.perf_counter() - began) / len(each.questions) * 1000
            about = {"group": each.group, "set": each.name, "rows": len(each.rows), "questions": len(each.questions)}
            rows.append({**about, "contender": name, **scores, "ms": took})
        named = [await contenders[OURS](row.name) for row in each.rows]
        first = average([found[:1] == [row.id] for found, row in zip(named, each.rows, strict=True)])
        return [row | {"exact": first} if row["contender"] == OURS else row for row in rows]


def own_contenders(ours: OurCatalog) -> dict[str, Rank]:
    ranked = [ours.ranked("default"), ours.by_closeness, *map(ours.ranked, ("text", "vector", "rrf"))]
    return dict(zip(OWN_PARTS, ranked, strict=True))


def peers(rows: Sequence[Row], *, with_texts: bool) -> dict[str, Rank]:
    """The peers; if rows have bodies, each peer also with the body in the description."""
    found: dict[str, Rank] = {"fts5 plain": Fts5(rows, tuned=False).rank, "fts5": Fts5(rows, tuned=True).rank}
    if with_texts:
        found["fts5 + body"] = Fts5(rows, tuned=True, texts=True).rank
    try:
        from discovery_peers.fastmcp_search import FastMcpSearch

        found["fastmcp"] = FastMcpSearch(rows).rank
        if with_texts:
            found["fastmcp + body"] = FastMcpSearch(rows, texts=True).rank
    except ImportError as error:
        tell(f"FastMCP is left out: {error}")
    try:
        from discovery_peers.pydantic_search import PydanticSearch

        found["pydantic-ai"] = PydanticSearch(rows).rank
        if with_texts:
            found["pydantic-ai + body"] = PydanticSearch(rows, texts=True).rank
    except ImportError as error:
        tell(f"pydantic-ai is left out: {error}")
    return found


def render(rows: Sequence[dict[str, Any]]) -> str:
    """nDCG@10 for each set, the means of all measures for each group, and missed targets."""
    return "\n\n".join(filter(None, (_by_set(rows), _by_group(rows), "\n".join(complaints(rows)))))


def _by_set(rows: Sequence[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(row["contender"] for row in rows))
    cells = {(row["set"], row["contender"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = cells[name, OURS]
        shown = with_best([cells.get((name, each), {}).get("ndcg") for each in names])
        lines.append([name, f"{mine['rows']:,}", *shown, f"{mine['exact']:.1%}", f"{mine['ms']:.1f}"])
    return table(["set", "rows", *names, "exact names", "ms"], lines)


def _by_group(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for group in dict.fromkeys(row["group"] for row in rows):
        for name in dict.fromkeys(row["contender"] for row in rows if row["group"] == group):
            scores = [row for row in rows if (row["group"], row["contender"]) == (group, name)]
            means = [f"{average([row[measure] for row in scores]):.3f}" for measure in MEASURES]
            lines.append([f"{group}, mean", name, *means])
    return table(["", "contender", "nDCG@10", "R@1", "R@5", "R@10", "MRR@10"], lines)


def complaints(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The groups in which Clew is not first, the sets in which it is behind the best peer, and the names that it does
    not find."""
    found = []
    for group in dict.fromkeys(row["group"] for row in rows):
        means = {}
        for name in dict.fromkeys(row["contender"] for row in rows if row["group"] == group):
            scores = [row["ndcg"] for row in rows if (row["group"], row["contender"]) == (group, name)]
            means[name] = average(scores)
        best = max((name for name in means if name not in NO_PEERS), key=means.__getitem__)
        if means[best] > means[OURS]:
            found.append(f"NOT FIRST on {group}: {best} {means[best]:.3f}, ours {means[OURS]:.3f}")
    for name in dict.fromkeys(row["set"] for row in rows):
        here = {row["contender"]: row for row in rows if row["set"] == name}
        best = max((each for each in here if each not in NO_PEERS), key=lambda each: here[each]["ndcg"])
        if here[best]["ndcg"] > here[OURS]["ndcg"] + MARGIN:
            found.append(f"BEHIND on {name}: {best} {here[best]['ndcg']:.3f}, ours {here[OURS]['ndcg']:.3f}")
        if here[OURS]["exact"] < 1:
            found.append(f"NAMES on {name}: {here[OURS]['exact']:.2%} found first")
    return found
