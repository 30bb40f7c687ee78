"""Consultations between members. A question and its answer are messages of the team, so every consultation is in the
log of the session. Knowledge answers without a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from clew.catalog.operations.markdown import cited_line, known_lines
from clew.knowledge.domains.reference import findings_text
from clew.team.members.toolkit.member_deps import MemberDeps, in_session
from clew.team.messages.conversation import get_conversation
from clew.team.messages.message_types import ACADEMIC, ARCHIVALIST, LIBRARIAN, MessageType
from clew.team.messages.payloads import TeamQuery, TeamQuestion, TeamReply
from clew.tools.tool import Effects, Tool, ToolContext, tool

_T = MessageType
CONSULTS = Effects(repeats_safely=True, reaches_out=False, keyed=True)
NOTHING = "Nothing is known of that."
Answer = Callable[[str, ToolContext], Awaitable[tuple[str, tuple[str, ...]]]]
"""The answer of a knowledge agent with its sources."""


def consultation_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return the tools with which members ask each other."""

    async def consult(
        role: str, request: MessageType, response: MessageType, query: str, answer: Answer, ctx: ToolContext
    ) -> str:
        place = get_conversation(ctx.by.session)
        asked = await deps.tell(request, TeamQuery(query=query, pipeline=place.pipeline), ctx, target=role)
        text, sources = await answer(query, ctx)
        reply = TeamReply(text=text or NOTHING, request=asked.id, pipeline=place.pipeline, sources=sources)
        await deps.tell(response, reply, ctx, target=ctx.by.agent_id, source=role)
        return reply.text

    @tool(name="consult_librarian", searchable=False, effects=CONSULTS)
    async def consult_librarian(question: str, ctx: ToolContext) -> str:
        """Ask about the code of this repository.

        Args:
            question: one question
        """

        async def answer(query: str, ctx: ToolContext) -> tuple[str, tuple[str, ...]]:
            known = await (await deps.knowledge()).answer(query, in_session(ctx).by)
            lines = [*known_lines(known.notes, known.text), *map(cited_line, known.items)]
            return "\n".join(lines), tuple(each.place or each.id for each in known.items)

        return await consult(LIBRARIAN, _T.CONTEXT_REQUEST, _T.CONTEXT_RESPONSE, question, answer, ctx)

    @tool(name="consult_archivalist", searchable=False, effects=CONSULTS)
    async def consult_archivalist(question: str, ctx: ToolContext) -> str:
        """Ask about decisions, failures and work of all sessions.

        Args:
            question: one question
        """

        async def answer(query: str, ctx: ToolContext) -> tuple[str, tuple[str, ...]]:
            found = await (await deps.knowledge()).archive(in_session(ctx).by).find(query, 8)
            lines = [f"- {each.node.at:%Y-%m-%d} {each.node.content[:500]} ({each.node.id})" for each in found]
            return "\n".join(lines), tuple(each.node.id for each in found)

        return await consult(ARCHIVALIST, _T.HISTORY_REQUEST, _T.HISTORY_RESPONSE, question, answer, ctx)

    @tool(name="consult_academic", searchable=False, effects=CONSULTS)
    async def consult_academic(question: str, ctx: ToolContext) -> str:
        """Ask for documents, standards and good practice.

        Args:
            question: one question
        """

        async def answer(query: str, ctx: ToolContext) -> tuple[str, tuple[str, ...]]:
            found = await (await deps.knowledge()).library(in_session(ctx).by).research(query)
            return findings_text(found), tuple(each.node.id for each in found.sources)

        return await consult(ACADEMIC, _T.RESEARCH_REQUEST, _T.RESEARCH_RESPONSE, question, answer, ctx)

    return consult_librarian, consult_archivalist, consult_academic, _consult_engineer(deps)


def _consult_engineer(deps: MemberDeps) -> Tool:
    @tool(name="consult_engineer", searchable=False, effects=CONSULTS)
    async def consult_engineer(question: str, ctx: ToolContext) -> str:
        """Ask about logic, state or data. The question goes the way of all questions of a task: to the orchestrator
        and the architect.

        Args:
            question: one question
        """
        place = get_conversation(ctx.by.session)
        asked = TeamQuestion(question=question, pipeline=place.pipeline, origin=ctx.by.agent_id)
        await deps.tell(_T.TASK_HELP, asked, ctx)
        return "Asked. End your turn; the answer starts you again."

    return consult_engineer
