"""Reads Python."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = '''
"""What the shop sells.

More of it.
"""
from __future__ import annotations
import os.path as osp, sys
import a.b
from . import prices
from .models import (Item as Thing, Order)
from .signals import *
from ..base import Base

if TYPE_CHECKING:
    from .users import User

LIMIT = 10
"""The most of one thing."""
# Who asks.
agent: str = "shop"
first, (second, *rest) = pick()
type Price = int | Decimal


@registry.register("shop", key=KEY)
@final
class Shop(Base, Generic[T], metaclass=Meta):
    """Sells things."""

    COLOR = "red"
    owner: "models.User"

    def __init__(self, items: list[Thing], *args, tax: Tax = DEFAULT, **kw) -> None:
        super().__init__()
        self.items = items

    @property
    def total(self) -> int:
        from .sums import add

        count = len(self.items)
        for item in self.items:
            count += item.price
        return add(count, [x.y for x in prices.all(LIMIT)], key=lambda z: z.w + OTHER)

    async def sell(
        self,
        thing,  # what is sold
    ) -> Receipt:
        with osp.open(thing) as handle, lock:
            handle.read()
        try:
            await self.till.book(thing).commit(self.total)
        except (Broken, errors.Lost) as error:
            raise Failed(thing) from error
        match thing:
            case Point(x=0, y=found) | Kind.LARGE:
                return found

        def later(n):
            return n + thing + limit

        return later


def main():
    # Begins.
    global agent
    if (shop := Shop([])) and callbacks[0](shop):
        shop.sell(Thing).print()
        "".join(f"{shop.name} {shown}")
'''


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("python", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "constant LIMIT 16-16",
        "variable agent 19-19",
        "variable first 20-20",
        "variable second 20-20",
        "variable rest 20-20",
        "variable Price 21-21",
        "class Shop 24-62",
        "constant Shop.COLOR 29-29",
        "variable Shop.owner 30-30",
        "method Shop.__init__ 32-34",
        "method Shop.total 36-43",
        "method Shop.sell 45-62",
        "function Shop.sell.later 59-60",
        "function main 65-70",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("python", SHOP)) == [
        "5: __future__ annotations -",
        "6: os.path - osp",
        "6: sys - -",
        "7: a.b - -",
        "8: . prices -",
        "9: .models Item Thing",
        "9: .models Order -",
        "10: .signals * -",
        "11: ..base Base -",
        "14: .users User -",
        "38: .sums add -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("python", SHOP)) == [
        "13: reference TYPE_CHECKING in -",
        "20: call pick in -",
        "21: reference Decimal in -",
        "24: decorate registry.register in Shop",
        "24: reference KEY in -",
        "25: decorate final in Shop",
        "26: inherit Base in Shop",
        "26: inherit Generic in Shop",
        "26: reference Meta in Shop",
        "26: reference T in Shop",
        "30: reference models.User in Shop",
        "32: reference DEFAULT in Shop.__init__",
        "32: reference Tax in Shop.__init__",
        "32: reference Thing in Shop.__init__",
        "33: call super in Shop.__init__",
        "33: call super().__init__ in Shop.__init__",
        "34: reference self.items in Shop.__init__",
        "40: call len in Shop.total",
        "40: reference self.items in Shop.total",
        "43: call add in Shop.total",
        "43: call prices.all in Shop.total",
        "43: reference LIMIT in Shop.total",
        "43: reference OTHER in Shop.total",
        "48: reference Receipt in Shop.sell",
        "49: call osp.open in Shop.sell",
        "49: reference lock in Shop.sell",
        "50: call handle.read in Shop.sell",
        "52: call self.till.book in Shop.sell",
        "52: call self.till.book().commit in Shop.sell",
        "52: reference self.total in Shop.sell",
        "53: reference Broken in Shop.sell",
        "53: reference errors.Lost in Shop.sell",
        "54: call Failed in Shop.sell",
        "56: reference Kind.LARGE in Shop.sell",
        "56: reference Point in Shop.sell",
        "60: reference limit in Shop.sell.later",
        "68: call Shop in main",
        "68: reference callbacks in main",
        "69: call shop.sell in main",
        "69: call shop.sell().print in main",
        "69: reference Thing in main",
        "70: call .join in main",
        "70: reference shown in main",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("python", SHOP)
    assert facts.doc == "What the shop sells."
    assert signatures(facts) == {
        "LIMIT": "LIMIT = 10",
        "agent": 'agent: str = "shop"',
        "first": "first, (second, *rest) = pick()",
        "second": "first, (second, *rest) = pick()",
        "rest": "first, (second, *rest) = pick()",
        "Price": "type Price = int | Decimal",
        "Shop": "class Shop(Base, Generic[T], metaclass=Meta)",
        "Shop.COLOR": 'COLOR = "red"',
        "Shop.owner": 'owner: "models.User"',
        "Shop.__init__": "def __init__(self, items: list[Thing], *args, tax: Tax = DEFAULT, **kw) -> None",
        "Shop.total": "def total(self) -> int",
        "Shop.sell": "async def sell(self, thing) -> Receipt",
        "Shop.sell.later": "def later(n)",
        "main": "def main()",
    }
    assert docs(facts) == {
        "LIMIT": "The most of one thing.",
        "agent": "Who asks.",
        "Shop": "Sells things.",
    }


def test_a_file_has_the_same_facts_from_both_readers_of_syntax() -> None:
    source = "\n".join(line for line in SHOP.lstrip("\n").splitlines() if not line.startswith("type "))
    quick, tolerant = read("python", source), read("python", f"{source}\n\f\n")

    assert symbols(quick) == symbols(tolerant)
    assert imports(quick) == imports(tolerant)
    assert references(quick) == references(tolerant)
    assert (signatures(quick), docs(quick), quick.doc) == (signatures(tolerant), docs(tolerant), tolerant.doc)


def test_a_comment_at_the_end_of_a_function_belongs_to_it() -> None:
    facts = read("python", "def first():\n    pass\n\n    # to be continued\n\n# next\ndef second(): ...\n")

    assert symbols(facts) == ["function first 1-4", "function second 7-7"]
    assert docs(facts) == {"second": "next"}
