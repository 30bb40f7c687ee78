"""The labelled pairs of benchmarks/beliefs: their content, and the results of the ledger."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "knowledge_beliefs.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("knowledge_beliefs", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.req("BEY-05")
def test_there_are_enough_pairs_and_half_are_hard(benchmark: ModuleType) -> None:
    pairs = benchmark.read_pairs()
    assert len(pairs) >= 300
    assert len({pair.id for pair in pairs}) == len(pairs)
    assert sum(pair.hard for pair in pairs) * 2 >= len(pairs)
    assert {pair.label for pair in pairs} == {"contradicts", "supersedes", "same", "unrelated"}
    for pair in pairs:
        assert (pair.by in ("a", "b")) == (pair.label == "supersedes")
        for side in (pair.a, pair.b):
            assert re.fullmatch("[0-9a-f]{40}", side.commit)
            assert side.words


@pytest.mark.req("BEY-05")
def test_every_pair_gets_its_label(benchmark: ModuleType) -> None:
    wrong = [pair.id for pair in benchmark.read_pairs() if benchmark.relation_of(pair) != pair.label]
    assert wrong == []


@pytest.mark.req("BEY-05")
async def test_the_ledger_reaches_its_marks(benchmark: ModuleType, tmp_path: Path) -> None:
    found = await benchmark.measure(tmp_path, benchmark.read_pairs()[::4])
    assert benchmark.misses(found) == [], found
    assert found["false_contradictions"] <= 0.01
