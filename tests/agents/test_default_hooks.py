from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.budgets.budget import Amount, BudgetLimits
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.hooks.default_hooks import HookDeps, default_hooks
from clew.agents.hooks.hook_points import PromptData, SkillData, ToolData, agent_hooks
from clew.agents.hooks.prompt_hooks import NeededSkill
from clew.agents.runs.requests import request_draft, response_draft
from clew.clock import ManualClock
from clew.context.definition import AgentDefinition
from clew.errors import Abort, BudgetExceeded, InvalidInput
from clew.llm.messages import Message, MessageSource, ToolSpec
from clew.tools.hook_chain import Hook, HookChain
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.store import Trail
from tests.agents.records import shipped_reliability

ORDER = (
    "session_context",
    "skill_loading",
    "history_injection",
    "token_budget_check",
    "response_logging",
    "pattern_extraction",
    "token_accounting",
    "permission_check",
    "parameter_validation",
    "session_scoping",
    "result_logging",
    "file_tracking",
    "state_update",
)
KEY = "sk-" + "a1B2" * 8


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    verdict: str
    reason: str = "the policy says so"
    pattern: str = "write notes/*"


class World:
    """The data of the hooks, with the changes of a test."""

    def __init__(self, trail: Trail, flow: Flow, by: Principal, clock: ManualClock) -> None:
        self.trail, self.flow, self.by, self.clock = trail, flow, by, clock
        self.budgets = Budgets(trail, flow, clock)
        self.verdict = "allow"
        self.window = 1_000
        self.skills: dict[str, str] = {}
        self.refused: list[str] = []
        self.judges = agent_hooks()

    @property
    def chain(self) -> HookChain:
        return default_hooks(
            HookDeps(
                trail=self.trail,
                flow=self.flow,
                by=self.by,
                reliability=shipped_reliability(),
                decide=self._decide,
                budgets=self.budgets,
                skills=self,
                judges=self.judges,
                window=self._window,
            )
        )

    async def _decide(
        self, agent: AgentDefinition | None, tool: str, arguments: Mapping[str, Any], record: Breadcrumb | None
    ) -> Decided:
        return Decided(verdict=self.verdict)

    async def _window(self, agent: str) -> int:
        return self.window

    async def called(self, message: str, *, agent: str, session: str) -> Sequence[NeededSkill]:
        return [NeededSkill(skill=word, why="said", text=text) for word, text in self.skills.items() if word in message]

    async def settle(self, message: str, refused: Sequence[str], *, agent: str, session: str) -> None:
        self.refused = list(refused)

    async def hint(self, message: str, *, agent: str, session: str) -> str:
        return "painting may help"

    async def write(self, draft: Draft) -> Breadcrumb:
        return await self.trail.records.create(draft, by=self.by)

    async def say(self, text: str, schema: str = "", session: str = "s1") -> Breadcrumb:
        name = schema or self.flow.message
        tags = (f"session:{session}", "consumer:guide" if name == self.flow.message else "agent:guide")
        return await self.write(Draft(title=text, schema_name=name, tags=tags, context={"message": text}))

    async def prompt(
        self, message: Breadcrumb, *held: Breadcrumb, dropped: Sequence[dict[str, str]] = (), **fields: Any
    ) -> PromptData:
        """A first prompt as the agent runner makes one: its context is a record."""
        context = await self.write(
            Draft(
                title="Context",
                schema_name=self.flow.context,
                tags=("session:s1",),
                context={
                    "consumer_id": "guide",
                    "trigger_event_id": message.id,
                    "trigger": {"id": message.id, "version": 1},
                    "formatted_context": "…",
                    "receipt": {"items": [{"id": each.id} for each in held], "dropped": [*dropped]},
                },
            )
        )
        source = MessageSource(id=context.id, version=1, field="formatted_context")
        return PromptData(
            agent_id="guide", session="s1", run=message.id, messages=(Message(role="user", source=source),), **fields
        )

    async def answer(self, text: str = "", used: int = 0) -> PromptData:
        request = await self.request({})
        usage = {"input_tokens": used, "output_tokens": 0}
        output = {"content": text, "usage": usage, "model": "scripted"}
        response = await self.write(response_draft(self.flow, request, "llm", "success", output=output))
        return PromptData(agent_id="guide", session="s1", run="r", response=response, text=text)

    async def request(self, input: dict[str, Any]) -> Breadcrumb:
        id = self.clock.new_id()
        tags = ("session:s1", "run:r")
        return await self.write(request_draft(self.flow, "save", input, request_id=id, requested_by="guide", tags=tags))

    async def call(self, arguments: dict[str, Any], used: Tool | None = None, **fields: Any) -> ToolData:
        request = await self.request(arguments)
        return ToolData(tool=used or save, arguments=arguments, request=request, by=self.by, **fields)


@tool(effects=Effects(reaches_out=False))
async def save(path: str, text: str = "", session: str = "") -> str:
    """Save a text."""
    return f"{path} {session}"


@pytest.fixture
def world(trail: Trail, flow: Flow, me: Principal, clock: ManualClock) -> World:
    return World(trail, flow, me, clock)


@pytest.mark.req("SYL-31")
async def test_one_prompt_and_tool_turn_runs_all_thirteen_in_order(world: World) -> None:
    chain = world.chain
    asked = await chain.run("pre_prompt", await world.prompt(await world.say("hello")))
    answered = await chain.run("post_prompt", await world.answer("Decision: keep it"))
    called = await chain.run("pre_tool", await world.call({"path": "a.md"}))
    done = await chain.run("post_tool", msgspec.structs.replace(called, result="saved"))

    assert asked.trace + answered.trace + done.trace == ORDER
    assert asked.failures + answered.failures + done.failures == ()


@pytest.mark.req("SYL-31")
async def test_a_new_run_is_told_what_was_changed_in_its_session(world: World) -> None:
    done = await world.chain.run("post_tool", await world.call({"path": "notes/ä.md"}))
    assert done.tags == ("file:notes/ä.md", "state:changed")
    saved = response_draft(world.flow, done.request, "save", "success", output="ok")
    await world.write(msgspec.structs.replace(saved, tags=(*saved.tags, *done.tags)))

    message = await world.say("go on")
    first = await world.chain.run("pre_prompt", await world.prompt(message))
    later = await world.chain.run("pre_prompt", await world.prompt(message, turn=1))

    assert "save notes/ä.md" in first.messages[0].content + first.messages[1].content
    assert len(later.messages) == 1


@pytest.mark.req("SYL-31")
async def test_a_message_brings_the_skills_that_it_calls_for(world: World) -> None:
    world.skills = {"deploy": "How to deploy.", "paint": "How to paint."}

    done = await world.chain.run("pre_prompt", await world.prompt(await world.say("please deploy")))

    assert [each.content for each in done.messages if each.content] == ["How to deploy."]
    assert world.refused == []


async def test_an_agent_that_can_look_for_skills_is_told_which_may_help(world: World) -> None:
    get = ToolSpec(name="get", description="Get.", schema={})

    done = await world.chain.run("pre_prompt", await world.prompt(await world.say("hello"), tools=(get,)))

    assert [each.content for each in done.messages if each.content] == ["painting may help"]


@pytest.mark.req("SYL-31")
async def test_a_hook_sees_each_skill_before_it_is_loaded_and_can_change_or_refuse_it(world: World) -> None:
    seen: list[tuple[str, str, str]] = []

    async def look(data: SkillData) -> SkillData:
        seen.append((data.agent_id, data.skill, data.why))
        if data.skill == "paint":
            raise Abort("no painting here")
        return msgspec.structs.replace(data, text=data.text.upper())

    async def fall_over(data: SkillData) -> SkillData:
        raise ZeroDivisionError

    world.judges = agent_hooks(
        [Hook(name=each.__name__, point="pre_skill", function=each) for each in (look, fall_over)]
    )
    world.skills = {"deploy": "How to deploy.", "paint": "How to paint."}

    done = await world.chain.run("pre_prompt", await world.prompt(await world.say("paint and deploy")))

    assert seen == [("guide", "deploy", "said"), ("guide", "paint", "said")]
    assert [each.content for each in done.messages if each.content] == ["HOW TO DEPLOY."]
    assert world.refused == ["paint"]


async def test_a_guard_that_falls_over_lets_no_skill_through(world: World) -> None:
    async def fall_over(data: SkillData) -> SkillData:
        raise ZeroDivisionError

    world.judges = agent_hooks([Hook(name="guard", point="pre_skill", function=fall_over, required=True)])
    world.skills = {"deploy": "How to deploy."}

    done = await world.chain.run("pre_prompt", await world.prompt(await world.say("please deploy")))

    assert [each.content for each in done.messages if each.content] == []
    assert world.refused == ["deploy"]


@pytest.mark.req("SYL-31")
async def test_earlier_exchanges_come_by_reference_unless_the_context_holds_them(world: World) -> None:
    first = await world.say("my name is Ann")
    answer = await world.say("hello Ann", world.flow.answer)
    await world.say("elsewhere", session="s2")
    message = await world.say("what is my name?")

    done = await world.chain.run("pre_prompt", await world.prompt(message))
    told = await world.chain.run("pre_prompt", await world.prompt(message, first, answer))

    assert [(each.role, each.source.id if each.source else "") for each in done.messages[:-1]] == [
        ("user", first.id),
        ("assistant", answer.id),
    ]
    assert len(told.messages) == 1


async def test_history_omits_messages_that_the_context_left_out(world: World) -> None:
    again = await world.say("what is my name?")
    message = await world.say("what is my name?")
    left_out = {"id": again.id, "why": f"has the same text as {message.id}"}

    done = await world.chain.run("pre_prompt", await world.prompt(message, dropped=(left_out,)))

    assert len(done.messages) == 1


async def test_a_run_that_no_message_started_and_the_words_of_other_agents_bring_no_history(world: World) -> None:
    await world.say("hello")
    other = Draft(
        title="x",
        schema_name=world.flow.answer,
        tags=("session:s1", "agent:other"),
        context={"message": "I am not you"},
    )
    await world.write(other)
    error = await world.write(Draft(title="x failed", schema_name="page.v1", tags=("session:s1",), context={}))

    started_by_error = await world.chain.run("pre_prompt", await world.prompt(error))
    message = await world.say("are you there?")
    started_by_message = await world.chain.run("pre_prompt", await world.prompt(message))

    assert len(started_by_error.messages) == 1
    assert [each.role for each in started_by_message.messages] == ["user", "user"]


@pytest.mark.req("SYL-31")
async def test_a_prompt_that_is_too_long_or_cannot_be_paid_for_is_not_sent(world: World) -> None:
    message = await world.say("hello")
    with pytest.raises(Abort, match="at most 1,000"):
        await world.chain.run("pre_prompt", await world.prompt(message, system="word " * 5_000))

    await world.budgets.open("guide/s1", BudgetLimits(tokens=10), by=world.by)
    await world.chain.run("pre_prompt", await world.prompt(message, budget="guide/s1"))
    held = await world.budgets.reserve("guide/s1", "a", Amount(tokens=10), by=world.by)
    await world.budgets.settle(held, Amount(tokens=10), by=world.by)
    with pytest.raises(BudgetExceeded, match="no tokens left"):
        await world.chain.run("pre_prompt", await world.prompt(message, budget="guide/s1"))


@pytest.mark.req("SYL-31")
async def test_lessons_of_an_agent_are_stored_without_secrets(world: World, trail: Trail) -> None:
    text = f"Done.\n**Lesson**: always set token={KEY}\n- Decision: use SQLite\nPattern:\nno lesson: here"
    done = await world.chain.run("post_prompt", await world.answer(text))
    kept = await trail.records.create_many(done.drafts, by=world.by)
    again = await trail.records.create_many(done.drafts, by=world.by)

    assert [each.context["kind"] for each in kept] == ["lesson", "decision"]
    assert [each.id for each in kept] == [each.id for each in again]
    assert KEY not in msgspec.json.encode(kept).decode()


@pytest.mark.req("SYL-31")
@pytest.mark.req("SYL-54")
async def test_the_tokens_of_an_answer_fire_the_thresholds_of_the_agent_once(world: World, trail: Trail) -> None:
    fired = []
    for used in (100, 499, 500, 800, 810, 960):
        done = await world.chain.run("post_prompt", await world.answer(used=used))
        await trail.records.create_many(done.drafts, by=world.by)
        fired += [(each.context["at"], each.context["do"]) for each in done.drafts]

    assert fired == [(50, "checkpoint"), (75, "checkpoint"), (90, "checkpoint"), (95, "compact")]


@pytest.mark.req("SYL-31")
@pytest.mark.req("SYL-115")
async def test_answers_and_results_are_logged_with_how_long_they_took_and_not_what_they_said(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="clew.agents"):
        await world.chain.run("post_prompt", await world.answer(f"the key is {KEY}", used=7))
        await world.chain.run("post_tool", await world.call({"path": KEY}, result=KEY, seconds=1.25))

    assert "guide: scripted answered in 0.0 ms, 7 tokens in" in caplog.text
    assert "save ran for 1.250 s" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.req("SYL-31")
async def test_a_call_is_refused_asked_for_or_let_pass_as_the_policy_says(world: World) -> None:
    world.verdict = "deny"
    with pytest.raises(Abort, match="save is not allowed: the policy says so"):
        await world.chain.run("pre_tool", await world.call({"path": "a"}, permitted="always"))

    world.verdict = "ask"
    waiting = await world.chain.run("pre_tool", await world.call({"path": "a", "text": f"token={KEY}"}))
    assert (waiting.is_waiting, waiting.trace) == (True, ("permission_check",))
    [question] = waiting.drafts
    assert question.schema_name == world.flow.permission_request
    assert question.context["choices"] == ["once", "session", "always", "deny"]
    assert KEY not in str(question.context)

    allowed = await world.chain.run("pre_tool", await world.call({"path": "a"}, permitted="once"))
    assert not allowed.is_waiting
    for answer in ("deny", "maybe", ""):
        with pytest.raises(Abort, match="did not allow"):
            await world.chain.run("pre_tool", await world.call({"path": "a"}, permitted=answer))


@pytest.mark.parametrize(("answer", "here", "elsewhere"), [("once", 0, 0), ("session", 1, 0), ("always", 1, 1)])
async def test_a_lasting_permission_is_not_asked_again(world: World, answer: str, here: int, elsewhere: int) -> None:
    world.verdict = "ask"
    asked = await world.chain.run("pre_tool", await world.call({"path": "a"}))
    [question] = asked.drafts
    stored = await world.write(msgspec.structs.replace(question, tags=(*question.tags, "session:s1")))
    request_id = stored.context["request_id"]
    await world.write(
        Draft(
            title="Yes",
            schema_name=world.flow.permission_answer,
            tags=(f"request:{request_id}", "session:s1"),
            context={"request_id": request_id, "answer": answer, "by": "ann"},
        )
    )

    same = await world.chain.run("pre_tool", await world.call({"path": "a"}))
    other_session = await world.call({"path": "a"})
    moved = msgspec.structs.replace(other_session.request, tags=("session:s2",))
    other = await world.chain.run("pre_tool", msgspec.structs.replace(other_session, request=moved))

    assert (not same.is_waiting, not other.is_waiting) == (bool(here), bool(elsewhere))


@pytest.mark.req("SYL-31")
async def test_arguments_are_checked_and_the_session_of_the_call_overrides_that_of_the_model(
    world: World,
) -> None:
    with pytest.raises(InvalidInput, match="path"):
        await world.chain.run("pre_tool", await world.call({"text": "no path"}))

    done = await world.chain.run("pre_tool", await world.call({"path": "a", "session": "of-somebody-else"}))

    assert done.arguments["session"] == "s1"
    assert done.by.session == "s1"


async def test_reading_changes_nothing_and_odd_paths_are_no_tags(world: World) -> None:
    reads = msgspec.structs.replace(save, effects=Effects(reads_only=True))
    odd = {"paths": ["a", "a", "", "b\nc", "x" * 400, 7], "path": None}

    done = await world.chain.run("post_tool", await world.call(odd, reads))

    assert done.tags == ("file:a",)


async def test_a_hook_of_the_users_own_that_changes_arguments_comes_before_they_are_checked(world: World) -> None:
    async def break_arguments(data: ToolData) -> ToolData:
        return msgspec.structs.replace(data, arguments={"path": 7})

    chain = world.chain.add(Hook(name="mine", point="pre_tool", function=break_arguments))

    with pytest.raises(InvalidInput, match="path"):
        await chain.run("pre_tool", await world.call({"path": "a"}))
