"""Commands that hide a file, for their next run or for the user to trigger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.tools.files.folder import WorkingFolder
from clew.tools.files.path_denials import Denials
from clew.tools.permissions.policy import DEFAULT, extend
from clew.tools.permissions.rules import parse_rule
from clew.tools.sandbox import Confinement
from clew.tools.shell import DENIED_AS, shell_tools
from tests.faults.sandbox.escapes import TREASURE, linux_only, told
from tests.tools.sandbox.boxes import open_box
from tests.tools.working_folder import Toolbox, plant

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]

WALLS = ("bubblewrap python", "landlock python")
PLANTED = "fsmonitor = touch owned;"
REPOSITORY = f"repository() {{ mkdir -p $1/objects $1/refs; touch $1/HEAD; echo '{PLANTED}' > $1/config; }}"


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest) -> str:
    open_box(request.param)
    return str(request.param)


def commands(root: Path, wall: str, *denied: str) -> Toolbox:
    """exec in a folder, with rules that deny."""
    policy = extend(DEFAULT, [parse_rule(each, "deny") for each in denied])
    denials = Denials(policy, *DENIED_AS)
    return Toolbox(shell_tools(WorkingFolder(root), open_box(wall).sandbox(), denials=denials))


MOVES = {
    "to a cache": ("mv a __pycache__", "cat __pycache__/.env"),
    "into a package": ("mkdir -p node_modules/p; mv a node_modules/p/in", "cat node_modules/p/in/.env"),
    "to libraries": ("mv keys site-packages", "cat site-packages/id_rsa"),
    "with the folder above": ("mv deep __pycache__", "cat __pycache__/down/.env"),
    "into the data of git": ("mkdir -p .git/objects; mv a .git/objects/a", "cat .git/objects/a/.env"),
    "by exchange": ("mkdir b; mv --exchange a b", "cat a/.env b/.env"),
    "with a rule for its path": ("mv private pub", "cat pub/n.txt"),
    "with a rule, by copying": ("mkdir pub; mv private/n.txt pub; cp -r private more", "cat pub/n.txt more/n.txt"),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
async def test_a_secret_is_not_read_in_a_second_run(move: tuple[str, str], wall: str, tmp_path: Path) -> None:
    names = ("a/.env", "keys/id_rsa", "deep/down/.env", "private/n.txt")
    root = plant(tmp_path / "root", {"open.txt": "open to all", **dict.fromkeys(names, TREASURE)})
    box = commands(root, wall, "read-file(private/n.txt)")
    moving, reading = move
    assert TREASURE not in (await box.call_json("exec", command=f"{moving}; {reading}"))["stdout"]
    second = await box.call_json("exec", command=f"cat open.txt; {reading}")
    assert second["stdout"] == "open to all"
    assert [name for name in names if not (root / name).exists()] == []


async def test_files_beside_a_secret_can_be_moved(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"a/.env": TREASURE, "a/b.txt": "b", "c/d.txt": "d", "a/in/e.txt": "e"})
    command = "mv a/b.txt c; mv a/in c; mv c e; cat e/b.txt e/in/e.txt; mkdir a/new; mv a/new a/other"
    shown = await commands(root, "bubblewrap python").call_json("exec", command=command)
    assert (shown["stdout"], shown["stderr"], (root / "a/other").is_dir()) == ("be", "", True)


async def test_a_denied_folder_may_contain_denied_files(wall: str, tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"private/in/.env": TREASURE, "open.txt": "open to all"})
    shown = await commands(root, wall, "read-file(private/**)").call_json(
        "exec", command="cat open.txt private/in/.env"
    )
    assert shown["stdout"] == "open to all"


LEFT = {
    "in what looks like a repository": "repository .; repository logs/sub/.git",
    "in the data of a new repository": "repository new/.git; repository new/.git/logs/sub/.git",
    "in the data of the repository": "repository .git/logs/sub/.git",
    "in the data of the repository, with a link": "ln -s .git/refs/heads/sub way; repository .git/refs/heads/sub/.git",
    "in a cache": "repository __pycache__/p/.git",
    "in libraries": "repository site-packages/p/.git; repository site-packages/.git",
    "in a package": "repository node_modules/old/.git; repository node_modules/@a/new/.git",
    "deep in a new package": "repository node_modules/new/lib/in/.git",
    "deep in a package, with a link": "ln -s node_modules/old/lib/in way; repository node_modules/old/lib/in/.git",
    "in a folder that cannot be listed": "repository h/.git; chmod 311 h h/.git",
    "in a folder that cannot be entered": "repository h/in/.git; chmod 600 h/in; chmod 400 h",
    "in a folder without rights": "repository h/in/.git; chmod 0 h/in; chmod 0 h",
}


@pytest.mark.parametrize("attack", LEFT.values(), ids=LEFT)
async def test_no_git_settings_are_left_behind(attack: str, wall: str, tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"node_modules/old/lib/in/a.js": "", ".git/HEAD": "", ".git/refs/heads/main": ""})
    shown = await commands(root, wall).call_json("exec", command=f"{REPOSITORY}; {attack}")
    assert [str(path) for path in root.rglob("config") if PLANTED in path.read_text()] == []
    assert shown["notes"], shown


async def test_an_earlier_link_to_a_later_file_is_found(tmp_path: Path) -> None:
    root = plant(tmp_path / "root", {"node_modules/old/lib/a.js": ""})
    box = commands(root, "bubblewrap python")
    await box.call_json("exec", command="ln -s node_modules/old/lib/in way; ln -s node_modules/old other")
    making = f"{REPOSITORY}; repository node_modules/old/lib/in/.git; mkdir node_modules/old/.vscode"
    shown = await box.call_json("exec", command=making)
    assert len(shown["notes"]) == 2
    assert not (root / "way/.git/config").exists()
    assert not (root / "other/.vscode").exists()


async def test_files_of_packages_and_existing_files_stay(tmp_path: Path) -> None:
    there = ("node_modules/p/.git/config", "site-packages/a/b/.git/config", "theme.git/config", "theme.git/HEAD")
    root = plant(
        tmp_path / "root", {**dict.fromkeys(there, "[core]"), "theme.git/objects/a": "", "theme.git/refs/a": ""}
    )
    (root / "theme").symlink_to("node_modules/p")
    command = "mkdir -p node_modules/q/.vscode; touch node_modules/p/a site-packages/a/b/c site-packages/a/b/.git/d"
    shown = await commands(root, "bubblewrap python").call_json("exec", command=command)
    assert (shown["exit_code"], "notes" in shown) == (0, False), shown
    assert (root / "node_modules/q/.vscode").is_dir()
    assert [name for name in there if not (root / name).exists()] == []


@pytest.mark.parametrize("name", ["logs", "objects", "__pycache__", "shut", "unentered"])
async def test_a_secret_is_found_wherever_the_user_has_it(name: str, wall: str, tmp_path: Path) -> None:
    """Also beside a fake repository, and where it takes effect only when the user opens the folder."""
    root = plant(tmp_path / "root", {f"{name}/.env": TREASURE, "HEAD": "", "objects/a": "", "refs/a": "", "o/b": "b"})
    modes = {"shut": 0o311, "unentered": 0o600}
    (root / name).chmod(modes.get(name, 0o755))
    shown = await commands(root, wall).call_json("exec", command=f"cat o/b; chmod 755 {name}; cat {name}/.env")
    (root / name).chmod(0o755)
    assert shown["stdout"] == "b"
    assert (root / name / ".env").read_text() == TREASURE


async def test_an_unreadable_folder_is_refused(tmp_path: Path) -> None:
    """Root looks into every one."""
    root = plant(tmp_path / "root", {"a/.env": TREASURE})
    root.chmod(0o311)
    box = open_box("bubblewrap python")
    confinement = Confinement(write=(str(root),), cwd=str(root), seconds=20)
    code = "import os\ndef run(input, context):\n    os.chmod('.', 0o755)\n    return open('a/.env').read()"
    outcome = told(await box.call(code, "", confinement))
    root.chmod(0o755)
    assert TREASURE not in outcome
    assert os.geteuid() == 0 or "cannot be allowed: it cannot be read" in outcome
