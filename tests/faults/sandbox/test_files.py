"""Code that tries to reach files outside of its grants."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement, Program
from tests.faults.sandbox.escapes import TREASURE, allowed, everything_below, linux_only, told
from tests.tools.sandbox.boxes import Box, open_box

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]

READ = """
import os

def run(input, context):
    got = []
    for path in input["paths"]:
        link = f"/tmp/link-{len(got)}"
        try: os.symlink(path, link)
        except OSError: pass
        for way in (path, link, "/proc/1/root" + path, "/proc/self/root" + path, "/proc/1/cwd" + path,
                    "/proc/self/cwd/../../../../../../.." + path, "/tmp/../.." + path):
            try: got.append(open(way).read())
            except OSError: pass
    return got
"""
READ_JS = """
import fs from "node:fs";
async function run(input) {
  const got = [];
  for (const path of input.paths) {
    for (const way of [path, "/proc/1/root" + path, "/proc/self/root" + path, "/tmp/../.." + path]) {
      try { got.push(Deno.readTextFileSync(way)) } catch {}
      try { got.push(fs.readFileSync(way, "utf8")) } catch {}
      try { got.push(await (await fetch("file://" + way)).text()) } catch {}
    }
    for (const type of ["json", "text", "bytes"]) {
      const source = `import found from ${JSON.stringify("file://" + path)} with {type: "${type}"}; export {found};`;
      const blob = new Blob([source], {type: "application/javascript"});
      try { got.push((await import(URL.createObjectURL(blob))).found) } catch {}
      try { got.push((await import("file://" + path, {with: {type}})).default) } catch {}
    }
  }
  return got.map(String);
}
"""


async def test_files_of_others_cannot_be_read_but_those_allowed_can(box: Box, home: Path) -> None:
    outcome = await box.call(READ, READ_JS, allowed(home), paths=everything_below(home))
    assert TREASURE not in told(outcome)
    assert "open to all" in told(outcome)


async def test_nothing_can_be_read_where_nothing_is_allowed(box: Box, home: Path) -> None:
    paths = [*everything_below(home), "/etc/shadow", "/etc/passwd"]
    outcome = await box.call(READ, READ_JS, Confinement(seconds=20), paths=paths)
    assert outcome == []


WRITE = """
import os

def run(input, context):
    done = []
    for path in input["paths"]:
        for mode in ("w", "a"):
            try:
                with open(path, mode) as file: file.write("owned")
                done.append(path)
            except OSError: pass
        for change in (os.unlink, lambda path: os.chmod(path, 0o777), lambda path: os.rename(path, path + ".gone")):
            try: change(path)
            except OSError: pass
    with open(os.path.join(input["work"], "made.txt"), "w") as file: file.write("made")
    return done
"""
WRITE_JS = """
function run(input) {
  const done = [];
  for (const path of input.paths) {
    for (const change of [() => Deno.writeTextFileSync(path, "owned"), () => Deno.removeSync(path),
                          () => Deno.chmodSync(path, 0o777), () => Deno.renameSync(path, path + ".gone"),
                          () => Deno.linkSync(path, input.work + "/hard")]) {
      try { change(); done.push(path) } catch {}
    }
  }
  Deno.writeTextFileSync(input.work + "/made.txt", "made");
  return done;
}
"""


async def test_nothing_is_written_but_in_the_folder_that_was_allowed(box: Box, home: Path) -> None:
    paths = [*everything_below(home), str(home / "new.txt"), "/usr/new.txt", "/etc/passwd"]
    guarded = [
        path
        for path in paths
        if Path(path).is_file() and not Path(path).is_symlink() and TREASURE in Path(path).read_text()
    ]
    outcome = await box.call(
        WRITE, WRITE_JS, allowed(home), paths=[*guarded, *paths[-3:]], work=str(home / "project/desk")
    )
    assert (home / "project/desk/made.txt").read_text() == "made", told(outcome)
    assert [path for path in guarded if Path(path).read_text() != TREASURE] == []
    assert not (home / "new.txt").exists()
    assert not Path("/usr/new.txt").exists()


async def test_a_folder_that_may_only_be_read_is_not_written(box: Box, home: Path) -> None:
    confinement = Confinement(read=(str(home / "project"),), seconds=20)
    outcome = await box.call(WRITE, WRITE_JS, confinement, paths=[], work=str(home / "project/desk"))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "permission"
    assert not (home / "project/desk/made.txt").exists()


MOVE_JS = """
function run(input) {
  const got = [];
  for (const folder of ["deep/down", "deep", "keys", "node_modules/x", "node_modules"]) {
    const to = input.project + "/desk/taken-" + folder.replace("/", "-");
    try { Deno.renameSync(input.project + "/" + folder, to) } catch {}
    for (const name of [".env", ".ENV", "down/.env", ".git-credentials", "x/.env"]) {
      try { got.push(Deno.readTextFileSync(to + "/" + name)) } catch {}
    }
  }
  return got;
}
"""
MOVE = """
import os

def run(input, context):
    got = []
    for folder in ("deep/down", "deep", "keys", "node_modules/x", "node_modules"):
        to = os.path.join(input["project"], "desk", "taken-" + folder.replace("/", "-"))
        try: os.rename(os.path.join(input["project"], folder), to)
        except OSError: pass
        for name in (".env", ".ENV", "down/.env", ".git-credentials", "x/.env"):
            try: got.append(open(os.path.join(to, name)).read())
            except OSError: pass
    return got
"""


async def test_a_secret_is_not_laid_open_by_moving_its_folder(box: Box, home: Path) -> None:
    outcome = await box.call(MOVE, MOVE_JS, allowed(home), project=str(home / "project"))
    assert not isinstance(outcome, ToolFailure), told(outcome)
    assert TREASURE not in told(outcome)


SETTINGS = """
import os

def run(input, context):
    for path in input["paths"]:
        try: os.makedirs(os.path.dirname(path))
        except OSError: pass
        try:
            with open(path, "w") as file: file.write("owned")
        except OSError: pass
"""
SETTINGS_JS = """
function run(input) {
  for (const path of input.paths) {
    try { Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), {recursive: true}) } catch {}
    try { Deno.writeTextFileSync(path, "owned") } catch {}
  }
}
"""


async def test_code_leaves_nothing_that_makes_programs_run(box: Box, home: Path) -> None:
    """Whether it was there before or not."""
    project = home / "project"
    names = (".git/config", ".git/hooks/post-checkout", ".vscode/tasks.json", "desk/.claude/settings.json")
    there = [project / "there" / name for name in names]
    for path in there:
        path.parent.mkdir(parents=True)
        path.write_text("as it was")
    new = [project / folder / name for folder in ("desk", "desk/new") for name in (*names, ".clew/config.toml")]
    await box.call(SETTINGS, SETTINGS_JS, allowed(home), paths=[*map(str, there), *map(str, new)])
    assert [path for path in there if path.read_text() != "as it was"] == []
    assert [path for path in new if path.exists()] == []


async def test_a_command_is_held_like_code(home: Path) -> None:
    box = open_box("bubblewrap python")
    script = "cat ~/.ssh/id_ed25519 .env /etc/shadow; cat open.txt; echo kept > made; echo $TREASURE; exit 7"
    ran = await box.sandbox().run(Program(argv=("/bin/sh", "-c", script)), allowed(home))
    assert (ran.code, ran.killed_by) == (7, None)
    assert TREASURE not in ran.stdout
    assert "open to all" in ran.stdout
    assert (home / "project/made").read_text() == "kept\n"
