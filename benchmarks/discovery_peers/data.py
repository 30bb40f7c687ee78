"""The public sets as tools: one name, one description and one schema a row, the same for every contender."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
GROUPS = {
    "tools": ("tools_dev_corpus", "tools_dev", ""),
    "skills": ("skills_dev_corpus", "skills_dev", "skills_dev_distractors"),
}
NEGATIVES = "skills_dev_negatives"
MORE_TOOLS = "tools_distractors_docker"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_PARAMETER = re.compile(r"(?:^|; )([A-Za-z_][\w.\-\[\]]*)(?: \(([A-Za-z/ ]+)\))?:([^;]*)")
_SERVER = re.compile(r"server: ([^;]+);")
_TYPES = {"string", "integer", "number", "boolean", "array", "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tool or skill. `text` is its body, or the parameters that the set lists; `home` the server that has it."""

    id: str
    name: str
    description: str
    text: str
    schema: dict[str, Any]
    home: str = ""

    @property
    def parameters(self) -> str:
        """Names and descriptions of the parameters as one text."""
        found = self.schema["properties"].items()
        return " ".join(f"{name} {each.get('description', '')}".strip() for name, each in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with the ids that answer it; of a group in `any_of` one will do."""

    query: str
    relevant: frozenset[str]
    any_of: tuple[frozenset[str], ...] = ()

    @property
    def units(self) -> list[frozenset[str]]:
        grouped = frozenset().union(*self.any_of)
        return [frozenset({id}) for id in sorted(self.relevant - grouped)] + list(self.any_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """One catalogue with its questions, and questions that none of its `own` entries answers; a distractor may answer
    one."""

    group: str
    name: str
    rows: Sequence[Row]
    own: Sequence[Row]
    questions: Sequence[Asked]
    foreign: Sequence[str] = field(default=())


def read_sets(folder: Path, only: frozenset[str] = frozenset(), every: int = 1) -> Iterator[Set]:
    """All sets in the order of their files. `foreign` holds a set's own negatives, or else questions of the others."""
    for group, (corpus, queries, more) in GROUPS.items():
        documents, asked = read(folder / f"{corpus}.jsonl"), read(folder / f"{queries}.jsonl")
        distractors = read(folder / f"{more}.jsonl") if more else []
        negatives = read(folder / f"{NEGATIVES}.jsonl") if group == "skills" else []
        for name in dict.fromkeys(query["set"] for query in asked):
            if only and name not in only:
                continue
            negative = [query["query"] for query in negatives if query["set"] == name]
            others = [query["query"] for query in asked if query["set"] not in (name, "mcpbench")]
            mine = [row for row in documents if row["set"] == name]
            rows = build_rows([*mine, *distractors])
            yield Set(
                group=group,
                name=name,
                rows=rows,
                own=rows[: len(mine)],
                questions=[to_asked(query) for query in asked if query["set"] == name][::every],
                foreign=negative or spread(others, 300)[::every],
            )


def read_tools(folder: Path) -> list[Row]:
    """All real tools there are, with the names of their rows made unique."""
    return build_rows([*read(folder / "tools_dev_corpus.jsonl"), *read(folder / f"{MORE_TOOLS}.jsonl")])


def read_queries(folder: Path) -> list[str]:
    return [query["query"] for query in read(folder / "tools_dev.jsonl")]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def spread(items: Sequence[T], number: int) -> list[T]:
    """At most this number of the items, evenly spaced."""
    chosen = min(number, len(items))
    return [items[at * len(items) // chosen] for at in range(chosen)]


def to_asked(query: dict[str, Any]) -> Asked:
    groups = tuple(frozenset(group) for group in query.get("any_of") or ())
    return Asked(query=query["query"], relevant=frozenset(query["relevant"]), any_of=groups)


def build_rows(documents: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows whose names every contender takes. A tool that has no description is described by its name."""
    names: dict[str, int] = {}
    rows = []
    for document in documents:
        name = _NOT_IN_NAMES.sub("-", document["name"]).strip("._-")[:99] or "tool"
        names[name] = names.get(name, 0) + 1
        text = document.get("content") or ""
        rows.append(
            Row(
                id=document["id"],
                name=name if names[name] == 1 else f"{name}-{names[name]}"[-99:],
                description=((document.get("description") or "").strip() or document["name"])[:4000],
                text=text,
                schema=read_schema(text),
                home=server.group(1) if (server := _SERVER.match(text)) else "",
            )
        )
    return rows


def read_schema(text: str) -> dict[str, Any]:
    """The JSON Schema of a row whose text lists parameters, else an empty schema."""
    _, found, listed = text.partition("parameters:")
    properties = {}
    for name, kind, about in _PARAMETER.findall(listed.strip()) if found else ():
        known = {"type": kind} if kind in _TYPES else {}
        properties[name] = known | ({"description": about.strip()} if about.strip() else {})
    return {"type": "object", "properties": properties}
