"""Reads TypeScript."""

from __future__ import annotations

import pytest

from tests.knowledge.code.fact_lines import docs, imports, read, references, signatures, symbols

SHOP = """
// Routes of the shop.

import def, { a as b, type Kind } from "./m";
import * as ns from "n";
import "./side";
export { p as q } from "./r";
export * from "./s";
export * as t from "./t";
export { local as other };
import old = require("old");
const fs = require("fs"), { read: rd, write } = require("./x"), one = require("z").two;
const lazy = await import("./lazy");

/**
 * Sells things.
 * @param x no part of it
 */
@Injectable()
export default class Shop<T> extends base.Store<T> implements Open, Closed {
  static LIMIT = 10;
  @Input() private name: Name = "x";
  handle = async (event: Event) => event.done(this.name);

  constructor(private readonly till: Till) {
    super();
  }

  /** Sells one. */
  @logged
  sell(thing: Thing, { size, color: hue }: Options): Receipt | null {
    const copy = thing;
    for (const part of parts) this.till?.book(part, copy, hue);
    return new receipts.Receipt(() => copy.price(RATE)).print().now();
  }
}

abstract class Thing {
  abstract price(): number;
}
interface Open extends Door { open(key: Key): void; wide: Size }
enum Size { Small = 1, Large }
type Both = Open | Closed;
namespace inner { export function hidden() {} }
function* each(list) { yield list; }
export const MAX = 1, pick = (x) => x, { left, right: far } = sides;
const api = { get() { load(); }, put: function (v) { return v; } };
exports.run = function () {};
Shop.prototype.close = function () {};
describe("x", () => { const app = make(); it(app, Shop); });
declare function over(a: number): string;
"""


@pytest.mark.req("SYL-71")
def test_everything_that_is_defined_has_its_kind_its_name_and_its_lines() -> None:
    facts = read("typescript", SHOP)
    assert facts.error == ""
    assert symbols(facts) == [
        "class Shop 18-35",
        "constant Shop.LIMIT 20-20",
        "variable Shop.name 21-21",
        "method Shop.handle 22-22",
        "method Shop.constructor 24-26",
        "method Shop.sell 29-34",
        "class Thing 37-39",
        "method Thing.price 38-38",
        "interface Open 40-40",
        "method Open.open 40-40",
        "variable Open.wide 40-40",
        "class Size 41-41",
        "constant Size.Small 41-41",
        "constant Size.Large 41-41",
        "interface Both 42-42",
        "module inner 43-43",
        "function inner.hidden 43-43",
        "function each 44-44",
        "constant MAX 45-45",
        "function pick 45-45",
        "variable left 45-45",
        "variable far 45-45",
        "variable api 46-46",
        "method api.get 46-46",
        "method api.put 46-46",
        "function run 47-47",
        "method Shop.close 48-48",
        "function over 50-50",
    ]


def test_every_form_of_import_gives_its_module_its_name_and_its_alias() -> None:
    assert imports(read("typescript", SHOP)) == [
        "3: ./m default def",
        "3: ./m a b",
        "3: ./m Kind -",
        "4: n - ns",
        "5: ./side - -",
        "6: ./r p q",
        "7: ./s * -",
        "8: ./t - t",
        "9: - local other",
        "10: old - old",
        "11: fs - fs",
        "11: ./x read rd",
        "11: ./x write -",
        "11: z two one",
        "12: ./lazy - lazy",
        "18: - Shop default",
    ]


def test_calls_types_and_values_are_referred_to_and_local_names_are_not() -> None:
    assert references(read("typescript", SHOP)) == [
        "18: decorate Injectable in Shop",
        "19: inherit Closed in Shop",
        "19: inherit Open in Shop",
        "19: inherit base.Store in Shop",
        "21: decorate Input in Shop.name",
        "21: reference Name in Shop",
        "22: call event.done in Shop.handle",
        "22: reference Event in Shop.handle",
        "22: reference this.name in Shop.handle",
        "24: reference Till in Shop.constructor",
        "25: call super in Shop.constructor",
        "29: decorate logged in Shop.sell",
        "30: reference Options in Shop.sell",
        "30: reference Receipt in Shop.sell",
        "30: reference Thing in Shop.sell",
        "32: call this.till.book in Shop.sell",
        "32: reference parts in Shop.sell",
        "33: call copy.price in Shop.sell",
        "33: call receipts.Receipt in Shop.sell",
        "33: call receipts.Receipt().print in Shop.sell",
        "33: call receipts.Receipt().print().now in Shop.sell",
        "33: reference RATE in Shop.sell",
        "40: inherit Door in Open",
        "40: reference Key in Open.open",
        "40: reference Size in Open",
        "42: reference Closed in Both",
        "42: reference Open in Both",
        "45: reference sides in -",
        "46: call load in api.get",
        "49: call describe in -",
        "49: call it in -",
        "49: call make in -",
        "49: reference Shop in -",
    ]


def test_a_signature_is_one_line_and_a_description_one_paragraph() -> None:
    facts = read("typescript", SHOP)
    assert facts.doc == "Routes of the shop."
    assert signatures(facts) == {
        "Shop": "class Shop<T> extends base.Store<T> implements Open, Closed",
        "Shop.LIMIT": "static LIMIT = 10",
        "Shop.name": 'private name: Name = "x"',
        "Shop.handle": "handle = async (event: Event) =>",
        "Shop.constructor": "constructor(private readonly till: Till)",
        "Shop.sell": "sell(thing: Thing, { size, color: hue }: Options): Receipt | null",
        "Thing": "abstract class Thing",
        "Thing.price": "abstract price(): number",
        "Open": "interface Open extends Door",
        "Open.open": "open(key: Key): void",
        "Open.wide": "wide: Size",
        "Size": "enum Size",
        "Size.Small": "Small = 1",
        "Size.Large": "Large",
        "Both": "type Both = Open | Closed",
        "inner": "namespace inner",
        "inner.hidden": "function hidden()",
        "each": "function* each(list)",
        "MAX": "MAX = 1",
        "pick": "pick = (x) =>",
        "left": "{ left, right: far } = sides",
        "far": "{ left, right: far } = sides",
        "api": "api = { get() { load(); }, put: function (v) { return v; } }",
        "api.get": "get()",
        "api.put": "put: function (v)",
        "run": "exports.run = function ()",
        "Shop.close": "Shop.prototype.close = function ()",
        "over": "function over(a: number): string",
    }
    assert docs(facts) == {
        "Shop": "Sells things.",
        "Shop.sell": "Sells one.",
    }


@pytest.mark.req("SYL-71")
def test_a_function_that_is_assigned_to_a_name_with_dots_is_a_method_of_its_object() -> None:
    facts = read(
        "javascript",
        """
        var app = exports = module.exports = {};
        /** Uses something. */
        app.use = function use(what) { return this.lazily(what); };
        app.lazily = (what) => help(what);
        window.later = async function later() { later(); };
        module.exports = function () {};
        this.own = function () {};
        app.count = 3;
        app.open = wrap(help);
        function local() { app.inner = function () {}; }
        """,
    )
    assert symbols(facts) == [
        "variable app 1-1",
        "method app.use 3-3",
        "method app.lazily 4-4",
        "function later 5-5",
        "variable app.open 9-9",
        "function local 10-10",
    ]
    assert docs(facts) == {"app.use": "Uses something."}
    found = references(facts)
    assert {"3: call this.lazily in app.use", "4: call help in app.lazily", "5: call later in later"} <= set(found)
    assert not any(" use in " in each for each in found)
