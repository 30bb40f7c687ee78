"""Reads any bytes at all."""

from __future__ import annotations

import pickle
from itertools import cycle

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.knowledge.code.file_content import readable_text
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.languages.extract import MAX_BYTES, cut_tokens, extract
from clew.knowledge.code.models import CUT, FileFacts
from clew.knowledge.code.python_calls.statements import summarize
from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

DEEP = 50_000
FLOOD = 10_000
"""Ten times as deep as Python recurses; the parsers take quadratic time."""
FLOODS = (b"(", b"[", b"{", b"a(", b"a.b().", b"x=>", b"-", b"<", b'"')
FLOODED = sorted({("python", each) for each in FLOODS} | set(zip(LANGUAGES, cycle(FLOODS), strict=False)))
"""Every flood in one language, and one flood in every language."""


def in_lines(content: bytes) -> bytes:
    """The same in lines of a length that people write."""
    return b"\n".join(content[at : at + 500] for at in range(0, len(content), 500))


def holds_together(facts: FileFacts) -> bool:
    known = {each.qualname for each in facts.symbols}
    lines = all(1 <= each.line_start <= each.line_end <= facts.lines for each in facts.symbols)
    named = all(each.qualname.endswith(each.name) and "\n" not in each.signature + each.doc for each in facts.symbols)
    used = all(each.target and 1 <= each.line <= facts.lines for each in facts.references)
    return lines and named and used and len(known) <= len(facts.symbols)


@pytest.mark.parametrize("language", LANGUAGES)
@given(content=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_facts(language: str, content: bytes) -> None:
    facts = extract(content, language)
    assert facts.language == language
    assert holds_together(facts)


WORDS = (
    *("class", "def", "import", "from", "use", "struct", "fn", "func", "if", "function", "return", "f", "x", "T", "é"),
    *("(", ")", "{", "}", "[", "]", "<", ">", ":", ";", ",", ".", "=", "->", "=>", "::", "@", "#", "//", "/*", "*/"),
    *('"', "'", "`", "\n", "\t"),
)


@pytest.mark.parametrize("language", LANGUAGES)
@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
@settings(max_examples=60, deadline=None)
def test_broken_code_gives_facts(language: str, words: list[str]) -> None:
    assert holds_together(extract(" ".join(words).encode(), language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_file_says_nothing(language: str) -> None:
    assert extract(b"", language) == FileFacts(language, [], [], [])


@pytest.mark.parametrize(("language", "piece"), FLOODED)
def test_no_flood_of_signs_stops_it(language: str, piece: bytes) -> None:
    facts = extract(in_lines(piece * (FLOOD // len(piece))), language)
    assert facts.error in ("", "too hard to parse, read in part", "syntax errors, read in part")
    assert holds_together(facts)


def test_50_000_parentheses_are_no_trouble() -> None:
    content = in_lines(b"(" * DEEP + b"a.b(C)" + b")" * DEEP)
    assert references(extract(content, "python")) == ["101: call a.b in -", "101: reference C in -"]


def test_functions_within_functions_without_end_are_read() -> None:
    facts = extract(b"function f(a) { c(b + a);\n" * 3_000 + b"}\n" * 3_000, "javascript")
    assert symbols(facts)[:2] == ["function f 1-6000", "function f.f 2-5999"]
    assert max(len(each.qualname) for each in facts.symbols) < 1_000
    assert {each.target for each in facts.references} == {"b", "c"}


def test_a_huge_file_is_left_out_and_that_is_said() -> None:
    facts = extract(b"x = 1\n" * MAX_BYTES, "python")
    assert (facts.symbols, facts.lines, facts.error) == ((), MAX_BYTES, "larger than 2,000,000 bytes")


def test_a_file_in_one_line_is_left_out_and_that_is_said() -> None:
    facts = extract(b"var a=1;" * 100_000, "javascript")
    assert (facts.symbols, facts.lines, facts.error) == ((), 1, "made by a machine: its lines are too long")


def test_a_language_without_a_parser_says_so() -> None:
    assert extract(b"x\ny", "cobol") == FileFacts("cobol", lines=2, error="no parser for this language")


def test_complete_symbols_of_broken_code_are_kept() -> None:
    facts = read("python", "def before():\n    pass\n\nx = = )\n\ndef after():\n    call()\n")
    assert facts.error == "syntax errors, read in part"
    assert {"function before 1-2", "function after 6-7"} <= {*symbols(facts)}
    assert "7: call call in after" in references(facts)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"\xef\xbb\xbfdef marked(): pass\n", "marked"),
        ("def gr\u00fc\u00dfe(): pass\n".encode(), "gr\u00fc\u00dfe"),
        ("# -*- coding: latin-1 -*-\ndef gr\u00fc\u00dfe(): pass\n".encode("latin-1"), "gr\u00fc\u00dfe"),
        ("def wide(): pass\n".encode("utf-16"), "wide"),
        (b"\0\0\ndef after(): pass\n", "after"),
        (b"x = 1\rdef old(): pass\r", "old"),
        (b"x = 1\r\ndef dos(): pass\r\n", "dos"),
    ],
)
def test_every_encoding_and_line_end_is_read(content: bytes, name: str) -> None:
    assert name in [each.name for each in extract(content, "python").symbols]


def test_line_ends_of_dos_keep_the_lines() -> None:
    facts = extract(b'def f():\r\n    """Does it.\r\n\r\n    More.\r\n    """\r\n    return g()\r\n', "python")
    assert symbols(facts) == ["function f 1-6"]
    assert docs(facts) == {"f": "Does it."}
    assert references(facts) == ["6: call g in f"]


def test_a_reference_is_given_once_for_each_place_that_makes_it_and_a_call_for_each_line() -> None:
    facts = read("python", "def f():\n    g(A)\n    g(A)\n\ndef h():\n    g(A)\n")
    assert references(facts) == [
        "2: call g in f",
        "2: reference A in f",
        "3: call g in f",
        "6: call g in h",
        "6: reference A in h",
    ]


def test_a_name_that_an_outer_function_binds_is_local_and_that_of_a_class_is_not() -> None:
    facts = read(
        "python",
        """
        def outer(given):
            def inner():
                return given, late, free
            late = 1

        class C:
            own = 1
            copy = own
            def m(self):
                return own
        """,
    )
    assert references(facts) == ["3: reference free in outer.inner", "10: reference own in C.m"]


def test_the_licence_is_not_what_a_file_is_about() -> None:
    facts = read("go", "// Copyright 2020 Somebody.\n// License: some.\n\n// Package a does b.\npackage a\n")
    assert facts.doc == "Package a does b."
    assert read("python", "#!/usr/bin/env python\n# Copyright Somebody\n\nx = 1\n").doc == ""


def test_text_above_the_first_definition_belongs_to_it() -> None:
    facts = read("java", "/** About A. */\nclass A {}\n")
    assert (facts.doc, docs(facts)) == ("", {"A": "About A."})


def test_descriptions_and_signatures_are_short() -> None:
    facts = read("python", f'def f(a="{"b" * 900}"):\n    """{"word " * 900}"""\n')
    assert (len(facts.symbols[0].signature), len(facts.symbols[0].doc)) == (300, 300)


def test_no_key_and_no_password_is_kept() -> None:
    key = "gh" + "p_" + "a1B2" * 9
    text = f'''
        PASSWORD = "hunter2"
        def f(token: str, key="{key}"):
            """Uses {key}."""
        '''
    facts = read("python", readable_text(text.encode()))
    kept = msgspec.json.encode(facts).decode()
    assert key not in kept
    assert "hunter2" not in kept
    assert signatures(facts)["f"] == 'def f(token: str, key="[masked]")'


def test_markup_uses_components() -> None:
    facts = read(
        "tsx",
        """
        export function Page({ title }: Props) {
          return <Layout.Main title={title} onClick={handle}><Button /><p>text</p></Layout.Main>;
        }
        """,
    )
    assert references(facts) == [
        "1: reference Props in Page",
        "2: call Button in Page",
        "2: call Layout.Main in Page",
        "2: reference handle in Page",
    ]


def test_plain_javascript_exports_and_requires() -> None:
    facts = read(
        "javascript",
        """
        'use strict'
        const path = require('path')
        require('./setup')
        class A extends B { static make() { return new A() } }
        module.exports.go = () => import('./late')
        """,
    )
    assert symbols(facts) == ["class A 4-4", "method A.make 4-4", "function go 5-5"]
    assert imports(facts) == ["2: path - path", "3: ./setup - -", "5: ./late - -"]
    assert references(facts) == ["4: call A in A.make", "4: inherit B in A"]


def test_facts_go_to_another_process_and_into_a_file() -> None:
    facts = read("python", "import a\n\ndef f():\n    a.b()\n")
    assert pickle.loads(pickle.dumps(facts)) == facts
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(facts), type=FileFacts) == msgspec.structs.replace(
        facts, symbols=facts.symbols, imports=facts.imports, references=facts.references
    )


@pytest.mark.parametrize("line", [b"a=" * 300 + b"1\n", b"[" + b"a," * 300 + b"]\n"])
def test_a_file_with_very_many_tokens_is_read_in_part(line: bytes) -> None:
    many = line * (1_900_000 // len(line))
    found = extract(b"first = 1\n" + many + b"last = 1\n", "python")
    assert found.error == CUT
    assert [symbol.name for symbol in found.symbols if symbol.name in ("first", "last")] == ["first"]
    assert found.lines == 1_900_000 // len(line) + 2
    assert summarize(many).error == "too large"


def test_prose_and_blank_lines_do_not_count_as_code_by_their_bytes() -> None:
    text = b"# " + b"documentation " * 30 + b"\n" + b" " * 100 + b"\n\n"
    assert cut_tokens(text * 3_000) == (text * 3_000, False)
