"""Terms of code and of texts about code. Identifiers in code are split into parts, and abbreviations are expanded. In a
text about code, such as an issue, names, paths and tracebacks count most."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from clew.lazy_pattern import lazy_pattern
from clew.trail.model.readable import find_words
from clew.trail.search.text import MAX_PARTS, STOP, rare_term_ids, split_word, term_id

SALT = 0
"""All terms of a code index belong to one owner."""

MAX_WORD = 64
MAX_KNOWN = 1 << 17
TERM_BYTES = array("I").itemsize

_SHORT_FORMS = """
    arg argument, args arguments, arr array, attr attribute, attrs attributes, auth authentication, avg average,
    bool boolean, buf buffer, calc calculate, cfg configuration, char character, chars characters, cls class,
    cmd command, cmp compare, col column, cols columns, concat concatenate, conf configuration, config configuration,
    conn connection, coord coordinate, ctx context, cur current, db database, decl declaration, def define,
    del delete, deps dependencies, desc description, dest destination, dict dictionary, dicts dictionaries,
    dir directory, dirs directories, dist distance, doc document, docs documents, dst destination, elem element,
    enum enumeration, env environment, err error, errs errors, eval evaluate, exc exception, exec execute,
    expr expression, ext extension, fn function, fmt format, freq frequency, func function, funcs functions,
    gen generate, hist histogram, idx index, img image, imgs images, impl implement, info information,
    init initialize, inst instance, int integer, ints integers, iter iterate, len length, lib library, lhs left,
    loc location, ls list, mat matrix, max maximum, mem memory, min minimum, mod module, msg message, msgs messages,
    mul multiply, num number, nums numbers, obj object, objs objects, opt option, opts options, orig original,
    param parameter, params parameters, perf performance, pkg package, pos position, pred predict, prev previous,
    proc process, prod product, prop property, props properties, ptr pointer, pwd password, rand random, recv receive,
    ref reference, refs references, regex pattern, repo repository, repr representation, req request, res result,
    resp response, ret return, rhs right, rm remove, seq sequence, sess session, sig signature, spec specification,
    src source, stat statistic, stats statistics, std standard, stmt statement, str string, strs strings, sub subtract,
    sync synchronize, temp temporary, tmp temporary, txt text, usr user, util utility, utils utilities, val value,
    vals values, var variable, vars variables, vec vector, ver version, win window
"""
SHORT_FORMS = dict(pair.split() for pair in _SHORT_FORMS.replace("\n", " ").split(","))
"""Common abbreviations in names with their words; an abbreviation and its word are the same term."""
MAX_CHARS = 20_000
MAX_HEADING = 200
ZONE_WEIGHTS = {"title": 3.0, "prose": 1.0, "ticked": 1.0, "code": 0.3, "message": 1.0, "dull": 0.1}
"""The weight of a word in each part: the first line, the text, names in backticks, code, error messages, versions and
environments."""

LANGUAGE_SHARE = 0.2
LANGUAGES = frozenset(["python", "golang", "rust", "java", "javascript", "typescript", "ruby", "cpp"])
"""Names that have little weight in a question of one line, because people name their language while functions do
not."""

_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.S)
_FENCE = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<details>.*?(?:</details>|\Z)", re.S)
_FRAME = lazy_pattern(r'File "([^"\n]{1,300})", line \d+')
_PLACE = lazy_pattern(r"^[ \t]*+(?:at )?([\w./\\-]{1,300}\.\w{1,5}):\d+", re.M)
_MESSAGE = lazy_pattern(r"^(?:E +)?[A-Za-z_.]{0,80}(?:Error|Exception|Warning|panic)[A-Za-z]{0,20}: *(.{3,300})$", re.M)
_TICKED = lazy_pattern(r"`([^`\n]{1,120})`")
_PATH = lazy_pattern(
    r"[\w.-]{1,100}(?:[/\\][\w.-]{1,100}){1,20}\.\w{1,5}\b"
    r"|\b[\w-]{1,100}\.(?:pyx?|pyi|go|rs|[cm]?[jt]sx?|java|kt|c|cc|cpp|h|hpp|rb|md|rst|txt|toml|ya?ml|json|cfg|ini|mod)\b"
)
_DOTTED = lazy_pattern(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\b")
_NAME = lazy_pattern(r"\b(?:[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Za-z]\w*_\w+|_\w+)\b|\b\w+(?=\()")
_HEADING = lazy_pattern(r"\s{0,3}#{1,6}\s|\*\*.*\*\*:?\s*$|<summary>|[A-Z][\w /]{2,30}:?\s*$")
_TEMPLATE = lazy_pattern(
    r"(describe the (bug|issue|workflow)|(steps?|code|how|steps?/code)? ?to reproduce|(expected|actual|current) "
    r"(results?|output|behaviou?r)|(problem |bug )?description|additional context|reproduction( steps)?|proposal|"
    r"question|minimal complete verifiable example|what happened|what did you expect.*|a clear and concise.*)",
    re.I,
)
_DULL = lazy_pattern(
    r"versions?\b|environment|system info|platform|installed|conda list|pip (list|freeze)|checklist|your setup|"
    r"dependencies",
    re.I,
)
_VERSION = lazy_pattern(
    r"\s*[-*]?\s*[\w .-]{1,25}\s*[:=]+\s*v?\d+(\.\d+)+.*$|\s*[\w.-]+\s+v?\d+\.\d+[\w.]*\s*$|\s*\w[\w.-]*==\d"
)
_NUMBER = lazy_pattern(r"(?<!\d)\d++\.\d++")
_MANY_VERSIONS = 8
_NEAR = 80


@lru_cache(MAX_KNOWN)
def terms_of(word: str) -> tuple[int, ...]:
    """The terms of one word as it is written: its parts without English function words, and all parts joined if
    there are several."""
    return _find_terms(word)


def terms_of_rare(words: Sequence[str]) -> list[int]:
    """The term of each of some words that consist of lower case letters and are not stop words. Not cached."""
    return rare_term_ids([SHORT_FORMS.get(word, word) for word in words], SALT)


def parts_of(word: str) -> tuple[int, ...]:
    """The terms of the parts of one word, without that of all parts joined."""
    terms = terms_of(word)
    return terms[:-1] if len(terms) > 1 else terms


def pack_terms(words: Iterable[str]) -> bytes:
    """The terms of words, one word after the other, each term in TERM_BYTES."""
    return b"".join(map(_known.__getitem__, words))


class _PackedTerms(dict[str, bytes]):
    """A cache of the packed terms of words. Cleared when it is full."""

    def __missing__(self, word: str) -> bytes:
        if len(self) >= MAX_KNOWN:
            self.clear()
        found = self[word] = array("I", _find_terms(word)).tobytes()
        return found


_known = _PackedTerms()


def _find_terms(word: str) -> tuple[int, ...]:
    parts = split_word(word[:MAX_WORD])
    terms = [term_id(SHORT_FORMS.get(part, part), SALT) for part in parts if part not in STOP]
    if 1 < len(parts) <= MAX_PARTS:
        terms.append(term_id("".join(parts), SALT))
    return tuple(terms)


def spelled_terms(word: str) -> Iterator[tuple[int, str]]:
    """The terms of one word, each with its part of the word."""
    parts = split_word(word[:MAX_WORD])
    kept = [part for part in parts if part not in STOP] if len(parts) > 1 else [word]
    return zip(terms_of(word), [*kept, word], strict=False)


class IssueText(msgspec.Struct, frozen=True):
    """A parsed text. `terms` has the weight of each term, and `spelling` its word or part of a word. `frames` are the
    files of tracebacks, the innermost last. `named` are paths and file names in the first line."""

    terms: Mapping[int, float]
    spelling: Mapping[int, str]
    names: frozenset[str]
    paths: tuple[str, ...]
    named: tuple[str, ...]
    frames: tuple[str, ...]
    title: str
    plain: str
    """The first line without English function words, to be embedded."""


def parse_issue_text(text: str) -> IssueText:
    """Parse a text. Only the beginning of a very long one is parsed."""
    text = _COMMENT.sub(" ", text[:MAX_CHARS].replace("\r", "").strip())
    zones = split_zones(text)
    read = "\n".join(zones[zone] for zone in ("title", "prose", "ticked", "code"))
    dotted = _DOTTED.findall(read)
    names = {*_NAME.findall(read), *find_words(zones["ticked"]), *(part for name in dotted for part in name.split("."))}
    terms, spelling = _weigh(zones)
    if "\n" not in text:
        languages = {term for word in find_words(text) if word.lower() in LANGUAGES for term in terms_of(word)}
        terms = {term: amount * (LANGUAGE_SHARE if term in languages else 1.0) for term, amount in terms.items()}
    return IssueText(
        terms=terms,
        spelling=spelling,
        names=frozenset(name for name in names if len(name) > 2),
        paths=tuple(dict.fromkeys(_PATH.findall(read))),
        named=tuple(dict.fromkeys(find_paths(zones["title"]))),
        frames=(*_FRAME.findall(text), *_PLACE.findall(text)),
        title=zones["title"],
        plain=" ".join(word for word in find_words(zones["title"]) if word.lower() not in STOP | LANGUAGES),
    )


def find_paths(line: str) -> list[str]:
    """The words of a line that look like paths or file names."""
    return [found.strip("./") for found in _PATH.findall(line)]


def split_zones(text: str) -> dict[str, str]:
    """The parts of a text by kind: see ZONE_WEIGHTS. Backticks and messages are in their part as well."""
    title, _, body = text.partition("\n")
    zones: dict[str, list[str]] = {zone: [] for zone in ZONE_WEIGHTS}
    zones["title"].append(title)
    end = 0
    for block in _FENCE.finditer(body):
        _sort_lines(body[end : block.start()], zones)
        zones["dull" if _is_dull(body, block) else "code"].append(block.group())
        end = block.end()
    _sort_lines(body[end:], zones)
    prose, code = "\n".join((title, *zones["prose"])), "\n".join(zones["code"])
    zones["ticked"] = _TICKED.findall(prose)
    zones["message"] = _MESSAGE.findall(f"{prose}\n{code}")
    return {zone: "\n".join(pieces) for zone, pieces in zones.items()}


def _is_dull(body: str, block: re.Match[str]) -> bool:
    """Whether a block lists versions: the line before it says so, or it is full of them."""
    before = body[max(0, block.start() - _NEAR) : block.start()].rsplit("\n\n", 1)[-1]
    numbers = len(_NUMBER.findall(block.group()))
    return bool(_DULL.search(before)) or (numbers > _MANY_VERSIONS and not _FRAME.search(block.group()))


def _sort_lines(text: str, zones: dict[str, list[str]]) -> None:
    """Add each line outside of fences to its zone."""
    is_dull = False
    for line in text.split("\n"):
        head = line.strip()[:MAX_HEADING]
        if _HEADING.match(head):
            is_dull = bool(_DULL.search(head))
            if _TEMPLATE.fullmatch(head.strip(" #*:_")):
                continue
        if is_dull or _VERSION.match(head):
            zones["dull"].append(line)
        elif line.startswith(">>> ") or (line.startswith("    ") and re.search(r"[=(\[]", line)):
            zones["code"].append(line)
        else:
            zones["prose"].append(line)


def _weigh(zones: Mapping[str, str]) -> tuple[dict[int, float], dict[int, str]]:
    """The weight of each term: for every part the logarithm of its count times the weight of the part."""
    terms: dict[int, float] = {}
    spelling: dict[int, str] = {}
    for zone, text in zones.items():
        for term, count in _count(find_words(text), spelling).items():
            terms[term] = terms.get(term, 0.0) + ZONE_WEIGHTS[zone] * math.log2(1 + count)
    return terms, spelling


def _count(words: Iterable[str], spelling: dict[int, str]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for word in words:
        for term, part in spelled_terms(word):
            counts[term] += 1
            spelling.setdefault(term, part)
    return counts
