"""Links in markdown: the text, the path and the line. A scanner of linear time instead of a markdown parser, because
nothing is rendered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

import msgspec

from clew.lazy_pattern import lazy_pattern

_MAX_LABEL = 999
_FENCE = lazy_pattern(r" {0,3}(?:>[ ]?)*[ ]*(`{3,}(?=[^`\n]*$)|~{3,})")
_CLOSED = lazy_pattern(r"[ >]*(`{3,}|~{3,})[ \t]*")
_DEFINITION = lazy_pattern(r" {0,3}\[((?:[^\[\]\\]|\\.){1,999})\]:[ \t]*(<[^<>]*>|[^\s<]\S*)")
_TOKEN = lazy_pattern(r"\\.|`+|<!--|<(?=[A-Za-z])|!?\[|\]", re.DOTALL)
_AUTOLINK = lazy_pattern(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*)>")
_LABEL = lazy_pattern(r"\[((?:[^\[\]\\]|\\.)*)\]", re.DOTALL)
_ANGLED = lazy_pattern(r"<((?:[^<>\n\\]|\\.)*)>")
_SPACE = lazy_pattern(r"[ \t]*\n?[ \t]*")
_TITLE = lazy_pattern(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\((?:[^()\\]|\\.)*\)', re.DOTALL)
_PLAIN = r"(?:[^\s()\\\x00-\x1f]|\\.)"
_PATH = lazy_pattern(
    rf"(?>(?:{_PLAIN}|\((?>(?:{_PLAIN}|\((?>(?:{_PLAIN}|\({_PLAIN}*+\))*)\))*)\))*)"
)  # parentheses in a path may nest three levels deep, as in CommonMark; the atomic groups prevent backtracking
_ESCAPED = lazy_pattern(r"\\([!-/:-@\[-`{-~])")
_IMAGE = lazy_pattern(r"!\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])?")
_MARKUP = lazy_pattern(r"`|\*\*|~~")
_EXTERNAL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]+:|//")


class MarkdownLink(msgspec.Struct, frozen=True, kw_only=True):
    """One link. `path` is decoded and without its `#fragment`; for an external link it is the whole address."""

    text: str
    path: str
    line: int
    fragment: str = ""


def extract_links(
    content: str,
    *,
    pattern: str | re.Pattern[str] | None = None,
    extensions: Iterable[str] | None = None,
    external: bool = False,
    first_line: int = 1,
) -> list[MarkdownLink]:
    """Return the links of a text in order, without images, code, comments and links within the text.

    `pattern` must match somewhere in the path. `extensions` (`.md` or `md`) are case-insensitive. `external` adds links
    with a scheme. `first_line` is the number of the first line of `content`.
    """
    endings = None if extensions is None else tuple(f".{each.lstrip('.').lower()}" for each in extensions)
    wanted = re.compile(pattern) if isinstance(pattern, str) else pattern
    found: list[MarkdownLink] = []
    blocks, targets = _blocks(content)
    for number, block in blocks:
        if "]" not in block and not external:
            continue
        line, counted = number + first_line, 0
        for at, text, target in _scan(block, targets):
            line, counted = line + block.count("\n", counted, at), at
            link = _link(text, target, line)
            if _is_wanted(link, endings, wanted, external):
                found.append(link)
    return found


def is_external(path: str) -> bool:
    """Whether a target leads out of the tree: it has a scheme, or begins with `//`."""
    return _EXTERNAL.match(path) is not None


def _is_wanted(
    link: MarkdownLink, endings: tuple[str, ...] | None, wanted: re.Pattern[str] | None, external: bool
) -> bool:
    if not link.path or (not external and is_external(link.path)):
        return False
    if endings is not None and not link.path.lower().endswith(endings):
        return False
    return wanted is None or wanted.search(link.path) is not None


def _link(text: str, target: str, line: int) -> MarkdownLink:
    shown = _IMAGE.sub(r"\1", text) if "![" in text else text
    shown = _MARKUP.sub("", shown).strip("* \n")
    shown = " ".join(_ESCAPED.sub(r"\1", shown).split())
    target = _ESCAPED.sub(r"\1", target)
    if is_external(target):
        return MarkdownLink(text=shown, path=target, line=line)
    path, _, fragment = target.partition("#")
    decoded = unquote(path)
    return MarkdownLink(text=shown, path=decoded if decoded.isprintable() else path, line=line, fragment=fragment)


def _blocks(content: str) -> tuple[list[tuple[int, str]], dict[str, str]]:
    """Return the blocks of non-empty lines without code, with the number of the first line; and the link
    definitions."""
    blocks: list[tuple[int, str]] = []
    targets: dict[str, str] = {}
    run: list[str] = []
    fence = ""
    lines = content.split("\n")
    for number, line in enumerate([*lines, ""]):
        opened = _FENCE.match(line) if not fence and ("```" in line or "~~~" in line) else None
        defined = _DEFINITION.match(line) if not fence and not opened and "]:" in line else None
        if fence:
            closing = _CLOSED.fullmatch(line.rstrip("\r"))
            fence = "" if closing and closing[1].startswith(fence) else fence
        elif opened or defined or not line.strip():
            if run:
                blocks.append((number - len(run), "\n".join(run)))
            run = []
            fence = opened[1] if opened else ""
            if defined:
                targets.setdefault(_normal(defined[1]), defined[2].removeprefix("<").removesuffix(">"))
        else:
            run.append(line)
    return blocks, targets


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


def _scan(block: str, targets: dict[str, str]) -> list[tuple[int, str, str]]:
    """Return the position, text and target of each link in a block. If links are nested, only the inner one is a
    link."""
    found: list[tuple[int, str, str]] = []
    openers: list[int] = []
    dead = 0  # the number of opening brackets that contain a link, and so are not links
    code = _CodeSpans(block)
    position = 0
    while (token := _TOKEN.search(block, position)) is not None:
        start, position = token.span()
        match block[start]:
            case "[" | "!":
                openers.append(start)
            case "`":
                position = code.end_of(start, position)
            case "<":
                position, address = _after_angle(block, token)
                if address:
                    found.append((start, address, address))
            case "]" if openers:
                opener = openers.pop()
                is_image = block[opener] == "!"
                text = slice(opener + 1 + is_image, start)
                if len(openers) >= dead:
                    position, target = _target(block, text, position, targets)
                    if target is not None and not is_image:
                        dead = len(openers)
                        found.append((opener, block[text], target))
                dead = min(dead, len(openers))
    return sorted(found)


def _after_angle(block: str, token: re.Match[str]) -> tuple[int, str]:
    """Return the position after a comment or an address in angle brackets, and that address."""
    if token[0] == "<!--":
        end = block.find("-->", token.end())
        return (len(block) if end < 0 else end + 3), ""
    found = _AUTOLINK.match(block, token.start())
    return (found.end(), found[1]) if found else (token.end(), "")


def _target(block: str, text: slice, at: int, targets: dict[str, str]) -> tuple[int, str | None]:
    """Return the end and the path of the target after a closing bracket; the path is None if it is not a link."""
    if block.startswith("(", at) and (inline := _inline(block, at + 1)) is not None:
        return inline
    if not targets:
        return at, None
    label = _LABEL.match(block, at)
    if label is not None and label[1].strip():
        return label.end(), targets.get(_normal(label[1][: _MAX_LABEL + 1]))
    whole = _LABEL.match(block, text.start - 1)
    if whole is None or whole.end() != text.stop + 1 or text.stop - text.start > _MAX_LABEL:
        return at, None
    return (label.end() if label else at), targets.get(_normal(whole[1]))


def _inline(block: str, at: int) -> tuple[int, str] | None:
    """Parse `target "title")` after its opening parenthesis. Return the end and the target."""
    at = _end(_SPACE, block, at)
    if (angled := _ANGLED.match(block, at)) is not None:
        end, target = angled.end(), angled[1]
    else:
        end = _end(_PATH, block, at)
        target = block[at:end]
    behind = _end(_SPACE, block, end)
    if behind > end and (title := _TITLE.match(block, behind)) is not None:
        behind = _end(_SPACE, block, title.end())
    return (behind + 1, target) if block.startswith(")", behind) else None


def _end(pattern: re.Pattern[str], block: str, at: int) -> int:
    found = pattern.match(block, at)
    return found.end() if found else at


class _CodeSpans:
    """The ends of code spans. Runs of backticks are indexed once per block."""

    def __init__(self, block: str) -> None:
        self._block = block
        self._runs: dict[int, list[int]] | None = None

    def end_of(self, start: int, end: int) -> int:
        """Return the position after the run of backticks that closes the run at `start`. If no run closes it, return
        the position after the run at `start`."""
        if self._runs is None:
            self._runs = {}
            for run in re.finditer("`+", self._block):
                self._runs.setdefault(len(run[0]), []).append(run.start())
            for starts in self._runs.values():
                starts.reverse()
        starts = self._runs.get(end - start, [])
        while starts and starts[-1] <= start:
            starts.pop()
        return starts[-1] + (end - start) if starts else end
