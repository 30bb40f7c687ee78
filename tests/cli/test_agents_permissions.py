"""`clew agents --permissions` lists all permissions in force, even after many later answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from clew.app import App
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from tests.cli.conftest import Clew


async def write(app: App, schema_name: str, request_id: str, **context: Any) -> Breadcrumb:
    draft = Draft(
        title=schema_name,
        schema_name=schema_name,
        tags=(f"request:{request_id}",),
        context={"request_id": request_id, **context},
    )
    return await app.trail.records.create(draft, by=app.me)


async def ask(app: App, request_id: str, pattern: str = "exec(ls)") -> str:
    return (await write(app, "permission.request.v1", request_id, tool="exec", pattern=pattern)).id


def test_lasting_permissions_are_listed_after_hundreds_of_further_answers(
    clew: Clew, in_trail: Callable[[Callable[[App], Awaitable[Any]]], Any]
) -> None:
    async def answer_much(app: App) -> str:
        question = await ask(app, "r0")
        given = await write(app, "permission.answer.v1", "r0", answer="always", question=question)
        drafts = [
            Draft(title="x", schema_name="permission.answer.v1", context={"request_id": f"n{at}", "answer": "once"})
            for at in range(205)
        ]
        await app.trail.records.create_many(drafts, by=app.me)
        return given.id

    id = in_trail(answer_much)
    (allowed,) = clew("agents", "--permissions", "--json").json["items"]
    assert (allowed["id"], allowed["pattern"], allowed["answer"]) == (id, "exec(ls)", "always")


def test_an_allowance_is_that_of_the_question_it_answers_and_of_the_first_answer(
    clew: Clew, in_trail: Callable[[Callable[[App], Awaitable[Any]]], Any]
) -> None:
    async def answer(app: App) -> None:
        first, second = await ask(app, "r1", "exec(ls)"), await ask(app, "r1", "exec(rm)")
        await write(app, "permission.answer.v1", "r1", answer="always", question=first)
        await write(app, "permission.answer.v1", "r1", answer="deny", question=second)
        await write(app, "permission.answer.v1", "r1", answer="always", question=second)

    in_trail(answer)
    (allowed,) = clew("agents", "--permissions", "--json").json["items"]
    assert allowed["pattern"] == "exec(ls)"
