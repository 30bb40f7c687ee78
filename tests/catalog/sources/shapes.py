"""The shapes of the APIs, as their services answer them, two entries a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.catalog.sources.replay import NOT_FOUND, Asked, Given, Replay, as_json

PAGE = 2


def _one(items: dict[str, Any], prefix: str, replay: Replay, wrap: str = "") -> None:
    """A route for each item."""
    for id, item in items.items():
        body = {wrap: item, "status": True} if wrap else item
        replay.routes[f"{prefix}/{id}"] = lambda _, body=body: as_json(body)  # type: ignore[misc]


# -- GitHub -------------------------------------------------------------------------------------------------


def pull(number: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "title": f"Fix the refund of order {number}",
        "state": "closed",
        "body": "Refunds are rounded **down** now.",
        "user": {"login": "ada"},
        "html_url": f"https://github.com/acme/shop/pull/{number}",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": f"2026-01-{number:02}T00:00:00Z",
        "merged_at": None,
        "head": {"ref": "fix", "sha": "1" * 40},
        "base": {"ref": "main", "sha": "2" * 40},
        **more,
    }


def commit(letter: str) -> dict[str, Any]:
    return {
        "sha": letter * 40,
        "html_url": f"https://github.com/acme/shop/commit/{letter * 40}",
        "commit": {
            "message": f"Change {letter}\n\nBecause of the auditors.",
            "author": {"name": "Ada", "email": "ada@acme.test", "date": "2026-01-01T00:00:00Z"},
        },
        "files": [{"filename": "refund.py", "status": "modified", "additions": 1, "deletions": 1, "patch": "-1\n+2"}],
    }


def github(replay: Replay, repo: str = "acme/shop") -> None:
    pulls = [pull(number) for number in range(1, 6)]
    issues = [*(pull(number, pull_request={"url": "x"}) for number in (1, 2)), *(pull(number) for number in (7, 8, 9))]
    commits = [commit(letter) for letter in "abcde"]

    def page_of(items: Sequence[dict[str, Any]], *, by_update: bool = False) -> Any:
        def answer(asked: Asked) -> Given:
            query = asked.query
            chosen = list(items)
            if query.get("state") in ("open", "closed"):
                chosen = [item for item in chosen if item["state"] == query["state"]]
            if by_update and query.get("direction") == "desc":
                chosen.reverse()
            number = int(query.get("page", 1))
            headers = {}
            if number * PAGE < len(chosen):
                kept = "&".join(f"{name}={value}" for name, value in query.items() if name != "page")
                headers["Link"] = f'<{replay.url}{asked.path}?{kept}&page={number + 1}>; rel="next", <x>; rel="last"'
            return as_json(chosen[(number - 1) * PAGE : number * PAGE], **headers)

        return answer

    replay.routes[f"/repos/{repo}/pulls"] = page_of(pulls, by_update=True)
    replay.routes[f"/repos/{repo}/issues"] = page_of(issues)
    replay.routes[f"/repos/{repo}/commits"] = page_of(commits)
    _one({str(item["number"]): item for item in pulls}, f"/repos/{repo}/pulls", replay)
    _one({str(item["number"]): item for item in issues}, f"/repos/{repo}/issues", replay)
    _one({item["sha"]: item for item in commits}, f"/repos/{repo}/commits", replay)


# -- ClickUp ------------------------------------------------------------------------------------------------


def clickup(replay: Replay, workspace: str = "9001") -> None:
    docs = {
        id: {"id": id, "name": f"Handbook {id}", "date_updated": 1, "deleted": False} for id in ("d-1", "d-2", "d-3")
    }
    pages = [
        {"id": "p", "name": "Refunds", "content": "# Refunds\n\nWithin a day.", "pages": [{"id": "q", "name": "B"}]}
    ]
    tasks = {
        id: {
            "id": id,
            "name": f"Task {id}",
            "date_updated": f"17000000000{number}",
            "markdown_description": "Do *it*.",
            "status": {"status": "open"},
            "url": f"https://app.clickup.com/t/{id}",
        }
        for number, id in enumerate(("t1", "t2", "t3"))
    }
    lists = {id: {"id": id, "name": f"List {id}", "content": "What is next"} for id in ("l1", "l2", "l3")}

    def list_docs(asked: Asked) -> Given:
        start = int(asked.query.get("cursor", 0))
        more = {"next_cursor": str(start + PAGE)} if start + PAGE < len(docs) else {}
        return as_json({"docs": list(docs.values())[start : start + PAGE], **more})

    def list_tasks(asked: Asked) -> Given:
        start = int(asked.query["page"]) * PAGE
        found = list(tasks.values())[start : start + PAGE]
        return as_json({"tasks": found, "last_page": start + PAGE >= len(tasks)})

    folders = {"folders": [{"id": "f1", "name": "Folder", "lists": [lists["l1"], lists["l2"]]}]}
    replay.routes |= {
        f"/v3/workspaces/{workspace}/docs": list_docs,
        f"/v2/team/{workspace}/task": list_tasks,
        "/v2/list/l1/task": list_tasks,
        f"/v2/team/{workspace}/space": lambda _: as_json({"spaces": [{"id": "s1", "name": "Space"}]}),
        "/v2/space/s1/folder": lambda _: as_json(folders),
        "/v2/space/s1/list": lambda _: as_json({"lists": [lists["l3"]]}),
    }
    for id in ("l2", "l3"):
        replay.routes[f"/v2/list/{id}/task"] = lambda _: as_json({"tasks": []})
    for id in docs:
        replay.routes[f"/v3/workspaces/{workspace}/docs/{id}/pages"] = lambda _: as_json(pages)
    _one(docs, f"/v3/workspaces/{workspace}/docs", replay)
    _one(tasks, "/v2/task", replay)
    _one(lists, "/v2/list", replay)


# -- Qase ---------------------------------------------------------------------------------------------------


def qase(replay: Replay, project: str = "SHOP") -> None:
    suites = [{"id": id, "title": f"Suite {id}", "description": "Refunds"} for id in (1, 2, 3)]
    cases = [
        {"id": id, "suite_id": suite, "title": f"Case {id}", "steps": [{"action": "Refund", "expected_result": "Paid"}]}
        for id, suite in ((11, 1), (12, 1), (13, 1), (14, 2), (15, None))
    ]

    def page_of(items: list[dict[str, Any]]) -> Any:
        def answer(asked: Asked) -> Given:
            wanted = asked.query.get("suite_id")
            chosen = [item for item in items if wanted is None or str(item["suite_id"]) == wanted]
            start = int(asked.query["offset"])
            found = chosen[start : start + PAGE]
            counts = {"total": len(items), "filtered": len(chosen), "count": len(found)}
            return as_json({"status": True, "result": {**counts, "entities": found}})

        return answer

    replay.routes[f"/v1/suite/{project}"] = page_of(suites)
    replay.routes[f"/v1/case/{project}"] = page_of(cases)
    _one({str(suite["id"]): suite for suite in suites}, f"/v1/suite/{project}", replay, wrap="result")
    _one({str(case["id"]): case for case in cases}, f"/v1/case/{project}", replay, wrap="result")


# -- Google Drive -------------------------------------------------------------------------------------------

GOOGLE = "application/vnd.google-apps."
FILES: list[dict[str, Any]] = [
    {"id": "doc-1", "name": "Refund policy", "mimeType": f"{GOOGLE}document", "modifiedTime": "2026-01-01T00:00:00Z"},
    {"id": "text-1", "name": "notes.md", "mimeType": "text/markdown", "md5Checksum": "aa", "size": "20"},
    {"id": "sheet-1", "name": "Rates", "mimeType": f"{GOOGLE}spreadsheet", "modifiedTime": "2026-01-02T00:00:00Z"},
    {"id": "image-1", "name": "logo.png", "mimeType": "image/png", "size": "5"},
    {"id": "huge-1", "name": "huge.txt", "mimeType": "text/plain", "size": "99999999"},
    {"id": "folder-2", "name": "Inner", "mimeType": f"{GOOGLE}folder"},
]
INNER: list[dict[str, Any]] = [
    {"id": "text-2", "name": "inner.txt", "mimeType": "text/plain", "md5Checksum": "bb", "size": "5"},
    {"id": "folder-1", "name": "Back to the top", "mimeType": f"{GOOGLE}folder"},
]
TEXTS = {
    "doc-1": b"# Refunds\n\nWithin a day.",
    "text-1": b"# Notes\n\nBy Ada.",
    "sheet-1": b"a,b\n1,2",
    "text-2": b"Hello",
}


def drive(replay: Replay) -> None:
    def list_files(asked: Asked) -> Given:
        place = {"folder-1": FILES, "folder-2": INNER}
        chosen = next((files for id, files in place.items() if f"'{id}' in parents" in asked.query["q"]), FILES)
        start = int(asked.query.get("pageToken", 0))
        more = {"nextPageToken": str(start + PAGE)} if start + PAGE < len(chosen) else {}
        return as_json({"files": chosen[start : start + PAGE], "incompleteSearch": False, **more})

    def read_file(file: dict[str, Any]) -> Any:
        def answer(asked: Asked) -> Given:
            return Given(TEXTS.get(file["id"], b"\0")) if asked.query.get("alt") == "media" else as_json(file)

        return answer

    replay.routes["/files"] = list_files
    for file in (*FILES, *INNER):
        replay.routes[f"/files/{file['id']}"] = read_file(file)
        text = TEXTS.get(file["id"])
        replay.routes[f"/files/{file['id']}/export"] = lambda _, text=text: Given(text) if text else NOT_FOUND  # type: ignore[misc]
