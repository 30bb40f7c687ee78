"""Text templates in the manner of Handlebars, for llm_hints. A template sees JSON and nothing else: names are
keys of objects and indexes of lists, never Python attributes. Size, nesting, steps and output are bounded: a
hostile template soon ends in a TemplateError. Nothing is HTML-escaped, because models read the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from clew.errors import TemplateError

MAX_TEMPLATE = 65_536
MAX_PARTS = 5_000
MAX_NESTING = 32
MAX_PATH = 32
MAX_STEPS = 100_000
MAX_OUTPUT = 1_000_000

_CHARACTERS_PER_STEP = 100
_BLOCKS = ("if", "unless", "each", "with")
_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s"'(){}|=]+))\s*""")
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_CONSTANTS = {"true": True, "false": False, "null": None}
_NAMES = ("this", "@index", "@key", "@first", "@last", "@root")


class Budget:
    """What one rendering, or several that share it, may still do and write."""

    __slots__ = ("_room", "_steps")

    def __init__(self, steps: int = MAX_STEPS, output: int = MAX_OUTPUT) -> None:
        self._steps = steps
        self._room = output

    def step(self, count: int = 1) -> None:
        """Take `count` steps. Raises TemplateError when they are used up."""
        self._steps -= count
        if self._steps < 0:
            raise TemplateError("takes too many steps; loop over less")

    def write(self, size: int) -> None:
        """Take `size` characters of output. Raises TemplateError when there is no room."""
        self.reserve(size)
        self._room -= size

    def reserve(self, size: int) -> None:
        """Raises TemplateError when `size` more characters would be too many."""
        if size > self._room:
            raise TemplateError("writes too much text; show less")


class Literal(NamedTuple):
    value: Any


class Path(NamedTuple):
    """`up` levels towards the root, there one of `this`, @index and the like, then keys."""

    up: int
    name: str
    steps: tuple[str, ...]


class Call(NamedTuple):
    helper: str
    arguments: tuple[Expression, ...]


Expression = Literal | Path | Call


class Show(NamedTuple):
    what: Expression


class Block(NamedTuple):
    kind: str
    head: Expression
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


Node = str | Show | Block


class _Scope(NamedTuple):
    value: Any
    root: Any
    parent: _Scope | None = None
    position: int | None = None
    key: str | None = None
    is_last: bool = False


def render(template: str, data: Mapping[str, Any], budget: Budget | None = None) -> str:
    """The text of a template. What is missing is empty text.

    `{{a.b.0}}`, `{{#if}} {{else if}} {{else}} {{/if}}`, `{{#unless}}`, `{{#each}}` with this, @index, @key,
    @first and @last, `{{#with}}`, `../`, `@root`, comments, and the helpers of HELPERS. Empty values (false,
    null, 0, "", [], {}) are not true. Raises TemplateError when malformed or over the budget.
    """
    budget = budget or Budget()
    out: list[str] = []
    _run(parse(template), _Scope(data, data), out, budget)
    return "".join(out)


def find_value(value: Any, steps: Sequence[str]) -> Any:
    """The value at a path of keys and list indexes, or None."""
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and len(step) < 10 and step.isascii() and step.isdecimal():
            index = int(step)
            value = value[index] if index < len(value) else None
        else:
            return None
    return value


def to_text(value: Any, budget: Budget) -> str:
    """A JSON value as a model should read it: texts as they are, lists and objects as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _to_json(value, budget)


def _to_json(value: Any, budget: Budget) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise TemplateError("shows a value that cannot be written as JSON") from None
    budget.step(len(text) // _CHARACTERS_PER_STEP)
    return text


# Running


def _run(nodes: Sequence[Node], scope: _Scope, out: list[str], budget: Budget) -> None:
    for node in nodes:
        budget.step()
        if isinstance(node, Block):
            _run_block(node, scope, out, budget)
            continue
        text = node if isinstance(node, str) else to_text(_evaluate(node.what, scope, budget), budget)
        budget.write(len(text))
        out.append(text)


def _run_block(block: Block, scope: _Scope, out: list[str], budget: Budget) -> None:
    value = _evaluate(block.head, scope, budget)
    if bool(value) == (block.kind == "unless"):
        _run(block.otherwise, scope, out, budget)
    elif block.kind == "each":
        for inner in _iterate(value, scope):
            budget.step()
            _run(block.body, inner, out, budget)
    elif block.kind == "with":
        inner = scope._replace(value=value, parent=scope)
        _run(block.body, inner, out, budget)
    else:
        _run(block.body, scope, out, budget)


def _iterate(value: Any, scope: _Scope) -> Iterator[_Scope]:
    """One scope per item, made when it is needed: a list may be long and the budget short."""
    if isinstance(value, Mapping):
        for index, (key, item) in enumerate(value.items()):
            yield _Scope(item, scope.root, scope, index, key, index == len(value) - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield _Scope(item, scope.root, scope, index, None, index == len(value) - 1)


def _evaluate(what: Expression, scope: _Scope, budget: Budget) -> Any:
    if isinstance(what, Literal):
        return what.value
    if isinstance(what, Call):
        arguments = [_evaluate(argument, scope, budget) for argument in what.arguments]
        return HELPERS[what.helper].run(budget, *arguments)
    at: _Scope | None = scope
    for _ in range(what.up):
        at = at.parent if at is not None else None
    if at is None:
        return None
    return find_value(_named(at, what.name), what.steps)


def _named(scope: _Scope, name: str) -> Any:
    match name:
        case "@index":
            return scope.position
        case "@key":
            return scope.key
        case "@first":
            return scope.position == 0
        case "@last":
            return scope.is_last
        case "@root":
            return scope.root
        case _:
            return scope.value


# Helpers: pure functions of JSON values, which pay for the text they touch


class _Helper(NamedTuple):
    run: Callable[..., Any]
    least: int
    most: int


def _join(budget: Budget, items: Any, separator: Any = ", ") -> Any:
    if not isinstance(items, list | tuple):
        return items
    between, texts, size = to_text(separator, budget), [], 0
    for item in items:
        budget.step()
        texts.append(to_text(item, budget))
        size += len(texts[-1]) + len(between)
        budget.reserve(size - len(between))
    budget.step(size // _CHARACTERS_PER_STEP)
    return between.join(texts)


def _length(budget: Budget, value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0


def _default(budget: Budget, value: Any, instead: Any) -> Any:
    return instead if value in (None, "") else value


def _truncate(budget: Budget, value: Any, most: Any) -> str:
    text = _paid_text(budget, value)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise TemplateError("truncate needs a whole number of at least 1")
    return text if len(text) <= most else text[: most - 1] + "…"


def _paid_text(budget: Budget, value: Any) -> str:
    text = to_text(value, budget)
    budget.step(len(text) // _CHARACTERS_PER_STEP)
    return text


HELPERS: Mapping[str, _Helper] = {
    "join": _Helper(_join, 1, 2),
    "json": _Helper(lambda budget, value: _to_json(value, budget), 1, 1),
    "length": _Helper(_length, 1, 1),
    "default": _Helper(_default, 2, 2),
    "truncate": _Helper(_truncate, 2, 2),
    "upper": _Helper(lambda budget, value: _paid_text(budget, value).upper(), 1, 1),
    "lower": _Helper(lambda budget, value: _paid_text(budget, value).lower(), 1, 1),
}


# Parsing: one pass that cuts the template into texts and tags, one that builds the tree


class _Tag(NamedTuple):
    """`{{sign body}}` at an offset; sign is one of # / ! else, or empty for a value."""

    at: int
    sign: str
    body: str


class _Open:
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
    at, stack = 0, [_Open(0, "", Literal(None))]
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
    """Texts and the tags between them, one text more than tags."""
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
    """A block tag or comment that stands alone on its line takes the line with it."""
    starts, ends = [0] * len(texts), [len(text) for text in texts]
    for number, tag in enumerate(tags):
        before, after = texts[number], texts[number + 1]
        line_start, line_end = before.rfind("\n") + 1, after.find("\n") + 1
        begins_line = (line_start > 0 or number == 0) and not before[line_start:].strip()
        ends_line = (line_end > 0 or number == len(tags) - 1) and not after[: line_end or None].strip()
        if tag.sign and begins_line and ends_line:
            ends[number], starts[number + 1] = line_start, line_end or len(after)
    return [text[start:end] for text, start, end in zip(texts, starts, ends, strict=True)]


def _add(tag: _Tag, stack: list[_Open]) -> None:
    match tag.sign:
        case "#":
            _open(tag, stack, is_chained=False)
        case "else":
            _turn(tag, stack)
        case "/":
            _close(tag, stack)
        case "":
            stack[-1].nodes.append(Show(_expression(tag.body)))


def _open(tag: _Tag, stack: list[_Open], *, is_chained: bool) -> None:
    kind, head = (*tag.body.split(maxsplit=1), "", "")[:2]
    if kind not in _BLOCKS:
        raise TemplateError(f"has a block {kind[:40]!r}; there are {', '.join(_BLOCKS)}")
    if len(stack) > MAX_NESTING:
        raise TemplateError(f"nests blocks deeper than {MAX_NESTING} levels")
    stack.append(_Open(tag.at, kind, _expression(head), is_chained))


def _turn(tag: _Tag, stack: list[_Open]) -> None:
    """`{{else}}`, or `{{else if x}}`, which is an `if` inside the other branch that closes with the first."""
    if len(stack) == 1 or stack[-1].otherwise is not None:
        raise TemplateError("has an {{else}} without its block")
    stack[-1].otherwise = []
    if tag.body:
        _open(tag, stack, is_chained=True)


def _close(tag: _Tag, stack: list[_Open]) -> None:
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
    return Call(name, tuple(words[1:]))


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
