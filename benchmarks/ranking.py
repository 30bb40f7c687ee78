"""Ranking quality on real queries: the default ranking next to its single arms, plain fusion, RCRT's formula and
SQLite's own FTS5. One trail for each catalogue, the same embedder, one setting for all.

Usage: ranking.py [--data DIR] [--sets NAME,...] [--embedder wordllama|minilm] [--json FILE] [--every N] [--postgresql]

With --postgresql the default ranking is measured on a PostgreSQL server too, and the run ends with 1 when a set differs
by more than .01 from the embedded trail.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import Ranking, SearchRequest
from clew.trail.search.text import STOP, split_text
from clew.trail.store import Trail
from speed.scale_stage import Engines, running_engines

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GROUPS = {
    "tools": ("tools_dev_corpus", "tools_dev", None),
    "skills": ("skills_dev_corpus", "skills_dev", "skills_dev_distractors"),
    "memory": ("memory_dev_corpus", "memory_dev", None),
}
RANKINGS: tuple[Ranking, ...] = ("text", "vector", "rrf", "rcrt", "default")
EMBEDDED: Ranking = "default"
ON_SERVER = "postgresql"
MOST_APART = 0.01
"""The allowed difference of the nDCG of a set between the backends."""
ME = Principal(owner_id="bench")
Scores = dict[str, float]


def main() -> None:
    arguments = parse_arguments()
    if not arguments.data.is_dir():
        sys.exit(f"no benchmark data in {arguments.data}: nothing measured")
    with engines_for(arguments) as engines:
        table = asyncio.run(measure(arguments, engines))
    show(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1))
    sys.exit(any(apart > MOST_APART for apart in differences(table).values()))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", default="", help="only these sets, comma-separated")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use each N-th query only")
    parser.add_argument("--postgresql", action="store_true", help="compare with a trail on PostgreSQL")
    return parser.parse_args()


@contextlib.contextmanager
def engines_for(arguments: argparse.Namespace) -> Iterator[Engines | None]:
    """A PostgreSQL server where one is asked for."""
    if not arguments.postgresql:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="clew-ranking-") as folder:
        Path(folder).chmod(0o711)  # the server runs as another user
        with running_engines(Path(folder)) as engines:
            yield engines


async def measure(arguments: argparse.Namespace, engines: Engines | None = None) -> list[dict[str, Any]]:
    only = set(filter(None, arguments.sets.split(",")))
    table = []
    for group, (corpus_file, query_file, more) in GROUPS.items():
        corpus, queries = read(arguments.data / f"{corpus_file}.jsonl"), read(arguments.data / f"{query_file}.jsonl")
        distractors = read(arguments.data / f"{more}.jsonl") if more else []
        for name in dict.fromkeys(query["set"] for query in queries):
            if only and name not in only:
                continue
            documents = [*(row for row in corpus if row["set"] == name), *distractors]
            asked = [query for query in queries if query["set"] == name][:: arguments.every]
            for ranking, scores in (await measure_set(documents, asked, arguments.embedder, engines)).items():
                table.append({"group": group, "set": name, "records": len(documents), "ranking": ranking, **scores})
            print(f"{name}: {len(documents)} records, {len(asked)} queries", file=sys.stderr, flush=True)
    return table


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def measure_set(
    documents: Sequence[dict[str, Any]],
    queries: Sequence[dict[str, Any]],
    embedder: str,
    engines: Engines | None = None,
) -> dict[str, Scores]:
    results = {
        "fts5": mean([score(found, query) for found, query in zip(fts5(documents, queries), queries, strict=True)])
    }
    async with contextlib.AsyncExitStack() as stack:
        trail = await open_trail("sqlite://:memory:", embedder=open_embedder(embedder))
        stack.push_async_callback(trail.close)
        await fill(trail, documents)
        for ranking in RANKINGS:
            results[ranking] = await ask_all(trail, documents, queries, ranking)
        if engines is not None:
            server = await open_trail(engines.make_database(), embedder=open_embedder(embedder))
            stack.push_async_callback(server.close)
            await fill(server, documents)
            await server.index.warm()
            results[ON_SERVER] = await ask_all(server, documents, queries, EMBEDDED)
    return results


async def fill(trail: Trail, documents: Sequence[dict[str, Any]]) -> None:
    drafts = [
        Draft(
            title=row["name"][:2000],
            context={"description": row.get("description") or "", "content": row.get("content") or ""},
            tags=[f"doc:{at}"],
        )
        for at, row in enumerate(documents)
    ]
    for first in range(0, len(drafts), 1000):
        await trail.records.create_many(drafts[first : first + 1000], by=ME)


async def ask_all(
    trail: Trail, documents: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]], ranking: Ranking
) -> Scores:
    """The mean scores of a ranking, and its milliseconds a question."""
    scores, began = [], time.perf_counter()
    for query in queries:
        request = SearchRequest(text=query["query"], limit=10, ranking=ranking)
        hits = (await trail.index.search(request, by=ME)).hits
        ranked = [documents[int(hit.breadcrumb.tags[0][4:])]["id"] for hit in hits]
        scores.append(score(ranked, query))
    return {**mean(scores), "ms": (time.perf_counter() - began) / len(queries) * 1000}


def differences(table: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The difference of the nDCG of each set on PostgreSQL; empty if not measured."""
    found = {(row["set"], row["ranking"]): row["ndcg"] for row in table}
    return {name: abs(ndcg - found[name, EMBEDDED]) for (name, ranking), ndcg in found.items() if ranking == ON_SERVER}


def fts5(documents: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The engine's own BM25 at its best: porter stems, split identifiers, no stop words."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(name, description, tokenize='porter unicode61')")
    rows = [
        (at, f"{row['name']} {' '.join(split_text(row['name']).parts)}", row.get("description") or "")
        for at, row in enumerate(documents)
    ]
    database.executemany("INSERT INTO t (rowid, name, description) VALUES (?, ?, ?)", rows)
    found = []
    for query in queries:
        words = dict.fromkeys(re.findall(r"\w+", query["query"].lower().replace("_", " ")))
        terms = [word for word in words if word not in STOP] or list(words)
        match = " OR ".join(f'"{term}"' for term in terms[:200])
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 10"
        found.append([documents[row]["id"] for (row,) in database.execute(sql, (match,))] if match else [])
    return found


def score(ranked: Sequence[str], query: dict[str, Any]) -> Scores:
    """nDCG and recall at 10 over units: a relevant id, or a group of which any one will do."""
    groups = [set(group) for group in query.get("any_of") or []]
    grouped = set().union(*groups) if groups else set()
    units = [{id} for id in query["relevant"] if id not in grouped] + groups
    found: dict[int, int] = {}
    for place, id in enumerate(ranked[:10]):
        unit = next((at for at, members in enumerate(units) if at not in found and id in members), None)
        if unit is not None:
            found[unit] = place
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(units), 10)))
    gained = sum(1 / math.log2(place + 2) for place in found.values())
    return {
        "ndcg": gained / ideal,
        "r1": sum(place == 0 for place in found.values()) / len(units),
        "r10": len(found) / len(units),
    }


def mean(scores: Sequence[Scores]) -> Scores:
    return {name: sum(score[name] for score in scores) / len(scores) for name in scores[0]}


def show(table: Sequence[dict[str, Any]]) -> None:
    """nDCG@10 a set, and the mean of each group."""
    rankings = list(dict.fromkeys(row["ranking"] for row in table))
    print("| set | records | " + " | ".join(rankings) + " | ms/query |")
    print("|---|---|" + "---|" * (len(rankings) + 1))
    for group in GROUPS:
        sets = list(dict.fromkeys(row["set"] for row in table if row["group"] == group))
        if not sets:
            continue
        cells = {(row["set"], row["ranking"]): row for row in table if row["group"] == group}
        for name in sets:
            row = cells[name, "default"]
            print(line(name, row["records"], [cells[name, ranking]["ndcg"] for ranking in rankings], row["ms"]))
        means = [sum(cells[name, ranking]["ndcg"] for name in sets) / len(sets) for ranking in rankings]
        speed = sum(cells[name, "default"]["ms"] for name in sets) / len(sets)
        print(line(f"**{group}, mean**", "", means, speed))


def line(name: str, records: Any, scores: Sequence[float], speed: float) -> str:
    best = max(scores)
    shown = [f"**{score:.3f}**" if score == best else f"{score:.3f}" for score in scores]
    return f"| {name} | {records} | " + " | ".join(shown) + f" | {speed:.2f} |"


if __name__ == "__main__":
    main()
