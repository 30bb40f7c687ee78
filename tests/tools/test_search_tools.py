"""Files are found by name and lines by content, by ripgrep and by Python alike."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.errors import InvalidInput, NotFound, ToolFailure
from clew.tools.files.folder import WorkingFolder
from clew.tools.permissions.policy import DEFAULT, extend
from clew.tools.permissions.rules import parse_rule
from clew.tools.search.line_matcher import Hits, MatchTask, match_files
from clew.tools.search.search_tools import search_tools
from clew.tools.search.searchers import PythonSearcher, RipgrepSearcher, Searcher, find_searcher
from tests.tools.working_folder import Toolbox, plant

RG = shutil.which("rg")
FILES: dict[str, str | bytes] = {
    "a.py": "import os\nx = 1\nprint(x)\n",
    "src/b.py": "import sys\n# Import nothing\nx = 12\n",
    "src/deep/c.md": "the x axis\n",
    "src/deep/ünï.txt": "größe x\n",
    "build/out.py": "x = generated\n",
    ".gitignore": "build/\n*.log\n",
    "noise.log": "x\n",
    "src/.gitignore": "!kept.log\n",
    "src/kept.log": "x kept\n",
    "bin.dat": b"x\0y\n",
    "wide.txt": "x wide\n".encode("utf-16"),
    "dos.txt": b"x\r\nend x\r\n",
    "latin.txt": b"caf\xe9 x\n",
    ".env": "x=secret\n",
    ".github/ci.yml": "x: 1\n",
    "node_modules/m.js": "x\n",
    ".clew/config.toml": "x = 1\n",
    "long.txt": "x" * 10_000 + "\n",
    "-dash.txt": "x dash\n",
}


def box(root: Path, searcher: Searcher | None = None) -> Toolbox:
    return Toolbox(search_tools(WorkingFolder(root), searcher or PythonSearcher()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (plant(tmp_path, FILES) / "outside.py").symlink_to("/etc/hostname")
    (tmp_path / ".git").mkdir()
    return tmp_path


async def listed(tools: Toolbox, pattern: str, **more: object) -> list[str]:
    return (await tools.call("glob", pattern=pattern, **more)).split("\n")[1:]


@pytest.mark.req("PLA-10")
async def test_glob_skips_ignored_and_denied_files_and_links(root: Path) -> None:
    tools = box(root)
    assert await listed(tools, "*.py") == ["a.py", "src/b.py"]
    assert await listed(tools, "*.py", path="src") == ["src/b.py"]
    assert await listed(tools, "src/*.py") == ["src/b.py"]
    assert await listed(tools, "src/**/*.{md,txt}") == ["src/deep/c.md", "src/deep/ünï.txt"]
    assert await listed(tools, "*.log") == ["src/kept.log"]
    assert await listed(tools, "out.py", path="build") == ["build/out.py"], "a folder that is named is looked into"
    assert await tools.call("glob", pattern=".env") == "No file matches."
    assert not {"node_modules/m.js", ".clew/config.toml"} & set(await listed(tools, "**"))


async def test_a_long_listing_gives_the_total(tmp_path: Path) -> None:
    tools = box(plant(tmp_path, {f"f{number:04}": "" for number in range(300)}))
    shown = await tools.call("glob", pattern="f*")
    assert shown.startswith("300 files match; the first 200 of them:\nf0000\nf0001\n")
    assert len(shown.split("\n")) == 201


async def test_names_of_any_bytes_are_listed_on_one_line_each(tmp_path: Path) -> None:
    root = plant(tmp_path, {"a\nb\x1b[2J": "x", "plain": "x"})
    (root / os.fsdecode(b"caf\xe9")).write_text("x")
    tools = box(root)
    assert await listed(tools, "*") == ["a\\nb\\x1b[2J", "caf\\udce9", "plain"]
    shown = await tools.call("grep", pattern="x")
    assert shown.startswith("3 matching lines in 3 of 3 files.")


@pytest.mark.req("PLA-10")
async def test_lines_are_found_with_their_numbers_and_counted(root: Path) -> None:
    shown = await box(root).call("grep", pattern=r"^x = \d+$")
    assert shown == ("2 matching lines in 2 of 14 files.\n````text\na.py\n  2: x = 1\nsrc/b.py\n  3: x = 12\n````")


async def test_case_plain_text_files_and_lines_around_can_be_chosen(root: Path) -> None:
    tools = box(root)
    assert "2 matching lines" in await tools.call("grep", pattern="IMPORT", ignore_case=True, path="src")
    assert "1 matching lines" in await tools.call("grep", pattern="print(x)", fixed=True)
    assert "in 1 of 1 files" in await tools.call("grep", pattern="x", include="*.md")
    assert "in 1 of 1 files" in await tools.call("grep", pattern="x", path="a.py")
    around = await tools.call("grep", pattern="x = 1$", path="a.py", context=1)
    assert "  1- import os\n  2: x = 1\n  3- print(x)" in around
    assert (await tools.call("grep", pattern="nowhere")).startswith("No line matches in ")


async def test_shown_lines_are_limited_and_all_are_counted(tmp_path: Path) -> None:
    tools = box(plant(tmp_path, {"a": "x\n" * 30, "b": "x\n" * 30}))
    shown = await tools.call("grep", pattern="x", limit=35)
    assert shown.startswith("60 matching lines in 2 of 2 files; the first 35 of them.")
    assert shown.count(": x\n") == 35


async def test_a_long_line_is_cut_and_a_key_is_masked(tmp_path: Path) -> None:
    key = "sk-" + "b2" * 20
    tools = box(plant(tmp_path, {"a": "x" * 50_000 + "\n" + f"x {key}\n"}))
    shown = await tools.call("grep", pattern="x")
    assert "[... 49,500 characters more]" in shown
    assert key not in shown


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "", "a\nb", "x" * 3_000, "(?P<n>a)(?P<n>b)"])
async def test_an_invalid_pattern_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="pattern"):
        await box(root).call("grep", pattern=pattern)


async def test_a_pattern_without_end_is_stopped(tmp_path: Path) -> None:
    tools = box(plant(tmp_path, {"a": "a" * 60 + "!\n"}), PythonSearcher(seconds=1.0))
    with pytest.raises(InvalidInput, match=r"took longer than 1 seconds.*avoid nested repetitions"):
        await tools.call("grep", pattern=r"(a+)+$")


async def test_paths_outside_and_secrets_are_not_searched(root: Path) -> None:
    tools = box(root)
    for path in ("..", "/etc", "outside.py"):
        with pytest.raises(InvalidInput):
            await tools.call("grep", pattern="x", path=path)
    with pytest.raises(ToolFailure, match="secrets"):
        await tools.call("grep", pattern="x", path=".env")
    with pytest.raises(NotFound):
        await tools.call("grep", pattern="x", path="missing")
    assert "secret" not in await tools.call("grep", pattern="secret|x=")


async def test_a_file_replaced_by_a_link_gives_nothing(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": "x secret\n", "root/a": "x\n"})
    (tmp_path / "root/b").symlink_to(tmp_path / "outside")
    task = MatchTask(root=os.path.realpath(tmp_path / "root"), files=(b"a", b"b", b"gone"), pattern="x")
    assert [each.file for each in await PythonSearcher().search(task)] == [0]


class InProcessSearcher:
    """The matcher of PythonSearcher, without a process for each pattern."""

    async def search(self, task: MatchTask) -> Sequence[Hits]:
        return match_files(task)


@pytest.mark.skipif(RG is None, reason="ripgrep is not installed")
@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "x",
            r"^x = \d+$",
            r"\bimport\b",
            "x$",
            "^x",
            "größe",
            r"\w+ x",
            "[^x]$",
            "(?:axis|kept)",
            "x*",
            "nowhere",
            ".",
        ),
        *(r"x(?= = 1)", r"(x).*\1", "[[:alpha:]]", r"\<x", "a++", "x{,3}$", "[a-c]x|[]x]", r"\.", "caf"),
    ],
)
@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
async def test_ripgrep_and_python_find_the_same(root: Path, pattern: str, ignore_case: bool) -> None:
    assert RG is not None
    shown = [
        await box(root, searcher).call("grep", pattern=pattern, ignore_case=ignore_case, limit=7)
        for searcher in (InProcessSearcher(), RipgrepSearcher(RG))
    ]
    assert shown[0] == shown[1]


@pytest.mark.skipif(RG is None, reason="ripgrep is not installed")
async def test_ripgrep_takes_many_files_and_names_of_any_bytes(tmp_path: Path) -> None:
    assert RG is not None
    long = "d" * 200
    root = plant(tmp_path, {f"{long}/{number:04}.txt": "x\n" for number in range(2_000)})
    plant(root, {"a\nb": "x\n", os.fsdecode(b"caf\xe9"): "x\n", "-e": "x\n"})
    shown = [await box(root, each).call("grep", pattern="x") for each in (PythonSearcher(), RipgrepSearcher(RG))]
    assert shown[0] == shown[1]
    assert shown[0].startswith("2,003 matching lines in 2,003 of 2,003 files")


def test_ripgrep_is_used_if_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isinstance(find_searcher(), RipgrepSearcher)
    program.unlink()
    assert isinstance(find_searcher(), PythonSearcher)


async def test_a_ripgrep_that_fails_is_replaced(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    broken = tmp_path_factory.mktemp("bin") / "rg"
    broken.write_text("#!/bin/sh\nexit 2\n")
    broken.chmod(0o755)
    assert await box(root, RipgrepSearcher(str(broken))).call("grep", pattern="x") == await box(root).call(
        "grep", pattern="x"
    )


@pytest.mark.parametrize("rule", ["*(private/**)", "*(PRIVATE/**)", "*(**/pay.txt)", "*(private)"])
async def test_paths_denied_by_a_policy_are_neither_listed_nor_searched(tmp_path: Path, rule: str) -> None:
    root = plant(tmp_path, {"private/pay.txt": "IBAN 1\n", "open.txt": "IBAN 2\n"})
    policy = extend(DEFAULT, [parse_rule(rule, "deny")])
    for searcher in (PythonSearcher(), find_searcher()):
        tools = Toolbox(search_tools(WorkingFolder(root), searcher, policy=policy))
        assert await listed(tools, "**") == ["open.txt"]
        shown = await tools.call("grep", pattern="IBAN")
        assert "IBAN 2" in shown
        assert "IBAN 1" not in shown
        assert "IBAN" not in await tools.call("grep", pattern="IB[A]N", path="private")


async def test_unreadable_paths_are_listed_and_not_searched(tmp_path: Path) -> None:
    root = plant(tmp_path, {"private/pay.txt": "IBAN 1\n"})
    policy = extend(DEFAULT, [parse_rule("read-file(private/**)", "deny")])
    tools = Toolbox(search_tools(WorkingFolder(root), PythonSearcher(), policy=policy))
    assert await listed(tools, "**") == ["private/pay.txt"]
    assert "No line matches" in await tools.call("grep", pattern="IBAN")
