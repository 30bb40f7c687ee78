"""Finding files, functions and turns of a conversation by a question, next to FTS5, ripgrep, ctags and aider's map.

Usage: knowledge_search.py [--data DIR] [--repos DIR] [--only PART,...] [--repositories OWNER/NAME,...] [--every N]
                           [--ways NAME;...] [--aider PYTHON] [--kept FILE] [--json FILE]

Parts: localisation (issues and commit messages to the files that were changed for them), code_search (questions to
functions), memory (questions to turns). With --kept, answered questions are not asked again, so an interrupted run can
continue. The exit code is 1 if a figure misses its target.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.knowledge.code.search.search_index import SearchIndex
from clew.knowledge.code.store import CodeStore
from clew.knowledge.nodes.node_graph import CANDIDATES, boost_by_neighbours, link_in_order
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest
from clew.trail.store import Embedder
from knowledge_peers.localisation import measure_localisation
from knowledge_peers.ours import put_file
from knowledge_peers.words import words_of
from ranking import ME, read, score
from speed.report import Finding, Promise, Row, describe_machine, render, write_json
from speed.timing import percentile, tell

ROOT = Path(__file__).resolve().parents[2]
DATA, REPOS = ROOT / "shared" / "data", ROOT / "repositories"
PARTS = ("localisation", "code_search", "memory")
PART = 200
LEAST_FUNCTIONS, LEAST_TURNS = 0.60, 0.56
FUNCTIONS, TURNS = "question to function, nDCG@10", "question to turn, nDCG@10"
Search = Callable[[str], list[str]]


def measure_code_search(data: Path, every: int = 1) -> list[Finding]:
    """Questions to functions: words alone, and with the vectors of each embedder that is installed."""
    corpus, queries = read(data / "code_search_corpus.jsonl"), read(data / "code_search_dev.jsonl")[::every]
    findings: list[Finding] = [_score_all("fts5", queries, _fts5_functions(corpus))]
    for name in ("none", "wordllama", "minilm"):
        tell(f"questions to functions, {name}")
        try:
            embedder = open_embedder(name)
        except ConfigError as error:
            findings.append(Row(measure=FUNCTIONS, records=0, contender=f"clew, {name}", note=f"skipped: {error}"))
            continue
        row = _measure_functions(name, embedder, corpus, queries)
        findings.append(row)
        if name == "minilm":
            findings.append(_promise(FUNCTIONS, row, LEAST_FUNCTIONS))
    return findings


def _measure_functions(
    name: str, embedder: Embedder | None, corpus: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]]
) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        store = CodeStore(Path(folder) / "code.db")
        index = SearchIndex(store, embedder)
        with store.writing() as sql:
            for row in corpus:
                put_file(sql, f"{row['id']}.py", row["content"].encode())
        while index.embed(PART):
            pass
        found = _score_all(f"clew, {name}", queries, _functions(index))
        store.close()
    return found


def _functions(index: SearchIndex) -> Search:
    def search(query: str) -> list[str]:
        paths = dict.fromkeys(hit.path for hit in index.search(query, limit=20, symbols=True))
        return [path.removesuffix(".py") for path in paths]

    return search


def _fts5_functions(corpus: Sequence[dict[str, Any]]) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize='porter unicode61')")
    database.executemany(
        "INSERT INTO t (rowid, body) VALUES (?, ?)",
        [(at, f"{row['name']} {row['content']}".replace("_", " ")) for at, row in enumerate(corpus)],
    )

    def search(query: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words_of(query))
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 10"
        return [corpus[row]["id"] for (row,) in database.execute(sql, (match,))]

    return search


async def measure_memory(data: Path, every: int = 1) -> list[Finding]:
    """Questions to the turns of conversations, the mean over conversations: the trail's search, and with turns that
    are lifted by their neighbours."""
    corpus, queries = read(data / "memory_dev_corpus.jsonl"), read(data / "memory_dev.jsonl")[::every]
    found: dict[str, list[float]] = {"trail": [], "trail, neighbours": []}
    for name in dict.fromkeys(query["set"] for query in queries):
        tell(f"questions to turns, {name}")
        documents = [row for row in corpus if row["set"] == name]
        asked = [query for query in queries if query["set"] == name]
        for way, scores in (await _measure_conversation(documents, asked)).items():
            found[way].append(statistics.mean(scores))
    rows = [
        Row(measure=TURNS, records=len(queries), contender=way, values={"nDCG@10": statistics.mean(scores)})
        for way, scores in found.items()
    ]
    return [*rows, _promise(TURNS, rows[-1], LEAST_TURNS)]


async def _measure_conversation(
    documents: Sequence[dict[str, Any]], asked: Sequence[dict[str, Any]]
) -> dict[str, list[float]]:
    sessions: dict[str, list[str]] = {}
    for row in documents:
        sessions.setdefault(row["id"].rpartition(":")[0], []).append(row["id"])
    trail = await open_trail("sqlite://:memory:", embedder=open_embedder("wordllama"))
    drafts = [Draft(title=row["name"], context={"description": row["description"]}) for row in documents]
    written = await trail.records.create_many(drafts, by=ME)
    ids = {record.id: row["id"] for record, row in zip(written, documents, strict=True)}
    records = {row: record for record, row in ids.items()}
    for turns in sessions.values():
        await link_in_order(trail, [records[turn] for turn in turns], by=ME)
    results: dict[str, list[float]] = {"trail": [], "trail, neighbours": []}
    for query in asked:
        hits = (await trail.index.search(SearchRequest(text=query["query"], limit=CANDIDATES), by=ME)).hits
        scores = {hit.breadcrumb.id: hit.score for hit in hits}
        lifted = await boost_by_neighbours(trail, scores, by=ME)
        results["trail"].append(score([ids[each] for each in scores], query)["ndcg"])
        best = sorted(lifted, key=lambda each: -lifted[each])
        results["trail, neighbours"].append(score([ids[each] for each in best], query)["ndcg"])
    await trail.close()
    return results


def _score_all(way: str, queries: Sequence[dict[str, Any]], search: Search) -> Row:
    scores, times = [], []
    search(queries[0]["query"])
    for query in queries:
        began = time.perf_counter()
        ranked = search(query["query"])
        times.append(1000 * (time.perf_counter() - began))
        scores.append(score(ranked, query)["ndcg"])
    values = {"nDCG@10": statistics.mean(scores), "ms": statistics.mean(times), "p95 ms": percentile(times, 0.95)}
    return Row(measure=FUNCTIONS, records=len(queries), contender=way, values=values)


def _promise(name: str, row: Row, target: float) -> Promise:
    return Promise(name=name, records=row.records, value=row.values["nDCG@10"], target=target)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repos", type=Path, default=REPOS, help="a folder of git directories")
    parser.add_argument("--only", type=_names, default=PARTS, help="only these parts")
    parser.add_argument("--repositories", type=_names, default=(), help="only questions about these, owner/name")
    parser.add_argument("--every", type=int, default=1, help="use each N-th question only")
    parser.add_argument("--ways", default="", help="only these ways to files, separated by semicolons")
    parser.add_argument("--aider", type=Path, help="a Python that has aider, for a comparison with its repository map")
    parser.add_argument("--kept", type=Path, help="the file of answers so far, as JSON lines; created if missing")
    parser.add_argument("--json", type=Path, help="where the results go")
    return parser.parse_args()


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def measure(given: argparse.Namespace) -> list[Finding]:
    """All that was asked for."""
    findings: list[Finding] = []
    if "localisation" in given.only:
        ways = tuple(filter(None, given.ways.split(";")))
        options = {"only": given.repositories, "ways": ways, "aider": given.aider, "kept": given.kept}
        findings += measure_localisation(given.data, given.repos, every=given.every, **options)
    if "code_search" in given.only:
        findings += measure_code_search(given.data, given.every)
    if "memory" in given.only:
        findings += asyncio.run(measure_memory(given.data, given.every))
    return findings


def main() -> None:
    given = parse_arguments()
    if not given.data.is_dir():
        print(f"skipped: no benchmark data in {given.data}, nothing measured")
        return
    findings = measure(given)
    print(render(findings))
    if given.json:
        with tempfile.TemporaryDirectory() as scratch:
            write_json(given.json, findings, {"machine": describe_machine(Path(scratch))})
    sys.exit(0 if all(each.is_kept for each in findings if isinstance(each, Promise)) else 1)


if __name__ == "__main__":
    main()
