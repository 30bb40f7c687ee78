"""Templates as trees: one pass splits the template into texts and tags, another builds the tree. Both take linear time,
and size and nesting are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from clew.errors import TemplateError
from clew.lazy_pattern import lazy_pattern
from clew.trail.templates.template_helpers import HELPERS

MAX_TEMPLATE = 65_536
MAX_PARTS = 5_000
MAX_NESTING = 32
MAX_PATH = 32

_BLOCKS = ("if", "unless", "each", "with")
_WORD = lazy_pattern(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s"'(){}|=]+))\s*""")
_NUMBER = lazy_pattern(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_CONSTANTS = {"true": True, "false": False, "null": None}
_NAMES = ("this", "@index", "@key", "@first", "@last", "@root")


class Literal(NamedTuple):
    value: Any


class Path(NamedTuple):
    """A path in a template: `up` levels towards the root, then `this`, @index or another loop name, then keys."""

    up: int
    name: str
    steps: tuple[str, ...]


class HelperCall(NamedTuple):
    helper: str
    arguments: tuple[Expression, ...]


Expression = Literal | Path | HelperCall


class Show(NamedTuple):
    what: Expression


class Block(NamedTuple):
    kind: str
    head: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node = str | Show | Block


class _Tag(NamedTuple):
    """`{{sign body}}` at an offset; sign is one of # / ! else, or empty for a value."""

    at: int
    sign: str
    body: str


class _OpenBlock:
    """A block that is not closed yet. `is_chained` marks the `if` of an `{{else if}}`."""

    __slots__ = ("at", "body", "head", "is_chained", "kind", "otherwise")

    def __init__(self, at: int, kind: str, head: Expression, is_chained: bool = False) -> None:
        self.at, self.kind, self.head, self.is_chained = at, kind, head, is_chained
        self.body: list[Node] = []
        self.otherwise: list[Node] | None = None

    @property
    def nodes(self) -> list[Node]:
        return self.body if self.otherwise is None else self.otherwise


@lru_cache(maxsize=128)
def parse(template: str) -> tuple[Node, ...]:
    """The tree of a template. Linear in its length. Raises TemplateError when malformed or too large."""
    if len(template) > MAX_TEMPLATE:
        raise TemplateError(f"is a template of {len(template):,} characters; at most {MAX_TEMPLATE:,} are allowed")
    at, stack = 0, [_OpenBlock(0, "", Literal(None))]
    try:
        texts, tags = _cut(template)
        for text, tag in zip(texts, [*tags, None], strict=True):
            if text:
                stack[-1].nodes.append(text)
            if tag is not None:
                at = tag.at
                _add(tag, stack)
        if len(stack) > 1:
            at = stack[-1].at
            raise TemplateError(f"has a block {stack[-1].kind!r} that is not closed")
    except TemplateError as error:
        line = template.count("\n", 0, at) + 1
        raise TemplateError(f"{error.reason} (in or after line {line} of the template)") from None
    return tuple(stack[0].body)


def _cut(template: str) -> tuple[list[str], list[_Tag]]:
    """Split a template into texts and the tags between them. There is one text more than tags."""
    texts, tags, at = [], [], 0
    while (start := template.find("{{", at)) >= 0:
        opening, closing = "{{", "}}"
        for pair in (("{{!--", "--}}"), ("{{{", "}}}")):
            if template.startswith(pair[0], start):
                opening, closing = pair
        end = template.find(closing, start + len(opening))
        if end < 0:
            raise TemplateError(f"has {opening} without {closing}")
        texts.append(template[at:start])
        tags.append(_tag(start, "!" if opening == "{{!--" else template[start + len(opening) : end].strip()))
        at = end + len(closing)
        if len(tags) > MAX_PARTS:
            raise TemplateError(f"has more than {MAX_PARTS:,} tags")
    texts.append(template[at:])
    return _without_empty_lines(texts, tags), tags


def _tag(at: int, inside: str) -> _Tag:
    if inside == "else" or inside.startswith("else "):
        return _Tag(at, "else", inside[4:].strip())
    sign = inside[:1] if inside[:1] in ("#", "/", "!") else ""
    return _Tag(at, sign, inside[len(sign) :].strip())


def _without_empty_lines(texts: list[str], tags: list[_Tag]) -> list[str]:
    """The texts without the lines that contain only a block tag or a comment."""
    starts, ends = [0] * len(texts), [len(text) for text in texts]
    for number, tag in enumerate(tags):
        before, after = texts[number], texts[number + 1]
        line_start, line_end = before.rfind("\n") + 1, after.find("\n") + 1
        begins_line = (line_start > 0 or number == 0) and not before[line_start:].strip()
        ends_line = (line_end > 0 or number == len(tags) - 1) and not after[: line_end or None].strip()
        if tag.sign and begins_line and ends_line:
            ends[number], starts[number + 1] = line_start, line_end or len(after)
    return [text[start:end] for text, start, end in zip(texts, starts, ends, strict=True)]


def _add(tag: _Tag, stack: list[_OpenBlock]) -> None:
    match tag.sign:
        case "#":
            _open(tag, stack, is_chained=False)
        case "else":
            _turn(tag, stack)
        case "/":
            _close(tag, stack)
        case "":
            stack[-1].nodes.append(Show(_expression(tag.body)))


def _open(tag: _Tag, stack: list[_OpenBlock], *, is_chained: bool) -> None:
    kind, head = (*tag.body.split(maxsplit=1), "", "")[:2]
    if kind not in _BLOCKS:
        raise TemplateError(f"has a block {kind[:40]!r}; there are {', '.join(_BLOCKS)}")
    if len(stack) > MAX_NESTING:
        raise TemplateError(f"nests blocks deeper than {MAX_NESTING} levels")
    stack.append(_OpenBlock(tag.at, kind, _expression(head), is_chained))


def _turn(tag: _Tag, stack: list[_OpenBlock]) -> None:
    """Handle `{{else}}`, or `{{else if x}}`: an `if` inside the else branch, which closes together with the outer
    `if`."""
    if len(stack) == 1 or stack[-1].otherwise is not None:
        raise TemplateError("has an {{else}} without its block")
    stack[-1].otherwise = []
    if tag.body:
        _open(tag, stack, is_chained=True)


def _close(tag: _Tag, stack: list[_OpenBlock]) -> None:
    opened = next(block for block in reversed(stack) if not block.is_chained)
    if opened is stack[0] or opened.kind != tag.body:
        raise TemplateError(f"closes {tag.body[:40]!r}, which is not open here")
    top = None
    while top is not opened:
        top = stack.pop()
        stack[-1].nodes.append(Block(top.kind, top.head, tuple(top.body), tuple(top.otherwise or ())))


def _expression(body: str) -> Expression:
    """A value, a path, or a helper with its arguments."""
    words = list(islice(_words(body), 4))
    if len(words) == 1:
        return words[0]
    name = body.split(maxsplit=1)[0] if words else ""
    helper = HELPERS.get(name)
    if helper is None:
        raise TemplateError(f"has a tag {body[:40]!r} that is no value and no call of {', '.join(HELPERS)}")
    if not helper.least <= len(words) - 1 <= helper.most:
        raise TemplateError(f"calls {name} with {len(words) - 1} values")
    return HelperCall(name, tuple(words[1:]))


def _words(body: str) -> Iterator[Literal | Path]:
    at = 0
    while at < len(body):
        found = _WORD.match(body, at)
        if found is None:
            raise TemplateError(f"has a tag {body[:40]!r} that cannot be read")
        at = found.end()
        text = found[1] if found[1] is not None else found[2]
        yield _word(found[3]) if text is None else Literal(text)


def _word(word: str) -> Literal | Path:
    if word in _CONSTANTS:
        return Literal(_CONSTANTS[word])
    if _NUMBER.fullmatch(word):
        return Literal(float(word) if "." in word else int(word))
    return _path(word)


def _path(word: str) -> Path:
    """`../` upwards, then @index or another loop name, `this` or nothing, then keys with dots between."""
    *ups, rest = word.split("/")
    if rest in (".", ".."):
        ups, rest = [*ups, ".."] if rest == ".." else ups, "this"
    first, *steps = rest.split(".")
    name = first if first in _NAMES else "this"
    if first not in _NAMES:
        steps.insert(0, first)
    is_short = len(ups) <= MAX_NESTING and len(steps) <= MAX_PATH
    if not is_short or not all(steps) or any(up != ".." for up in ups):
        raise TemplateError(f"has {word[:40]!r}, which is not a path")
    return Path(len(ups), name, tuple(steps))
