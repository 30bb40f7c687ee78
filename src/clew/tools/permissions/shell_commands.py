"""Splits a shell line into the commands that it runs, so that each can be checked against the rules.

It covers `;`, `&&`, `|` and the like, `$()` and backticks, and variables set before a command. It is not a shell: a
line that it cannot parse reliably is marked as unclear, and no pattern allows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from clew.lazy_pattern import lazy_pattern

MAX_LENGTH = 20_000
MAX_DEPTH = 8

_OPERATORS = lazy_pattern(r"&&|\|\||;;|\|&|[;&|\n]")
_HARMLESS_REDIRECT = lazy_pattern(
    r"(?:[12]|&)?>>?[ \t]*/dev/null(?=[\s;&|)]|$)|[12]?>&[12](?=[\s;&|)]|$)|</dev/null(?=[\s;&|)]|$)"
)
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*\+?=")
_KEYWORDS = frozenset(
    (
        *(
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "for",
            "while",
            "until",
            "do",
            "done",
            "case",
            "esac",
            "select",
            "function",
        ),
        *("{", "}", "!", "[[", "time", "coproc", "eval", "source", ".", "exec", "alias", "trap", "set", "shopt"),
    )
)
"""Words that change the meaning of the words after them."""
_WRAPPERS = _KEYWORDS | frozenset(
    (
        *(
            "sudo",
            "doas",
            "env",
            "nohup",
            "nice",
            "ionice",
            "timeout",
            "xargs",
            "command",
            "builtin",
            "setsid",
            "stdbuf",
        ),
        *("sh", "bash", "dash", "zsh", "ksh", "busybox", "watch", "strace", "unbuffer"),
    )
)
"""Programs that run the command they are given."""
_EVALUATING = frozenset(
    ("let", "declare", "typeset", "local", "readonly", "unset", "read", "mapfile", "readarray", "getopts")
)
"""Shell builtins that take names of variables, in whose brackets the shell runs commands: `read 'a[$(rm x)]'`."""
_EVALUATING_OPTIONS = {"printf": ("-v",), "wait": ("-p",), "test": ("-v", "-R"), "[": ("-v", "-R")}
"""Builtins that do so only after an option."""
_MOST_WORDS = 50
_ANY_BREAK = lazy_pattern(r"[;&|\n(){}`<>\"'$=]+")


class ShellParts(msgspec.Struct, frozen=True, kw_only=True):
    """The commands of a line, with single spaces between words.

    `is_clear` says that the list is complete. `inner` are commands that a part may run, such as behind `sudo` or in `sh
    -c`, and guesses for a line that is not clear.
    """

    parts: tuple[str, ...]
    is_clear: bool = True
    inner: tuple[str, ...] = ()


def split_command(line: str) -> ShellParts:
    """Return the commands of a line from left to right, each followed by its substitutions."""
    if len(line) > MAX_LENGTH:
        return ShellParts(parts=(line[:MAX_LENGTH],), is_clear=False)
    reader = _ShellReader(line)
    reader.read()
    inner = reader.inner if reader.is_clear else [*reader.inner, *_guesses(line)]
    return ShellParts(parts=tuple(reader.parts), is_clear=reader.is_clear, inner=tuple(dict.fromkeys(inner)))


class _ShellReader:
    """Reads a line once. Inner lines, of `$()` and of `sh -c`, get their own readers."""

    def __init__(self, line: str, depth: int = 0) -> None:
        self.parts: list[str] = []
        self.inner: list[str] = []
        self.is_clear = depth < MAX_DEPTH
        self._line = line
        self._at = 0
        self._depth = depth
        self._words: list[str] = []
        self._word: str | None = None
        self._is_expanded = False
        """Whether the shell would expand the first word."""
        self._put_in: list[str] = []

    def read(self) -> None:
        if not self.is_clear:
            self.parts.append(self._line)
            return
        while self._at < len(self._line):
            self._step()
        self._end_part()

    def _step(self) -> None:
        rest, letter = self._line[self._at :][:2], self._line[self._at]
        if found := _HARMLESS_REDIRECT.match(self._line, self._at):
            self._end_word()
            self._at = found.end()
        elif found := _OPERATORS.match(self._line, self._at):
            self._end_part()
            self._at = found.end()
        elif letter in " \t\r":
            self._end_word()
            self._at += 1
        elif letter == "'":
            self._quote()
        elif letter == '"':
            self._double_quote()
        elif letter == "\\":
            self._escape()
        elif rest in ("$(", "<(", ">("):
            self._substitute(self._at + 2)
        elif letter == "`":
            self._backticks()
        else:
            self._plain(letter)

    def _plain(self, letter: str) -> None:
        if letter in "<>()" or (letter == "#" and self._word is None):
            self.is_clear = False  # redirections, groups, comments
        if letter in "$*?[~{" and not self._words:
            self._is_expanded = True
        if letter == "$" and self._line[self._at + 1 : self._at + 2] in ("{", "'", '"'):
            self.is_clear = False
        self._add(letter)
        self._at += 1

    def _quote(self) -> None:
        end = self._line.find("'", self._at + 1)
        if end < 0:
            self._give_up()
            return
        self._add(self._line[self._at + 1 : end])
        self._at = end + 1

    def _double_quote(self) -> None:
        self._at += 1
        self._add("")
        while self._at < len(self._line) and self._line[self._at] != '"':
            letter = self._line[self._at]
            if letter == "\\":
                self._escape(within_quotes=True)
            elif self._line.startswith("$(", self._at):
                self._substitute(self._at + 2)
            elif letter == "`":
                self._backticks()
            else:
                if letter == "$":
                    self._is_expanded = self._is_expanded or not self._words
                    self.is_clear = self.is_clear and self._line[self._at + 1 : self._at + 2] != "{"
                self._add(letter)
                self._at += 1
        if self._at >= len(self._line):
            self.is_clear = False
        self._at += 1

    def _escape(self, *, within_quotes: bool = False) -> None:
        following = self._line[self._at + 1 : self._at + 2]
        if following == "\n":
            pass  # the line continues
        elif within_quotes and following not in ("$", "`", '"', "\\"):
            self._add("\\" + following)
        else:
            self._add(following)
        self.is_clear = self.is_clear and bool(following)
        self._at += 2

    def _substitute(self, start: int) -> None:
        """Handle a command substitution: its command is a separate part."""
        end = _closing(self._line, start)
        if end is None or self._line.startswith("(", start):
            self._give_up()
            return
        self._take_in(self._line[start:end])
        self._at = end + 1

    def _backticks(self) -> None:
        end = self._line.find("`", self._at + 1)
        content = self._line[self._at + 1 : end]
        if end < 0 or "\\" in content:
            self._give_up()
            return
        self._take_in(content)
        self._at = end + 1

    def _take_in(self, line: str) -> None:
        reader = _ShellReader(line, self._depth + 1)
        reader.read()
        self._put_in += reader.parts
        self.inner += reader.inner
        self.is_clear = self.is_clear and reader.is_clear
        self._is_expanded = self._is_expanded or not self._words
        self._add("$()")

    def _give_up(self) -> None:
        self.is_clear = False
        self._add(self._line[self._at :])
        self._at = len(self._line)

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is None:
            return
        if not self._words and not self._is_expanded and _ASSIGNMENT.match(self._word):
            self.parts.append(_shown(self._word))
        else:
            self._words.append(self._word)
        self._word = None

    def _end_part(self) -> None:
        if self._word is not None and not self._words and _ASSIGNMENT.match(self._word):
            self._is_expanded = False  # the expansion was in an assigned value, not in a command
        self._end_word()
        if self._words:
            self.parts.append(" ".join(map(_shown, self._words)))
            self.inner += _inner(self._words, self._depth)
            is_plain = self._words[0] not in _KEYWORDS and not _evaluates(self._words)
            self.is_clear = self.is_clear and not self._is_expanded and is_plain
        self.parts += self._put_in
        self._words, self._put_in, self._is_expanded = [], [], False


def _closing(line: str, start: int) -> int | None:
    """Return the position of the bracket that ends `$(`; None if it is unclear."""
    depth, at = 1, start
    while at < len(line):
        letter = line[at]
        if letter in "\"'\\#`":
            # Quotes could contain a bracket: only quotes without one are supported.
            end = line.find(letter, at + 1) if letter in "\"'" else -1
            if end < 0 or any(each in "()\\\"'`" for each in line[at + 1 : end]):
                return None
            at = end
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at
        at += 1
    return None


def _evaluates(words: Sequence[str]) -> bool:
    """Whether the shell evaluates text in the brackets of an argument."""
    options = _EVALUATING_OPTIONS.get(words[0], ())
    return words[0] in _EVALUATING or any(word.startswith(options) for word in words[1:])


def _inner(words: Sequence[str], depth: int) -> Iterator[str]:
    """Yield commands that a command runs: behind `sudo` and the like, and lines for a shell."""
    name = words[0].rpartition("/")[2]
    if name != words[0]:
        yield " ".join(map(_shown, (name, *words[1:])))
    if name not in _WRAPPERS or depth >= MAX_DEPTH:
        return
    for at in range(1, min(len(words), _MOST_WORDS)):
        yield " ".join(map(_shown, words[at:]))
        if " " in words[at] or ";" in words[at]:
            reader = _ShellReader(words[at], depth + 1)
            reader.read()
            yield from (*reader.parts, *reader.inner)


def _guesses(line: str) -> Iterator[str]:
    """Yield everything that might run in an unclear line."""
    for piece in _ANY_BREAK.split(line)[: 4 * _MOST_WORDS]:
        words = piece.split()[:_MOST_WORDS]
        yield from (" ".join(words[at:]) for at in range(len(words)))


def _shown(word: str) -> str:
    """Quote a word with spaces, so that it does not look like two."""
    return f"'{word}'" if not word or re.search(r"\s", word) else word
