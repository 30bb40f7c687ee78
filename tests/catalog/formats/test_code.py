"""A file of code is described by its author's comment, else by its definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats.code import describe_code
from tests.catalog.formats.documents import read

LICENSE = "# Copyright 2020 Somebody. All rights reserved.\n\n"


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (
            '#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"""Sends invoices.\n\nMore."""\nimport os\n',
            "Sends invoices.",
        ),
        (f"{LICENSE}# Sends invoices\n# by mail.\nimport os\n", "Sends invoices by mail."),
        ("// Copyright 2019 Us.\n\n// Package mail sends.\npackage mail\n", "Package mail sends."),
        ("/*\n * Licensed under X\n */\n/**\n * Renders a page.\n *\n * @param x\n */\nlet x\n", "Renders a page."),
        ("//! Sends mail.\nuse std::io;\n", "Sends mail."),
        ("-- Orders of the shop\nCREATE TABLE orders (id int);", "Orders of the shop"),
        ("<!-- The front page --><html></html>", "The front page"),
        ("import os\nfrom a import b\n\nclass A:\n    def m(self): ...\n\nasync def run(): ...\n", "defines A, run"),
        ('import x from "x";\nexport default function App() {}\nexport const size = 1;\n', "defines App, size"),
        ('package main\n\nimport "fmt"\n\nfunc (s *Server) Serve() {}\nfunc main() {}\n', "defines Serve, main"),
        ("#[derive(Debug)]\npub struct A;\nimpl A {}\npub(crate) fn b() {}", "defines A, b"),
        (
            "create table if not exists orders (id int);\ncreate or replace view sums as select 1;",
            "defines orders, sums",
        ),
        ("all: a\n\tmake a\n\ntest:\n\tpytest\n", "defines all, test"),
        ("import os\n\nprint(os.name)\n", "print(os.name)"),
        ("", ""),
    ],
)
def test_code_is_described_by_its_first_words_or_by_its_names(text: str, description: str) -> None:
    assert describe_code(text) == description
    assert read(text, "text/x-source", id="src/a.x").description == f"a.x: {description}".strip()


@given(st.text(alphabet="#/*-<!>\"'({[%;|= \n\tabimport", max_size=400))
def test_any_code_has_a_description_of_one_line(text: str) -> None:
    assert "\n" not in describe_code(text)
    assert len(describe_code(text)) <= 1_500


@pytest.mark.parametrize("piece", ["#", "/*", '"""', "# a\n", "(*", "{-", "<!--", "export ", " \n", "--[[", "a:"])
def test_much_of_one_mark_is_read_all_the_same(piece: str) -> None:
    assert "\n" not in describe_code(piece * 100_000)
