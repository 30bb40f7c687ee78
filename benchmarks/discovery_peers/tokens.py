"""The tokens before a model's first call: a listing of all tools, or of two tools and the answer of `ask`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.adapters.mcp.listing import LISTING
from clew.catalog.operations.answers import Question
from clew.llm.tokens import count_tokens
from discovery_peers.data import Row, read_queries, read_tools, spread
from discovery_peers.ours import ME, open_catalog
from discovery_peers.tables import average, table, tell

SIZES = (300, 3_000)
QUESTIONS = 40


async def measure(folder: Path, sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    tools, queries = read_tools(folder), read_queries(folder)
    ours = count_tokens(json.dumps(LISTING.model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]))
    rows = []
    for size in sizes:
        chosen = spread(tools, size)
        tell(f"tokens of {len(chosen):,} tools")
        async with open_catalog(chosen) as held:
            answers = [
                await held.catalog.ask(Question(query=query[:4000]), by=ME) for query in spread(queries, QUESTIONS)
            ]
        paid = [count_tokens(answer.markdown) for answer in answers]
        listed = count_tokens(json.dumps([as_listed(row) for row in chosen]))
        about = {"tools": len(chosen), "listed": listed, "two_tools": ours}
        rows.append({**about, "answer_mean": average(paid), "answer_max": max(paid)})
    return rows


def as_listed(row: Row) -> dict[str, Any]:
    """A tool as `tools/list` shows it."""
    return {"name": row.name, "description": row.description, "inputSchema": row.schema}


def render(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        [
            f"{row['tools']:,}",
            f"{row['listed']:,}",
            f"{row['two_tools']:,}",
            f"{row['answer_mean']:,.0f}",
            f"{row['answer_max']:,}",
            f"{row['listed'] / (row['two_tools'] + row['answer_mean']):.0f}",
        ]
        for row in rows
    ]
    return table(["tools", "listed plainly", "ask and get", "an answer, mean", "largest", "times less"], lines)
