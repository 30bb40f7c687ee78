"""The domain `repo`: the files around the folder `.clew`, documents by section and code by path, with one tool to
search the documents."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.formats import ALL
from clew.catalog.formats.plain_text import read_branch
from clew.catalog.formats.types import SOURCE_CODE
from clew.catalog.indexing.document_nodes import SCHEMA as RESOURCE_SCHEMA
from clew.catalog.operations.text import fence, inline
from clew.catalog.resource import Pipeline, ResourceNode
from clew.catalog.sources.local import LocalSource
from clew.catalog.workspace.folder_size import has_more_files
from clew.config import FOLDER, Config, is_broad
from clew.errors import FormatError, NotFound, SourceError
from clew.files import create_file
from clew.skills.formats.instruction_files import InstructionFiles
from clew.tools import Effects, GuidedContent, Tool, ToolContext, ToolLimits, guide, tool
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

NAME = "repo"
LARGE = "large-folder"
"""The file in `.clew` that records the user's consent to read more than `catalog.max_files` files."""
INDEX = "code.db"
MAX_SHOWN = 30
EXCERPT = 400


def build_repository(root: Path, trail: Trail, owner_id: str) -> Domain:
    """The domain of the files below a folder. Rules, skills, agents and commands are left out, because they need
    consent and have their own interfaces. Code files are read by their route but not indexed here, because the code
    index covers them."""
    source = LocalSource(root, leaves_out=partial(_is_definition, os.path.realpath(root)), unlisted=(SOURCE_CODE,))
    return Domain(
        name=NAME,
        is_builtin=True,
        description=f"The files of this repository, {_named(root)}: documents by section, and code by path",
        tools=(_search_tool(trail, owner_id),),
        extractors=(Pipeline(source=source, formats=ALL),),
        find_file=partial(_find_code, source),
    )


async def _find_code(source: LocalSource, path: str) -> ResourceNode | None:
    """A file of code as it is now, or None for anything else."""
    try:
        content = await source.fetch_content(path)
        if content.content_type != SOURCE_CODE:
            return None
        branch = read_branch(content)
    except (NotFound, SourceError, FormatError):
        return None
    return ResourceNode(id=path, name=branch.name, path=path, content=branch.text, description=branch.description)


def has_repository(config: Config) -> bool:
    """Whether the files around the folder form a domain. They form none if the folder is not named `.clew`, or if
    `find_refusal` returns a reason other than the number of files."""
    return config.catalog.repository and config.folder.absolute().name == FOLDER and not is_machine(config)


def is_machine(config: Config) -> bool:
    """Whether the folder was not named explicitly and lies in `/`, a home folder, `/home` or a folder for temporary
    files.

    If such a folder is a git repository, it is treated as a project.
    """
    root = config.folder.absolute().parent
    return not config.is_named and is_broad(root) and not (root / ".git").exists()


def find_refusal(config: Config) -> str:
    """Why the files around the folder are not read, and what to do; empty if they are read. They are not read if
    `is_machine` is true, or if there are more than `catalog.max_files` and the user has not agreed. A folder that was
    read before is not counted again.
    """
    root = config.folder.absolute().parent
    if is_machine(config):
        return f"{root} is not a project. Go to one (cd PROJECT), or name this folder: --folder {root / FOLDER}"
    if not has_repository(config) or any((config.folder / name).exists() for name in (LARGE, INDEX)):
        return ""
    most = config.catalog.max_files
    if not has_more_files(root, most):
        return ""
    return (
        f"{root} has more than {most:,} files. Run `clew index --yes` there to read them all, choose a smaller folder,"
        " or set catalog.max_files"
    )


def without_repository(config: Config) -> Config:
    """A copy of the settings that turns off reading the files of the folder."""
    return msgspec.structs.replace(config, catalog=msgspec.structs.replace(config.catalog, repository=False))


def agree_to_size(config: Config) -> None:
    """Record on this machine that the folder may be read regardless of its number of files. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        create_file(config.folder / LARGE, b"")


def _named(root: Path) -> str:
    return inline(root.resolve().name.replace("`", "'"), 60)


def _is_definition(root: str, path: str, is_folder: bool) -> bool:
    """Whether a path is the folder of a skill, or a file that agents treat as a definition, as of now."""
    instructions = InstructionFiles(root)
    return instructions.is_skill(path) if is_folder else instructions.is_file(path)


def _search_tool(trail: Trail, owner_id: str) -> Tool:
    @tool(name="search", title="Search the repository", effects=Effects(reads_only=True, reaches_out=False))
    async def search(
        query: Annotated[str, msgspec.Meta(description="what to look for, in your own words")],
        ctx: ToolContext,
        path: Annotated[str, msgspec.Meta(description="only below this path, a glob such as docs/**")] = "",
        limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHOWN)] = 8,
    ) -> GuidedContent:
        """Find passages in the documents of this repository by words and by meaning, with an excerpt of each; use it
        when the resources that `ask` shows are not enough, or to look below one path only."""
        selector = Selector(schema_name=RESOURCE_SCHEMA, all_tags=(f"domain:{NAME}",), path=path or None)
        reader = Principal(owner_id=owner_id, agent_id=ctx.by.agent_id, scopes=ctx.by.scopes)
        found = await trail.index.search(SearchRequest(text=query, selector=selector, limit=limit), by=reader)
        if not found.hits:
            return GuidedContent(content="No file matches that.")
        records = [hit.breadcrumb.context for hit in found.hits]
        shown = [fence(_excerpt(each["content"], query), f"From `{each['uri']}`.") for each in records]
        steps = [guide(each["uri"], f"read {inline(each['name'], 80)}") for each in records]
        return GuidedContent(content="\n\n".join(shown), guidance=steps)

    return msgspec.structs.replace(search, limits=ToolLimits(seconds=20, characters=40_000))


def _excerpt(content: str, query: str) -> str:
    """The part of a text that holds most of the question's words."""
    words = [word for word in query.lower().split() if len(word) > 2]
    lower = content.lower()
    places = sorted(place for word in words if (place := lower.find(word)) >= 0)
    start = max(0, (places[len(places) // 2] if places else 0) - EXCERPT // 3)
    cut = content[start : start + EXCERPT]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(content) else ''}"
