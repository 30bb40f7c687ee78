"""Tools of the Designer: components, styles, previews, accessibility, and audits of styles."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.project.tokens import find_design_token
from clew.team.members.toolkit.file_toolkit import TreeFiles, read_text
from clew.team.members.toolkit.markup import (
    AccessibilityIssue,
    Level,
    check_accessibility,
    layout_facts,
    outline,
    raw_values,
)
from clew.team.members.toolkit.member_deps import READS, MemberDeps
from clew.tools.content import GuidedContent
from clew.tools.tool import Effects, Tool, ToolContext, tool

Framework = Literal["react", "vue", "svelte", "solid"]
ComponentKind = Literal["functional", "class", "styled"]
Styling = Literal["css-modules", "tailwind", "styled-components", "css-in-js"]
Variant = Literal["small", "medium", "large", "disabled", "loading", "error", "hover", "focus"]
Motion = Literal["fade", "slide", "scale", "collapse"]
ComponentName = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z][A-Za-z0-9]{0,79}\Z")]
SUFFIXES: dict[Framework, tuple[str, ...]] = {
    "react": (".tsx", ".jsx", ".js", ".ts"),
    "solid": (".tsx", ".jsx"),
    "vue": (".vue",),
    "svelte": (".svelte",),
}
STYLE_SUFFIXES: dict[Styling, tuple[str, ...]] = {
    "css-modules": (".module.css", ".module.scss"),
    "tailwind": (".tsx", ".jsx", ".vue", ".svelte", ".html", ".css"),
    "styled-components": (".ts", ".tsx", ".js", ".jsx"),
    "css-in-js": (".ts", ".tsx", ".js", ".jsx"),
}
WRITES = Effects(destroys=True, repeats_safely=True, reaches_out=False)
MOTIONS: dict[Motion, str] = {
    "fade": "opacity 160ms ease-out",
    "slide": "transform 200ms ease-out",
    "scale": "transform 120ms ease-out",
    "collapse": "grid-template-rows 200ms ease-out",
}
TOKEN_FILES = ("colors", "spacing", "typography", "shadows", "radii")


def design_toolkit(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    """Return the tools of the Designer that no other agent has."""
    return (*_building(files), *_looking(files), *_audits(deps, files), *_systems(files))


def _building(files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="create_component", searchable=False, effects=WRITES)
    async def create_component(
        name: ComponentName,
        path: str,
        content: str,
        ctx: ToolContext,
        type: ComponentKind = "functional",
        framework: Framework = "react",
    ) -> GuidedContent:
        """Write a new component. It must not exist yet; search with find_component first.

        Args:
            name: its name, with a capital letter
            path: its file, relative to the work tree
            content: its complete source
            type: the kind of component
            framework: the framework of the project
        """
        _require_suffix("path", path, SUFFIXES[framework], framework)
        if name not in content:
            raise InvalidInput("content", f"does not define {name}")
        if (folder := await files.folder(ctx)).exists(folder.locate(path, to_write=True)):
            raise InvalidInput("path", f"{path[:200]} exists", hint="Change it with engineer_edit_file")
        return await files.call("write-file", {"file_path": path, "content": content}, ctx, judged="write-file")

    @tool(name="style_component", searchable=False, effects=WRITES)
    async def style_component(
        component: str, path: str, content: str, ctx: ToolContext, approach: Styling = "css-modules"
    ) -> GuidedContent:
        """Write the styles of a component.

        Args:
            component: the name of the component
            path: the file of the styles
            content: its complete text
            approach: the approach of the project
        """
        _require_suffix("path", path, STYLE_SUFFIXES[approach], approach)
        return await files.call("write-file", {"file_path": path, "content": content}, ctx, judged="write-file")

    return create_component, style_component


def _looking(files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="preview_ui", searchable=False, effects=READS)
    async def preview_ui(path: str, ctx: ToolContext) -> str:
        """Show the elements of a component as a tree, with classes and texts. Nothing is run.

        Args:
            path: the file of the component
        """
        return outline(await read_text(files, path, ctx))

    @tool(name="check_accessibility", searchable=False, effects=READS)
    async def check(component: str, ctx: ToolContext, level: Level = "AA") -> list[AccessibilityIssue]:
        """Check the source of a component for breaches of WCAG: names, labels, order, headings and contrast.

        Args:
            component: the file of the component
            level: the level to reach
        """
        return check_accessibility(await read_text(files, component, ctx), level)

    @tool(name="analyze_layout", searchable=False, effects=READS)
    async def analyze_layout(path: str, ctx: ToolContext) -> dict[str, int]:
        """Count the means of layout in a file: flex, grid, absolute places, fixed widths and breakpoints.

        Args:
            path: a component or a style sheet
        """
        return layout_facts(await read_text(files, path, ctx))

    @tool(name="suggest_animation", searchable=False, effects=READS)
    async def suggest_animation(component: str, motion: Motion = "fade") -> str:
        """Return a transition for a component, with a rule for users who ask for less motion.

        Args:
            component: the name of its class
            motion: the kind of motion
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "", component) or "component"
        reduced = f"@media (prefers-reduced-motion: reduce) {{\n  .{name} {{ transition: none; }}\n}}"
        return f".{name} {{\n  transition: {MOTIONS[motion]};\n}}\n\n{reduced}"

    @tool(name="generate_variants", searchable=False, effects=READS)
    async def generate_variants(
        component: ComponentName, variants: tuple[Variant, ...] = ("small", "large", "disabled")
    ) -> list[dict[str, str]]:
        """List the variants of a component with the names of their properties and classes.

        Args:
            component: the name of the component
            variants: sizes and states
        """
        sizes = ("small", "medium", "large")
        return [
            {"variant": each, "property": f"size={each}" if each in sizes else each, "class": f"{component}--{each}"}
            for each in variants
        ]

    return preview_ui, check, analyze_layout, suggest_animation, generate_variants


def _audits(deps: MemberDeps, files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="audit_consistency", searchable=False, effects=READS)
    async def audit_consistency(path: str, ctx: ToolContext) -> list[dict[str, Any]]:
        """List raw colours and lengths of a file, with the design token of the same value if there is one.

        Args:
            path: a component or a style sheet
        """
        code = (await deps.knowledge()).code
        known: dict[str, list[str]] = {}
        found = raw_values(await read_text(files, path, ctx))
        for value in dict.fromkeys(value for _, value in found):
            known[value] = [each.path for each in (await find_design_token(code, value)).matches]
        return [{"line": line, "value": value, "tokens": known[value]} for line, value in found]

    @tool(name="responsive_audit", searchable=False, effects=READS)
    async def responsive_audit(paths: tuple[str, ...], ctx: ToolContext) -> dict[str, dict[str, int]]:
        """Count fixed widths and breakpoints of several files.

        Args:
            paths: components and style sheets
        """
        return {path: layout_facts(await read_text(files, path, ctx)) for path in paths}

    return audit_consistency, responsive_audit


def _systems(files: TreeFiles) -> tuple[Tool, ...]:
    @tool(name="design_system_scaffold", searchable=False, effects=WRITES)
    async def design_system_scaffold(folder: str, ctx: ToolContext) -> list[str]:
        """Write an empty file of tokens for colours, spacing, typography, shadows and radii. Files that exist stay.

        Args:
            folder: the folder of the tokens
        """
        tree, written = await files.folder(ctx), []
        for name in TOKEN_FILES:
            path = str(PurePosixPath(folder) / f"{name}.json")
            if not tree.exists(tree.locate(path, to_write=True)):
                given = {"file_path": path, "content": f'{{\n  "{name}": {{}}\n}}\n'}
                await files.call("write-file", given, ctx, judged="write-file")
                written.append(path)
        return written

    @tool(name="theme_migration", searchable=False, effects=READS)
    async def theme_migration(path: str, names: dict[str, str], ctx: ToolContext) -> list[dict[str, Any]]:
        """List the lines of a file that use an old token, with the line as it should be.

        Args:
            path: a component or a style sheet
            names: the new name of each old token
        """
        lines = enumerate((await read_text(files, path, ctx)).splitlines(), 1)
        renamed = [(at, line, _renamed(line, names)) for at, line in lines]
        return [{"line": at, "old": old.strip(), "new": new.strip()} for at, old, new in renamed if old != new]

    return design_system_scaffold, theme_migration


def _renamed(line: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        line = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", lambda _, new=new: new, line)  # type: ignore[misc]  # the default binds it
    return line


def _require_suffix(field: str, path: str, suffixes: tuple[str, ...], kind: str) -> None:
    if not path.endswith(suffixes):
        raise InvalidInput(field, f"{path[:200]!r} is not a file of {kind}", hint=f"It ends with {', '.join(suffixes)}")
