"""Files that make programs run on the machine do not survive the run that created them, and no run can change existing
ones."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.errors import ToolFailure
from clew.tools.files.folder import WorkingFolder
from clew.tools.sandbox import Confinement, Program
from clew.tools.sandbox.folders.folder_scan import scan_folder
from clew.tools.shell import ShellLimits, shell_tools
from tests.tools.sandbox.boxes import open_box
from tests.tools.working_folder import Toolbox, plant

WALLS = ("bubblewrap python", "landlock python")
SETTINGS = {
    ".vscode/tasks.json": "{}",
    ".claude/settings.json": "{}",
    "sub/.idea/workspace.xml": "<a/>",
    ".husky/pre-commit": "exit 0\n",
}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="NOT TESTED: git is missing")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = plant(tmp_path / "project", {"sub/a.txt": "a\n", **SETTINGS})
    for folder in (root, root / "sub/inner"):
        folder.mkdir(exist_ok=True)
        git(folder, "init", "-q")
        git(folder, "config", "user.email", "ann@example.com")
        git(folder, "config", "user.name", "Ann")
    return root


def git(folder: Path, *arguments: str) -> str:
    command = ("git", "-c", "safe.directory=*", *arguments)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def tools(root: Path, wall: str = "bubblewrap python", limits: ShellLimits | None = None) -> Toolbox:
    return Toolbox(shell_tools(WorkingFolder(root), open_box(wall).sandbox(), limits))


def settings_below(root: Path) -> dict[str, str]:
    """All files that git, editors and agents would act on, with their content."""
    found = {}
    for place in scan_folder(str(root)).guarded:
        files = [path for path in (Path(place), *Path(place).rglob("*")) if path.is_file()]
        found.update({str(path.relative_to(root)): path.read_text() for path in files} or {place: "empty"})
    return found


ATTACKS = {
    "a setting of git": "git config core.fsmonitor 'touch owned'; git -C sub/inner config core.sshCommand owned",
    "a setting of git, by hand": "echo '[core]\n\tfsmonitor = owned' >> .git/config; cp /dev/null .git/config",
    "a hook": "echo 'touch owned' > .git/hooks/post-checkout; rm -rf .git/hooks/*",
    "another repository in its place": "mv .git old; cp -r old .git; echo owned > .git/hooks/post-checkout",
    "a repository whose settings lie elsewhere": "mkdir elsewhere; echo ../elsewhere > .git/commondir",
    "a pointer to a repository": "mkdir new; echo 'gitdir: ../elsewhere' > new/.git",
    "a setting of clew": "mkdir -p newdir/.clew .clew; echo x=1 | tee newdir/.clew/config.toml > .clew/config.toml",
    "a setting in a folder without rights": "mkdir -p no/.clew; echo x=1 > no/.clew/config.toml; chmod 500 no",
    "capitals": "mkdir .Vscode .CLEW; echo x | tee .Vscode/tasks.json > .CLEW/config.toml",
    "settings of editors": "echo owned | tee .vscode/tasks.json .claude/settings.json sub/.idea/workspace.xml",
    "new settings": "mkdir .cursor .zed; echo owned | tee .cursor/mcp.json .zed/tasks.json .envrc .mcp.json",
    "links": "ln -s sub .cursor; ln -s /tmp .zed; mv .vscode .v; ln -s sub .vscode",
    "a hook that others run": "echo owned >> .husky/pre-commit; mv .husky h; mkdir .husky; echo owned > .husky/a",
    "a way round": "ln .git/config sub/c; echo owned >> sub/c; ln -s .git g; echo owned > g/hooks/pre-commit",
}


@pytest.mark.req("PLA-25")
@needs_git
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("wall", WALLS)
async def test_files_that_make_programs_run_are_renamed_after_a_command(wall: str, attack: str, project: Path) -> None:
    before = settings_below(project)
    shown = await tools(project, wall).call_json("exec", command=attack, timeout=60)
    assert settings_below(project) == before
    assert shown["killed_by"] is None


NEW = (
    *(".helix", ".vim", ".nvimrc", ".nvim.lua", ".dir-locals-2.el", "Team.code-workspace", ".devcontainer"),
    *(".opencode", "opencode.json", "opencode.jsonc", ".kiro", ".roo", ".continue", ".aider.conf.yml"),
    *("mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".devcontainer.json"),
)


@pytest.mark.req("PLA-25")
async def test_settings_of_many_programs_are_renamed(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"sub/toml": ""})
    shown = await tools(root).call_json("exec", command=f"cd sub; touch {' '.join(NEW)} a.workspace mise")
    aside = {f"{name}.kept-back" for name in NEW}
    assert {path.name for path in (root / "sub").iterdir()} == aside | {"a.workspace", "mise", "toml"}
    assert len(shown["notes"]) == len(NEW)


@pytest.mark.req("PLA-25")
@needs_git
async def test_an_inner_repository_cannot_be_replaced(project: Path) -> None:
    """Its folder can be moved away; what was in it cannot be changed there either, and a new one has no settings."""
    before = set(settings_below(project).values())
    command = "mv sub/inner old; cp -r old sub/inner; echo owned | tee old/.git/hooks/a sub/inner/.git/hooks/a"
    await tools(project).call_json("exec", command=command)
    after = settings_below(project)
    assert set(after.values()) == before
    assert not any(name.startswith("sub/inner/") for name in after)


@pytest.mark.req("PLA-25")
@needs_git
async def test_a_bare_repository_is_found_under_any_name(project: Path) -> None:
    command = "git init -q --bare sub/data; git -C sub/data config core.fsmonitor owned; echo x > sub/data/hooks/a"
    shown = await tools(project).call_json("exec", command=command)
    assert not (project / "sub/data/config").exists()
    assert not (project / "sub/data/hooks").exists()
    assert any(note.startswith("sub/data/config can make programs run on this machine") for note in shown["notes"])


@needs_git
async def test_a_command_may_commit(project: Path) -> None:
    command = "git add sub/a.txt && git commit -qm first && git branch other && git log --format=%s && git status -s"
    shown = await tools(project).call_json("exec", command=command)
    assert shown["exit_code"] == 0, shown
    assert shown["stdout"].startswith("first\n")
    assert "notes" not in shown
    assert git(project, "log", "--format=%s %an") == "first Ann\n"
    assert git(project, "fsck", "--strict") == ""


@needs_git
async def test_renamed_files_are_reported_and_kept(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"a": "a"})
    made = "mkdir -p new/.clew; echo kept > new/.clew/config.toml"
    first = await tools(root).call_json("exec", command=made)
    again = await tools(root).call_json("exec", command=made)
    text = "new/.clew can make programs run on this machine, and was renamed to .clew.kept-back"
    assert [first["notes"], again["notes"]] == [[text], [f"{text}-2"]]
    assert (root / "new/.clew.kept-back/config.toml").read_text() == "kept\n"


async def test_a_command_that_is_killed_or_cancelled_leaves_nothing_either(tmp_path: Path) -> None:
    box = tools(plant(tmp_path / "root", {"a": "a"}))
    shown = await box.call_json("exec", command="mkdir .vscode one; sleep 1000", timeout=1)
    assert shown["killed_by"] == "timeout"
    running = asyncio.create_task(box.call("exec", command="mkdir .vscode two; sleep 1000"))
    async with asyncio.timeout(30):
        while not (tmp_path / "root/two").exists():
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (tmp_path / "root/.vscode").exists()


@needs_git
async def test_changes_of_the_user_during_a_run_stay(project: Path) -> None:
    """git puts a new file in the place of its settings, and a folder with a repository may be moved."""
    command = "mv sub/inner sub/other; touch begun; until [ -e go ]; do sleep 0.01; done"
    running = asyncio.create_task(tools(project).call_json("exec", command=command, timeout=60))
    async with asyncio.timeout(50):
        while not (project / "begun").exists():
            await asyncio.sleep(0.01)
    git(project, "config", "user.name", "Ben")
    (project / ".git/hooks/post-merge").write_text("exit 0\n")
    (project / "go").touch()
    shown = await running
    assert "notes" not in shown
    assert git(project, "config", "user.name") == "Ben\n"
    assert (project / "sub/other/.git/config").exists()
    assert (project / ".git/hooks/post-merge").exists()


async def test_a_replaced_link_is_detected(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"settings/tasks.json": "{}"})
    (root / ".vscode").symlink_to("settings")
    command = "rm .vscode; mkdir .vscode; echo owned > .vscode/tasks.json; echo owned > settings/tasks.json"
    shown = await tools(root).call_json("exec", command=command)
    assert len(shown["notes"]) == 1
    assert not (root / ".vscode").exists()
    assert (root / "settings/tasks.json").read_text() == "{}"


async def test_code_that_makes_settings_fails(tmp_path: Path) -> None:
    box = open_box("bubblewrap python")
    code = "import os\ndef run(input, context):\n    os.makedirs(input['at'])"
    confinement = Confinement(write=(str(tmp_path),), seconds=20)
    outcome = await box.call(code, "", confinement, at=str(tmp_path / "a/.claude"))
    assert isinstance(outcome, ToolFailure)
    assert (outcome.kind, "a/.claude can make programs run" in outcome.message) == ("permission", True)


@pytest.mark.parametrize("path", [".vscode", ".git", ".git/hooks", ".husky"])
async def test_files_that_make_programs_run_cannot_be_writable(path: str, tmp_path: Path) -> None:
    (tmp_path / path).mkdir(parents=True)
    sandbox = open_box("bubblewrap python").sandbox()
    program = Program(argv=("/bin/true",))
    with pytest.raises(ToolFailure, match="decides which programs run"):
        await sandbox.run(program, Confinement(write=(path,), cwd=str(tmp_path)))
    assert (await sandbox.run(program, Confinement(read=(path,), cwd=str(tmp_path)))).code == 0


def test_a_folder_that_changed_is_read_again(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {f"a{n}/b/c.txt": "x" for n in range(20)})
    os.utime(root / "a3/b", (1, 1))
    assert scan_folder(str(root)).denied == ()
    for number in range(20):
        (root / f"a{number}/b/.env").write_text("x")
        os.utime(root / f"a{number}/b", (1, 1))
        assert len(scan_folder(str(root)).denied) == number + 1
    shutil.rmtree(root / "a3")
    assert len(scan_folder(str(root)).denied) == 19


async def test_the_disk_is_not_filled(tmp_path: Path) -> None:
    limits = ShellLimits(disk_mb=40)
    box = tools(plant(tmp_path / "root", {"a": "a"}), limits=limits)
    endless = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/urandom > f$i; done"
    shown = await box.call_json("exec", command=endless, timeout=100)
    assert (shown["killed_by"], "wrote too much to the disk" in shown["error"]) == ("disk", True)


async def test_deleted_open_files_count_against_the_disk_limit(tmp_path: Path) -> None:
    code = """
import os
def run(input, context):
    kept = []
    while True:
        kept.append(os.open(input["at"], os.O_RDWR | os.O_CREAT))
        os.unlink(input["at"])
        for _ in range(8): os.write(kept[-1], os.urandom(1_000_000))
        if len(kept) > 30: os.fsync(kept.pop(0))
"""
    confinement = Confinement(write=(str(tmp_path),), disk_mb=40, seconds=100)
    outcome = await open_box("bubblewrap python").call(code, "", confinement, at=str(tmp_path / "x"))
    assert isinstance(outcome, ToolFailure)
    assert outcome.message == "wrote more than 40 MB to the disk"


async def test_a_file_larger_than_the_disk_limit_is_refused(tmp_path: Path) -> None:
    box = tools(plant(tmp_path / "root", {"a": "a"}), limits=ShellLimits(disk_mb=40))
    shown = await box.call_json("exec", command="dd if=/dev/zero of=big bs=1M count=100", timeout=60)
    assert shown["exit_code"] != 0 or shown["killed_by"] == "disk"
    assert (tmp_path / "root/big").stat().st_size <= 40 * 1024 * 1024
