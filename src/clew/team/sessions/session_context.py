"""The private context of a session: its task, steps, files and the wishes of its user."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.errors import InvalidInput, TooLarge

MAX_TEXT = 2_000
"""Characters of one text."""
MAX_ITEMS = 500
"""Entries of one field."""
_SHOWN_ITEMS = 10
_PROMPT_HEADING = "State of this session, as its user and its agents noted it:"
_LABELS = {
    "current_task": "Task",
    "current_objective": "Objective",
    "current_step": "Step",
    "completed_steps": "Done",
    "next_steps": "Next",
    "blockers": "Blocked by",
    "user_wants": "The user wants",
    "user_rejects": "The user rejects",
    "local_patterns": "Patterns",
    "local_failures": "Failures",
    "modified_files": "Modified files",
    "created_files": "Created files",
    "read_files": "Read files",
    "active_agents": "Agents",
}


class SessionContext(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Files map paths to notes; `active_agents` maps roles to their states. `conversation_id` and `message_history` are
    read from the trail and not stored here."""

    current_task: str = ""
    current_step: str = ""
    current_objective: str = ""
    completed_steps: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    modified_files: dict[str, str] = {}
    read_files: dict[str, str] = {}
    created_files: dict[str, str] = {}
    local_patterns: tuple[str, ...] = ()
    local_failures: tuple[str, ...] = ()
    user_wants: tuple[str, ...] = ()
    user_rejects: tuple[str, ...] = ()
    active_agents: dict[str, str] = {}
    conversation_id: str = ""
    message_history: tuple[str, ...] = ()


class ContextChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a context. Texts replace the current ones; lists and files are added to them. `finish_step` moves the
    current step to the completed ones. `unblock` and `drop_next` remove entries."""

    task: str | None = None
    step: str | None = None
    objective: str | None = None
    finish_step: bool = False
    next: tuple[str, ...] = ()
    drop_next: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()
    unblock: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    rejects: tuple[str, ...] = ()


def change_context(context: SessionContext, change: ContextChange) -> SessionContext:
    """The context after a change. Raises InvalidInput, TooLarge."""
    completed, step = context.completed_steps, context.current_step
    if change.finish_step:
        if not step:
            raise InvalidInput("finish_step", "there is no current step", hint="Set one first")
        completed, step = (*completed, step), ""
    changed = msgspec.structs.replace(
        context,
        current_task=context.current_task if change.task is None else change.task,
        current_objective=context.current_objective if change.objective is None else change.objective,
        current_step=step if change.step is None else change.step,
        completed_steps=completed,
        next_steps=_merged(context.next_steps, change.next, change.drop_next),
        blockers=_merged(context.blockers, change.blockers, change.unblock),
        user_wants=_merged(context.user_wants, change.wants, change.rejects),
        user_rejects=_merged(context.user_rejects, change.rejects, change.wants),
    )
    return check_context(changed)


def check_context(context: SessionContext) -> SessionContext:
    """Return the context unchanged. Raises TooLarge for a text or a list that is too long."""
    for field in context.__struct_fields__:
        value = getattr(context, field)
        texts = [value] if isinstance(value, str) else list(value)
        if len(texts) > MAX_ITEMS:
            raise TooLarge(field, len(texts), MAX_ITEMS, "entries")
        longest = max(map(len, (*texts, *(value.values() if isinstance(value, dict) else ()))), default=0)
        if longest > MAX_TEXT:
            raise TooLarge(field, longest, MAX_TEXT, "characters")
    return context


def context_rows(context: SessionContext) -> Iterator[tuple[str, str]]:
    """The fields that hold something, each with its label and text."""
    for field, label in _LABELS.items():
        value = getattr(context, field)
        if not value:
            continue
        texts = [value] if isinstance(value, str) else _texts_of(value)
        more = f"; and {len(texts) - _SHOWN_ITEMS} more" if len(texts) > _SHOWN_ITEMS else ""
        yield label, "; ".join(texts[-_SHOWN_ITEMS:]) + more


def prompt_text(context: SessionContext) -> str:
    """The context as an agent of the session reads it; empty if there is nothing to say."""
    lines = [f"- {label}: {' '.join(text.split())}" for label, text in context_rows(context)]
    return "\n".join((_PROMPT_HEADING, *lines)) if lines else ""


def _merged(items: tuple[str, ...], added: tuple[str, ...], removed: tuple[str, ...]) -> tuple[str, ...]:
    kept = [each for each in items if each not in removed]
    return tuple(dict.fromkeys([*kept, *added]))


def _texts_of(value: tuple[str, ...] | dict[str, str]) -> list[str]:
    if isinstance(value, dict):
        return [f"{name} ({note})" if note else name for name, note in value.items()]
    return list(value)
