"""Tools that read and write knowledge: those of the domains `code`, `history` and `reference`, and cross-agent names of
the Librarian and the Archivalist."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.domains.code import build_code
from clew.knowledge.domains.history import build_history
from clew.knowledge.domains.journal import entry_lines
from clew.knowledge.domains.reference import build_reference
from clew.knowledge.domains.tool_builder import OpenKnowledge
from clew.knowledge.history.brief import Tier, write_brief
from clew.knowledge.history.entries import ArchiveQuery, Category, CheckpointCategory
from clew.knowledge.history.links import Limit
from clew.team.members.toolkit.member_deps import READS, MemberDeps, in_session, session_principal
from clew.tools.content import GuidedContent
from clew.tools.tool import Effects, Tool, ToolContext, tool

SHARED = {
    "code": (
        "get_context",
        "list_files",
        "analyze_dependencies",
        "detect_patterns",
        "get_style_guide",
        "find_component",
        "check_dependency",
        "get_design_tokens",
        "find_design_token",
    ),
    "history": (
        "cross_session_query",
        "session_summary",
        "promote_pattern",
        "record_belief",
        "check_mistakes",
        "report_mistake",
        "get_preferences",
        "set_preference",
    ),
    "reference": (
        "research",
        "compare_approaches",
        "find_best_practices",
        "ingest_source",
        "design_proposal",
        "list_conflicts",
        "resolve_conflict",
    ),
}
"""Tools of domains that members have under the same name."""
_ENTRIES, _CHECKPOINTS = tuple(Category), tuple(CheckpointCategory)
WRITES = Effects(repeats_safely=True, reaches_out=False)
Operation = Literal["read", "modified", "created"]
SymbolType = Literal["function", "type", "const", "var", "all"]
KINDS: dict[SymbolType, str] = {
    "function": "function",
    "type": "class",
    "const": "constant",
    "var": "variable",
    "all": "all",
}


def knowledge_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return the tools that read and write knowledge."""
    return (*_shared(deps.knowledge), *_librarian(deps), *_reading_journal(deps), *_writing_journal(deps))


def _shared(known: OpenKnowledge) -> list[Tool]:
    """The tools of the domains, in the session of the team."""
    domains = (build_code(known), build_history(known), build_reference(known))
    made = {(domain.name, each.name): each for domain in domains for each in domain.tools}
    return [_for_member(made[domain, name]) for domain, names in SHARED.items() for name in names]


def _for_member(made: Tool) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        found = await made.call(arguments, in_session(context))
        return msgspec.structs.replace(found, guidance=())  # routes of the catalog are not tools of a member

    return msgspec.structs.replace(made, call=call, searchable=False)


def _librarian(deps: MemberDeps) -> tuple[Tool, ...]:
    domain = {each.name: each for each in build_code(deps.knowledge).tools}

    async def of_code(name: str, ctx: ToolContext, **arguments: Any) -> GuidedContent:
        made = _for_member(domain[name])
        return await made.call(made.check(arguments), ctx)

    @tool(name="librarian_search_code", searchable=False, effects=READS)
    async def search_code(
        query: str, ctx: ToolContext, file_glob: str = "", symbol_type: SymbolType = "all", limit: Limit = 10
    ) -> GuidedContent:
        """Search the code for functions, classes, files and words.

        Args:
            query: names, words, or what it is for
            file_glob: only below a path, a glob such as src/**
            symbol_type: the kind of symbol
            limit: number of results
        """
        given = {"query": query, "limit": limit, "symbol_type": KINDS[symbol_type], "file_pattern": file_glob}
        return await of_code("search_code", ctx, **given)

    @tool(name="librarian_get_structure", searchable=False, effects=READS)
    async def get_structure(
        ctx: ToolContext, path: str = "", depth: Annotated[int, msgspec.Meta(ge=1, le=5)] = 2
    ) -> GuidedContent:
        """Show the folders of the repository, with their languages and sizes.

        Args:
            path: a folder; empty for all
            depth: number of levels
        """
        return await of_code("get_structure", ctx, path=path, depth=depth)

    @tool(name="librarian_get_dependencies", searchable=False, effects=READS)
    async def get_dependencies(
        path: str, ctx: ToolContext, direction: Literal["imports", "imported_by", "both"] = "both"
    ) -> str:
        """List what a file imports, and what imports it.

        Args:
            path: a file, or path#name
            direction: one direction, or both
        """
        parts = []
        if direction != "imported_by":
            parts.append(("Imports", await of_code("get_dependencies", ctx, symbol_id=path)))
        if direction != "imports":
            parts.append(("Imported by", await of_code("get_dependents", ctx, symbol_id=path)))
        return "\n\n".join(f"## {title}\n\n{found.content}" for title, found in parts)

    return search_code, get_structure, get_dependencies


def _reading_journal(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="archivalist_query_chronicle", searchable=False, effects=READS)
    async def query_chronicle(
        ctx: ToolContext,
        search_text: str = "",
        categories: tuple[str, ...] = (),
        session_ids: tuple[str, ...] = (),
        cross_session: bool = False,
        limit: Limit = 10,
    ) -> str:
        """List entries of the journal: best first with a text, else newest first.

        Args:
            search_text: words to search for
            categories: only these categories
            session_ids: only these sessions
            cross_session: entries of all sessions, in place of this one and promoted ones
            limit: number of entries
        """
        by = session_principal(ctx)
        if unknown := [each for each in categories if each not in (*_ENTRIES, *_CHECKPOINTS)]:
            hint = f"Categories are {', '.join((*_ENTRIES, *_CHECKPOINTS))}"
            raise InvalidInput("categories", f"{unknown[0][:50]!r} is not a category", hint=hint)
        wanted = ArchiveQuery(
            search_text=search_text,
            categories=[Category(each) for each in categories if each in _ENTRIES],
            checkpoints=[CheckpointCategory(each) for each in categories if each in _CHECKPOINTS],
            session_ids=session_ids,
            cross_session=cross_session or bool(session_ids),
            limit=limit,
        )
        return entry_lines(await (await deps.knowledge()).chronicle(by, by.session or "").query(wanted))

    @tool(name="archivalist_get_briefing", searchable=False, effects=READS)
    async def get_briefing(ctx: ToolContext, tier: Tier = "standard") -> str:
        """Show the state of the session: open threads, decisions and failures.

        Args:
            tier: the length
        """
        knowledge, by = await deps.knowledge(), session_principal(ctx)
        chronicle = knowledge.chronicle(by, by.session or "")
        return (await write_brief(chronicle, tier, await knowledge.decisions.nodes())).text

    return query_chronicle, get_briefing


async def _store(
    deps: MemberDeps, content: str, category: Category, title: str, ctx: ToolContext, tags: tuple[str, ...] = ()
) -> str:
    """Write an entry of the session of a call. Raises InvalidInput."""
    if not content.strip():
        raise InvalidInput("content", "is empty")
    by = session_principal(ctx)
    chronicle = (await deps.knowledge()).chronicle(by, by.session or "")
    return f"Stored as {(await chronicle.store(content, category, title, tags=tags)).id}."


def _writing_journal(deps: MemberDeps) -> tuple[Tool, ...]:
    @tool(name="archivalist_store_entry", searchable=False, effects=WRITES)
    async def store_entry(content: str, category: Category, ctx: ToolContext, title: str = "") -> str:
        """Write an entry of this session into the journal.

        Args:
            content: one statement
            category: what it is
            title: a short name
        """
        return await _store(deps, content, category, title, ctx)

    @tool(name="archivalist_record_file", searchable=False, effects=WRITES)
    async def record_file(
        path: str, operation: Operation, ctx: ToolContext, summary: str = "", changes: tuple[str, ...] = ()
    ) -> str:
        """Record what was done with a file, in the timeline of the session.

        Args:
            path: path relative to the repository
            operation: what was done
            summary: a sentence
            changes: single changes
        """
        lines = [f"{operation} {path}{f': {summary}' if summary else ''}", *(f"- {each}" for each in changes)]
        return await _store(deps, "\n".join(lines), Category.TIMELINE, f"{operation} {path}"[:100], ctx, ("file",))

    @tool(name="archivalist_record_pattern", searchable=False, effects=WRITES)
    async def record_pattern(category: str, name: str, pattern: str, ctx: ToolContext, example: str = "") -> str:
        """Record a pattern of the code.

        Args:
            category: the subject, such as errors or tests
            name: a short name
            pattern: the rule
            example: code that follows it
        """
        text = f"{category}: {pattern}" + (f"\n\nExample:\n{example}" if example else "")
        return await _store(deps, text, Category.PATTERN, name, ctx, (category[:60],))

    @tool(name="archivalist_record_failure", searchable=False, effects=WRITES)
    async def record_failure(
        approach: str, reason: str, ctx: ToolContext, context: str = "", resolution: str = ""
    ) -> str:
        """Record an approach that failed, and what solved it.

        Args:
            approach: what was tried
            reason: why it failed
            context: where it applies
            resolution: what worked in its place
        """
        more = [f"{label}: {text}" for label, text in (("Context", context), ("Resolution", resolution)) if text]
        return await _store(deps, "\n".join([f"{approach}: {reason}", *more]), Category.FAILURE, approach[:100], ctx)

    return store_entry, record_file, record_pattern, record_failure
