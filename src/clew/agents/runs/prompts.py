"""Stored prompts. Each model request holds only the messages since the previous request, and refers to the records of
longer texts. So the stored size of a conversation grows linearly, and every past prompt can be rebuilt byte for byte.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.runs.requests import read_request
from clew.agents.runs.run_records import read_run
from clew.decode_errors import in_plain_words
from clew.errors import AlreadyExists, InvalidInput, NotFound
from clew.llm.messages import Message, MessageSource, ToolSpec, prompt_digest
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft, encode_canonical
from clew.trail.model.flow import Flow
from clew.trail.model.selector import MISSING, find_value, split_path
from clew.trail.store import Trail
from clew.trail.work.correlation import find_run

MAX_STEPS = 10_000
"""How many model requests one run may have."""
_NAMESPACE = UUID("c2f3f9a4-2a52-5b43-9f0e-0d2f1c7b5a11")


class ModelInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The input of a request to a model. `after` is the record of the request before it in the same run, `snapshot`
    that of the instructions and the tools; `model` is a role or a name."""

    messages: tuple[Message, ...]
    after: str | None = None
    snapshot: str | None = None
    model: str = ""
    settings: dict[str, Any] = {}


class ModelPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The messages and tools that a model gets."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()

    @property
    def digest(self) -> str:
        return prompt_digest(self.messages, self.tools)


class PromptSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions and tools, stored once until they change."""

    system: str = ""
    tools: tuple[ToolSpec, ...] = ()


def read_input(value: Any) -> ModelInput:
    """Raises InvalidInput."""
    try:
        return msgspec.convert(value, ModelInput)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, ModelInput, "input") from None


async def keep_snapshot(trail: Trail, flow: Flow, snapshot: PromptSnapshot, *, by: Principal) -> str:
    """The id of the record of a snapshot, which is written if it does not exist."""
    context = msgspec.to_builtins(snapshot)
    digest = _digest(context)
    id = str(uuid5(_NAMESPACE, f"{by.owner_id}\n{digest}"))
    try:
        found = await trail.records.get(id, by=by)
        is_same = found.schema_name == flow.snapshot and _digest(found.context) == digest
    except NotFound:
        is_same, found = False, None
    if not is_same:
        draft = Draft(
            id=id if found is None else None,  # another record has the id: the snapshot gets its own
            title="Instructions and tools of a prompt",
            schema_name=flow.snapshot,
            context=context,
            ttl=NEVER,
            embed="never",
        )
        with contextlib.suppress(AlreadyExists):  # another process wrote the same
            return (await trail.records.create(draft, by=by)).id
    return id


def _digest(context: Any) -> str:
    return hashlib.blake2b(encode_canonical(context, "snapshot"), digest_size=16).hexdigest()


async def rebuild_prompt(
    trail: Trail,
    flow: Flow,
    request: Breadcrumb,
    *,
    by: Principal,
    known: Mapping[str, Breadcrumb] | None = None,
    deleted: str | None = None,
) -> ModelPrompt:
    """Rebuild the prompt of a model request, byte for byte. `known` are records of its run that were already read.
    `deleted` replaces texts that were deleted.

    Raises InvalidInput for a request to another tool, and NotFound if a text was deleted and `deleted` is not given.
    """
    if known is None:
        known = await read_run(trail, flow, find_run(request) or "", by=by)
    chain = await _chain(trail, flow, request, known, by)
    messages = [message for each in chain for message in each.messages]
    filled = [await _fill(trail, message, known, by, deleted) for message in messages]
    snapshot_id = chain[-1].snapshot
    if snapshot_id is None:
        return ModelPrompt(messages=tuple(filled))
    record = await trail.records.get(snapshot_id, by=by)
    if record.schema_name != flow.snapshot:
        raise InvalidInput("snapshot", "is not a snapshot of instructions and tools")
    snapshot = msgspec.convert(record.context, PromptSnapshot)
    system = (Message(role="system", content=snapshot.system),) if snapshot.system else ()
    return ModelPrompt(messages=(*system, *filled), tools=snapshot.tools)


async def _chain(
    trail: Trail, flow: Flow, request: Breadcrumb, known: Mapping[str, Breadcrumb], by: Principal
) -> list[ModelInput]:
    """The inputs from the first request of a run to this one."""
    chain: list[ModelInput] = []
    at: Breadcrumb | None = request
    while at is not None:
        if len(chain) == MAX_STEPS:
            raise InvalidInput("input.after", f"leads back over more than {MAX_STEPS:,} requests")
        parsed = read_request(at)
        if parsed.tool != flow.model_tool:
            raise InvalidInput("tool", f"{at.id} is a request for {parsed.tool}, not for a model")
        chain.append(found := read_input(parsed.input))
        at = None if found.after is None else known.get(found.after) or await trail.records.get(found.after, by=by)
    return chain[::-1]


async def _fill(
    trail: Trail, message: Message, known: Mapping[str, Breadcrumb], by: Principal, deleted: str | None
) -> Message:
    """The message with the text of the record that it refers to, or with `deleted` if the record no longer exists."""
    source = message.source
    if source is None:
        return message
    record = known.get(source.id)
    if record is None or record.version != source.version:
        try:
            record = await trail.records.get(source.id, by=by, version=source.version)
        except NotFound:
            if deleted is None:
                raise
            return msgspec.structs.replace(message, content=deleted, source=None)
    return msgspec.structs.replace(message, content=text_at(record, source.field), source=None)


def text_at(record: Breadcrumb, field: str) -> str:
    """The text at a dotted path of a context; a value of another type as JSON."""
    value = find_value(record.context, split_path(field))
    if value is MISSING:
        raise NotFound("text", f"{record.id} {field}")
    return value if isinstance(value, str) else encode_canonical(value, field).decode()


def source_of(record: Breadcrumb, field: str) -> MessageSource:
    return MessageSource(id=record.id, version=record.version, field=field)


def model_input(
    messages: Sequence[Message],
    *,
    after: str | None,
    snapshot: str,
    model: str = "",
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The input of a model request as it is stored."""
    made = ModelInput(
        messages=tuple(messages), after=after, snapshot=snapshot, model=model, settings=dict(settings or {})
    )
    return dict(msgspec.to_builtins(made))
