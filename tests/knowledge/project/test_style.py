"""The style of a project is what most of its code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import InvalidInput
from clew.knowledge.project.style import case_of, detect_patterns, get_style_guide, strip_code
from tests.knowledge.project.samples import PYTHON, REACT, line_at, project


@pytest.mark.req("SYL-102")
async def test_the_style_of_a_react_project_is_inferred(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        (style,) = await get_style_guide(code, "typescript")
    assert style.naming == {
        "functions": "camelCase",
        "variables": "camelCase",
        "constants": "UPPER_SNAKE_CASE",
        "types": "PascalCase",
        "files": "kebab-case",
        "components": "PascalCase",
    }
    assert style.formatting == {
        "indent_style": "spaces",
        "indent_size": 2,
        "quote_style": "single",
        "semicolons": False,
        "trailing_comma": "es5",
    }
    assert style.patterns == {
        "error_handling": "try-catch with custom errors",
        "async_style": "async-await",
        "component_style": "functional with hooks",
        "export_style": "named",
        "import_order": ["react", "external", "internal", "relative", "styles"],
    }


@pytest.mark.req("SYL-102")
async def test_the_style_of_a_python_project_is_inferred(tmp_path: Path) -> None:
    async with project(tmp_path, PYTHON) as code:
        (style,) = await get_style_guide(code)
    assert style.language == "python"
    assert style.naming == {
        "functions": "snake_case",
        "variables": "snake_case",
        "constants": "UPPER_SNAKE_CASE",
        "types": "PascalCase",
        "files": "snake_case",
        "components": "",
    }
    assert style.formatting == {
        "indent_style": "spaces",
        "indent_size": 4,
        "quote_style": "double",
        "semicolons": False,
        "trailing_comma": "all",
    }
    assert style.patterns["error_handling"] == "try-except with custom errors"
    assert style.patterns["async_style"] == "async-await"
    assert style.patterns["component_style"] == ""
    assert style.patterns["import_order"] == ["builtin", "external", "internal"]
    assert style.counts["functions"]["snake_case"] >= 3


@pytest.mark.req("SYL-102")
async def test_every_example_is_a_line_that_exists(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        (style,) = await get_style_guide(code, "ts")
    assert {"error_handling", "async_style", "export_style", "component_style", "functions"} <= {
        each.pattern for each in style.examples
    }
    for each in style.examples:
        assert line_at(REACT, f"{each.file}:{each.line}").split() == each.text.split()
    (tries,) = [each for each in style.examples if each.pattern == "error_handling"]
    assert (tries.file, tries.text) == ("src/utils/load-order.ts", "try {")


@pytest.mark.req("SYL-102")
async def test_the_opposite_choices_are_seen_too(tmp_path: Path) -> None:
    source = (
        'import fs from "fs";\n\nclass Panel extends React.Component {\n\trender() {\n\t\tconst panelName = "x";\n'
        "\t\treturn <p>{panelName}</p>;\n\t}\n}\n\nfunction loadAll(done) {\n"
        '\tfetch("/a").then((found) => done(found)).catch(done);\n'
        "\tfetch(\n\t\tone,\n\t\ttwo,\n\t);\n\tcall([\n\t\t1,\n\t\t2,\n\t]);\n}\n\nexport default Panel;\n"
    )
    async with project(tmp_path, {"web/Panel.jsx": source}) as code:
        (style,) = await get_style_guide(code, "javascript")
    assert style.formatting == {
        "indent_style": "tabs",
        "indent_size": 1,
        "quote_style": "double",
        "semicolons": True,
        "trailing_comma": "all",
    }
    assert style.patterns["error_handling"] == "promise-catch"
    assert style.patterns["async_style"] == "promises"
    assert style.patterns["component_style"] == "class"
    assert style.patterns["export_style"] == "default"
    assert style.naming["files"] == "PascalCase"


async def test_a_language_that_is_not_there_has_no_style_and_one_that_is_not_known_is_refused(tmp_path: Path) -> None:
    async with project(tmp_path, PYTHON) as code:
        assert await get_style_guide(code, "go") == []
        with pytest.raises(InvalidInput, match="language"):
            await get_style_guide(code, "cobol")


async def test_hostile_code_has_some_style_and_raises_nothing(tmp_path: Path) -> None:
    files = {
        "a.py": "'''" + '"' * 5_000 + "\n" + "(" * 5_000,
        "b.ts": "/*" * 3_000 + "`" + "'" * 3_000 + "\n" + "{[(" * 4_000,
        "c.js": "x" * 100_000,
        "d.rb": "\x00\x01",
        "e.go": "",
        "ü.rs": "fn größe() { let é = 'a; }\n",
    }
    async with project(tmp_path, files) as code:
        styles = await get_style_guide(code)
    assert {"python", "typescript"} <= {each.language for each in styles}


async def test_keys_are_not_shown_in_examples(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 10
    async with project(tmp_path, {"keys.py": f"def load_it(given='{key}'):\n    pass\n"}) as code:
        styles = await get_style_guide(code)
    assert styles[0].examples
    assert key not in repr(styles)


async def test_patterns_are_counted_with_their_lines(tmp_path: Path) -> None:
    files = {
        "a/store.py": "class OrderRepository:\n    async def load(self):\n        try:\n            pass\n",
        "b/made.py": "class MailFactory:\n    pass\n\n\nclass KeyRepository(Base):\n    pass\n",
    }
    async with project(tmp_path, files) as code:
        (found,) = await detect_patterns(code, "py")
        with pytest.raises(InvalidInput, match="language"):
            await detect_patterns(code, "cobol")
    uses = {(each.aspect, each.pattern): each for each in found.patterns}
    repository = uses["design_pattern", "repository"]
    assert (found.language, found.files, repository.count, repository.files) == ("python", 2, 2, 2)
    assert repository.examples == ["a/store.py:1: class OrderRepository:", "b/made.py:5: class KeyRepository(Base):"]
    assert {("design_pattern", "factory"), ("async_style", "async-await"), ("error_handling", "try-except")} <= set(
        uses
    )


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("parse_url", "snake_case"),
        ("parseURL", "camelCase"),
        ("HTTPServer", "PascalCase"),
        ("MAX_SIZE", "UPPER_SNAKE_CASE"),
        ("MAX", "UPPERCASE"),
        ("confirm-modal", "kebab-case"),
        ("_run", "lowercase"),
        ("Weird_Name", ""),
    ],
)
def test_a_name_has_the_case_that_joins_its_words(name: str, case: str) -> None:
    assert case_of(name) == case


def test_strings_that_hold_a_quote_are_no_choice_and_lines_stay() -> None:
    plain = strip_code("a = \"it's\"  # \"no\"\n'''\n'x'\n'''\nb = 'y'\n", "python")
    assert (plain.double, plain.single) == (0, 1)
    assert plain.text.count("\n") == 5
