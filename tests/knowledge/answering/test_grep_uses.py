"""Which lines import a name, and by which something inherits from one, as languages write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.answering.uses import find_heir_lines, find_import_lines


def lines_of(text: str) -> list[str]:
    return text.split("\n")


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("text", "name", "lines"),
    [
        ("import redis\nredis.get()", "redis", [1]),
        ("from redis import (\n    Redis,\n)\nRedis()", "Redis", [2]),
        ('import (\n\t"fmt"\n\tflag "github.com/spf13/pflag"\n)\n\nvar all map[*pflag.Flag]bool', "pflag", [3]),
        ('import "github.com/spf13/pflag"', "github.com/spf13/pflag", [1]),
        ("var parser = require('body-parser')\nvar other = require('parser')", "body-parser", [1]),
        ("import { a } from 'shop/till'\nconst shop = 1", "shop", [1]),
        ("import {\n  a,\n} from 'shop'\nconst shop = 1", "shop", [3]),
        ("use {\n    bstr::Bytes,\n    pcre2::bytes::Regex,\n};\nfn f() { pcre2::escape() }", "pcre2", [3]),
        ("pub use pcre2::version;\nuse grep::pcre2;", "pcre2", [1]),
        ('#include <zlib.h>\n#include "zlib/inner.h"', "zlib", [1, 2]),
        ("require 'rack'\nrack = 1", "rack", [1]),
        ("const redis = connect()\nexport const redis2 = redis", "redis", []),
    ],
)
def test_a_line_that_imports_a_name_is_found(text: str, name: str, lines: list[int]) -> None:
    assert [number for number, _ in find_import_lines(lines_of(text), name)] == lines


@pytest.mark.parametrize(
    ("line", "is_heir"),
    [
        ("impl<'p, M: Matcher, W: Write> Sink for StandardSink<'p, M, W> {", True),
        ("impl crate::Sink for Bytes {", True),
        ("impl<S: Sink> Matcher for Box<S> {", False),
        ("class Bowl(Sink):", True),
        ("class Bowl(Kitchen, other.Sink, metaclass=A):", True),
        ("public final class Bowl extends Thing implements Sink, Other {", True),
        ("export class Bowl extends Sink {", True),
        ("class Bowl < Sink", True),
        ("class Sink:", False),
        ("def fill(sink: Sink) -> None:", False),
        ("class Bowl(Sinker):", False),
    ],
)
def test_a_line_by_which_something_inherits_is_found(line: str, is_heir: bool) -> None:
    assert list(find_heir_lines(lines_of(line), "Sink")) == ([(1, line)] if is_heir else [])


@given(st.text(max_size=500), st.text(min_size=1, max_size=20))
def test_any_text_may_be_looked_at(text: str, name: str) -> None:
    lines = lines_of(text)
    for find in (find_import_lines, find_heir_lines):
        assert {number for number, _ in find(lines, name)} <= set(range(1, len(lines) + 1))
