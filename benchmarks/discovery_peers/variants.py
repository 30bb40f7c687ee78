"""The value of indexing each field of a tool: nDCG@10 of the same search over different texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.indexing.tool_index import draft_of
from clew.catalog.operations.markdown import describe_params
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.query import SearchRequest
from discovery_peers.data import Row, Set
from discovery_peers.ours import ME, WHERE, build_domains
from discovery_peers.scores import mean, score
from discovery_peers.tables import average, table, with_best

AS_WRITTEN = "as the catalog writes it"
Text = Callable[[Row, Domain], str]
TEXTS: dict[str, Text] = {
    "name, description": lambda row, domain: "",
    "+ domain": lambda row, domain: domain.name,
    "+ parameters with types": lambda row, domain: describe_params(row.schema),
    "+ parameter names": lambda row, domain: " ".join(row.schema["properties"]),
    "+ parameter names, descriptions": lambda row, domain: row.parameters,
    "+ domain, parameter names, descriptions": lambda row, domain: f"{domain.name}\n{row.parameters}",
    "+ all text": lambda row, domain: row.text,
}


async def measure(each: Set) -> list[dict[str, Any]]:
    """Only for sets of tools."""
    if each.group != "tools":
        return []
    texts: dict[str, Text | None] = {AS_WRITTEN: None, **TEXTS}
    return [{"set": each.name, "variant": name, **await _score(each, text)} for name, text in texts.items()]


async def _score(each: Set, text: Text | None) -> dict[str, float]:
    trail = await open_trail("sqlite://:memory:", embedder=open_embedder("wordllama"))
    try:
        await bootstrap(trail, ME)
        ids, drafts, rows = {}, [], {row.name: row for row in each.rows}
        for domain in build_domains(each.rows):
            for tool in domain.tools:
                draft = draft_of(domain, tool, ME)
                ids[draft.context["route"]] = rows[tool.name].id
                if text is not None:
                    context = {**draft.context, "text": text(rows[tool.name], domain)}
                    hints = {"include": ["description", "text"]}
                    draft = msgspec.structs.replace(draft, context=context, llm_hints=hints)
                drafts.append(draft)
        for first in range(0, len(drafts), 1000):
            await trail.records.create_many(drafts[first : first + 1000], by=ME)
        scores = []
        for question in each.questions:
            request = SearchRequest(text=question.query, selector=WHERE, limit=10)
            hits = (await trail.index.search(request, by=ME)).hits
            scores.append(score([ids[hit.breadcrumb.context["route"]] for hit in hits], question))
        return mean(scores)
    finally:
        await trail.close()


def render(rows: Sequence[dict[str, Any]]) -> str:
    sets = list(dict.fromkeys(row["set"] for row in rows))
    found = {(row["set"], row["variant"]): row["ndcg"] for row in rows}
    lines = {name: [found[each, name] for each in sets] for name in dict.fromkeys(row["variant"] for row in rows)}
    columns = list(zip(*([*values, average(values)] for values in lines.values()), strict=True))
    shown = zip(*map(with_best, columns), strict=True)
    return table(["indexed", *sets, "mean"], [[name, *cells] for name, cells in zip(lines, shown, strict=True)])
