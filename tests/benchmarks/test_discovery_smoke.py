"""The benchmark of discovery on a catalogue of a few rows: that it runs, and that its figures are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))

from discovery_peers.abstention import tell_apart  # noqa: E402  # the folder is no package
from discovery_peers.data import Asked, build_rows, read_schema, read_sets, spread  # noqa: E402
from discovery_peers.fts5 import Fts5  # noqa: E402
from discovery_peers.ranking import complaints  # noqa: E402
from discovery_peers.scores import score  # noqa: E402

TOOLS = {
    "weather": "Tells the weather forecast of a city",
    "exchange_rate": "Converts money from one currency to another",
    "translate": "Translates a text into another language",
    "find_flights": "Finds flights between two airports",
    "recipe": "Finds recipes for the ingredients in the fridge",
}
ASKED = {
    "weather": "will it rain in the city tomorrow, what is the forecast",
    "exchange_rate": "convert dollars to another currency",
}


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The files of the shared data, with one tiny set for tools and one for skills."""
    for name, corpus in (("tools_dev", "tiny"), ("skills_dev", "small")):
        about = "parameters: place (string): Where"
        rows = [
            {"id": f"{corpus}:{tool}", "name": tool, "description": text, "content": about, "set": corpus}
            for tool, text in TOOLS.items()
        ]
        asked = [{"query": text, "relevant": [f"{corpus}:{tool}"], "set": corpus} for tool, text in ASKED.items()]
        write(tmp_path, f"{name}_corpus", rows)
        write(tmp_path, name, asked)
    extra = {"id": "d:chess", "name": "chess", "description": "Plays chess", "content": "", "set": "extra"}
    write(tmp_path, "skills_dev_distractors", [extra])
    write(tmp_path, "tools_distractors_docker", [{**extra, "name": "Draughts & more"}])
    write(tmp_path, "skills_dev_negatives", [{"query": "quantum gravity", "relevant": [], "set": "small"}])
    return tmp_path


def test_every_measure_has_figures_for_every_set(data: Path, tmp_path: Path) -> None:
    results = tmp_path / "results" / "discovery.json"
    command = [sys.executable, str(BENCHMARKS / "discovery.py"), "--data", str(data), "--json", str(results)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(results.read_text(encoding="utf-8"))
    ranked = {(row["set"], row["contender"]): row for row in found["ranking"]}
    assert {name for name, _ in ranked} == {"tiny", "small"}
    for name in ("tiny", "small"):
        assert {"clew", "vectors", "rrf", "fts5"} <= {contender for each, contender in ranked if each == name}
        assert ranked[name, "clew"]["ndcg"] == 1
        assert ranked[name, "clew"]["exact"] == 1
    assert {(row["set"], row["arm"]) for row in found["abstention"]} >= {("small", "vectors"), ("small", "words")}
    assert all(0 <= row["refused"] <= 1 and 0 <= row["told"] <= 1 for row in found["abstention"])
    assert {row["set"] for row in found["variants"]} == {"tiny"}
    (skills,) = found["skills"]
    assert (skills["set"], skills["ndcg"], skills["told"]) == ("small", 1, 1)
    assert skills["catalogue_tokens"] <= 1_500
    assert all(row["listed"] > 0 and row["two_tools"] <= 600 for row in found["tokens"])
    assert "| tiny |" in done.stdout


def test_without_data_nothing_is_measured_and_that_is_said(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "discovery.py"), "--data", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "no benchmark data" in done.stderr


def test_a_set_holds_its_distractors_and_its_own_negatives(data: Path) -> None:
    tools, skills = read_sets(data)
    assert len(tools.rows) == 5
    assert len(skills.rows) == 6
    assert [row.name for row in skills.own] == list(TOOLS)
    assert list(skills.foreign) == ["quantum gravity"]


def test_rows_get_names_that_are_unique_and_that_all_contenders_take() -> None:
    rows = build_rows(
        [
            {"id": "1", "name": "A tool: it's here", "description": ""},
            {"id": "2", "name": "A tool! it s here", "description": "second"},
        ]
    )
    assert [row.name for row in rows] == ["A-tool-it-s-here", "A-tool-it-s-here-2"]
    assert rows[0].description == "A tool: it's here"


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        (
            "parameters: base (integer): The base; unit (string): (cm, m)",
            {
                "base": {"type": "integer", "description": "The base"},
                "unit": {"type": "string", "description": "(cm, m)"},
            },
        ),
        ("server: X; parameters: scr: ; age: In years", {"scr": {}, "age": {"description": "In years"}}),
        ("server: X; parameters:", {}),
        ("A body of prose: without any.", {}),
    ],
)
def test_schemas_are_read_from_what_the_sets_say(text: str, properties: dict[str, Any]) -> None:
    assert read_schema(text)["properties"] == properties


def test_scores_count_a_group_once_and_only_the_first_ten() -> None:
    question = Asked(query="", relevant=frozenset({"a", "b", "c"}), any_of=(frozenset({"b", "c"}),))
    assert score(["a", "b", "c"], question)["ndcg"] == 1
    assert score(["x", "c"], question)["r5"] == 0.5
    assert score([*"0123456789", "a"], question) == {"ndcg": 0, "r1": 0, "r5": 0, "r10": 0, "mrr": 0}


def test_negatives_that_score_lower_are_distinguished() -> None:
    assert tell_apart([2, 3], [1, 1]) == 1
    assert tell_apart([1], [1]) == 0.5


async def test_fts5_without_words_finds_nothing() -> None:
    rows = build_rows([{"id": "1", "name": "a", "description": "b"}])
    assert await Fts5(rows, tuned=True).rank("?!") == []


def test_being_behind_a_peer_is_said_loudly() -> None:
    def row(contender: str, ndcg: float) -> dict[str, Any]:
        return {"group": "tools", "set": "s", "contender": contender, "ndcg": ndcg, "exact": 0.5}

    said = complaints([row("clew", 0.5), row("fts5", 0.6)])
    assert [line.split()[0] for line in said] == ["NOT", "BEHIND", "NAMES"]
    assert complaints([{**row("clew", 0.7), "exact": 1}, row("fts5", 0.6)]) == []


def test_items_are_spread_evenly() -> None:
    assert spread(["a", "b", "c", "d"], 2) == ["a", "c"]
    assert spread([], 2) == []
