"""Facts about code stay correct after all changes by git and people: no stale fact is presented as fresh."""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import NotFound
from clew.knowledge.code.file_content import blob_id
from clew.knowledge.code.graph import CodeGraph
from tests.knowledge.code.repositories import git, make_repository, write
from tests.knowledge.code.sample_project import opened

MODULES, FUNCTIONS, STEPS = 24, 4, 200
Span = tuple[int, int]


def module_text(chance: random.Random, number: int) -> str:
    """A module that defines some functions, each of which calls one of another module."""
    lines = [f"# {chance.randrange(10**6)}" for _ in range(chance.randrange(3))]
    targets = {k: (chance.randrange(MODULES), chance.randrange(FUNCTIONS)) for k in range(FUNCTIONS)}
    lines += [f"from m{at} import f{at}_{k} as other{own}" for own, (at, k) in targets.items() if at != number]
    for own, (at, _) in targets.items():
        if chance.random() < 0.85:
            lines += ["", "", f"def f{number}_{own}(x):"]
            lines += [f"    x += {chance.randrange(100)}" for _ in range(chance.randrange(3))]
            lines.append(f"    return other{own}(x)" if at != number else "    return x")
    return "\n".join(lines) + "\n"


class Truth:
    """The current definitions in the files, read by Python's own parser."""

    def __init__(self, root: Path) -> None:
        self.bodies = {path.name: path.read_bytes() for path in root.glob("m*.py")}
        self.spans: dict[tuple[str, str], Span] = {}
        self.callers: dict[tuple[str, str], set[tuple[str, str]]] = {}
        trees = {name: ast.parse(body) for name, body in self.bodies.items()}
        for name, tree in trees.items():
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    self.spans[name, node.name] = (node.lineno, node.end_lineno or 0)
        for name, tree in trees.items():
            self._read_calls(name, tree)

    def _read_calls(self, name: str, tree: ast.Module) -> None:
        imported = {
            alias.asname: (f"{node.module}.py", alias.name)
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    target = imported.get(node.func.id)
                    if target in self.spans:
                        self.callers.setdefault(target, set()).add((name, function.name))


class Meddler:
    """Applies changes that people and git make to files, chosen by a seed."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._root = root
        self._chance = chance
        self._deeds: list[Callable[[], object]] = [
            *[self.check_out] * 5,
            *[self.edit] * 5,
            self.edit_unseen,
            self.remove,
            self.rename,
            self.commit,
            self.rebase,
            self.reset,
            self.touch,
            self.stash,
        ]

    def make_history(self) -> None:
        for branch in ("one", "two", "three"):
            git(self._root, "checkout", "-q", "-b", branch, "main")
            for _ in range(3):
                for number in self._chance.sample(range(MODULES), 6):
                    write(self._root, f"m{number}.py", module_text(self._chance, number))
                git(self._root, "commit", "-qam", f"on {branch}")

    def act(self) -> str:
        deed = self._chance.choice(self._deeds)
        deed()
        return deed.__name__

    def _some(self) -> Path | None:
        found = sorted(self._root.glob("m*.py"))
        return self._chance.choice(found) if found else None

    def check_out(self) -> None:
        git(self._root, "checkout", "-q", "-f", self._chance.choice(("main", "one", "two", "three", "two~1", "one~2")))

    def edit(self) -> None:
        for number in self._chance.sample(range(MODULES), self._chance.choice((1, 1, 1, 5))):
            write(self._root, f"m{number}.py", module_text(self._chance, number))

    def edit_unseen(self) -> None:
        """Other content of the same size, with the old timestamps."""
        if place := self._some():
            before = place.stat()
            place.write_bytes(place.read_bytes().replace(b"(x):\n", b"(y):\n").replace(b"def f", b"def g", 1))
            os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))

    def remove(self) -> None:
        if place := self._some():
            place.unlink()

    def rename(self) -> None:
        if place := self._some():
            os.replace(place, self._root / f"m{self._chance.randrange(MODULES)}.py")

    def commit(self) -> None:
        git(self._root, "add", "-A")
        git(self._root, "commit", "-qm", "more", ok=False)

    def rebase(self) -> None:
        git(self._root, "checkout", "-q", "-f", self._chance.choice(("one", "two", "three")))
        git(self._root, "rebase", "-q", "-X", "theirs", "main", ok=False)
        git(self._root, "rebase", "--abort", ok=False)

    def reset(self) -> None:
        git(self._root, "reset", "-q", "--hard", "HEAD~1", ok=False)

    def touch(self) -> None:
        if place := self._some():
            os.utime(place)
            place.chmod(0o755)

    def stash(self) -> None:
        git(self._root, "stash", "-q", "-u", ok=False)
        if self._chance.random() < 0.7:
            git(self._root, "stash", "pop", "-q", ok=False)
            git(self._root, "checkout", "-q", "--theirs", ".", ok=False)


def without_conflicts(root: Path) -> None:
    """Files with conflict marks are not Python, so conflicts are resolved with the current branch."""
    for place in root.glob("m*.py"):
        if b"<<<<<<<" in place.read_bytes():
            git(root, "reset", "-q", "--hard")
            return


@pytest.mark.req("BEY-06")
async def test_after_200_checkouts_rebases_resets_and_edits_no_fact_is_stale(tmp_path: Path) -> None:
    chance = random.Random(6)
    files = {f"m{number}.py": module_text(chance, number) for number in range(MODULES)}
    root = make_repository(tmp_path / "r", files)
    meddler = Meddler(root, chance)
    meddler.make_history()
    async with opened(root, tmp_path / "clew") as graph:
        await graph.refresh()
        for step in range(STEPS):
            deed = meddler.act()
            without_conflicts(root)
            truth = Truth(root)
            about = f"step {step}, after {deed}"
            await compare_symbols(graph, truth, chance, about)
            await compare_files(graph, truth, chance, about)
            if step % 2 == 0:
                await graph.refresh()
                await compare_everything(graph, truth, about)
                await compare_callers(graph, truth, chance, about)


async def compare_symbols(graph: CodeGraph, truth: Truth, chance: random.Random, about: str) -> None:
    """Without a refresh, the answer is correct all the same."""
    for _ in range(4):
        number = chance.randrange(MODULES)
        name = (f"m{number}.py", f"{chance.choice('ffffg')}{number}_{chance.randrange(FUNCTIONS)}")
        try:
            node = await graph.symbol(f"{name[0]}#{name[1]}")
        except NotFound:
            assert name not in truth.spans, about
            continue
        assert (node.line_start, node.line_end) == truth.spans.get(name), about
        assert node.content_hash == blob_id(truth.bodies[name[0]]), about
        source = await graph.source(node.id)
        first, last = truth.spans[name]
        lines = truth.bodies[name[0]].decode().split("\n")[first - 1 : last]
        assert source == "\n".join(f"{at}: {line}" for at, line in enumerate(lines, first)), about


async def compare_files(graph: CodeGraph, truth: Truth, chance: random.Random, about: str) -> None:
    path = f"m{chance.randrange(MODULES)}.py"
    expected = {(name, span) for (file, name), span in truth.spans.items() if file == path}
    try:
        found = await graph.symbols_of(path, symbol_type="function")
    except NotFound:
        assert path not in truth.bodies, about
        return
    assert {(node.name, (node.line_start, node.line_end)) for node in found} == expected, about


async def compare_everything(graph: CodeGraph, truth: Truth, about: str) -> None:
    found = {file.path: file.blob for file in await graph.files("m*.py")}
    assert found == {name: blob_id(body) for name, body in truth.bodies.items()}, about


async def compare_callers(graph: CodeGraph, truth: Truth, chance: random.Random, about: str) -> None:
    for path, name in chance.sample(sorted(truth.spans), min(6, len(truth.spans))):
        links = await graph.dependents(f"{path}#{name}", edge_type="calls")
        found = {(link.node.path, link.node.name) for link in links}
        assert found == truth.callers.get((path, name), set()), f"{about}: callers of {path}#{name}"


@pytest.mark.req("BEY-06")
async def test_fifty_changed_files_are_read_again_and_only_those(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {f"m{at}.py": f"def f{at}():\n    pass\n" for at in range(120)})
    async with opened(root, tmp_path / "clew") as graph:
        await graph.refresh()
        for at in range(50):
            write(root, f"m{at}.py", f"def g{at}():\n    return {at}\n")
        done = await graph.refresh()
        assert (len(done.changed), done.parsed) == (50, 50)
        assert (await graph.symbol("m7.py#g7")).line_end == 2
        git(root, "checkout", "-q", "-f", ".")
        back = await graph.refresh()
        assert (len(back.changed), back.parsed) == (50, 0)
        with pytest.raises(NotFound):
            await graph.symbol("m7.py#g7")
