"""The hooks around every prompt. They add changes of the session, skills and history, check the budget, and store
patterns of answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.hooks.hook_points import PromptData, SkillData
from clew.agents.hooks.thresholds import ContextUsage, Table, observe, thresholds_of
from clew.agents.hooks.tool_hooks import CHANGED, FILE_TAG
from clew.errors import Abort, BudgetExceeded, ClewError, NotFound
from clew.fences import clean, fenced
from clew.llm.messages import Message, MessageSource
from clew.llm.tokens import estimate_tokens
from clew.secrecy import mask_secrets
from clew.tools.hook_chain import HookChain, HookFunction
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import printable
from clew.trail.work.correlation import CONSUMER_TAG

MAX_CHANGES = 10
MAX_HISTORY = 6
MAX_PATTERNS = 5
MAX_PATTERN = 500

_PATTERN = re.compile(
    r"^[^\w\n]{0,6}(pattern|decision|lesson|convention)[^\w\n]{0,3}:[^\S\n]*(\S.*)$", re.IGNORECASE | re.MULTILINE
)
_log = logging.getLogger(__name__)


class NeededSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that a run needs, the reason, and its text."""

    skill: str
    why: str
    text: str


class PromptSkills(Protocol):
    """Finds the skills that a run needs."""

    async def called(self, message: str, *, agent: str, session: str) -> Sequence[NeededSkill]:
        """The skills whose texts the run needs and does not have yet, most important first: skills that the message
        triggers, and skills that the session has loaded."""
        ...

    async def settle(self, message: str, refused: Sequence[str], *, agent: str, session: str) -> None:
        """Record in the session that these skills are loaded now, except the refused ones."""
        ...

    async def hint(self, message: str, *, agent: str, session: str) -> str:
        """A hint that names other skills that may help and says how to find them; empty if there are none."""
        ...


class ContextWindow(Protocol):
    """Finds the context window of an agent's model."""

    async def __call__(self, agent: str) -> int: ...


def session_context(trail: Trail, flow: Flow, by: Principal) -> HookFunction:
    """Adds the earlier changes of the session to the first prompt of a run, newest first."""

    async def add(data: PromptData) -> PromptData:
        if not data.is_first or not data.session:
            return data
        selector = Selector(schema_name=flow.response, all_tags=(f"session:{data.session}", CHANGED))
        found = (await trail.records.list(selector, by=by, limit=MAX_CHANGES)).items
        if not found:
            return data
        lines = "\n".join(_change_line(each) for each in found)
        told = f"Changes in this session, the newest first:\n{fenced(clean(lines), '')}"
        return _with_opening(data, Message(role="user", content=told))

    return add


def skill_loading(trail: Trail, by: Principal, skills: PromptSkills | None, judges: HookChain) -> HookFunction:
    """Adds the texts of the skills that a run needs, after the `pre_skill` hooks have accepted them. If the agent can
    search for skills, it also adds the names of skills that may help."""

    async def load(data: PromptData) -> PromptData:
        if skills is None or not data.is_first or not data.session:
            return data
        said = await find_message(trail, by, data)
        if said is None:
            return data
        place = {"agent": data.agent_id, "session": data.session}
        called = await skills.called(said, **place)
        kept = [(each.skill, text) for each in called if (text := await _judge(judges, each, data)) is not None]
        names = [name for name, _ in kept]
        await skills.settle(said, [each.skill for each in called if each.skill not in names], **place)
        texts = [text for _, text in kept]
        if any(each.name == "get" for each in data.tools) and (hint := await skills.hint(said, **place)):
            texts.append(hint)
        brought = tuple(Message(role="user", content=text) for text in texts)
        return msgspec.structs.replace(data, messages=(*brought, *data.messages))

    return load


async def _judge(judges: HookChain, called: NeededSkill, data: PromptData) -> str | None:
    """The text of a skill after all `pre_skill` hooks have run; None if one of them refused it."""
    offered = SkillData(
        agent_id=data.agent_id,
        session=data.session,
        run=data.run,
        skill=called.skill,
        why=called.why,
        text=called.text,
    )
    try:
        return (await judges.run("pre_skill", offered)).text
    except ClewError as error:
        _log.info("%s: the skill %s was refused: %s", data.agent_id, called.skill, error)
        return None


def history_injection(trail: Trail, flow: Flow, by: Principal) -> HookFunction:
    """Adds the last exchanges between an agent and its user, oldest first, except those that the context already
    included or dropped. The messages refer to the records and do not copy their texts. A run that was not started by a
    message gets no history, and messages of other writers are left out."""

    async def inject(data: PromptData) -> PromptData:
        if not data.is_first or not data.session:
            return data
        opening = await _opening(trail, by, data)
        trigger = await _trigger(trail, by, opening)
        if trigger is None or trigger.schema_name != flow.message:
            return data
        mine = (f"{CONSUMER_TAG}{data.agent_id}", f"agent:{data.agent_id}")
        selector = Selector(schema_names=(flow.message, flow.answer), session=data.session, any_tags=mine)
        found = (await trail.records.list(selector, by=by, limit=MAX_HISTORY)).items
        known = {trigger.id, *_weighed(opening)}
        own = [each for each in found if each.schema_name == flow.answer or each.created_by == trigger.created_by]
        earlier = [each for each in reversed(own) if each.id not in known and each.context.get("message")]
        said = tuple(_as_message(each, flow) for each in earlier)
        return msgspec.structs.replace(data, messages=(*said, *data.messages))

    return inject


def token_budget_check(by: Principal, budgets: Budgets | None, window: ContextWindow | None) -> HookFunction:
    """Stops a prompt that is too long for its model, or whose budget is used up. The hook raises Abort or
    BudgetExceeded."""

    async def check(data: PromptData) -> PromptData:
        tokens = count_prompt(data)
        most = await window(data.agent_id) if window is not None else None
        if most is not None and tokens > most:
            hint = "Say less at once, give the agent fewer tools, or choose a model that takes more"
            raise Abort(f"the prompt takes about {tokens:,} tokens, the model at most {most:,}", hint=hint)
        if budgets is not None and data.budget is not None:
            await _check_budget(budgets, data.budget, by)
        return data

    return check


def response_logging() -> HookFunction:
    """Logs that a model answered: the agent, the time and the tokens, but not the text."""

    async def log(data: PromptData) -> PromptData:
        output, usage = _output(data), _usage(data)
        spent = data.response.context.get("execution_time_ms", 0) if data.response else 0
        _log.info(
            "%s: %s answered in %s ms, %s tokens in, %s out (run %s)",
            data.agent_id,
            output.get("model", "a model"),
            spent,
            usage.get("input_tokens", 0),
            usage.get("output_tokens", 0),
            data.run,
        )
        return data

    return log


def pattern_extraction(schema: str) -> HookFunction:
    """Keeps what an agent says it has learnt: lines that begin with Pattern, Decision, Lesson or Convention and a
    colon."""

    async def extract(data: PromptData) -> PromptData:
        found = _PATTERN.findall(data.text)[:MAX_PATTERNS]
        drafts = tuple(_pattern(data, schema, kind.lower(), text, at) for at, (kind, text) in enumerate(found))
        return msgspec.structs.replace(data, drafts=(*data.drafts, *drafts))

    return extract


def token_accounting(
    trail: Trail, flow: Flow, by: Principal, table: Table, window: ContextWindow | None
) -> HookFunction:
    """Writes a record when the context of an agent crosses one of its thresholds, once for each threshold."""

    async def account(data: PromptData) -> PromptData:
        usage = _usage(data)
        used = int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
        limit = await window(data.agent_id) if window is not None else 0
        if not limit or not data.session:
            return data
        filled = ContextUsage(agent=data.agent_id, session=data.session, used=used, limit=limit, kind=data.agent_id)
        lowest = min((each.at for each in thresholds_of(table, filled.kind)), default=101.0)
        if filled.percent < lowest:  # the usual case reads nothing from the trail
            return data
        _, drafts = await observe(trail, flow, table, filled, by=by)
        return msgspec.structs.replace(data, drafts=(*data.drafts, *drafts))

    return account


def count_prompt(data: PromptData) -> int:
    """About how many tokens the new part of a prompt takes, with instructions and tools."""
    tools = encode_canonical([msgspec.to_builtins(each) for each in data.tools], "tools").decode() if data.tools else ""
    texts = [data.system, tools, *(each.content for each in data.messages)]
    return sum(estimate_tokens(each) for each in texts if each)


async def _check_budget(budgets: Budgets, name: str, by: Principal) -> None:
    try:
        left = await budgets.remaining(name, by=by)
    except NotFound:  # it is opened with the first call
        return
    for kind in ("tokens", "money", "seconds", "calls"):
        if getattr(left, kind) == 0:
            raise BudgetExceeded(name, kind, hint=f"Give the agent a higher budget.{kind}, and ask again")


def _with_opening(data: PromptData, message: Message) -> PromptData:
    return msgspec.structs.replace(data, messages=(message, *data.messages))


async def find_message(trail: Trail, by: Principal, data: PromptData) -> str | None:
    """Return the text of the message that started a run, or None if no record started it."""
    trigger = await _trigger(trail, by, await _opening(trail, by, data))
    return None if trigger is None else _text_of(trigger)


async def _opening(trail: Trail, by: Principal, data: PromptData) -> Breadcrumb | None:
    """The context that a run begins with."""
    source = next((each.source for each in reversed(data.messages) if each.source is not None), None)
    if source is None:
        return None
    try:
        return await trail.records.get(source.id, by=by, version=source.version)
    except NotFound:
        return None


async def _trigger(trail: Trail, by: Principal, opening: Breadcrumb | None) -> Breadcrumb | None:
    """The breadcrumb that started a run."""
    named = opening.context.get("trigger") if opening is not None else None
    if not isinstance(named, dict):
        return None
    try:
        return await trail.records.get(str(named.get("id")), by=by)
    except NotFound:
        return None


def _text_of(trigger: Breadcrumb) -> str:
    said = trigger.context.get("message") or trigger.context.get("content")
    return said if isinstance(said, str) else trigger.title


def _weighed(opening: Breadcrumb | None) -> set[str]:
    """The ids of the breadcrumbs that a context includes or has dropped, as its receipt lists them."""
    receipt = opening.context.get("receipt") if opening is not None else None
    listed = [receipt.get(name) for name in ("items", "dropped")] if isinstance(receipt, dict) else []
    found = [each for items in listed if isinstance(items, list) for each in items]
    return {str(each.get("id")) for each in found if isinstance(each, dict)}


def _as_message(record: Breadcrumb, flow: Flow) -> Message:
    source = MessageSource(id=record.id, version=record.version, field="message")
    return Message(role="user" if record.schema_name == flow.message else "assistant", source=source)


def _change_line(response: Breadcrumb) -> str:
    files = [tag.removeprefix(FILE_TAG) for tag in response.tags if tag.startswith(FILE_TAG)]
    return printable(" ".join((str(response.context.get("tool") or "a tool"), *files)), 300)


def _pattern(data: PromptData, schema: str, kind: str, text: str, at: int) -> Draft:
    said = mask_secrets(text.strip())[:MAX_PATTERN]
    where = data.response.id if data.response is not None else data.run
    return Draft(
        title=f"{kind.capitalize()}: {said}"[:200],
        schema_name=schema,
        tags=(f"pattern:{kind}", f"agent:{data.agent_id}"),
        context={"kind": kind, "text": said, "agent_id": data.agent_id},
        idempotency_key=f"pattern:{where}:{at}" if where else None,
    )


def _output(data: PromptData) -> dict[str, Any]:
    output = data.response.context.get("output") if data.response is not None else None
    return output if isinstance(output, dict) else {}


def _usage(data: PromptData) -> dict[str, Any]:
    usage = _output(data).get("usage")
    return usage if isinstance(usage, dict) else {}
