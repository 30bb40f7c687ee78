"""Commands for the rules of a folder, such as AGENTS.md: list them, find those of a path, search the documents that
they link to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import count, note, print_json, print_rows
from clew.cli.terminal.progress import progress
from clew.config import FOLDER, Config
from clew.errors import ConfigError
from clew.trust import Trust

if TYPE_CHECKING:
    from clew.skills.checks.problems import Problem
    from clew.skills.rules.files import AgentRule, FoundRules, RuleFiles

TRUSTED, NOT_TRUSTED = "trusted", "not trusted yet: run `clew trust`"
SHOWN_PROBLEMS = 20


async def for_(
    path: Annotated[str, Parameter(help="A file or a folder; it need not be there yet.")],
    /,
    *,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show which rules apply to a file, and why.

    The rules of the project come first, then those of each folder on the way, the outermost first, with about how many
    tokens they take. An agent gets them when it works on that file, each once, and only those that you trust.

        clew rules for src/auth/login.py
        clew rules for src/auth --json
    """
    files = _open(here.config())
    with progress("Reading the rules"):
        always, on_way = await asyncio.to_thread(lambda: (files.of_root(), files.on_way(path)))
    if files.place_of(path) is None:
        _print_outside(path, files, as_json=json)
        return
    whole = on_way if files.place_of(path) else always  # the rules of a path include the rules of the root
    rules = [*always.rules, *on_way.rules]
    reasons = [*(_why_always(each) for each in always.rules), *(_why_here(each) for each in on_way.rules)]
    if json:
        listed = [{**_as_json(each, files), "why": why} for each, why in zip(rules, reasons, strict=True)]
        more = {"repeats": whole.repeats, "problems": whole.problems}
        print_json({"root": files.root.path, "path": path, "rules": listed, **more})
        return
    rows = [
        (str(number), each.path, str(each.tokens), why, _state(each, files))
        for number, (each, why) in enumerate(zip(rules, reasons, strict=True), 1)
    ]
    print_rows(("#", "rules", "tokens", "why", "state"), rows, main=3, spare=(1,))
    _print_skipped(whole)
    if not rules:
        note("No rules apply there. An AGENTS.md applies to everything below its folder.")


async def ls(*, json: Json = False, here: Here = HERE) -> None:
    """List the rule files of the project.

    Each comes with its scope and about how many tokens it takes: AGENTS.md, CLAUDE.md, GEMINI.md, and the files that
    they import. A file that is reached by several ways is listed once.

        clew rules ls
        clew rules ls --json
    """
    files = _open(here.config())
    with progress("Reading the rules"):
        found = await asyncio.to_thread(files.everywhere)
    if json:
        listed = [_as_json(each, files) for each in found.rules]
        print_json({"root": files.root.path, "rules": listed, "repeats": found.repeats, "problems": found.problems})
        return
    rows = [(each.path, each.folder or ".", str(each.tokens), _state(each, files)) for each in found.rules]
    print_rows(("rules", "holds below", "tokens", "state"), rows, main=0, spare=(1,))
    _print_skipped(found)
    if not found.rules:
        note("No rules here. Add an AGENTS.md to tell agents how to work in this folder.")


async def search(
    *intent: Annotated[str, Parameter(help="The task, in your own words.")],
    limit: Annotated[int, Parameter(help="At most this many documents.")] = 5,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find linked documents of the rules for a task.

    They are found by the text of the link and by their content. If no document matches, nothing is shown.

        clew rules search "add a database migration"
        clew rules search deploy --limit 1 --json
    """
    # loads the trail and the markdown parser, which help does not need
    from clew.skills.rules.tree import open_rules

    async with open_here(here, create=True) as app:
        with progress("Reading the rules"):
            rules = await open_rules(_root(app.config), trail=app.trail, by=app.me, root_file=app.config.rules.root)
        found = await rules.search_references(" ".join(intent), limit)
        references = (await rules.stats()).references
    if json:
        print_json(found)
        return
    root = rules.files.root
    rows = [
        (
            root.relative(each.reference.absolute_path) or each.reference.absolute_path,
            f"{each.reference.source}:{each.reference.line_number}",
            each.reference.display_text,
        )
        for each in found
    ]
    print_rows(("document", "linked by", "as"), rows, main=2)
    if not found:
        note(f"No match among {count(references, 'document')} that the rules link to.")


def _print_outside(path: str, files: RuleFiles, *, as_json: bool) -> None:
    if as_json:
        print_json({"root": files.root.path, "path": path, "rules": [], "repeats": [], "problems": []})
    else:
        note(f"{path} is outside of {files.root.path}: none of these rules holds there.")


def _root(config: Config) -> Path:
    """The folder whose rules apply: the parent of `.clew`, or the configured folder itself if it has another name."""
    folder = config.folder.absolute()
    return folder.parent if folder.name == FOLDER else folder


def _open(config: Config) -> RuleFiles:
    from clew.skills.rules.files import RuleFiles  # as above

    return RuleFiles(str(_root(config)), str(Path.cwd()), config.rules.root)


def _why_always(rule: AgentRule) -> str:
    return f"imported by {rule.imported_by}" if rule.imported_by else "of the project: always"


def _why_here(rule: AgentRule) -> str:
    return f"imported by {rule.imported_by}" if rule.imported_by else f"holds below {rule.folder}"


def _is_trusted(rule: AgentRule, files: RuleFiles) -> bool:
    """Whether the user agreed to the rule. If the grants file cannot be read, there is no consent."""
    try:
        return Trust.open().holds(rule.wish(files.root.path))
    except ConfigError:
        return False


def _state(rule: AgentRule, files: RuleFiles) -> str:
    return TRUSTED if _is_trusted(rule, files) else NOT_TRUSTED


def _as_json(rule: AgentRule, files: RuleFiles) -> dict[str, Any]:
    return {
        "path": rule.path,
        "real": rule.real,
        "folder": rule.folder,
        "tokens": rule.tokens,
        "digest": rule.digest,
        "imported_by": rule.imported_by,
        "trusted": _is_trusted(rule, files),
    }


def _print_skipped(found: FoundRules) -> None:
    """Print duplicates and left-out files."""
    for each in found.repeats[:SHOWN_PROBLEMS]:
        note(f"{each.path} is {each.target}, which counts once.", dim=True)
    _print_problems(found.problems)


def _print_problems(problems: Sequence[Problem]) -> None:
    for each in problems[:SHOWN_PROBLEMS]:
        place = f"{each.path}:{each.line}" if each.line else each.path
        note(f"{place}: {each.message}")
    if len(problems) > SHOWN_PROBLEMS:
        note(f"{len(problems) - SHOWN_PROBLEMS:,} more problems: see --json")
