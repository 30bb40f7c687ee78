from __future__ import annotations

from typing import Any

import pytest

from clew.catalog.formats.types import CLICKUP_DOC, CLICKUP_LIST, CLICKUP_TASK
from clew.errors import FormatError
from tests.catalog.formats.documents import read, walk

TASK: dict[str, Any] = {
    "id": "86a1",
    "custom_id": "OPS-3",
    "name": "Rotate keys",
    "text_content": "Every quarter.",
    "description": "Every quarter.",
    "markdown_description": "Every **quarter**.",
    "status": {"status": "in progress", "color": "#d3d3d3", "type": "custom"},
    "priority": {"id": "2", "priority": "high"},
    "assignees": [{"id": 1, "username": "ann"}],
    "tags": [{"name": "security"}],
    "url": "https://app.clickup.com/t/86a1",
}


@pytest.mark.req("ERN-18")
def test_the_pages_of_a_doc_are_its_children_at_every_depth() -> None:
    pages = [
        {
            "id": "p1",
            "name": "Start",
            "content": "Welcome here.",
            "pages": [{"id": "p2", "name": "More", "content": "x"}],
        },
        {"id": "p3", "name": "Start", "sub_title": "Another one", "content": "y", "pages": None},
        {"id": "p4", "name": "", "content": None},
    ]
    root = read({"id": "d1", "name": "Handbook", "pages": pages}, CLICKUP_DOC, id="d1", base="docs")
    assert [(node.path, node.name, node.type) for node in walk([root])] == [
        ("docs/d1", "Handbook", "document"),
        ("docs/d1/start", "Start", "page"),
        ("docs/d1/start/more", "More", "page"),
        ("docs/d1/start-2", "Start", "page"),
        ("docs/d1/untitled-page", "Untitled page", "page"),
    ]
    assert root.description == "Start, Start, Untitled page"
    assert root.children[0].content == "Welcome here."
    assert root.children[1].description == "Another one"


def test_a_task_tells_its_state_and_text() -> None:
    said = [{"comment_text": "Done for June.", "user": {"username": "bob"}}, {"comment_text": None}]
    root = read({**TASK, "comments": said}, CLICKUP_TASK, id="86a1", base="tasks")
    assert (root.path, root.name, root.type) == ("tasks/86a1", "Rotate keys", "task")
    assert root.content == (
        "Task OPS-3: Rotate keys\n\n"
        "in progress; priority high; assigned to ann; tags: security; https://app.clickup.com/t/86a1\n\n"
        "Every **quarter**.\n\nbob: Done for June."
    )
    assert root.description == "Rotate keys. Every **quarter**."


def test_the_tasks_of_a_list_are_its_children() -> None:
    body = {"id": "901", "name": "Ops", "content": "Chores of the team.", "tasks": [TASK, {"id": "86a2", "name": "B"}]}
    root = read(body, CLICKUP_LIST, id="901")
    assert [(node.path, node.type) for node in walk([root])] == [
        ("901", "list"),
        ("901/tasks/86a1", "task"),
        ("901/tasks/86a2", "task"),
    ]
    assert root.description == "Chores of the team."


@pytest.mark.parametrize("depth", [100, 400, 5_000])
def test_pages_within_pages_without_end_are_refused(depth: int) -> None:
    nested = '{"name": "p", "pages": [' * depth + "]}" * depth
    with pytest.raises(FormatError):
        read(f'{{"id": "d", "pages": [{nested}]}}', CLICKUP_DOC)


def test_deep_pages_still_fit_into_a_route() -> None:
    page: dict[str, Any] = {"name": "A rather long name of a page, deep below", "content": "end"}
    for _ in range(60):
        page = {**page, "pages": [page]}
    assert len(list(walk([read({"id": "d", "pages": [page]}, CLICKUP_DOC)]))) == 62
