"""The tools that a project names: every pattern, every kind of file, and hostile files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.errors import InvalidInput
from clew.knowledge.project.tool_scan import ProjectFiles, Scan, find_project_tools, is_installed, scan_project
from clew.knowledge.project.tools import (
    CATEGORIES,
    DiscoveredTool,
    ToolCategory,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
    ToolOption,
    default_toolsets,
    install_of,
    known_tools,
)

LANGUAGES = [
    "go", "python", "javascript", "typescript", "rust", "ruby", "java", "kotlin", "c", "cpp", "csharp", "elixir",
    "bash", "php", "swift", "zig", "ocaml", "dart", "terraform", "nix", "vue", "svelte",
]  # fmt: skip
PATTERNS = [
    ".eslintrc", ".eslintrc.js", ".eslintrc.json", "eslint.config.js", ".golangci.yml", ".golangci.yaml",
    "ruff.toml", ".ruff.toml", "clippy.toml", ".prettierrc", ".prettierrc.js", "prettier.config.js",
    "rustfmt.toml", ".editorconfig", "tsconfig.json", "pyrightconfig.json", "mypy.ini", "jest.config.js",
    "jest.config.ts", "vitest.config.ts", "pytest.ini", "setup.cfg", ".mocharc.js",
]  # fmt: skip
SIGNS: list[tuple[str, Any, str]] = [
    (name, category, sign)
    for name, known in known_tools().items()
    for category, signs in known.signs.items()
    for sign in signs
]


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def scan(root: Path, category: ToolCategory, target: str = "", *languages: str) -> Scan:
    return scan_project(ProjectFiles(os.path.realpath(root), target), category, languages)


def names(found: Scan) -> list[str]:
    return [tool.name for tool in found.tools]


@pytest.mark.req("SYL-37")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_of_the_23_configurations_names_its_tool(tmp_path: Path, pattern: str) -> None:
    sign = f"{pattern}#tool:pytest" if pattern == "setup.cfg" else pattern
    [(name, category)] = [
        (name, category)
        for name, known in known_tools().items()
        for category, signs in known.signs.items()
        if sign in signs
    ]
    write(tmp_path, {pattern: "[tool:pytest]\n" if pattern == "setup.cfg" else ""})
    for other in CATEGORIES:
        found = scan(tmp_path, other)
        if other == category:
            [tool] = found.tools
            assert (tool.name, tool.source) == (name, "config_file")
            assert tool.language in known_tools()[name].languages
            assert (found.confidence, tool.config_path, bool(tool.run_command)) == ("high", pattern, True)
        else:
            assert found.confidence != "high"


def test_every_file_and_section_of_the_table_is_a_configuration(tmp_path: Path) -> None:
    for number, (name, category, sign) in enumerate(SIGNS):
        path, _, part = sign.partition("#")
        if ":" in sign.partition("#")[0] or not known_tools()[name].languages:
            continue
        root = tmp_path / str(number)
        keys = part.split("/")
        content = json.dumps({part: {}}) if path.endswith(".json") else f"[{'.'.join(keys)}]\n" if part else ""
        write(root, {path: part if path.endswith((".xml", ".gradle", ".kts")) else content})
        if category in CATEGORIES:
            assert name in names(scan(root, category)), sign


@pytest.mark.req("SYL-37")
@pytest.mark.parametrize("content", ["", "[metadata]\nname = x\n", "# [tool:pytest]\n", "\0" * 50])
def test_setup_cfg_without_its_section_says_nothing(tmp_path: Path, content: str) -> None:
    write(tmp_path, {"setup.cfg": content})
    assert scan(tmp_path, "test_framework").tools == ()


def manifest_of(ecosystem: str, package: str) -> tuple[str, str]:
    match ecosystem:
        case "npm":
            return "package.json", json.dumps({"devDependencies": {package: "^1.2.3"}})
        case "python":
            return "pyproject.toml", f'[dependency-groups]\ndev = ["{package}>=1.2.3"]\n'
        case "rust":
            return "Cargo.toml", f'[dev-dependencies]\n{package} = {{ version = "1.2.3" }}\n'
        case "java":
            group, _, artifact = package.partition(":")
            named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>1.2.3</version>"
            return "pom.xml", f"<project><dependencies><dependency>{named}</dependency></dependencies></project>"
        case _:
            return "go.mod", f"module example\n\nrequire (\n\t{package} v1.2.3 // indirect\n)\n"


@pytest.mark.req("SYL-37", "SYL-36")
def test_each_package_of_a_manifest_gives_medium_confidence(tmp_path: Path) -> None:
    packages = [each for each in SIGNS if each[2].partition(":")[0] in ("npm", "python", "go", "rust", "java")]
    assert len(packages) > 30
    for number, (name, category, sign) in enumerate(packages):
        ecosystem, _, package = sign.partition(":")
        path, text = manifest_of(ecosystem, package)
        write(tmp_path / str(number), {path: text})
        found = scan(tmp_path / str(number), category)
        [tool] = found.tools
        assert (tool.name, tool.source, found.confidence) == (name, "package_manifest", "medium"), sign
        is_other = name in ("go test", "cargo test")  # testify and the like are used with it
        assert ("1.2.3" in tool.version, tool.config_path) == (not is_other, ""), sign


MAVEN = (
    "<project>\n  <artifactId>parent</artifactId>\n  <modules><module>core</module></modules>\n"
    "  <build><plugins><plugin>\n"
    "    <artifactId>spotless-maven-plugin</artifactId>\n    <configuration><java>\n      <googleJavaFormat>\n"
    "      </googleJavaFormat></java></configuration>\n  </plugin></plugins></build>\n</project>\n"
)
JUNIT = (
    "<project>\n  <dependencies><dependency>\n    <groupId>junit</groupId>\n    <artifactId>junit</artifactId>\n"
    "    <scope>test</scope></dependency></dependencies></project>\n"
)


@pytest.mark.req("SYL-37")
def test_a_maven_build_names_its_formatters_and_tests(tmp_path: Path) -> None:
    write(tmp_path, {"pom.xml": MAVEN, "core/pom.xml": JUNIT, "core/src/A.java": "class A {}"})
    formatters = scan(tmp_path, "formatter")
    found = [(tool.name, tool.rationale.partition("@")[0], tool.run_command) for tool in formatters.tools]
    assert found == [
        ("google-java-format", "google-java-format is configured in pom.xml:7", "mvn spotless:check"),
        ("spotless", "spotless is configured in pom.xml:5", "mvn spotless:check"),
    ]
    assert formatters.confidence == "high"
    [junit] = scan(tmp_path, "test_framework", "core/src").tools
    assert junit.rationale.startswith("junit is named in core/pom.xml:4")
    assert (junit.source, junit.run_command, junit.version) == ("package_manifest", "mvn test", "")


@pytest.mark.req("SYL-37")
@pytest.mark.parametrize("name", ["build.gradle", "build.gradle.kts"])
def test_a_gradle_build_names_its_tools(tmp_path: Path, name: str) -> None:
    build = 'plugins {\n  id("com.diffplug.spotless")\n  checkstyle\n}\n'
    module = 'dependencies {\n  testImplementation("org.junit.jupiter:junit-jupiter:5.10")\n}\n'
    write(tmp_path, {name: build, f"core/{name}": module, "core/A.java": "class A {}"})
    assert names(scan(tmp_path, "formatter")) == ["spotless"]
    assert names(scan(tmp_path, "linter")) == ["checkstyle"]
    [junit] = scan(tmp_path, "test_framework", "core").tools
    assert (junit.name, junit.run_command) == ("junit", "./gradlew test")
    assert junit.rationale.startswith(f"junit is named in core/{name}:2")


@pytest.mark.req("SYL-37")
@pytest.mark.parametrize(
    ("files", "category", "tool", "run"),
    [
        (
            {"go.mod": "module x\n", "Makefile": "lint: deps\n\tgolangci-lint run ./...\n"},
            "linter",
            "golangci-lint",
            "golangci-lint run",
        ),
        (
            {"go.mod": "module x\n\ntool github.com/golangci/golangci-lint/v2/cmd\n"},
            "linter",
            "golangci-lint",
            "golangci-lint run",
        ),
        (
            {"Cargo.toml": "", "Makefile": "FLAGS := x\ncheck:\n\tcargo  clippy -- -D warnings\n"},
            "linter",
            "clippy",
            "cargo clippy",
        ),
        (
            {"Cargo.toml": "", ".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n    - run: cargo fmt --check\n"},
            "formatter",
            "rustfmt",
            "cargo fmt --check",
        ),
        (
            {"package.json": '{"scripts": {"lint:js": "eslint src"}}'},
            "linter",
            "eslint",
            "npx eslint .",
        ),
        ({".pre-commit-config.yaml": "repos:\n- hooks:\n  - id: ruff-format\n"}, "formatter", "ruff", "ruff format ."),
        (
            {".vscode/settings.json": '{"editor.defaultFormatter": "esbenp.prettier-vscode", // why\n}'},
            "formatter",
            "prettier",
            "npx prettier --check .",
        ),
        ({".idea/misc.xml": '<component name="EslintConfiguration"/>'}, "linter", "eslint", "npx eslint ."),
        (
            {"requirements-dev.txt": "-r base.txt\nPyTest[x] == 8.1 ; python_version > '3'\n"},
            "test_framework",
            "pytest",
            "pytest .",
        ),
    ],
)
def test_scripts_ci_and_editors_name_tools(
    tmp_path: Path, files: dict[str, str], category: ToolCategory, tool: str, run: str
) -> None:
    write(tmp_path, files)
    found = scan(tmp_path, category)
    assert (names(found), found.confidence, found.tools[0].run_command) == ([tool], "medium", run)


@pytest.mark.req("SYL-36")
def test_languages_alone_give_low_confidence(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "b.py": "", "c.go": "", "node_modules/x/a.js": "", "node_modules/x/b.js": ""})
    write(tmp_path, {"node_modules/x/c.js": "", ".hidden/a.rs": ""})
    found = scan(tmp_path, "linter")
    assert (found.tools, found.confidence, found.open_language) == ((), "low", "python")
    assert scan(tmp_path, "linter", "c.go").open_language == "go"


def test_a_configuration_takes_its_version_from_the_manifest(tmp_path: Path) -> None:
    package = {"devDependencies": {"eslint": "^9.1.0", "biome": "1.0.0"}}
    write(tmp_path, {"web/.eslintrc": "{}", "web/package.json": json.dumps(package), "web/src/a.ts": ""})
    [tool] = scan(tmp_path, "linter", "web/src/a.ts").tools
    assert (tool.name, tool.version, tool.config_path) == ("eslint", "^9.1.0", "web/.eslintrc")
    assert tool.install_cmd == "npm install -D eslint"


def test_the_nearest_configuration_wins_and_paths_are_quoted(tmp_path: Path) -> None:
    write(tmp_path, {"ruff.toml": "", "my app; rm/ruff.toml": "", "my app; rm/a.py": ""})
    [tool] = scan(tmp_path, "linter", "my app; rm/a.py").tools
    assert tool.config_path == "my app; rm/ruff.toml"
    assert tool.run_command == "ruff check 'my app; rm/a.py'"


def test_tools_for_the_languages_that_are_named_are_found(tmp_path: Path) -> None:
    write(tmp_path, {"ruff.toml": "", "a.py": "", "b.go": ""})
    assert scan(tmp_path, "linter", "", "python").confidence == "high"
    assert scan(tmp_path, "linter", "", "go").tools == ()
    assert scan(tmp_path, "linter").confidence == "high"


def test_tools_of_the_language_come_before_general_ones(tmp_path: Path) -> None:
    write(tmp_path, {".editorconfig": "", "pyproject.toml": '[project]\ndependencies = ["black==24.1"]\n', "a.py": ""})
    assert names(scan(tmp_path, "formatter")) == ["black", "editorconfig"]


HOSTILE: dict[str, str | bytes] = {
    "broken": "{[",
    "deep list": "[" * 100_000,
    "deep keys": "a = " + "[" * 50_000,
    "list": "[1, 2]",
    "number": "7",
    "binary": b"\xff\xfe\0\x01" * 1000,
    "huge": b" " * 3_000_000,
    "wrong types": '{"dependencies": 3, "devDependencies": ["x"], "scripts": {"a": 1, "b;c": "jest"}, "jest": null}',
    "wrong versions": json.dumps({"devDependencies": {"eslint": {"a": 1}, "jest": "x://u:p@h", "mocha": "9" * 999}}),
    "wrong tables": 'tool = 3\nproject = ["x"]\ndependency-groups = 1\ndev-dependencies = "x"\n[lints]\nclippy = 1\n',
    "wrong groups": '[project]\ndependencies = [1, ["ruff"], "", "; ruff"]\n[tool]\nruff = 1\npoetry = 3\nuv = []\n',
    "long line": "a." * 200_000,
    "spaces": "require " + " " * 400_000,
}  # fmt: skip


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_file_makes_a_scan_fail(tmp_path: Path, content: str | bytes) -> None:
    shared = {"Makefile", "tox.ini", "noxfile.py", ".pre-commit-config.yaml", ".gitlab-ci.yml", "requirements.txt"}
    shared |= {"package.json", "pyproject.toml", "go.mod", "Cargo.toml", "pom.xml", "setup.cfg"}
    write(tmp_path, dict.fromkeys((*shared, ".vscode/settings.json", ".github/workflows/a.yml"), content))
    for category in CATEGORIES:
        for tool in scan(tmp_path, category).tools:
            assert len(tool.version) <= 60
            assert "u:p" not in tool.version


def test_links_and_folders_in_the_place_of_files_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"package.json": '{"devDependencies": {"eslint": "1"}}', "workflows/a.yml": "run: ruff check"})
    root = tmp_path / "root"
    write(root, {"pyproject.toml/x": ""})
    (root / "package.json").symlink_to(outside / "package.json")
    (root / ".github").symlink_to(outside)
    os.mkfifo(root / "Makefile")
    assert scan(root, "linter").tools == ()


@pytest.mark.req("SYL-39", "O20")
def test_the_table_has_a_toolset_for_each_of_22_languages() -> None:
    toolsets = default_toolsets()
    assert sorted(toolsets) == sorted(LANGUAGES)
    assert len(toolsets) == 22
    python = toolsets["python"]
    assert (python["package_manager"], python["linter"], python["formatter"]) == ("uv", "ruff", "ruff")
    assert (python["test_framework"], python["type_checker"]) == ("pytest", "mypy")
    for language in ("javascript", "typescript"):
        assert [toolsets[language][each] for each in CATEGORIES][:2] == ["oxlint", "prettier"]
        assert toolsets[language]["test_framework"] == "vitest"
    assert install_of("vitest", "typescript") == "npm install -D vitest"
    assert install_of("golangci-lint", "go").startswith("go install ")
    assert install_of("eslint", "vue") == "npm install -D eslint eslint-plugin-vue"
    assert (toolsets["rust"]["linter"], toolsets["rust"]["formatter"]) == ("clippy", "rustfmt")


@pytest.mark.req("SYL-39")
def test_every_default_can_be_run() -> None:
    for language, toolset in default_toolsets().items():
        chosen = {category: toolset[category] for category in CATEGORIES if toolset[category]}
        assert len(chosen) >= len(CATEGORIES) - 2
        for category, name in chosen.items():
            assert language in known_tools()[name].languages
            assert known_tools()[name].run[category]


@pytest.mark.req("SYL-36")
def test_the_records_have_the_fields_that_were_promised() -> None:
    assert ToolDiscoveryRequest.__struct_fields__ == (
        "session_id", "requesting_agent", "tool_category", "target_path", "languages",
    )  # fmt: skip
    assert ToolDiscoveryResponse.__struct_fields__ == ("tier", "confidence", "tools", "requires_user", "user_options")
    assert DiscoveredTool.__struct_fields__ == (
        "name", "category", "language", "version", "config_path", "run_command", "install_cmd", "is_installed",
        "source", "rationale",
    )  # fmt: skip
    assert ToolOption.__struct_fields__ == ("tool", "pros", "cons", "recommended")
    assert CATEGORIES == ("linter", "formatter", "type_checker", "test_framework", "lsp")
    with pytest.raises(InvalidInput, match="Categories are linter"):
        ToolDiscoveryRequest(session_id="s", requesting_agent="tester", tool_category="compiler")  # type: ignore[arg-type]  # tried


def test_a_program_is_looked_up_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    write(programs, {"mytool": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    (programs / "mytool").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert is_installed(str(tmp_path), "mytool", "mytool --all")
    assert not is_installed(str(tmp_path), "ruff")
    assert not is_installed(str(tmp_path), "", " ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.req("SYL-35")
def test_the_tools_of_a_folder_are_listed_with_command_and_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "[tool.ruff]\nline-length = 100\n\n[tool.pytest.ini_options]\naddopts = '-q'\n",
            "Makefile": "types:\n\tscripts/check-types\n",
            "shop/till.py": "x = 1\n",
        },
    )
    found = {tool.kind: tool for tool in find_project_tools(tmp_path)}
    assert list(found) == ["lint", "format", "types", "test"]
    lint, types = found["lint"], found["types"]
    assert (lint.name, lint.command, lint.files) == ("ruff", "ruff check .", ("*.py", "*.pyi"))
    assert lint.reason == "ruff is configured in pyproject.toml:1"
    assert (types.name, types.command, types.reason) == ("types", "make types", "named in Makefile:1")
    assert found["test"].command == "pytest ."
    assert (found["format"].command, found["format"].reason) == ("ruff format .", "usual for python")


@pytest.mark.req("SYL-35")
def test_a_folder_without_code_has_no_tools(tmp_path: Path) -> None:
    write(tmp_path, {"README.md": "# Poems\n"})
    assert find_project_tools(tmp_path) == []
