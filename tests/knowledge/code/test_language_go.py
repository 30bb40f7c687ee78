"""Reads Go."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
// Copyright of somebody.

// Package shop sells things.
package shop

import (
	"fmt"
	str "strings"
	. "dot"
	_ "side/effect"
)

const (
	// Limit is the most.
	Limit = 10
	other
)

var Door, window = doors.New(), 2

// Shop sells.
type Shop struct {
	Base
	*pkg.Till
	name, town string
	index      map[string]Thing
}

type Open interface {
	Unlock(key Key) error
	Door
}

type Price int
type Cost = Price
type Box[T any] struct{ inner T }

// Sell sells one.
func (s *Shop) Sell(thing Thing, more ...Part) (r *Receipt, err error) {
	price, ok := s.till.Book(thing)
	each(func(part int) { fmt.Println(part, price, Limit) })
	for i, v := range all {
		use(i, v)
	}
	return &Receipt{total: price, at: clock.Now}, nil
}

func Pick[T Kind](from []T) T { go run.Later(); return Generic[int](from) }
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("go", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "module shop 4-4",
        "constant Limit 15-15",
        "constant other 16-16",
        "variable Door 19-19",
        "variable window 19-19",
        "class Shop 22-27",
        "variable Shop.name 25-25",
        "variable Shop.town 25-25",
        "variable Shop.index 26-26",
        "interface Open 29-32",
        "method Open.Unlock 30-30",
        "class Price 34-34",
        "class Cost 35-35",
        "class Box 36-36",
        "variable Box.inner 36-36",
        "method Shop.Sell 39-46",
        "function Pick 48-48",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("go", SHOP)) == [
        "7: fmt - -",
        "8: strings - str",
        "9: dot * -",
        "10: side/effect - _",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("go", SHOP)) == [
        "19: call doors.New in -",
        "23: inherit Base in Shop",
        "24: inherit pkg.Till in Shop",
        "26: reference Thing in Shop",
        "30: reference Key in Open.Unlock",
        "31: inherit Door in Open",
        "35: reference Price in Cost",
        "39: reference Part in Shop.Sell",
        "39: reference Receipt in Shop.Sell",
        "39: reference Shop in Shop.Sell",
        "39: reference Thing in Shop.Sell",
        "40: call s.till.Book in Shop.Sell",
        "41: call each in Shop.Sell",
        "41: call fmt.Println in Shop.Sell",
        "41: reference Limit in Shop.Sell",
        "42: reference all in Shop.Sell",
        "43: call use in Shop.Sell",
        "45: reference clock.Now in Shop.Sell",
        "48: call Generic in Pick",
        "48: call run.Later in Pick",
        "48: reference Kind in Pick",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("go", SHOP)
    assert facts.doc == "Package shop sells things."
    assert signatures(facts) == {
        "shop": "package shop",
        "Limit": "Limit = 10",
        "other": "other",
        "Door": "Door, window = doors.New(), 2",
        "window": "Door, window = doors.New(), 2",
        "Shop": "Shop struct",
        "Shop.name": "name, town string",
        "Shop.town": "name, town string",
        "Shop.index": "index map[string]Thing",
        "Open": "Open interface",
        "Open.Unlock": "Unlock(key Key) error",
        "Price": "Price int",
        "Cost": "Cost = Price",
        "Box": "Box[T any] struct",
        "Box.inner": "inner T",
        "Shop.Sell": "func (s *Shop) Sell(thing Thing, more ...Part) (r *Receipt, err error)",
        "Pick": "func Pick[T Kind](from []T) T",
    }
    assert docs(facts) == {
        "shop": "Package shop sells things.",
        "Limit": "Limit is the most.",
        "Shop": "Shop sells.",
        "Shop.Sell": "Sell sells one.",
    }
