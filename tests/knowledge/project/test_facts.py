"""The facts that manifests, configurations, CI and people files state, with their lines."""

from __future__ import annotations

import pytest

from clew.knowledge.project.fact_reader import MAX_FACTS, is_fact_file, read_facts
from clew.knowledge.project.facts import ProjectFact

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "letters"
version = "2.4.0"
description = "Sends letters."
license = { text = "MIT" }
requires-python = ">=3.10"
authors = [
  { name = "Ada Byron", email = "ada@example.org" },
]
dependencies = [
  "httpx[http2]>=0.27,<1",   # the client
  "rich>=13; python_version > '3.10'",
]

[project.optional-dependencies]
pdf = ["pypdf>=4"]

[project.scripts]
letters = "letters.cli:main"

[dependency-groups]
test = [
  "pytest>=8",
  { include-group = "lint" },
]

[tool.poe.tasks]
serve = "letters serve --reload"
deploy = { cmd = "letters deploy" }

[tool.ruff]
line-length = 100

[tool.pytest.ini_options]
addopts = '''
-q
[not-a-section]
'''

[tool.own-tool]
x = 1
"""
PACKAGE = """\
{
  "name": "shop",
  "version": "1.2.3",
  "license": "ISC",
  "packageManager": "pnpm@9.1.0",
  "engines": { "node": ">=18" },
  "bin": { "shop": "./bin/shop.js" },
  "scripts": {
    "test": "vitest run",
    "build": "tsc -p ."
  },
  "dependencies": {
    "zod": "^3.22.0"
  },
  "devDependencies": { "vitest": "^1.0.0" },
  "author": "Eve Fay <eve@example.org>"
}
"""
CARGO = """\
[package]
name = "web"
version = "0.8.9"
edition = "2021"
rust-version = "1.80"

[[bin]]
name = "webd"

[dependencies]
tower = { version = "0.5.2", features = ["util"] }

[target.'cfg(unix)'.dependencies]
nix = "0.28"
"""
GO = (
    "module example.com/tool\n\ngo 1.22.5\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.1\n"
    "\tx.org/y v0.1.0 // indirect\n)\n"
)
POM = """\
<project>
  <artifactId>jar</artifactId>
  <version>2.14.1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <gson.version>2.10</gson.version>
  </properties>
  <dependencies>
    <dependency>
      <groupId>com.google.code.gson</groupId>
      <artifactId>gson</artifactId>
      <version>${gson.version}</version>
    </dependency>
  </dependencies>
</project>
"""
GRADLE = """\
plugins {
    id("com.diffplug.spotless") version "6.25.0"
}
version = "3.1.0"
java { toolchain { languageVersion = JavaLanguageVersion.of(21) } }
dependencies {
    implementation("com.google.guava:guava:33.0.0-jre")
    testImplementation("org.junit.jupiter:junit-jupiter:5.10.2")
}
"""
WORKFLOW = """\
name: CI
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python-version: ["3.10", "3.12"]
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: pip install -e .[test]
      - name: Run the tests
        run: |
          coverage run -m pytest
          coverage report
  lint:
    steps:
      - run: ruff check .
"""
MAKEFILE = "VERSION := 1\n.PHONY: test\ntest: build  ## run all tests\n\tpytest -x\n\techo done\n\ncheck: test lint\n"
SETUP = (
    "from setuptools import setup\n\nNAME = 'old'\n\nsetup(\n    name='old',\n    version='1.0',\n"
    "    python_requires='>=3.8',\n    install_requires=[\n        'attrs>=22',\n    ],\n"
    "    description=open('README').read(),\n)\n"
)
SETUP_CFG = (
    "[metadata]\nname = older\nlicense = BSD\n\n[options]\npython_requires = >=3.7\ninstall_requires =\n    click>=8\n"
    "    flask\n\n[options.extras_require]\ntest =\n    pytest\n\n[flake8]\nmax-line-length = 90\n"
)
TOX = (
    "[tox]\nenvlist = py310, lint\n\n[testenv]\ncommands = pytest {posargs}\n\n"
    "[testenv:lint]\ncommands =\n    flake8 src\n"
)
NOX = "import nox\n\n\n@nox.session(python=['3.11'])\ndef tests(session):\n    session.run('pytest', '-q')\n"
GEMSPEC = (
    "Gem::Specification.new do |spec|\n  spec.name = 'jewel'\n  spec.version = '0.3.0'\n"
    "  spec.required_ruby_version = '>= 3.1'\n  spec.add_dependency 'rack', '~> 3.0'\n"
    "  spec.add_development_dependency 'rspec'\nend\n"
)
GEMFILE = "ruby '3.3.0'\ngem 'rails', '~> 7.1'\ngroup :test do\n  gem 'capybara'\nend\n"


def facts(path: str, text: str) -> list[ProjectFact]:
    return read_facts([(path, text.encode())])


def rows(found: list[ProjectFact], kind: str) -> list[tuple[str, str, int, int]]:
    return [(each.name, each.value, each.start, each.end) for each in found if each.kind == kind]


def test_pyproject_states_runtimes_dependencies_scripts_tools_and_people() -> None:
    found = facts("pyproject.toml", PYPROJECT)
    assert rows(found, "runtime") == [("python", ">=3.10", 10, 10)]
    assert rows(found, "dependency") == [
        ("httpx", ">=0.27,<1", 15, 15),
        ("rich", ">=13", 16, 16),
        ("pypdf", ">=4", 20, 20),
        ("pytest", ">=8", 27, 27),
        ("hatchling", ">=1.27", 2, 2),
    ]
    assert rows(found, "metadata") == [
        ("name", "letters", 6, 6),
        ("version", "2.4.0", 7, 7),
        ("description", "Sends letters.", 8, 8),
        ("license", "MIT", 9, 9),
        ("letters", "letters.cli:main", 23, 23),
    ]
    assert rows(found, "script") == [("serve", "letters serve --reload", 32, 32), ("deploy", "letters deploy", 33, 33)]
    assert rows(found, "people") == [("authors", "Ada Byron", 12, 12)]
    assert rows(found, "tool") == [
        ("build backend", "hatchling.build", 3, 3),
        ("ruff", "linter", 35, 35),
        ("pytest", "test framework", 38, 38),
        ("poethepoet", "task runner", 31, 31),
        ("own-tool", "configuration", 44, 44),
    ]


def test_the_text_is_the_lines_as_written() -> None:
    [client, *_] = [each for each in facts("pyproject.toml", PYPROJECT) if each.kind == "dependency"]
    assert client.text == '  "httpx[http2]>=0.27,<1",   # the client'
    [target, *_] = facts("Makefile", MAKEFILE)
    assert (target.name, target.value, target.start, target.end) == ("test", "pytest -x\necho done", 3, 5)
    assert target.text == "test: build  ## run all tests\n\tpytest -x\n\techo done"


def test_package_json_states_engines_scripts_and_groups_of_packages() -> None:
    found = facts("web/package.json", PACKAGE)
    assert rows(found, "runtime") == [("node", ">=18", 6, 6)]
    assert rows(found, "script") == [("test", "vitest run", 9, 9), ("build", "tsc -p .", 10, 10)]
    assert rows(found, "dependency") == [("zod", "^3.22.0", 13, 13), ("vitest", "^1.0.0", 15, 15)]
    assert rows(found, "tool") == [("package manager", "pnpm@9.1.0", 5, 5)]
    assert rows(found, "people") == [("author", "Eve Fay", 16, 16)]
    assert ("license", "ISC", 4, 4) in rows(found, "metadata")
    assert ("shop", "./bin/shop.js", 7, 7) in rows(found, "metadata")


@pytest.mark.parametrize(
    ("path", "text", "kind", "expected"),
    [
        ("Cargo.toml", CARGO, "runtime", [("rust", "1.80", 5, 5), ("rust edition", "2021", 4, 4)]),
        ("Cargo.toml", CARGO, "dependency", [("tower", "0.5.2", 11, 11), ("nix", "0.28", 14, 14)]),
        (".cargo/config.toml", '[alias]\nxt = "run -p xtask"\n', "script", [("xt", "run -p xtask", 2, 2)]),
        ("go.mod", GO, "runtime", [("go", "1.22.5", 3, 3)]),
        ("go.mod", GO, "dependency", [("github.com/spf13/cobra", "v1.8.1", 6, 6), ("x.org/y", "v0.1.0", 7, 7)]),
        ("pom.xml", POM, "runtime", [("java", "17", 5, 5)]),
        ("pom.xml", POM, "dependency", [("com.google.code.gson:gson", "2.10", 11, 11)]),
        ("pom.xml", POM, "metadata", [("name", "jar", 2, 2), ("version", "2.14.1", 3, 3)]),
        ("build.gradle.kts", GRADLE, "runtime", [("java", "21", 5, 5)]),
        (
            "build.gradle.kts",
            GRADLE,
            "dependency",
            [("com.google.guava:guava", "33.0.0-jre", 7, 7), ("org.junit.jupiter:junit-jupiter", "5.10.2", 8, 8)],
        ),
        ("jewel.gemspec", GEMSPEC, "dependency", [("rack", "~> 3.0", 5, 5), ("rspec", "", 6, 6)]),
        ("jewel.gemspec", GEMSPEC, "runtime", [("ruby", ">= 3.1", 4, 4)]),
        ("Gemfile", GEMFILE, "dependency", [("rails", "~> 7.1", 2, 2), ("capybara", "", 4, 4)]),
        ("Gemfile", GEMFILE, "runtime", [("ruby", "3.3.0", 1, 1)]),
        ("setup.py", SETUP, "dependency", [("attrs", ">=22", 10, 10)]),
        ("setup.py", SETUP, "runtime", [("python", ">=3.8", 8, 8)]),
        ("setup.py", SETUP, "metadata", [("name", "old", 6, 6), ("version", "1.0", 7, 7)]),
        ("setup.cfg", SETUP_CFG, "dependency", [("click", ">=8", 8, 8), ("flask", "", 9, 9), ("pytest", "", 13, 13)]),
        ("setup.cfg", SETUP_CFG, "runtime", [("python", ">=3.7", 6, 6)]),
        ("setup.cfg", SETUP_CFG, "tool", [("flake8", "linter", 15, 15)]),
        ("requirements-dev.txt",
         "# a\n-r base.txt\npytest==8.1 \\\n    --hash=x\n",
         "dependency", [("pytest", "==8.1", 3, 3)]),
        ("tox.ini", TOX, "script",
         [("envlist", "py310, lint", 2, 2), ("testenv", "pytest {posargs}", 5, 5), ("lint", "flake8 src", 8, 9)]),
        ("noxfile.py", NOX, "script", [("tests", "session.run(pytest -q)", 5, 6)]),
        ("justfile", "test *args:\n    pytest {{args}}\n", "script", [("test", "pytest {{args}}", 1, 2)]),
        (".pre-commit-config.yaml", "repos:\n- repo: https://x.org/ruff\n  hooks:\n  - id: ruff-format\n", "tool",
         [("ruff-format", "pre-commit hook", 4, 4), ("pre-commit", "task runner", 1, 1)]),
        (".github/workflows/ci.yml", WORKFLOW, "runtime", [("python", "3.10, 3.12", 8, 8)]),
        (".golangci.yml", "linters:\n", "tool", [("golangci-lint", "linter", 1, 1)]),
        (".rubocop.yml", "AllCops:\n", "tool", [("rubocop", "linter", 1, 1)]),
        (".eslintrc.cjs", "module.exports = {}\n", "tool", [("eslint", "linter", 1, 1)]),
        ("ruff.toml", "line-length = 90\n\n[format]\n", "tool",
         [("ruff", "linter", 1, 1), ("ruff", "formatter", 3, 3)]),
        (".python-version", "3.12.1\n", "runtime", [("python", "3.12.1", 1, 1)]),
        ("src/letters/__init__.py", '"""Letters."""\n__version__ = "2.0"\n', "metadata", [("version", "2.0", 2, 2)]),
        ("LICENSE", "\nMIT License\n", "metadata", [("license", "MIT License", 2, 2)]),
        (".github/CODEOWNERS", "# owners\ndocs/* @ada @bo\n", "people", [("docs/*", "@ada @bo", 2, 2)]),
        ("MAINTAINERS.md", "# Team\n\n- Ada <ada@example.org>\n", "people", [("maintainers", "Ada", 3, 3)]),
        ("uv.lock", "version = 1\n", "tool", [("uv", "package manager", 1, 1)]),
    ],
)  # fmt: skip
def test_each_format_states_its_facts_with_lines(
    path: str, text: str, kind: str, expected: list[tuple[str, str, int, int]]
) -> None:
    assert is_fact_file(path)
    assert rows(facts(path, text), kind) == expected


def test_steps_of_ci_are_named_by_job_and_step() -> None:
    found = facts(".github/workflows/ci.yml", WORKFLOW)
    assert rows(found, "script") == [
        ("test: Install", "pip install -e .[test]", 12, 12),
        ("test: Run the tests", "coverage run -m pytest\ncoverage report", 14, 16),
        ("lint", "ruff check .", 19, 19),
    ]
    assert rows(found, "tool") == [("GitHub Actions", "CI", 1, 1)]


@pytest.mark.parametrize(
    ("path", "text", "name", "words"),
    [
        ("pyproject.toml", PYPROJECT, "python", {"version", "minimum", "required", "supported"}),
        ("pyproject.toml", PYPROJECT, "ruff", {"linter", "lint"}),
        ("pyproject.toml", PYPROJECT, "pypdf", {"dependency", "pdf"}),
        ("mypy.ini", "", "mypy", {"type", "checker", "types"}),
        (".github/workflows/ci.yml", WORKFLOW, "test: Run the tests", {"test", "runner", "run", "integration"}),
        ("package.json", PACKAGE, "vitest", {"development", "test", "runner"}),
        ("CODEOWNERS", "* @ada\n", "*", {"who", "owner", "maintains"}),
    ],
)
def test_keywords_are_the_words_that_people_ask_with(path: str, text: str, name: str, words: set[str]) -> None:
    assert any(words <= set(each.keywords.split()) for each in facts(path, text) if each.name == name)


@pytest.mark.parametrize("path", ["README.md", "src/app.py", "node_modules/x/package.json", "a/b/c/d/__init__.py"])
def test_other_files_state_nothing(path: str) -> None:
    assert not is_fact_file(path)
    assert facts(path, PACKAGE) == []


NAMES = [
    "pyproject.toml", "package.json", "Cargo.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "go.mod",
    "pom.xml", "build.gradle", "Gemfile", "x.gemspec", "Makefile", "justfile", "requirements.txt",
    ".github/workflows/a.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml", "CODEOWNERS", "AUTHORS", "LICENSE",
    "ruff.toml", ".tool-versions",
]  # fmt: skip
HOSTILE = {
    "deep lists": "[" * 200_000,
    "deep JSON": '{"a":' * 50_000,
    "deep YAML": "".join(f"{' ' * at}a:\n" for at in range(1_000)),
    "many keys of YAML": "run: x\n" * 50_000,
    "dots": "a." * 200_000,
    "spaces": "version " + " " * 400_000,
    "lines": "\n" * 400_000,
    "one line": "x" * 450_000,
    "dependencies": "<dependency>" * 30_000,
    "colons": ":" * 400_000,
    "quotes": "'\"" * 200_000,
    "brackets of Python": "setup(" * 20_000,
    "unary of Python": "x = " + "-" * 90_000 + "1",
    "wrong types": '{"scripts": 3, "engines": [1], "author": [{}, 2], "dependencies": {"x": null}, "bin": {"a": {}}}',
    "wrong tables": "project = 3\ntool = [1]\n[dependency-groups]\na = 1\n[package]\nauthors = 3\nversion = [[1]]\n",
    "no text": "\x00\x01\xff",
    "huge": "a = 1\n" * 500_000,
    "sections": "[a]\n" * 100_000,
    "people": "Ada\n" * 100_000,
    "targets": "a:\n\tb\n" * 50_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_makes_reading_fail(text: str) -> None:
    body = text.encode()
    for name in NAMES:
        found = read_facts([(name, body)])
        assert len(found) <= MAX_FACTS, name
        assert all(1 <= each.start <= each.end and len(each.text) <= 15_000 for each in found)
