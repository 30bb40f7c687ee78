"""Tells languages apart."""

from __future__ import annotations

import pytest

from clew.knowledge.code.languages.detect import LANGUAGES, language_of, load_grammar


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("a/b.PYI", "python"),
        ("a.mjs", "javascript"),
        ("types.d.ts", "typescript"),
        ("Page.tsx", "tsx"),
        ("main.go", "go"),
        ("src/lib.rs", "rust"),
        ("com/A.java", "java"),
        ("a.c", "c"),
        ("a.hpp", "cpp"),
        ("a\\b.cc", "cpp"),
        ("Rakefile", "ruby"),
        ("x.gemspec", "ruby"),
        ("README.md", ""),
        ("py", ""),
        (".py", ""),
        ("", ""),
        ("data.json", ""),
    ],
)
def test_a_file_is_known_by_its_name(path: str, language: str) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(
    ("head", "language"),
    [
        (b"#!/usr/bin/env python3\n", "python"),
        (b"#!/usr/bin/python3.12 -O", "python"),
        (b"#! /usr/bin/env -S node --harmony\n", "javascript"),
        (b"#!/usr/bin/ruby\r\n", "ruby"),
        (b"#!/bin/sh\n", ""),
        (b"#!/usr/bin/env pythonic\n", ""),
        (b"\xff\x00", ""),
        (b"", ""),
    ],
)
def test_a_script_without_an_ending_is_known_by_its_first_line(head: bytes, language: str) -> None:
    assert language_of("bin/tool", head) == language


def test_a_header_is_known_by_what_is_in_it() -> None:
    assert language_of("a.h", b"#include <x.h>\nint f(void);\n") == "c"
    assert language_of("a.h", b"namespace a {\n") == "cpp"
    assert language_of("a.h", b"class A : public B {\n") == "cpp"


def test_a_grammar_is_loaded_once() -> None:
    assert load_grammar("python") is load_grammar("python")
    assert len({load_grammar(each).name or each for each in LANGUAGES}) == len(LANGUAGES)


def test_a_grammar_of_no_language_is_refused() -> None:
    with pytest.raises(KeyError):
        load_grammar("../python")
