"""Reads Ruby."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
# frozen_string_literal: true

# Sells things.

require 'json'
require_relative "shop/till"
autoload :Late, "late"

module Store
  # The shop.
  class Shop < Base::Store
    include Open
    attr_reader :items, :till
    LIMIT = 10

    # Sells one.
    def sell(thing, price = 1, *rest, tax: RATE, &block)
      copy = Receipt.new(thing)
      copy.print(unknown) { |page| page.turn }
      Store::Till.book
      closed?
    rescue Broken => error
      raise error
    end

    def self.build; end

    class << self
      def make; end
    end
  end
end

def helper; end
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("ruby", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "module Store 9-32",
        "class Store.Shop 11-31",
        "variable Store.Shop.items 13-13",
        "variable Store.Shop.till 13-13",
        "constant Store.Shop.LIMIT 14-14",
        "method Store.Shop.sell 17-24",
        "method Store.Shop.build 26-26",
        "method Store.Shop.make 29-29",
        "function helper 34-34",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("ruby", SHOP)) == [
        "5: json - -",
        "6: ./shop/till - -",
        "7: late Late -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("ruby", SHOP)) == [
        "11: inherit Base.Store in Store.Shop",
        "12: inherit Open in Store.Shop",
        "17: reference RATE in Store.Shop.sell",
        "18: call Receipt.new in Store.Shop.sell",
        "19: call copy.print in Store.Shop.sell",
        "19: call page.turn in Store.Shop.sell",
        "19: reference unknown in Store.Shop.sell",
        "20: call Store.Till.book in Store.Shop.sell",
        "21: call closed? in Store.Shop.sell",
        "22: reference Broken in Store.Shop.sell",
        "23: call raise in Store.Shop.sell",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("ruby", SHOP)
    assert facts.doc == "Sells things."
    assert signatures(facts) == {
        "Store": "module Store",
        "Store.Shop": "class Shop < Base::Store",
        "Store.Shop.items": "attr_reader :items, :till",
        "Store.Shop.till": "attr_reader :items, :till",
        "Store.Shop.LIMIT": "LIMIT = 10",
        "Store.Shop.sell": "def sell(thing, price = 1, *rest, tax: RATE, &block)",
        "Store.Shop.build": "def self.build",
        "Store.Shop.make": "def make",
        "helper": "def helper",
    }
    assert docs(facts) == {
        "Store.Shop": "The shop.",
        "Store.Shop.sell": "Sells one.",
    }
