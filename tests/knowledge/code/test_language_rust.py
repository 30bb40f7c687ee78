"""Reads Rust."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
//! Sells things.

use a::b::{self, c as d, e::*, f::{g, h}};
pub use crate::x;
use q;
extern crate k as kk;
mod prices;

/// The shop.
///
/// More.
#[derive(Debug, Clone)]
pub struct Shop<T> {
    items: Vec<Item>,
    owner: users::User,
}

enum Size { Small, Large(Width) }

pub trait Open: Door + base::Other {
    const KEYS: u8;
    type Item;
    fn open(&self) -> bool;
    fn close() {}
}

impl<T> fmt::Display for Shop<T> {
    #[inline]
    fn fmt(&self, f: &mut Formatter) -> Outcome {
        let (left, right) = self.split();
        sums::add(left, LIMIT);
        println!("{}", total(right));
        Shop::<T>::new().run()?.stop();
        match f { Kind::One(y) => y, _ => other }
    }
}

impl Shop<u8> {
    pub fn new() -> Self { Self::make(|n: u8| n) }
}

pub const LIMIT: u8 = 1;
static NAME: &str = "x";
type Alias = Item;
mod inner { fn hidden() {} }
macro_rules! sell { () => {} }

#[tokio::main]
async fn main() {}
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("rust", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "class Shop 12-16",
        "variable Shop.items 14-14",
        "variable Shop.owner 15-15",
        "class Size 18-18",
        "constant Size.Small 18-18",
        "constant Size.Large 18-18",
        "interface Open 20-25",
        "constant Open.KEYS 21-21",
        "variable Open.Item 22-22",
        "method Open.open 23-23",
        "method Open.close 24-24",
        "method Shop.fmt 28-35",
        "method Shop.new 39-39",
        "constant LIMIT 42-42",
        "constant NAME 43-43",
        "class Alias 44-44",
        "module inner 45-45",
        "function inner.hidden 45-45",
        "function sell 46-46",
        "function main 48-49",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("rust", SHOP)) == [
        "3: a b -",
        "3: a::b c d",
        "3: a::b::e * -",
        "3: a::b::f g -",
        "3: a::b::f h -",
        "4: crate x -",
        "5: q - -",
        "6: k - kk",
        "7: self::prices - -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("rust", SHOP)) == [
        "12: decorate Clone in Shop",
        "12: decorate Debug in Shop",
        "14: reference Item in Shop",
        "15: reference users.User in Shop",
        "18: reference Width in Size",
        "20: inherit Door in Open",
        "20: inherit base.Other in Open",
        "27: inherit fmt.Display in Shop",
        "28: decorate inline in Shop.fmt",
        "29: reference Formatter in Shop.fmt",
        "29: reference Outcome in Shop.fmt",
        "30: call self.split in Shop.fmt",
        "31: call sums.add in Shop.fmt",
        "31: reference LIMIT in Shop.fmt",
        "32: call println in Shop.fmt",
        "32: call total in Shop.fmt",
        "33: call Shop.new in Shop.fmt",
        "33: call Shop.new().run in Shop.fmt",
        "33: call Shop.new().run().stop in Shop.fmt",
        "34: reference Kind.One in Shop.fmt",
        "34: reference other in Shop.fmt",
        "39: call Self.make in Shop.new",
        "44: reference Item in Alias",
        "48: decorate tokio.main in main",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("rust", SHOP)
    assert facts.doc == "Sells things."
    assert signatures(facts) == {
        "Shop": "pub struct Shop<T>",
        "Shop.items": "items: Vec<Item>",
        "Shop.owner": "owner: users::User",
        "Size": "enum Size",
        "Size.Small": "Small",
        "Size.Large": "Large(Width)",
        "Open": "pub trait Open: Door + base::Other",
        "Open.KEYS": "const KEYS: u8",
        "Open.Item": "type Item",
        "Open.open": "fn open(&self) -> bool",
        "Open.close": "fn close()",
        "Shop.fmt": "fn fmt(&self, f: &mut Formatter) -> Outcome",
        "Shop.new": "pub fn new() -> Self",
        "LIMIT": "pub const LIMIT: u8 = 1",
        "NAME": 'static NAME: &str = "x"',
        "Alias": "type Alias = Item",
        "inner": "mod inner",
        "inner.hidden": "fn hidden()",
        "sell": "macro_rules! sell { () => {} }",
        "main": "async fn main()",
    }
    assert docs(facts) == {
        "Shop": "The shop.",
    }
