"""The trail's benchmark at a tiny size, without the peers that only its own environment has."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEERS = "chroma,lancedb,postgres,postgres-hnsw,fastapi"
SIZE = 300

sys.path.insert(0, str(BENCHMARKS))

from speed.contenders import Place, Unavailable  # noqa: E402  # the folder is no package
from speed.corpus import SHARES, Corpus, item_number, vocabulary  # noqa: E402
from speed.report import Promise, Row, render  # noqa: E402
from speed.timing import Rounds, paired_ratio, percentile, rotate  # noqa: E402


def run_benchmark(folder: Path, only: str) -> tuple[dict[str, Any], str]:
    """The JSON and the tables of a quick run, which must leave nothing behind in its scratch folder."""
    scratch, results = folder / "scratch", folder / "results" / "trail.json"
    scratch.mkdir()
    options = ["--records", str(SIZE), "--quick", "--rounds", "1", "--only", only, "--without", PEERS]
    command = [
        sys.executable,
        str(BENCHMARKS / "trail.py"),
        *options,
        "--json",
        str(results),
        "--scratch",
        str(scratch),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(scratch.iterdir()) == []
    assert str(scratch) not in "".join(read_command_lines())
    return json.loads(results.read_text(encoding="utf-8")), done.stdout


def read_command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:  # a process that has ended meanwhile
            continue
    return found


def contenders(results: dict[str, Any], measure: str, *, measured: bool = True) -> set[str]:
    rows = [row for row in results["rows"] if row["measure"] == measure]
    return {row["contender"] for row in rows if bool(row["values"]) == measured}


def assert_figures_make_sense(results: dict[str, Any]) -> None:
    for row in results["rows"]:
        for name, value in row["values"].items():
            assert math.isfinite(value), (row, name)
            assert value > 0 or name in ("ms over python", "p50 ms", "p95 ms"), (row, name)


def test_the_trail_is_measured_and_peers_left_out_are_named(tmp_path: Path) -> None:
    results, tables = run_benchmark(tmp_path, "search,filters,creates,ingest,handlers")

    assert contenders(results, "hybrid search, k = 10") == {"clew"}
    assert contenders(results, "hybrid search, k = 10", measured=False) == {"lancedb", "chroma"}
    assert contenders(results, "search right after a write") == {"clew"}
    assert contenders(results, "search after opening and after many writes") == {
        "clew, after opening",
        "clew, after 100 writes",
    }
    arms = ("clew, vectors", "clew, hybrid", "clew, hybrid, first after a write", "numpy, exact")
    filtered = contenders(results, "filtered search, k = 10")
    assert filtered == {f"{share} %: {arm}" for share in SHARES for arm in arms}
    assert contenders(results, "durable creates") == {"clew", "sqlite"}
    assert contenders(results, "durable creates", measured=False) == {"postgres", "postgres-hnsw", "chroma"}
    arms = ("clew", "our embedder alone", "wordllama's code alone")
    assert {f"{arm}, made texts" for arm in arms} <= contenders(results, "ingest with embedding")
    assert len(contenders(results, "write to handler")) == 3
    assert contenders(results, "events handled") == {"clew, one writer", "clew, 8 writers", "sqlite loop"}
    assert_figures_make_sense(results)
    promised = {promise["name"]: promise for promise in results["promises"]}
    assert promised["writes found by the next search"]["value"] == 1.0
    assert all(promised[f"filter of {share} %, recall@10"]["value"] == 1.0 for share in SHARES)
    assert {"creates, one a transaction, of sqlite", "creates, batches of 100, of sqlite"} <= promised.keys()
    assert "### durable creates" in tables
    assert "left out" in tables


def test_servers_and_starts_are_measured(tmp_path: Path) -> None:
    results, tables = run_benchmark(tmp_path, "rest,startup")

    served = contenders(results, "REST with 16 connections")
    assert served == {"clew", "clew, no embedder", "Starlette + msgspec + sqlite3"}
    commands = contenders(results, "starting a command")
    assert commands == {"python alone", "import clew", "import clew.trail", "clew --help"}
    assert contenders(results, "starting the server") == {"clew up"}
    assert_figures_make_sense(results)
    assert results["machine"]["cores"] >= 1
    assert results["settings"]["records"] == [SIZE]
    assert "### promises" in tables


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    command = [sys.executable, str(BENCHMARKS / "trail.py"), "--only", "serch"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'serch' is none of search, filters" in done.stderr


def test_made_records_are_distinct_repeatable_and_of_the_promised_shape() -> None:
    items = Corpus().make(2_000)

    again = Corpus().make(2_000)
    assert [(item.text, item.tags) for item in items] == [(item.text, item.tags) for item in again]
    assert len({item.text for item in items}) == len(items)
    words = [len(item.title.split()) + len(item.text.split()) for item in items]
    assert 55 < sum(words) / len(words) < 65
    assert all(len(item.tags) == 5 and item.vector.shape == (256,) for item in items)
    assert [item_number(item.id) for item in items] == list(range(2_000))
    assert 18_000 < len(set(vocabulary())) <= 20_000
    for share in SHARES:
        passing = sum(f"pass:{share}" in item.tags for item in items) / len(items)
        assert passing == pytest.approx(share / 100, rel=0.5)


def test_percentiles_and_ratios_are_what_they_say() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 101)], 0.95) == 95.0
    assert percentile([7.0], 0.95) == 7.0
    assert paired_ratio([2.0, 2.0, 90.0], [1.0, 2.0, 30.0]) == 2.0
    assert list(rotate(("a", "b", "c"), 4)) == ["b", "c", "a"]
    rounds = Rounds()
    for samples in ([0.001], [0.002, 0.002], [0.009]):
        rounds.begin()
        for sample in samples:
            rounds.add(sample)
    assert rounds.milliseconds(0.5) == 2.0


def test_a_promise_says_whether_it_is_kept() -> None:
    slow = Promise(name="p95", records=10, value=12.0, target=10.0, at_least=False)
    good = Promise(name="recall", records=10, value=0.97, target=0.95)
    assert not slow.is_kept
    assert good.is_kept
    tables = render([Row(measure="m", records=1_000, contender="them", note="not installed"), slow, good])
    assert "| 1,000 | them | not installed |" in tables
    assert "| 10 | p95 | 12.0 | ≤ 10.0 | **no** |" in tables
    assert "| 10 | recall | 0.97 | ≥ 0.95 | yes |" in tables


def test_a_peer_that_is_not_installed_says_so() -> None:
    with pytest.raises(Unavailable, match="not installed"):
        Place("speed.chroma", "no_such_package_anywhere").load()
