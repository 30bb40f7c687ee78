"""Commands over the files of skills: build, lint, new, import."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.arguments.definition_places import DefinitionPart, find_parts
from clew.cli.checks.agent_names import check_agent_names
from clew.cli.checks.route_checks import check_routes
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here, Json
from clew.cli.project import check_place, prepare_folder
from clew.cli.terminal.output import GREEN, RED, YELLOW, count, note, print_json, say
from clew.cli.terminal.progress import progress
from clew.errors import InvalidInput, ReadOnly
from clew.files import replace_file

if TYPE_CHECKING:
    from clew.skills.checks.problems import Problem
    from clew.skills.definitions.manifest_builder import BuildResult
    from clew.skills.definitions.skill_import import SkillImport

Place = Annotated[
    Path | None,
    Parameter(help="The folder or file whose definitions are meant. [default: this project]"),
]


async def build(
    place: Place = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Write the manifest to this file instead of standard output.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Build the manifest of agents, skills, toolsets and tools.

    The same definitions always give the same bytes. With errors it writes nothing and the exit code is 1. Programs load
    the manifest with Skills.from_manifest. --json includes the problems.

        clew skills build --out manifest.json
        clew skills build team > manifest.json
    """
    part, built = await _read_whole(place, here)
    manifest, errors = built.manifest, sum(each.severity == "error" for each in built.problems)
    if json:
        print_json({"manifest": manifest, "problems": built.problems})
    else:
        _print_problems(built.problems, part.source.root, is_seen=sys.stderr.isatty())
    if not part.has_definitions(built):
        return _print_nothing_found(place, part)
    if errors:
        note(f"Nothing was built: {count(errors, 'error')}.")
        return 1
    if out is None and not json:
        sys.stdout.buffer.write(manifest.encode())
    elif out is not None:
        _write(out, manifest.encode())
    number = f"{count(len(manifest.agents), 'agent')}, {count(len(manifest.skills), 'skill')}"
    note(f"{number}, {count(len(manifest.toolsets), 'toolset')}, {count(len(manifest.tools), 'tool')}.", dim=True)
    return 0


async def lint(
    place: Place = None,
    /,
    *,
    fix: Annotated[bool, Parameter(help="Fix the problems that can be fixed automatically.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Check the definitions of agents, skills, toolsets and tools.

    Each problem names its file, line and column, with a suggestion. It also checks that routes, tools and models exist,
    as far as the folder and its trail know them. The exit code is 1 for errors, and when nothing is defined there.

        clew skills lint
        clew skills lint --fix
        clew skills lint .clew/skills/release-notes
        clew skills lint team --json
    """
    part, built = await _read(place, here)
    mended: Sequence[Problem] = ()
    if fix:
        mended = await asyncio.to_thread(_mend, part, built)
        built = part.read()
    problems = await _with_names(part, built, here)
    errors = sum(each.severity == "error" for each in problems)
    is_empty = not part.has_definitions(built)
    if json:
        print_json({"problems": problems, "mended": mended})
    if is_empty:
        return _print_nothing_found(place, part)
    if json:
        return 1 if errors else 0
    for each in mended:
        say(f"fixed {each.path}:{each.line}: {each.fix.says if each.fix is not None else each.message}", GREEN)
    _show(problems, part.source.root)
    number = len(problems) - errors
    note(f"{count(errors, 'error')}, {count(number, 'warning')}.{_fixable(problems)}")
    return 1 if errors else 0


def new(
    name: Annotated[str, Parameter(help="Lower-case letters, digits and single hyphens, at most 64.")],
    /,
    *,
    description: Annotated[str, Parameter(help="The purpose of the skill, and when to use it.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Create a skill from a template.

    Creates NAME/SKILL.md with front matter and the usual sections, in .clew/skills or the folder of skills.root. Agents
    can use it after you have written it and run `clew trust`.

        clew skills new release-notes
        clew skills new release-notes --description "Draft release notes from merged changes"
    """
    from clew.catalog.skills.wishes import skills_folder
    from clew.skills.definitions.skill_import import new_skill  # reads front matter, which help does not

    config = here.config()
    check_project(config)
    prepare_folder(config.folder)
    target = skills_folder(config)
    check_place(config.folder, target)
    file = new_skill(target, name, description)
    if json:
        print_json({"name": name, "path": str(file)})
        return
    say(f"+ {file}", GREEN)
    note("Write it, then run `clew skills lint` and `clew trust`.")


def import_(
    *paths: Annotated[Path, Parameter(help="Folders of skills, or folders that hold some.")],
    dry_run: Annotated[bool, Parameter(help="Show what would be written; write nothing.")] = False,
    force: Annotated[bool, Parameter(help="Replace skills of the same name.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Copy skills into this folder.

    A skill is a folder with SKILL.md. All its files go to .clew/skills/NAME; links that lead out of it are refused.
    Unknown keys of the front matter move below `metadata`. An imported skill is trusted in its present state.
    The exit code is 1 when one cannot be copied.

        clew skills import ~/skills/release-notes
        clew skills import ~/skills --dry-run
    """
    from clew.catalog.consent.consent import trust_skills
    from clew.catalog.skills.review import Review
    from clew.catalog.skills.wishes import find_definition_root, skills_folder
    from clew.skills.definitions.skill_import import find_imports, write_imports
    from clew.trust import Trust

    if not paths:
        raise InvalidInput("PATHS", "are missing", hint="For example clew skills import ~/skills/release-notes")
    config = here.config()
    check_project(config)
    target = skills_folder(config)
    with progress("Reading the skills"):
        source = find_definition_root(config)
        known = {name: source.root / each.path for name, each in source.read().manifest.skills.items()}
        found = find_imports(paths, target, force=force, taken=known)
    taken = [each for each in found if not each.problem]
    if taken and not dry_run:
        prepare_folder(config.folder)
        check_place(config.folder, target)
        agreed = trust_skills(config, write_imports(taken, target))
        Review(config, Trust.open(), agreed).keep()
        if len(agreed) < len(taken):
            note("A part of it is not trusted yet: run `clew trust`.")
    if json:
        print_json({"found": found, "written": not dry_run})
    else:
        _print_import(found, target)
        if taken and dry_run:
            note("Nothing was written.")
    return 1 if len(taken) < len(found) or not found else 0


def _print_import(found: Sequence[SkillImport], target: Path) -> None:
    for each in found:
        if each.problem:
            note(f"! {each.name}: {each.problem}")
            continue
        say(f"+ {each.name}  from {each.origin}", GREEN)
        for line in each.notes:
            say(f"    {line}")
        for file in each.files:
            say(f"    {target / each.name / file.path}  {file.size:,} bytes")
    if not found:
        note("No skills were found there: a skill is a folder with SKILL.md.")


async def _read(place: Path | None, here: Here) -> tuple[DefinitionPart, BuildResult]:
    """Return the part that a path selects, and its definitions. Raises InvalidInput if the path does not exist or is a
    file without a definition."""
    parts = find_parts(place, here.config()) if place is not None else [_whole(here)]
    with progress("Reading the definitions"):
        for part in parts:
            built = await asyncio.to_thread(part.read)
            if part.has_definitions(built):
                return part, built
    if place is not None and not place.is_dir():
        hint = "Name its folder, or a file such as .clew/skills/NAME/SKILL.md"
        raise InvalidInput("PLACE", f"{str(place)[:200]} is not a definition", hint=hint)
    return part, built


async def _read_whole(place: Path | None, here: Here) -> tuple[DefinitionPart, BuildResult]:
    """All definitions of a folder. Raises InvalidInput if it is not a folder."""
    if place is None:
        part = _whole(here)
    else:
        from clew.catalog.skills.wishes import definers_at  # the catalog takes long to load

        if not place.is_dir():
            reason = "is not a folder" if place.exists() else "is not there"
            raise InvalidInput("PLACE", f"{str(place)[:200]} {reason}", hint="Name a folder with definitions")
        part = DefinitionPart(source=definers_at(place))
    with progress("Reading the definitions"):
        return part, await asyncio.to_thread(part.read)


def _whole(here: Here) -> DefinitionPart:
    from clew.catalog.skills.wishes import find_definition_root  # as above

    return DefinitionPart(source=find_definition_root(here.config()))


async def _with_names(part: DefinitionPart, built: BuildResult, here: Here) -> Sequence[Problem]:
    """The problems of the build, plus those of unknown routes, tools and models."""
    from clew.skills.checks.problems import in_order

    routes = await check_routes(built.manifest, part.source.root, here)
    names = await check_agent_names(built.manifest, part.source.root, here)
    return in_order([*built.problems, *part.narrow([*routes, *names])]) if routes or names else built.problems


def _mend(part: DefinitionPart, built: BuildResult) -> list[Problem]:
    """Apply automatic fixes repeatedly, because one fix may reveal another problem. Returns the fixed problems."""
    from clew.skills.checks.fixes import MAX_ROUNDS, apply_fixes  # imported only for --fix

    mended: list[Problem] = []
    for _ in range(MAX_ROUNDS):
        further = apply_fixes(part.source.root, built.problems)
        if not further:
            break
        mended += further
        built = part.read()
    return mended


def _print_nothing_found(place: Path | None, part: DefinitionPart) -> int:
    where = str(place) if place is not None else str(part.source.root)
    note(f"{where} has no definitions of agents, skills, toolsets or tools. Begin with `clew skills new NAME`.")
    return 1


def _show(problems: Sequence[Problem], root: Path) -> None:
    from clew.skills.checks.linting import render_problem

    for each in problems:
        first, *more = render_problem(each, root).split("\n")
        say(first, RED if each.severity == "error" else YELLOW)
        for line in more:
            say(line)
        say()


def _print_problems(problems: Sequence[Problem], root: Path, *, is_seen: bool) -> None:
    """Print the errors to standard error; on a terminal, print the warnings too."""
    from clew.skills.checks.linting import render_problem

    for each in problems:
        if each.severity == "error" or is_seen:
            note(render_problem(each, root))


def _fixable(problems: Sequence[Problem]) -> str:
    number = sum(each.fix is not None for each in problems)
    return f" `clew skills lint --fix` mends {number:,} of them." if number else ""


def _write(file: Path, content: bytes) -> None:
    try:
        replace_file(file, content)
    except OSError as error:
        raise ReadOnly(f"{file} cannot be written: {error.strerror}") from None
