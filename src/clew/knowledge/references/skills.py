"""The skills of whoever knows what others wrote, as they are offered to agents: three from the start, two that a
conversation about sources or designs brings. They are the library's own functions under shorter names."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

import msgspec

from clew.knowledge.references.ingesting import Kind, NewSource
from clew.knowledge.references.pages import to_moment
from clew.knowledge.references.research import DEPTHS, Library
from clew.skills.declaring import Declared, declare

DOMAIN = "research"


def library_skills(library: Library) -> tuple[Declared, ...]:
    """The five skills for one library."""
    return _research(library), _compare(library), _best_practices(library), _ingest(library), _propose(library)


def _research(library: Library) -> Declared:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        found = await library.research(arguments["topic"], arguments.get("depth", "standard"))
        return _told(found)

    return (
        declare("research")
        .describe("Research a topic in documents, papers and packages; the findings cite their sources")
        .in_domain(DOMAIN, "research", "investigate", "study", "learn about")
        .with_priority(100)
        .in_tier(1)
        .string("topic", "What to find out", required=True)
        .enum("depth", *DEPTHS, about="How many sources to look at: 10, 20 or 30")
        .handled_by(run)
        .build()
    )


def _compare(library: Library) -> Declared:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        context, criteria = arguments.get("context", ""), arguments.get("criteria", ())
        return _told(await library.compare_approaches(arguments["approaches"], context, criteria))

    return (
        declare("compare")
        .describe("Compare approaches or technologies by what references say of them")
        .in_domain(DOMAIN, "compare", "vs", "versus", "or", "tradeoffs")
        .with_priority(90)
        .in_tier(1)
        .array("approaches", "Two to four", required=True)
        .string("context", "What they are for")
        .array("criteria", "What to compare them by")
        .handled_by(run)
        .build()
    )


def _best_practices(library: Library) -> Declared:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return _told(await library.find_best_practices(arguments["topic"], arguments.get("technology", "")))

    return (
        declare("best_practices")
        .describe("Find what is recommended on a topic")
        .in_domain(DOMAIN, "best practice", "recommended", "standard", "how should")
        .with_priority(90)
        .in_tier(1)
        .string("topic", required=True)
        .string("technology", "A language, library or tool that it is about")
        .handled_by(run)
        .build()
    )


def _ingest(library: Library) -> Declared:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in arguments.items() if name != "published_at"}
        published: datetime | None = to_moment(arguments.get("published_at", ""))
        return _told(await library.ingest_source(NewSource(**given, published_at=published)))

    return (
        declare("ingest_source")
        .describe("Take in a source for research: a file or a text. Nothing is fetched")
        .in_domain(DOMAIN, "github", "paper", "article", "rfc")
        .triggered_by("github|paper|article|rfc|spec")
        .enum("kind", *get_args(Kind), about="What it is; that decides how far it is believed", required=True)
        .string("path", "A file of the project")
        .string("text", "The text itself, instead of a path")
        .string("title")
        .string("url", "Where it is from; kept, not fetched")
        .array("authors")
        .string("published_at", "A date such as 2022-06-01")
        .string("venue")
        .handled_by(run)
        .build()
    )


def _propose(library: Library) -> Declared:
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        return _told(await library.design_proposal(arguments["request"], arguments.get("context", "")))

    return (
        declare("design_proposal")
        .describe("Create a design proposal from what exists, what was decided and what others wrote")
        .in_domain(DOMAIN, "design", "architecture", "proposal")
        .triggered_by("design|architect|proposal")
        .string("request", "What is to be built", required=True)
        .string("context", "What has to be kept in mind")
        .handled_by(run)
        .build()
    )


def _told(answer: msgspec.Struct) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(answer)
    return told
