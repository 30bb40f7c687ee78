"""A question, parsed once: its words, names, paths, version, period and kind.

The kind follows from how people begin a question in English, in any repository; no pattern is made for one question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from clew.knowledge.answering.period import Period, read_period
from clew.knowledge.code.search.words import find_paths
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.readable import find_words
from clew.trail.search.text import STOP

MAX_PARSED = 2_000
MAX_NAMES = 4

_PIECE = r"[A-Za-z_$][\w$]*"
_TOKEN = lazy_pattern(
    rf"`(?P<ticked>[\w$@.:#/!?-]{{1,120}}(?:\(\))?)`|(?<![\w.])(?P<plain>{_PIECE}(?:(?:\.|::|#){_PIECE})*)(?P<call>\(\))?"
)
_IDENTIFIER = lazy_pattern(r"[a-z\d][A-Z]|\w_\w|^_\w|\w(?:\.|::|#)\w|^[A-Z]+[a-z]\w*[A-Z]")
_ABBREVIATIONS = frozenset(("i.e", "e.g", "etc", "node.js", "a.k.a"))
VERSION = lazy_pattern(
    r"(?<![\w.])v?(\d{1,4}(?:\.\d{1,4}){1,3}(?:[-.]?(?:a|b|rc|alpha|beta|dev|post|pre)[-.]?\d*)?)(?![\w.]*\w)"
)
_COMMIT = lazy_pattern(
    r"\bcommit:? ['\"`]?([0-9a-f]{4,40})\b|(?<!\w)((?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})(?!\w)"
)
_CHANGED = (
    r"(?:add|introduc|remov|delet|drop|chang|renam|replac|revert|fix|deprecat|wr(?:ote|itten)|creat|implement|mov|split"
    r"|bump|broke|rewr|refactor|updat|switch|releas|merg|touch|modif|commit|contribut|stop|start|brought|ship|gain"
    r"|lost|turn|made)\w*"
)
CHANGED = lazy_pattern(_CHANGED, re.IGNORECASE)
"""Verbs that say that something changed."""
_CHANGE = lazy_pattern(
    rf"\b{_CHANGED}\b|\bnew\b|\bhappen\w*|\bdid\b|\bdone\b|\bdecid\w+|\bactivity\b|\bwork\w* on\b", re.I
)
_HISTORY = lazy_pattern(
    r"\b(?:why|how come) (?:was|were|did|has|have|had|is|are|does|do)\b|^why\b|\bsince (?:which|what|when)\b"
    rf"|\b(?:which|what) (?:\w+ ){{0,2}}?(?:version|release|commit|change)s? (?:\w+ ){{0,3}}?{_CHANGED}\b"
    r"|\b(?:in|with) (?:which|what) (?:version|release)\b|\bwhen (?:was|were|did|has|have|had)\b"
    rf"|\bwho (?:\w+ )?{_CHANGED}\b|\b(?:was|were|been|got|gets) (?:\w+ )?{_CHANGED}\b|\bwhat(?:'s| is)? new\b"
    r"|\bwhat changed\b|\bchange ?log\b|\brelease notes\b|\bcommits?\b|\bno longer\b|\banymore\b"
    rf"|(?<!is )(?<!are )(?<!be )(?<!was )\bused to\b|\bwhat did (?:\w+ ){{1,4}}?{_CHANGED}\b"
    r"|\b(?:recently|lately)\b|\bhistory of\b|\bdecided\b|\bdid we decide\b|\bdecisions?\b|\bchose\b|\bchosen\b",
    re.IGNORECASE,
)
_HOWTO = lazy_pattern(
    r"\bhow (?:do|can|should|would|could|to|must) ?(?:i|we|you|one)?\b|\b(?:can|could|should|may) (?:i|we|you)\b"
    r"|\bhow\?|\bhow would\b|\bwhat (?:should|can|do) i\b|\bi (?:need|want|would like|am trying)\b|\bi'd like\b"
    r"|\bis there (?:a|an|any)\b(?: [\w-]+){0,2} (?:way|option|setting)\b|\b(?:docs?|readme|guide|manual)\b",
    re.IGNORECASE,
)
_EXPLAIN = lazy_pattern(
    r"^(?:so |please |can you )?(?:explain|describe|walk me through|how (?:does|do|is|are)|what happens|summari[sz]e)\b"
    r"|\b(?:strategy|pattern|convention|architecture)\b",
    re.IGNORECASE,
)
_NOT_HOWTO = lazy_pattern(r"\b(?:where|show me|which (?:file|function|class|method|line|module))\b", re.IGNORECASE)
QUANTITY = lazy_pattern(
    r"(?:^(?:so |and |but )?(?:roughly |about |approximately )?how (?:many|much)"
    r"|\bwhat(?:'s| is| are) the (?:default|maximum|max|minimum|typical|average|usual) (?:number|amount|count|rate) of)"
    r" (?P<what>[\w-]+(?: [\w-]+)?)",
    re.IGNORECASE,
)
HOW_MANY_COMMITS = lazy_pattern(r"^how many (?:\w+ )?commits\b", re.IGNORECASE)
_OVERVIEW = lazy_pattern(
    r"^(?:so |please )?(?:what(?:'s| is| does)|explain|describe|summari[sz]e|tell me about|give me an overview of"
    r"|overview of|introduce) (?:this|the|our) (?:project|repo|repository|code ?base|package|library|program|code)"
    r"(?: (?:about|for|do|does|all about))*[\s?.!]*$",
    re.IGNORECASE,
)
_TESTS = lazy_pattern(
    r"\b(?:which|what|any|list|show|find|where are|are there) (?:\w+ ){0,2}?tests\b"
    r"|^tests? (?:for|of|that|which|covering)\b"
    r"|\bwhich test (?:for|of|that|covers?|checks?|exercises?)\b|\bwhere (?:is|are) .{1,60} tested\b",
    re.IGNORECASE,
)
_NO_TESTS = lazy_pattern(
    r"\bnon[- ]tests?\b|\b(?:without|excluding|except|besides|outside of|not in|other than|(?:apart|aside) from"
    r"|ignoring|not counting) (?:the )?(?:\w+ (?:and|or) )?tests?\b",
    re.IGNORECASE,
)
_WITH_TESTS = lazy_pattern(
    r"\btests? (?:too|included|as well)\b|\b(?:including|with|and) (?:the )?(?:\w+ and )?tests\b", re.I
)
_PRONOUN = lazy_pattern(
    r"\b(?:it|them|(?:this|that)(?= ?(?:one|function|method|class|module)?\s*[?.!]?$))\b"
    r"(?: (?:one|function|method|class|module))?",
    re.IGNORECASE,
)
_ASKING_WORDS = """
    explain describe show find locate list file files function functions method methods class classes line lines code
    place spot implemented implementation defined definition located responsible happens happen work works exactly
    actually currently whats wheres hows everything inside hood decide decides piece bit part whole called calls call
    want please somehow project repo repository codebase docs doc documentation readme manual guide
    number chosen decided reason
"""
ASKING = frozenset(_ASKING_WORDS.split())
"""Words of the form of a question, which seldom belong to its topic."""


RelationName = Literal["calls", "imports", "extends", "uses", "tests"]

IS_QUESTION = lazy_pattern(
    r"\?\s*$|^\W*(?:(?:is|are|was|were|do|does|did|can|could|should|has|have)\b(?! not\b)"
    r"|(?:who|whom|whose|what|which|when|where|why|how|explain|describe|show|find|locate|list|tell)\b)",
    re.IGNORECASE,
)
"""Begins or ends like a question or a request for information."""

STEMS: dict[RelationName, str] = {
    "tests": r"tests?|tested|covers?|covering|covered|exercises?",
    "calls": (r"calls?|called|calling|callers?|callees?|invok\w+|call ?sites?|instantiat\w+|constructs|constructed"),
    "imports": (
        r"imports?|imported|importing|importers?|requires?|requiring|required by|depends? (?:up)?on|dependents?"
        r"|includes?|including"
    ),
    "extends": (
        r"extend\w*|inherit\w*|subclass\w*|deriv\w+|implement(?:s|ing|ers?|ors?|ations?)?|overrid\w+|children of"
    ),
    "uses": r"uses?|used|using|usages?|users? of|references?|referenced|refers? to|mentions?",
}
STEM = lazy_pattern("|".join(rf"\b(?P<{edge}>{stems})\b" for edge, stems in STEMS.items()), re.IGNORECASE)
_EXPLAINS = lazy_pattern(r"^(?:explain|describe|how (?:does|do|is|are)|why)\b", re.IGNORECASE)
_SENTENCE = lazy_pattern(r"\S(?:[^.?!]|[.?!](?!\s))*[.?!]?")
_TELLS = lazy_pattern(r"^(?:i|we|my|our)\b(?! (?:want|need|wonder|would like)\b|'d like\b)[^?]*$", re.IGNORECASE)
"""A sentence about the user's own situation, which asks nothing."""
THINGS = r"(?:function|method|class|file|module|test|type|package|place|symbol)(?:e?s)?"


class QuestionKind(StrEnum):
    """The form of a question. CODE asks where something is in the code, and is the default."""

    CODE = "code"
    EXPLAIN = "explain"
    HOWTO = "howto"
    HISTORY = "history"
    QUANTITY = "quantity"
    OVERVIEW = "overview"


class Tests(StrEnum):
    """How an answer treats tests: after the implementation, equal to it, tests only, or no tests."""

    LAST = "last"
    ALSO = "also"
    ONLY = "only"
    NEVER = "never"


class AskedRelation(NamedTuple):
    """A relation that a question may ask for, and the position of the words that name it."""

    name: RelationName
    start: int
    end: int


class ParsedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed question. `words` are its content words in order. `names` are words that can only be identifiers.
    `paths` are words that look like paths or file names. `version`, `commit` and `period` are empty by default.
    `relation` is None if the question does not ask for uses."""

    text: str
    kind: QuestionKind
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    version: str = ""
    commit: str = ""
    period: Period | None = None
    tests: Tests = Tests.LAST
    relation: AskedRelation | None = None

    @property
    def asks_history(self) -> bool:
        """Whether the question asks for the past, or for a commit."""
        return self.kind is QuestionKind.HISTORY or bool(self.commit)


def parse_question(text: str, now: datetime) -> ParsedQuestion:
    """Parse a question. Only the beginning of a very long one is parsed. `now` is the reference time for periods such
    as `last week`."""
    line = " ".join(text[:MAX_PARSED].split())
    period = read_period(line, now)
    rest = period.rest if period is not None else line
    version, commit = VERSION.search(rest), _COMMIT.search(rest)
    paths = tuple(dict.fromkeys(path for path in find_paths(line) if f"{path}(" not in line))  # a call is not a file
    kind, tests = _kind_of(line, has_period=period is not None), _tests_of(line)
    names = dict.fromkeys(name for name in _names(rest) if not any(name in path for path in paths))
    asked = tuple(names)[:MAX_NAMES]
    return ParsedQuestion(
        text=line,
        kind=kind,
        words=tuple(content_words(rest)),
        names=asked,
        paths=paths,
        version=version[1] if version is not None else "",
        commit=(commit[1] or commit[2]) if commit is not None else "",
        period=period,
        tests=tests,
        relation=_relation_of(line, kind, tests, asked),
    )


def refers_back(text: str, now: datetime) -> bool:
    """Whether a question has a pronoun and no name: its subject is that of the question before."""
    question = parse_question(text, now)
    return _PRONOUN.search(question.text) is not None and not (question.names or question.paths)


def with_subject(text: str, name: str) -> str:
    """A question with a name in place of its pronoun."""
    return _PRONOUN.sub(f"`{name}`", text, count=1)


def content_words(text: str) -> list[str]:
    """The words of a text without function words and words of asking, each once. If no others are left, all words."""
    words = list(dict.fromkeys(find_words(text)))
    telling = [
        word
        for word in words
        if word.lower() not in STOP and (len(word) > 1 or not word.isalpha() or not word.isascii())
    ]
    return [word for word in telling if word.lower() not in ASKING] or telling or words


def is_identifier(word: str) -> bool:
    """Whether a word can only be a name of code, by its capitals, underscores or dots."""
    return _IDENTIFIER.search(word) is not None and word.lower() not in _ABBREVIATIONS


def _names(line: str) -> Iterator[str]:
    for found in _TOKEN.finditer(line):
        word = (found["ticked"] or found["plain"]).removesuffix("()").strip("\"'")
        if word and (found["ticked"] or found["call"] or is_identifier(word)):
            yield word


def _kind_of(line: str, *, has_period: bool) -> QuestionKind:
    if _OVERVIEW.match(line):
        return QuestionKind.OVERVIEW
    if HOW_MANY_COMMITS.search(line):
        return QuestionKind.HISTORY
    if QUANTITY.search(line):
        return QuestionKind.QUANTITY
    is_dated = (has_period or VERSION.search(line)) and _CHANGE.search(line)
    if is_dated or _HISTORY.search(line):
        return QuestionKind.HISTORY
    if _HOWTO.search(line) and not _NOT_HOWTO.search(line):
        return QuestionKind.HOWTO
    return QuestionKind.EXPLAIN if _EXPLAIN.search(line) else QuestionKind.CODE


def _tests_of(line: str) -> Tests:
    if _NO_TESTS.search(line):
        return Tests.NEVER
    if _WITH_TESTS.search(line):
        return Tests.ALSO
    return Tests.ONLY if _TESTS.search(line) else Tests.LAST


def _relation_of(line: str, kind: QuestionKind, tests: Tests, names: Sequence[str]) -> AskedRelation | None:
    """The relation that a question asks for: the first of its relation stems that is not part of a name. If some
    sentences ask, the other sentences are ignored."""
    if kind in (QuestionKind.HOWTO, QuestionKind.HISTORY, QuestionKind.OVERVIEW) or _EXPLAINS.search(line):
        return None
    parts = {part for name in names for part in re.split(r"\W+", name)}
    sentences = list(_SENTENCE.finditer(line))
    asking = [each for each in sentences if not _TELLS.search(each[0])] or sentences
    for found in (stem for each in asking for stem in STEM.finditer(line, each.start(), each.end())):
        name = next(name for name in STEMS if found[name])
        if found[0] not in parts and (name != "tests" or tests is Tests.ONLY):
            return AskedRelation(name, found.start(), found.end())
    return None
