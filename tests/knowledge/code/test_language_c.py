"""Reads C."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
/* Sells things. */

#include <stdio.h>
#include "shop.h"

#define LIMIT 10
#define TWICE(x) ((x) * 2)

struct shop {
    int items;
    struct till *till;
};

typedef struct { int left; } pair;
typedef unsigned long price;
enum size { SMALL, LARGE };

static const int rates[] = {1, 2};
extern int doors;
int sell(struct shop *s, price p);

/* Sells one. */
int sell(struct shop *s, price p) {
    int total = LIMIT;
    s->till->book(p);
    print(total, rates);
    return (*handler)(doors);
}
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("c", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "constant LIMIT 6-6",
        "function TWICE 7-7",
        "class shop 9-12",
        "variable shop.items 10-10",
        "variable shop.till 11-11",
        "class pair 14-14",
        "variable pair.left 14-14",
        "class price 15-15",
        "class size 16-16",
        "constant size.SMALL 16-16",
        "constant size.LARGE 16-16",
        "constant rates 18-18",
        "variable doors 19-19",
        "function sell 20-20",
        "function sell 23-28",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("c", SHOP)) == [
        "3: <stdio.h> - -",
        "4: shop.h - -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("c", SHOP)) == [
        "11: reference till in shop",
        "20: reference price in sell",
        "20: reference shop in sell",
        "24: reference LIMIT in sell",
        "25: call s.till.book in sell",
        "26: call print in sell",
        "26: reference rates in sell",
        "27: reference doors in sell",
        "27: reference handler in sell",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("c", SHOP)
    assert facts.doc == "Sells things."
    assert signatures(facts) == {
        "LIMIT": "#define LIMIT 10",
        "TWICE": "#define TWICE(x)",
        "shop": "struct shop",
        "shop.items": "int items",
        "shop.till": "struct till *till",
        "pair": "typedef struct { int left; } pair",
        "pair.left": "int left",
        "price": "typedef unsigned long price",
        "size": "enum size",
        "size.SMALL": "SMALL",
        "size.LARGE": "LARGE",
        "rates": "static const int rates[] = {1, 2}",
        "doors": "extern int doors",
        "sell": "int sell(struct shop *s, price p)",
    }
    assert docs(facts) == {
        "sell": "Sells one.",
    }
