"""Names of a word and a number, such as HTTP/2: one name, though the index has its parts."""

from __future__ import annotations

import pytest

from clew.app import App
from clew.knowledge.answering.finder import NOTHING
from tests.knowledge.code.repositories import write
from tests.knowledge.doors import ask

FILES = {
    "src/transport.py": (
        '"""Transport over HTTP."""\n\n\ndef connect(retries=3):\n    """Connect over HTTP, 3 times at most."""\n'
        '    return "http"\n\n\ndef connect_h2():\n    """Connect over HTTP2 streams."""\n    return "h2"\n'
    ),
    ".github/workflows/suite.yml": (
        "name: Suite\non: push\njobs:\n  tests:\n    runs-on: linux\n    steps:\n"
        "      - name: Install packages\n        run: scripts/install\n"
        "      - name: Run linters\n        run: scripts/check\n"
        "      - name: Run tests\n        run: scripts/test\n"
    ),
}


@pytest.fixture
async def project(app: App) -> App:
    for path, content in FILES.items():
        write(app.knowledge().root, path, content)
    await app.knowledge().gather()
    return app


@pytest.mark.req("BEY-13")
async def test_a_name_with_a_number_that_nothing_mentions_is_said_to_be_absent(project: App) -> None:
    answer = await ask(project, "is HTTP/3 supported?")
    assert answer.known == []
    [note] = answer.notes
    assert note.startswith(f"{NOTHING} It does not mention `HTTP/3`. The nearest is `src/transport.py:")


@pytest.mark.req("BEY-13")
async def test_a_name_with_a_number_is_found_in_any_spelling(project: App) -> None:
    for spelling in ["HTTP/2", "HTTP-2", "http/2"]:
        [first, *_] = (await ask(project, f"is {spelling} supported?")).known
        assert (first.path, first.start) == ("src/transport.py", 9)


@pytest.mark.req("BEY-13")
async def test_the_step_of_a_job_that_the_question_names_comes_before_its_other_steps(project: App) -> None:
    [first, *_] = (await ask(project, "how do I run the tests")).known
    assert (first.path, first.start) == (".github/workflows/suite.yml", 12)
