"""Finding files and functions by words alone, next to SQLite's FTS5 and ripgrep: issues and commit messages to the
files that were changed for them, questions to functions, and questions to turns of a conversation.

Usage: knowledge_search.py [--data DIR] [--repos DIR] [--embedder wordllama|minilm|none] [--every N] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.knowledge.code.blobs import blob_id
from clew.knowledge.code.extracting import extract
from clew.knowledge.code.facts import FileFacts
from clew.knowledge.code.languages import language_of
from clew.knowledge.code.store import CodeStore
from clew.knowledge.code.text_index import TextIndex
from clew.knowledge.neighbours import CANDIDATES, lift, link_in_order
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.breadcrumb import Draft
from clew.trail.query import SearchRequest
from clew.trail.text import STOP
from ranking import ME, read, score

ROOT = Path(__file__).resolve().parents[2]
DATA, REPOS = ROOT / "shared" / "data", ROOT / "repositories"
MAX_BYTES = 400_000
PART = 200
Row = dict[str, Any]
Search = Callable[[str], list[str]]


class Checkout:
    """One repository at one commit after the other: the files that a search may find, and three ways to search."""

    def __init__(self, git: Path, folder: Path) -> None:
        self._git = git
        self.files: dict[str, str] = {}
        self._tree = folder / "tree"
        self._tree.mkdir()
        self._store = CodeStore(folder / "code.db")
        self.index = TextIndex(self._store)
        self._fts = sqlite3.connect(":memory:")
        self._fts.execute("CREATE VIRTUAL TABLE t USING fts5(path, body, tokenize='porter unicode61')")
        self._rows: dict[str, int] = {}

    def close(self) -> None:
        self._store.close()
        self._fts.close()

    def move_to(self, commit: str) -> None:
        """Bring the three up to date; what did not change stays."""
        files = read_tree(self._git, commit)
        gone = [path for path, blob in self.files.items() if files.get(path) != blob]
        new = {path: blob for path, blob in files.items() if self.files.get(path) != blob}
        contents = dict(read_blobs(self._git, sorted(set(new.values()))))
        with self._store.writing():
            for path in gone:
                self._drop(path)
            for path, blob in new.items():
                if blob in contents:
                    self._put(path, contents[blob])
        self.files = files

    def _drop(self, path: str) -> None:
        self.index.drop(path)
        self._fts.execute("DELETE FROM t WHERE rowid = ?", (self._rows.pop(path, -1),))
        (self._tree / path).unlink(missing_ok=True)

    def _put(self, path: str, body: bytes) -> None:
        language = language_of(path, body[:4096]) or ""
        text = body.decode("utf-8", errors="replace")
        if not self.index.link(path, blob_id(body), language):
            facts = extract(body, language) if language else FileFacts(language="")
            self.index.put(path, blob_id(body), facts, text)
        cursor = self._fts.execute("INSERT INTO t VALUES (?, ?)", (path, text))
        self._rows[path] = int(cursor.lastrowid or 0)
        (self._tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self._tree / path).write_bytes(body)

    def search(self, query: str) -> list[str]:
        return [hit.path for hit in self.index.search(query, limit=10)]

    def search_fts5(self, query: str) -> list[str]:
        """Its own BM25 over paths and contents, of all words but function words."""
        match = " OR ".join(f'"{word}"' for word in words_of(query)[:200])
        sql = "SELECT path FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 10"
        return [path for (path,) in self._fts.execute(sql, (match,))] if match else []

    def search_ripgrep(self, query: str) -> list[str]:
        """The files with most lines that have a word of the question."""
        patterns = [part for word in words_of(query)[:200] for part in ("-e", word)]
        command = ["rg", "--count", "--ignore-case", "--word-regexp", "--fixed-strings", "--no-ignore", "--hidden"]
        done = subprocess.run([*command, *patterns, "."], cwd=self._tree, capture_output=True, text=True, check=False)
        counts = [line.rpartition(":") for line in done.stdout.splitlines()]
        ranked = sorted(counts, key=lambda found: (-int(found[2]), found[0]))
        return [path.removeprefix("./") for path, _, _ in ranked[:10]]


def words_of(query: str) -> list[str]:
    words = dict.fromkeys(re.findall(r"\w+", query.lower().replace("_", " ")))
    return [word for word in words if word not in STOP] or list(words)


def read_tree(git: Path, commit: str) -> dict[str, str]:
    """Path to blob of the regular files of a commit."""
    listed = subprocess.run(["git", "-C", git, "ls-tree", "-r", "-z", commit], capture_output=True, check=True)
    found = {}
    for line in filter(None, listed.stdout.decode("utf-8", errors="replace").split("\0")):
        about, path = line.split("\t", 1)
        mode, _, blob = about.split()
        if mode.startswith("100"):
            found[path] = blob
    return found


def read_blobs(git: Path, blobs: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The contents that are text, and not huge."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    answer = subprocess.run(["git", "-C", git, "cat-file", "--batch"], input=asked, capture_output=True, check=True)
    at, out = 0, answer.stdout
    while at < len(out):
        end = out.index(b"\n", at)
        head = out[at:end].split()
        at = end + 1
        if head[-1] == b"missing":
            continue
        body, at = out[at : at + int(head[2])], at + int(head[2]) + 1
        if len(body) <= MAX_BYTES and b"\0" not in body:
            yield head[0].decode(), body


def measure_localisation(data: Path, repos: Path, every: int = 1) -> list[Row]:
    """nDCG@10 and milliseconds a question, by set and way of searching. Repositories that are absent are skipped, and
    named on standard error."""
    wanted = read(data / "code_loc_dev.jsonl")[::every]
    scores: dict[tuple[str, str], list[float]] = {}
    times: dict[tuple[str, str], list[float]] = {}
    for name in dict.fromkeys(row["repo"] for row in wanted):
        git = repos / name.replace("/", "+") / "repo"
        if not git.is_dir():
            print(f"skipped: {name} is not in {repos}", file=sys.stderr)
            continue
        _measure_repository(git, [row for row in wanted if row["repo"] == name], scores, times)
        print(f"{name}: done", file=sys.stderr, flush=True)
    return [
        {"set": key[0], "way": key[1], "queries": len(found), "ndcg": statistics.mean(found), **_speed(times[key])}
        for key, found in scores.items()
    ]


def _measure_repository(
    git: Path,
    rows: Sequence[Row],
    scores: dict[tuple[str, str], list[float]],
    times: dict[tuple[str, str], list[float]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout(git, Path(folder))
        ways: dict[str, Search] = {"clew": checkout.search, "fts5": checkout.search_fts5}
        if shutil.which("rg"):
            ways["ripgrep"] = checkout.search_ripgrep
        for row in rows:
            checkout.move_to(row["base_commit"])
            checkout.search("")  # what changed is loaded by the first search
            for way, search in ways.items():
                began = time.perf_counter()
                ranked = search(row["query"])
                times.setdefault((row["set"], way), []).append(1000 * (time.perf_counter() - began))
                scores.setdefault((row["set"], way), []).append(score(ranked, row)["ndcg"])
        checkout.close()


def measure_code_search(data: Path, embedder: str) -> list[Row]:
    """Questions to functions: words alone, and with the vectors of an embedder."""
    corpus, queries = read(data / "code_search_corpus.jsonl"), read(data / "code_search_dev.jsonl")
    table = [_score_all("cosqa", "fts5", queries, _fts5_functions(corpus))]
    for name in dict.fromkeys(("none", embedder)):
        with tempfile.TemporaryDirectory() as folder:
            store = CodeStore(Path(folder) / "code.db")
            index = TextIndex(store, open_embedder(name))
            with store.writing():
                for row in corpus:
                    body = row["content"].encode()
                    index.put(f"{row['id']}.py", blob_id(body), extract(body, "python"), row["content"])
            while index.embed(PART):
                pass
            table.append(_score_all("cosqa", f"clew, {name}", queries, _functions(index)))
            store.close()
    return table


def _functions(index: TextIndex) -> Search:
    def search(query: str) -> list[str]:
        paths = dict.fromkeys(hit.path for hit in index.search(query, limit=20, symbols=True))
        return [path.removesuffix(".py") for path in paths]

    return search


def _fts5_functions(corpus: Sequence[Row]) -> Search:
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


async def measure_memory(data: Path, embedder: str) -> list[Row]:
    """Questions to the turns of conversations, the mean over conversations: the trail's search, and with turns that
    are lifted by their neighbours."""
    corpus, queries = read(data / "memory_dev_corpus.jsonl"), read(data / "memory_dev.jsonl")
    found: dict[str, list[float]] = {"trail": [], "trail, neighbours": []}
    for name in dict.fromkeys(query["set"] for query in queries):
        documents = [row for row in corpus if row["set"] == name]
        asked = [query for query in queries if query["set"] == name]
        for way, scores in (await _measure_conversation(documents, asked, embedder)).items():
            found[way].append(statistics.mean(scores))
    return [
        {
            "set": "memory",
            "way": way,
            "queries": len(queries),
            "ndcg": statistics.mean(scores),
            "ms": 0.0,
            "p95_ms": 0.0,
        }
        for way, scores in found.items()
    ]


async def _measure_conversation(
    documents: Sequence[Row], asked: Sequence[Row], embedder: str
) -> dict[str, list[float]]:
    sessions: dict[str, list[str]] = {}
    for row in documents:
        sessions.setdefault(row["id"].rpartition(":")[0], []).append(row["id"])
    trail = await open_trail("sqlite://:memory:", embedder=open_embedder(embedder))
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
        lifted = await lift(trail, scores, by=ME)
        results["trail"].append(score([ids[each] for each in scores], query)["ndcg"])
        best = sorted(lifted, key=lambda each: -lifted[each])
        results["trail, neighbours"].append(score([ids[each] for each in best], query)["ndcg"])
    await trail.close()
    return results


def _score_all(name: str, way: str, queries: Sequence[Row], search: Search) -> Row:
    scores, times = [], []
    search(queries[0]["query"])
    for query in queries:
        began = time.perf_counter()
        ranked = search(query["query"])
        times.append(1000 * (time.perf_counter() - began))
        scores.append(score(ranked, query)["ndcg"])
    return {"set": name, "way": way, "queries": len(queries), "ndcg": statistics.mean(scores), **_speed(times)}


def _speed(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"ms": statistics.mean(times), "p95_ms": ordered[int(0.95 * (len(ordered) - 1))]}


def show(table: Sequence[Mapping[str, Any]]) -> None:
    print("| set | way | queries | nDCG@10 | ms | p95 ms |\n|---|---|---|---|---|---|")
    for row in table:
        print(
            f"| {row['set']} | {row['way']} | {row['queries']} | {row['ndcg']:.3f} |"
            f" {row['ms']:.1f} | {row['p95_ms']:.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repos", type=Path, default=REPOS, help="git directories, named owner+name/repo")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--every", type=int, default=1, help="use each N-th question only")
    parser.add_argument("--only", default="localisation,code_search,memory")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"no benchmark data in {arguments.data}: nothing measured")
    table: list[Row] = []
    if "localisation" in arguments.only:
        table += measure_localisation(arguments.data, arguments.repos, arguments.every)
    if "code_search" in arguments.only:
        table += measure_code_search(arguments.data, arguments.embedder)
    if "memory" in arguments.only:
        table += asyncio.run(measure_memory(arguments.data, "wordllama"))
    show(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
