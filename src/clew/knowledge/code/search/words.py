"""Terms of code: whole identifiers and their parts, abbreviations as the words they mean, stems."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

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
"""Common abbreviations in names with their words: both are the same term."""


@lru_cache(MAX_KNOWN)
def terms_of(word: str) -> tuple[int, ...]:
    """The terms of one word as it is written: its parts without English function words, and all parts joined where
    there are several."""
    return _find_terms(word)


def terms_of_rare(words: Sequence[str]) -> list[int]:
    """The term of each of some words that consist of lower case letters and are no stop words. Not cached."""
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
    """The terms of one word, each with the part of the word that it stands for."""
    parts = split_word(word[:MAX_WORD])
    kept = [part for part in parts if part not in STOP] if len(parts) > 1 else [word]
    return zip(terms_of(word), [*kept, word], strict=False)
