"""Real merges, replayed: the two parents of merge commits in the histories of repositories are merged with
`git merge-tree`, as the team merges its branches, and compared with what `git merge` does in a work tree.

    python benchmarks/team_merges.py --repos REPOS [--most 300]

REPOS is a folder of clones, or several clones separated by commas. Nothing in them is changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import ClewError
from clew.team.worktrees.git_calls import GitFolder
from clew.team.worktrees.merges import merge_trees
from clew.team.worktrees.repository import find_repository, make_git_folder


@dataclass
class MergeFigures:
    """The merges of one repository. `agreed` have the same outcome as `git merge`: the same tree, or a conflict."""

    name: str
    merges: int = 0
    clean: int = 0
    agreed: int = 0
    as_recorded: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    disputed: list[str] = field(default_factory=list)


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_LFS_SKIP_SMUDGE": "1"}
    command = ("git", "-c", "core.hooksPath=/dev/null", "-c", "user.name=A", "-c", "user.email=a@b", *arguments)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environ, check=False)


def find_merges(root: Path, most: int) -> list[list[str]]:
    """Merge commits with exactly two parents: commit, first and second parent."""
    printed = git(root, "log", "--all", "--merges", f"--max-count={most}", "--format=%H %P").stdout
    return [row for line in printed.splitlines() if len(row := line.split()) == 3]


def replay(root: Path, most: int) -> MergeFigures:
    """Merge the parents of each merge commit in both ways."""
    figures = MergeFigures(name=root.parent.name if root.name == "repo" else root.name)
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place, "clone")
        git(Path(place), "clone", "--quiet", "--no-checkout", str(root), str(clone))
        for mark in clone.glob(".git/objects/pack/*.promisor"):
            mark.unlink()  # merges with missing contents are counted separately
        folder = make_git_folder(find_repository(clone, Path(place)), Path(place, "git"), None)
        for commit, ours, theirs in find_merges(clone, most):
            compare(figures, folder, clone, commit, ours, theirs)
    return figures


def compare(figures: MergeFigures, folder: GitFolder, clone: Path, commit: str, ours: str, theirs: str) -> None:
    started = time.perf_counter()
    try:
        merged = merge_trees(folder, ours, theirs)
    except ClewError:
        figures.kinds["no common history, or contents are missing"] += 1
        return
    figures.seconds.append(time.perf_counter() - started)
    figures.merges += 1
    figures.clean += not merged.conflicts
    figures.kinds.update(each.kind for each in merged.conflicts)
    figures.as_recorded += not merged.conflicts and merged.tree == folder.tree_of(commit)
    git(clone, "checkout", "--quiet", "--force", "--detach", ours)
    git(clone, "clean", "-fdqx")
    is_clean = git(clone, "merge", "--quiet", "--no-edit", "--no-ff", theirs).returncode == 0
    tree = git(clone, "rev-parse", "HEAD^{tree}").stdout.strip()
    is_same = is_clean and not merged.conflicts and tree == merged.tree
    figures.agreed += is_same or (not is_clean and bool(merged.conflicts))
    if not is_same and is_clean == (not merged.conflicts) and is_clean:
        figures.disputed.append(f"{commit[:12]}: another tree")
    elif is_clean != (not merged.conflicts):
        figures.disputed.append(f"{commit[:12]}: {'conflict' if merged.conflicts else 'clean'} here only")
    git(clone, "merge", "--abort")


def find_roots(given: str) -> list[Path]:
    """The repositories that an argument names, bare ones among them."""
    paths = [Path(each).expanduser() for each in given.split(",")]
    inner = [child for each in paths if not is_repository(each) for child in sorted(each.iterdir())]
    return [each for each in (*paths, *inner) if is_repository(each)]


def is_repository(path: Path) -> bool:
    return (path / ".git").exists() or (path / "HEAD").is_file()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repos", required=True)
    parser.add_argument("--most", type=int, default=300)
    options = parser.parse_args()
    if shutil.which("git") is None:
        parser.error("git is missing")
    print("| repository | merges | clean | as git merges | as recorded | conflicts by kind | ms |")
    print("|---|---|---|---|---|---|---|")
    for root in find_roots(options.repos):
        found = replay(root, options.most)
        typical = sorted(found.seconds)[len(found.seconds) // 2] * 1000 if found.seconds else 0.0
        kinds = ", ".join(f"{kind} {count}" for kind, count in found.kinds.most_common()) or "none"
        row = (found.name, found.merges, found.clean, found.agreed, found.as_recorded, kinds, f"{typical:.0f}")
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        for each in found.disputed[:10]:
            print(f"  {each}")


if __name__ == "__main__":
    main()
