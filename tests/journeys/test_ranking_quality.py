"""The default ranking on real queries, if the benchmark data is installed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import DATA

RANKING = Path(__file__).parents[2] / "benchmarks" / "ranking.py"


@pytest.fixture
def ranking(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(RANKING.parent)
    spec = importlib.util.spec_from_file_location("bench_ranking", RANKING)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_ranking"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.req("BEY-02")
@pytest.mark.req("O2")
@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data is not beside the project")
async def test_the_default_beats_the_engine_and_reaches_its_goal_on_the_tool_sets(
    ranking: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "RANKINGS", ("default",))
    asked = argparse.Namespace(data=DATA, sets="toole,bfcl,stb,mcpbench", every=4, embedder="wordllama")
    table = await ranking.measure(asked)
    by_ranking = {
        name: [row["ndcg"] for row in table if row["ranking"] == name and row["group"] == "tools"]
        for name in ("fts5", "default")
    }
    assert len(by_ranking["default"]) == 4
    assert sum(by_ranking["default"]) / 4 >= 0.70
    assert all(ours > theirs for ours, theirs in zip(by_ranking["default"], by_ranking["fts5"], strict=True))
