"""Reads C++."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
#include <vector>

namespace shop::core {
namespace v = std::views;
using std::vector;
using namespace std;
using Price = int;

// Sells things.
template <class T>
class Shop : public base::Store, Open {
public:
    Shop(int x) : items(x) {}
    ~Shop();
    virtual void sell(const Thing& thing, T t) const;
    static int count;
    void close() { doors.shut(); }
    bool operator==(const Shop& other);

private:
    int items, *till;
};

enum class Size { Small, Large };

int Shop::total(Order order) {
    auto add = [&](int part) { return part; };
    for (auto& each : order.all()) {
        std::move<Part>(each);
        till->book(add(LIMIT));
    }
    return new Receipt(order)->sum;
}

std::string* name(int x) { return nullptr; }
}
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("cpp", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "module shop.core 3-36",
        "class shop.core.Price 7-7",
        "class shop.core.Shop 10-22",
        "method shop.core.Shop.Shop 13-13",
        "method shop.core.Shop.~Shop 14-14",
        "method shop.core.Shop.sell 15-15",
        "variable shop.core.Shop.count 16-16",
        "method shop.core.Shop.close 17-17",
        "method shop.core.Shop.operator== 18-18",
        "variable shop.core.Shop.items 21-21",
        "variable shop.core.Shop.till 21-21",
        "class shop.core.Size 24-24",
        "constant shop.core.Size.Small 24-24",
        "constant shop.core.Size.Large 24-24",
        "method shop.core.Shop.total 26-33",
        "function shop.core.name 35-35",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("cpp", SHOP)) == [
        "1: <vector> - -",
        "4: std::views - v",
        "5: std vector -",
        "6: std * -",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("cpp", SHOP)) == [
        "11: inherit Open in shop.core.Shop",
        "11: inherit base.Store in shop.core.Shop",
        "15: reference Thing in shop.core.Shop.sell",
        "17: call doors.shut in shop.core.Shop.close",
        "18: reference Shop in shop.core.Shop.operator==",
        "26: reference Order in shop.core.Shop.total",
        "28: call order.all in shop.core.Shop.total",
        "29: call std.move in shop.core.Shop.total",
        "29: reference Part in shop.core.Shop.total",
        "30: call add in shop.core.Shop.total",
        "30: call till.book in shop.core.Shop.total",
        "30: reference LIMIT in shop.core.Shop.total",
        "32: call Receipt in shop.core.Shop.total",
        "35: reference std.string in shop.core.name",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("cpp", SHOP)
    assert facts.doc == ""
    assert signatures(facts) == {
        "shop.core": "namespace shop::core",
        "shop.core.Price": "using Price = int",
        "shop.core.Shop": "class Shop : public base::Store, Open",
        "shop.core.Shop.Shop": "Shop(int x) : items(x)",
        "shop.core.Shop.~Shop": "~Shop()",
        "shop.core.Shop.sell": "virtual void sell(const Thing& thing, T t) const",
        "shop.core.Shop.count": "static int count",
        "shop.core.Shop.close": "void close()",
        "shop.core.Shop.operator==": "bool operator==(const Shop& other)",
        "shop.core.Shop.items": "int items, *till",
        "shop.core.Shop.till": "int items, *till",
        "shop.core.Size": "enum class Size",
        "shop.core.Size.Small": "Small",
        "shop.core.Size.Large": "Large",
        "shop.core.Shop.total": "int Shop::total(Order order)",
        "shop.core.name": "std::string* name(int x)",
    }
    assert docs(facts) == {
        "shop.core.Shop": "Sells things.",
    }
