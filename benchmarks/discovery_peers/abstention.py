"""Abstention: the shares of unanswerable questions and of real questions that get the answer that nothing matches, at
one threshold for all sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.trail.search.closeness import CLOSE
from discovery_peers.data import Set
from discovery_peers.ours import open_catalog
from discovery_peers.tables import average, table

ARMS: dict[str, tuple[str | None, float]] = {"vectors": ("wordllama", CLOSE), "words": (None, 1.0)}
STEPS = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0)
"""Thresholds that are tried, as multiples of the one in use."""


async def measure(each: Set) -> list[dict[str, Any]]:
    rows = []
    for arm, (embedder, used) in ARMS.items():
        async with open_catalog(each.own, embedder, as_documents=each.group == "skills") as ours:
            real = [await ours.relevance(question.query) for question in each.questions]
            foreign = [await ours.relevance(query) for query in each.foreign]
        for step in STEPS:
            at = round(step * used, 4)
            about = {"set": each.name, "arm": arm, "threshold": at, "in_use": step == 1.0}
            refused, told = average([value < at for value in real]), average([value < at for value in foreign])
            rows.append({**about, "refused": refused, "told": told, "auc": tell_apart(real, foreign)})
    return rows


def tell_apart(real: Sequence[float], foreign: Sequence[float]) -> float:
    """How often a real question has the higher value of a pair; a tie counts half."""
    pairs = [(mine > other) + (mine == other) / 2 for mine in real for other in foreign]
    return average(pairs)


def render(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each threshold: the refused real questions and the recognised foreign ones, for each set and in the
    mean."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    parts = []
    for arm in ARMS:
        cells = {(row["set"], row["threshold"]): row for row in rows if row["arm"] == arm}
        lines = []
        for at in dict.fromkeys(threshold for _, threshold in cells):
            here = [cells[name, at] for name in sets]
            means = average([row["refused"] for row in here]), average([row["told"] for row in here])
            shown = [f"{row['refused']:.1%} / {row['told']:.0%}" for row in here]
            lines.append([f"**{at:g}**" if here[0]["in_use"] else f"{at:g}", *shown, "{:.1%} / {:.0%}".format(*means)])
        areas = [next(row["auc"] for row in rows if (row["set"], row["arm"]) == (name, arm)) for name in sets]
        lines.append(["AUC", *(f"{area:.2f}" for area in areas), f"{average(areas):.2f}"])
        parts.append(table([f"{arm}: refused / told", *sets, "mean"], lines))
    return "\n\n".join(parts)
