"""Docs of ClickUp with their pages as children; tasks and lists are read as well."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.json_body import Person, decode_body
from clew.catalog.formats.prose import describe, join_blocks, tell
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import CLICKUP_DOC, CLICKUP_LIST, CLICKUP_TASK, media_type
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import join_path
from clew.errors import FormatError
from clew.trail.model.tags import path_part


class ClickupPage(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None
    sub_title: str | None = None
    content: str | None = None
    pages: list[ClickupPage] | None = None


class Doc(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str | None = None
    pages: list[ClickupPage] | None = None


class ClickupStatus(msgspec.Struct, frozen=True, kw_only=True):
    status: str | None = None


class ClickupPriority(msgspec.Struct, frozen=True, kw_only=True):
    priority: str | None = None


class Named(msgspec.Struct, frozen=True, kw_only=True):
    name: str | None = None


class TaskComment(msgspec.Struct, frozen=True, kw_only=True):
    comment_text: str | None = None
    user: Person | None = None


class ClickupTask(msgspec.Struct, frozen=True, kw_only=True):
    id: str | int
    name: str
    custom_id: str | None = None
    text_content: str | None = None
    description: str | None = None
    markdown_description: str | None = None
    status: ClickupStatus | None = None
    priority: ClickupPriority | None = None
    assignees: list[Person] = []
    tags: list[Named] = []
    url: str | None = None
    comments: list[TaskComment] = []

    @property
    def body(self) -> str:
        return self.markdown_description or self.description or self.text_content or ""


class TaskList(msgspec.Struct, frozen=True, kw_only=True):
    id: str | int
    name: str
    content: str | None = None
    tasks: list[ClickupTask] = []


class ClickUpDoc:
    """The path of a page is the slug of its name below its doc. The path of a task is `tasks/ID` below its list."""

    name = "clickup-doc"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in (CLICKUP_DOC, CLICKUP_TASK, CLICKUP_LIST)

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        try:
            return build_tree(content, base_path, _read(content))
        except RecursionError as error:
            raise FormatError(content.id, "has pages that are nested too deeply") from error


def _read(content: RawContent) -> Branch:
    match media_type(content.content_type):
        case type if type == CLICKUP_TASK:
            return _grow_task(decode_body(content, ClickupTask, "a task of ClickUp"))
        case type if type == CLICKUP_LIST:
            return _grow_list(decode_body(content, TaskList, "a list of ClickUp with its tasks"))
        case _:
            return _grow_doc(decode_body(content, Doc, "a doc of ClickUp with its pages"), content.name)


def _grow_doc(doc: Doc, fallback: str) -> Branch:
    name = doc.name or fallback
    pages = [_grow_page(page) for page in doc.pages or ()]
    return Branch(name=name, text="", type="document", metadata={"doc": doc.id}, children=pages)


def _grow_page(page: ClickupPage) -> Branch:
    text = page.content or ""
    return Branch(
        name=page.name or "Untitled page",
        text=join_blocks(page.sub_title, text),
        description=page.sub_title or describe(text),
        type="page",
        children=[_grow_page(child) for child in page.pages or ()],
    )


def _grow_list(tasks: TaskList) -> Branch:
    children = [
        msgspec.structs.replace(_grow_task(task), path=join_path("tasks", path_part(str(task.id))))
        for task in tasks.tasks
    ]
    return Branch(
        name=tasks.name,
        text=tasks.content or "",
        description=describe(tasks.content or ""),
        type="list",
        metadata={"list": tasks.id, "tasks": len(children)},
        children=children,
    )


def _grow_task(task: ClickupTask) -> Branch:
    facts = tell(
        (task.status and task.status.status) or "",
        f"priority {task.priority.priority}" if task.priority and task.priority.priority else "",
        f"assigned to {', '.join(map(str, task.assignees))}" if task.assignees else "",
        f"tags: {', '.join(tag.name or '' for tag in task.tags)}" if task.tags else "",
        task.url or "",
    )
    comments = [f"{said.user or Person()}: {said.comment_text}" for said in task.comments if said.comment_text]
    return Branch(
        name=task.name,
        text=join_blocks(f"Task {task.custom_id or task.id}: {task.name}", facts, task.body, *comments),
        description=f"{task.name}. {describe(task.body)}",
        type="task",
        metadata={"task": task.id, "url": task.url or ""},
    )
