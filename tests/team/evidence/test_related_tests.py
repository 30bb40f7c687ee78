"""The tests that cover a change, found without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.team.evidence.found_tests import is_test_file, read_tests
from clew.team.evidence.related_tests import find_covering, is_code
from tests.tools.working_folder import plant

FILES = {
    "src/app/__init__.py": "",
    "src/app/core.py": "from .base import one\n",
    "src/app/base.py": "def one():\n    return 1\n",
    "src/app/alone.py": "ALONE = 1\n",
    "tests/test_core.py": "from app.core import one\n",
    "tests/test_other.py": "import os\n",
    "tests/deep/test_base.py": "import importlib\n\nbase = importlib.import_module('app.base')\n",
    "web/sum.ts": "export const sum = 1\n",
    "web/sum.test.ts": "import { sum } from './sum'\n",
    "web/index.ts": "export * from './sum'\n",
    "web/__tests__/other.ts": "import '../other'\n",
    "srv/a.go": "package srv\n",
    "srv/a_test.go": "package srv\n",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/app/core.py", ("tests/test_core.py",)),
        ("src/app/base.py", ("tests/deep/test_base.py", "tests/test_core.py")),
        ("src/app/alone.py", ()),
        ("tests/test_other.py", ("tests/test_other.py",)),
        ("web/sum.ts", ("web/sum.test.ts",)),
        ("web/index.ts", ()),
        ("srv/a.go", ("srv/a_test.go",)),
        ("README.md", ()),
    ],
)
def test_tests_that_import_or_name_a_file_cover_it(tmp_path: Path, changed: str, expected: tuple[str, ...]) -> None:
    plant(tmp_path, FILES)
    assert find_covering(str(tmp_path), (changed,)) == expected


@pytest.mark.parametrize(
    "path",
    ["test_a.py", "a_test.py", "tests/a.py", "x/a_test.go", "a.spec.ts", "a.test.jsx", "__tests__/a.js", "ATest.java"],
)
def test_test_files_are_known_by_their_names(path: str) -> None:
    assert is_test_file(path)
    assert not is_code(path)


@pytest.mark.parametrize("path", ["a.py", "testing.md", "contest.py", "src/latest.go", "tests/data.json", "attest.ts"])
def test_other_files_are_no_tests(path: str) -> None:
    assert not is_test_file(path)


def test_hostile_sources_do_not_break_the_reader() -> None:
    assert read_tests("test_a.py", "def test_(:") == {}
    assert read_tests("test_a.py", "(" * 5_000) == {}
    assert read_tests("test_a.py", "\0") == {}
    assert list(read_tests("a.test.js", "test('a', () => {})" * 3)) == ["a"]
