"""Reads Java."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
/* Copyright of somebody. */
package com.shop;

import x.y.Z;
import static x.Y.make;
import x.all.*;

/** Sells things. */
@Entity(name = "shop")
public class Shop<T> extends base.Store<T> implements Open, Closed {
    public static final int LIMIT = 1;
    private Till till, other;

    public Shop(Till till) {
        super(till);
        this.reset();
    }

    /** Sells one.
     * @param thing no part of it
     */
    @Override
    public Receipt sell(Thing thing, int... rest) throws Failed {
        for (Part part : thing.parts()) {
            new Printer(part).print(LIMIT);
        }
        try (Lock lock = locks.take()) { counts.each(Shop::close); } catch (Broken b) { log(b); }
        return till.book(x -> x + offset).now();
    }

    enum Size { SMALL, LARGE(2) }
    interface Open extends Door, Gate { void open(Key key); int KEYS = 3; }
    record Pair(int left) {}
}

@interface Mark { String value(); }
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("java", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "module com.shop 2-2",
        "class Shop 9-34",
        "constant Shop.LIMIT 11-11",
        "variable Shop.till 12-12",
        "variable Shop.other 12-12",
        "method Shop.Shop 14-17",
        "method Shop.sell 22-29",
        "class Shop.Size 31-31",
        "constant Shop.Size.SMALL 31-31",
        "constant Shop.Size.LARGE 31-31",
        "interface Shop.Open 32-32",
        "method Shop.Open.open 32-32",
        "constant Shop.Open.KEYS 32-32",
        "class Shop.Pair 33-33",
        "interface Mark 36-36",
        "method Mark.value 36-36",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("java", SHOP)) == [
        "4: x.y Z -",
        "5: x.Y make -",
        "6: x.all * -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("java", SHOP)) == [
        "9: decorate Entity in Shop",
        "10: inherit Closed in Shop",
        "10: inherit Open in Shop",
        "10: inherit base.Store in Shop",
        "12: reference Till in Shop",
        "14: reference Till in Shop.Shop",
        "15: call super in Shop.Shop",
        "16: call this.reset in Shop.Shop",
        "22: decorate Override in Shop.sell",
        "23: reference Failed in Shop.sell",
        "23: reference Receipt in Shop.sell",
        "23: reference Thing in Shop.sell",
        "24: call thing.parts in Shop.sell",
        "24: reference Part in Shop.sell",
        "25: call Printer in Shop.sell",
        "25: call Printer().print in Shop.sell",
        "25: reference LIMIT in Shop.sell",
        "27: call counts.each in Shop.sell",
        "27: call locks.take in Shop.sell",
        "27: call log in Shop.sell",
        "27: reference Broken in Shop.sell",
        "27: reference Lock in Shop.sell",
        "27: reference Shop.close in Shop.sell",
        "28: call till.book in Shop.sell",
        "28: call till.book().now in Shop.sell",
        "28: reference offset in Shop.sell",
        "32: inherit Door in Shop.Open",
        "32: inherit Gate in Shop.Open",
        "32: reference Key in Shop.Open.open",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("java", SHOP)
    assert facts.doc == ""
    assert signatures(facts) == {
        "com.shop": "package com.shop",
        "Shop": "public class Shop<T> extends base.Store<T> implements Open, Closed",
        "Shop.LIMIT": "public static final int LIMIT = 1",
        "Shop.till": "private Till till, other",
        "Shop.other": "private Till till, other",
        "Shop.Shop": "public Shop(Till till)",
        "Shop.sell": "public Receipt sell(Thing thing, int... rest) throws Failed",
        "Shop.Size": "enum Size",
        "Shop.Size.SMALL": "SMALL",
        "Shop.Size.LARGE": "LARGE(2)",
        "Shop.Open": "interface Open extends Door, Gate",
        "Shop.Open.open": "void open(Key key)",
        "Shop.Open.KEYS": "int KEYS = 3",
        "Shop.Pair": "record Pair(int left)",
        "Mark": "@interface Mark",
        "Mark.value": "String value()",
    }
    assert docs(facts) == {
        "Shop": "Sells things.",
        "Shop.sell": "Sells one.",
    }
