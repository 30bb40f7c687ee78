"""Callers of a name as people write it: overloads, decorators, re-exports, and ambiguous calls."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.models import Callers
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sample_project import opened


async def ask(folder: Path, name: str, files: dict[str, str], depth: int = 1) -> Callers:
    """The callers of a name in a project of these files."""
    root = make_repository(folder, {path: dedent(text).lstrip("\n") for path, text in files.items()})
    async with opened(root) as graph:
        await graph.refresh()
        return await graph.callers(name, depth=depth)


def shown(found: Callers) -> dict[str, set[str]]:
    """By symbol, its callers as `path:line, line`, with `?` if only the name indicates the caller."""
    return {
        each.node.id.removeprefix("code:"): {
            f"{link.node.path}:{', '.join(map(str, link.lines))}" + "?" * link.is_guess for link in each.callers
        }
        for each in found.symbols
    }


OVERLOADED = {
    "check.py": """
        from typing import overload
        @overload
        def check(value: int) -> int: ...
        @overload
        def check(value: str) -> str: ...
        def check(value):
            return value
    """,
    "use.py": """
        from check import check
        def one():
            check(1)
            check("1")
    """,
}


@pytest.mark.parametrize("name", ["check", "check.check", "check.py#check", "CHECK"])
async def test_overloads_are_one_symbol_however_it_is_named(tmp_path: Path, name: str) -> None:
    found = await ask(tmp_path, name, OVERLOADED)
    assert shown(found) == {"check.py#check": {"use.py:3, 4"}}
    assert (found.certain, found.untold) == (True, 0)


async def test_the_implementation_of_overloads_is_found(tmp_path: Path) -> None:
    async with opened(make_repository(tmp_path, OVERLOADED)) as graph:
        await graph.refresh()
        [found, *_] = await graph.search("check")
    assert (found.node.id, found.node.line_start) == ("code:check.py#check", 7)


async def test_overloads_of_java_are_one_symbol_that_has_the_name_of_its_package_too(tmp_path: Path) -> None:
    files = {
        "src/main/java/com/shop/Till.java": """
            package com.shop;
            public class Till {
              public int add(int price) { return price; }
              public int add(int price, int count) { return price * count; }
              public int twice() { return add(1) + add(1, 2); }
              public static void open() {}
            }
        """,
        "src/main/java/com/shop/Main.java": """
            package com.shop;
            public class Main {
              void run() { Till.open(); }
            }
        """,
    }
    for number, name in enumerate(("com.shop.Till.add", "Till.add")):
        found = await ask(tmp_path / str(number), name, files)
        assert shown(found) == {"src/main/java/com/shop/Till.java#Till.add": {"src/main/java/com/shop/Till.java:5"}}


WRAPPER = "models.py:7"
DECORATED = {
    "models.py": """
        import functools

        def context(*, x):
            def decorate(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs)
                return wrapper
            return decorate

        class Model:
            @context(x=True)
            def fit(self): ...

        class Small(Model): ...

        @context(x=False)
        def train(): ...
    """,
    "use.py": """
        from models import Model, Small, train
        def direct():
            Model().fit()
        def held():
            m = Small()
            m.fit()
        def plain():
            train()
    """,
}


@pytest.mark.parametrize(
    ("name", "callers"), [("Model.fit", {"use.py:3", "use.py:6", WRAPPER}), ("train", {"use.py:8", WRAPPER})]
)
async def test_a_call_of_a_decorated_function_is_a_call_of_the_function(
    tmp_path: Path, name: str, callers: set[str]
) -> None:
    found = await ask(tmp_path, name, DECORATED)
    assert shown(found) == {f"models.py#{name}": callers}


async def test_the_wrapper_is_called_as_well(tmp_path: Path) -> None:
    found = await ask(tmp_path, "wrapper", DECORATED)
    assert shown(found)["models.py#context.decorate.wrapper"] == {"use.py:3", "use.py:6", "use.py:8"}


async def test_a_call_through_a_variable_is_a_call_of_the_variable(tmp_path: Path) -> None:
    files = {
        "marks.py": "class Mark:\n    def __call__(self): ...\nskip = Mark()\n",
        "lib/__init__.py": "from marks import skip\n",
        "use.py": "import lib\ndef test():\n    lib.skip()\n@lib.skip\ndef other(): ...\n",
    }
    assert shown(await ask(tmp_path, "lib.skip", files)) == {"marks.py#skip": {"use.py:3", "use.py:4"}}


PASSED_ON = {
    "src/pkg/__init__.py": """
        from ._impl import public_helper
        from ._impl import hidden as open
        from .inner import *
    """,
    "src/pkg/_impl.py": """
        def public_helper(): ...
        def hidden(): ...
        class Base:
            def save(self): ...
        class Table(Base): ...
    """,
    "src/pkg/inner.py": "from ._impl import Table\n__all__ = ['Table']\n",
    "use.py": "import pkg\npkg.public_helper()\npkg.open()\npkg.Table().save()\n",
}


@pytest.mark.parametrize(
    ("name", "symbol", "line"),
    [
        ("pkg.public_helper", "public_helper", 2),
        ("pkg.open", "hidden", 3),
        ("pkg.Table.save", "Base.save", 4),
        ("Table.save", "Base.save", 4),
        ("src/pkg/__init__.py#open", "hidden", 3),
        ("src/pkg/_impl.py#save", "Base.save", 4),
    ],
)
async def test_names_are_followed_through_packages_and_classes(
    tmp_path: Path, name: str, symbol: str, line: int
) -> None:
    assert shown(await ask(tmp_path, name, PASSED_ON)) == {f"src/pkg/_impl.py#{symbol}": {f"use.py:{line}"}}


async def test_a_name_that_a_few_have_is_answered_for_each(tmp_path: Path) -> None:
    files = {f"p{number}.py": "def make(): ...\ndef run():\n    make()\n" for number in range(5)}
    found = await ask(tmp_path, "make", files)
    assert shown(found) == {f"p{number}.py#make": {f"p{number}.py:3"} for number in range(5)}


async def test_a_name_that_many_have_is_refused_with_some_that_can_be_typed(tmp_path: Path) -> None:
    files = {f"p{number}.py": "def make(): ...\n" for number in range(8)}
    with pytest.raises(InvalidInput, match=r"8 have the name 'make'. Name one: p0.py#make, .*p4.py#make and 3 more$"):
        await ask(tmp_path, "make", files)


async def test_a_class_that_is_called_says_nothing_of_its_constructor(tmp_path: Path) -> None:
    files = {
        "a/Box.java": """
            package a;
            public class Box {
              public Box(int size) {}
              static Box of() { return new Box(1); }
            }
        """,
        "a/Lid.java": """
            package a;
            public class Lid {
              public Lid(int size) {}
            }
        """,
    }
    assert shown(await ask(tmp_path / "a", "Box", files)) == {"a/Box.java#Box": {"a/Box.java:4"}}
    assert shown(await ask(tmp_path / "b", "Lid", files)) == {"a/Lid.java#Lid": set()}


RENAMED = {
    "src/base.ts": """
        class Hono {
          #secret(at: number) { return at }
          get() { return this.#secret(1) }
        }
        export { Hono as HonoBase }
    """,
    "src/quick.ts": """
        import { HonoBase } from './base'
        export function make() { return new HonoBase() }
    """,
}


@pytest.mark.parametrize("name", ["HonoBase", "src/base.ts#HonoBase"])
async def test_a_re_export_under_another_name_is_found_by_that_name(tmp_path: Path, name: str) -> None:
    assert shown(await ask(tmp_path, name, RENAMED)) == {"src/base.ts#Hono": {"src/quick.ts:2"}}


@pytest.mark.parametrize("name", ["#secret", "Hono.#secret", "src/base.ts#Hono.#secret", "src/base.ts##secret"])
async def test_a_private_name_of_javascript_is_no_place(tmp_path: Path, name: str) -> None:
    assert shown(await ask(tmp_path, name, RENAMED)) == {"src/base.ts#Hono.#secret": {"src/base.ts:3"}}


async def test_a_method_with_the_name_of_the_function_that_it_calls_hides_it_not(tmp_path: Path) -> None:
    files = {
        "src/body.ts": "export function parseBody(request: any) { return request }\n",
        "src/request.ts": """
            import { parseBody } from './body'
            export class Req {
              parseBody() { return parseBody(this) }
              both() { return this.parseBody() }
            }
        """,
    }
    assert shown(await ask(tmp_path / "a", "src/body.ts#parseBody", files)) == {
        "src/body.ts#parseBody": {"src/request.ts:3"}
    }
    assert shown(await ask(tmp_path / "b", "Req.parseBody", files)) == {
        "src/request.ts#Req.parseBody": {"src/request.ts:4"}
    }


async def test_a_name_after_a_hash_may_be_of_any_language(tmp_path: Path) -> None:
    assert shown(await ask(tmp_path, "#check", OVERLOADED)) == {"check.py#check": {"use.py:3, 4"}}
    for nothing in ("#", "()", "default"):
        with pytest.raises(NotFound):
            await ask(tmp_path / nothing.strip("#") / "r", nothing, RENAMED)


@pytest.mark.parametrize(
    "name", ["a." * 20 + "b", "a/" * 20 + "b", "a" * 501, "x.py#" + "a." * 21, "x" * 5_001, "a\udcff"]
)
async def test_text_that_cannot_be_a_name_is_refused_at_every_door(tmp_path: Path, name: str) -> None:
    root = make_repository(tmp_path, OVERLOADED)
    async with opened(root) as graph:
        for door in (graph.callers, graph.symbol, graph.source, graph.dependents, graph.dependencies, graph.similar):
            with pytest.raises((InvalidInput, NotFound)) as refused:
                await door(name)
            assert len(str(refused.value)) < 300
        assert await graph.search(name) == []


async def test_files_in_deep_folders_and_with_long_paths_are_found(tmp_path: Path) -> None:
    path = "/".join(["deep"] * 30 + ["long" * 40] * 3 + ["a.py"])
    root = make_repository(tmp_path, {path: "def f(): pass\n"})
    async with opened(root) as graph:
        await graph.refresh()
        assert (await graph.symbol(f"{path}#f")).name == "f"
        assert (await graph.symbol("f")).path == path


async def test_a_missing_name_causes_one_more_refresh_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 0.0)
    root = make_repository(tmp_path, OVERLOADED)
    looked: list[object] = []
    async with opened(root) as graph:
        refresh = graph.indexer.refresh
        monkeypatch.setattr(
            graph.indexer, "refresh", lambda *given, **more: looked.append(1) or refresh(*given, **more)
        )
        with pytest.raises(NotFound):
            await graph.callers("missing")
        assert len(looked) <= 2


async def test_a_declaration_in_a_header_and_its_definition_are_one_symbol(tmp_path: Path) -> None:
    files = {
        "till.h": "int total(int price);\n",
        "till.c": '#include "till.h"\nint total(int price) { return price; }\n',
        "main.c": '#include "till.h"\nint main() { return total(1); }\n',
    }
    for number, name in enumerate(("total", "till.h#total")):
        assert shown(await ask(tmp_path / str(number), name, files)) == {"till.c#total": {"main.c:2"}}


async def test_calls_of_a_name_on_what_is_not_known_are_counted_and_listed(tmp_path: Path) -> None:
    files = {
        "a.go": "package main\ntype A struct{}\nfunc (a *A) Send() {}\ntype B struct{}\nfunc (b *B) Send() {}\n",
        "use.go": "package main\nfunc use(x any) {\n\tpick(x).Send()\n\tpick(x).Send()\n}\n",
    }
    found = await ask(tmp_path, "A.Send", files)
    assert (found.certain, found.untold) == (False, 2)
    assert [(call.path, call.line, call.caller) for call in found.places] == [
        ("use.go", 3, "use"),
        ("use.go", 4, "use"),
    ]


async def test_a_guess_that_means_another_does_not_tell_a_call_apart(tmp_path: Path) -> None:
    files = {
        "a.py": "class A:\n    signal: object\nclass B:\n    def signal(self): ...\n",
        "use.py": "def use(x):\n    x.signal()\n",
    }
    found = await ask(tmp_path / "a", "A.signal", files)
    assert (shown(found), found.certain, found.untold) == ({"a.py#A.signal": set()}, False, 1)
    guessed = await ask(tmp_path / "b", "B.signal", files)
    assert (shown(guessed), guessed.certain, guessed.untold) == ({"a.py#B.signal": {"use.py:2?"}}, False, 0)


async def test_calls_of_what_comes_from_outside_are_not_counted(tmp_path: Path) -> None:
    files = {
        "a.py": "class A:\n    def loads(self): ...\nclass B:\n    def loads(self): ...\n",
        "use.py": "import json\ndef use(x):\n    json.loads(x)\n    loads(x)\n    x.loads()\n",
    }
    found = await ask(tmp_path, "A.loads", files)
    assert [call.line for call in found.places] == [5]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("public_helpr", "public_helper"),
        ("Table.svae", "Base.save"),
        ("src/pkg/_imple.py#hidden", "src/pkg/_impl.py#hidden"),
    ],
)
async def test_a_misspelt_name_is_told_what_is_close(tmp_path: Path, wrong: str, right: str) -> None:
    with pytest.raises(NotFound, match="Did you mean") as raised:
        await ask(tmp_path, wrong, PASSED_ON)
    assert right.rpartition(".")[2] in str(raised.value)


async def test_a_name_that_is_like_nothing_is_only_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        await ask(tmp_path, "zzzqqqxxx" * 40, PASSED_ON)
    assert "Did you mean" not in str(raised.value)


TYPED = {
    "java": (
        {
            "Reader.java": (
                "class Reader {\n  String next() { return null; }\n}\n"
                "class Other {\n  String next() { return null; }\n}\n"
            ),
            "Use.java": (
                "class Use {\n  private Reader kept;\n  String one(Reader in) { return in.next(); }\n"
                "  String two() { return kept.next(); }\n  String three() { return this.kept.next(); }\n"
                "  String other(Other in) { return in.next(); }\n}\n"
            ),
        },
        {"Use.java:3", "Use.java:4", "Use.java:5"},
    ),
    "go": (
        {
            "go.mod": "module example.org/shop\n",
            "api/client.go": (
                "package api\ntype Reader struct{}\nfunc (r *Reader) next() {}\n"
                "type Other struct{}\nfunc (o *Other) next() {}\n"
            ),
            "use.go": (
                'package main\nimport "example.org/shop/api"\ntype Options struct {\n\tReader *api.Reader\n}\n'
                "func one(r *api.Reader) {\n\tr.next()\n}\nfunc two(opts Options) {\n\topts.Reader.next()\n}\n"
                "func other(r api.Other) {\n\tr.next()\n}\n"
            ),
        },
        {"use.go:7", "use.go:10"},
    ),
    "typescript": (
        {
            "reader.ts": "export class Reader {\n  next() {}\n}\nexport class Other {\n  next() {}\n}\n",
            "use.ts": (
                'import { Reader, Other } from "./reader";\nexport function one(r: Reader) {\n  r.next();\n}\n'
                "export function other(r: Other) {\n  r.next();\n}\n"
            ),
        },
        {"use.ts:3"},
    ),
    "rust": (
        {
            "src/lib.rs": (
                "pub struct Reader;\nimpl Reader {\n    pub fn next(&self) {}\n}\npub struct Other;\nimpl Other {\n"
                "    pub fn next(&self) {}\n}\nfn one(r: &mut Reader) {\n    r.next();\n}\n"
                "fn other(r: Other) {\n    r.next();\n}\n"
            ),
        },
        {"src/lib.rs:10"},
    ),
}


@pytest.mark.parametrize("language", TYPED)
async def test_a_method_is_called_on_what_a_parameter_or_a_field_is_declared_to_be(
    tmp_path: Path, language: str
) -> None:
    files, expected = TYPED[language]
    found = await ask(tmp_path, "Reader.next", files)
    (callers,) = shown(found).values()
    assert callers == expected
    assert found.untold == 0


OVERRIDDEN = {
    "base.py": """
        class Base:
            def run(self):
                self.hook()
                return [each for each in self.parts]
            def hook(self): ...
            @property
            def parts(self): ...
    """,
    "sub.py": """
        from base import Base
        class Own(Base):
            def hook(self): ...
            @property
            def parts(self): ...
        class Deep(Own):
            def run(self):
                super().run()
            def hook(self): ...
        class Other(Base):
            def run(self): ...
            def hook(self): ...
        class Plugin:
            def hook(self): ...
        class Mixed(Plugin, Base): ...
    """,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Own.hook", {"base.py:3"}),
        ("Own.parts", {"base.py:4"}),
        ("Deep.hook", {"base.py:3"}),
        ("Other.hook", set[str]()),
        ("Plugin.hook", {"base.py:3"}),
    ],
)
async def test_a_base_class_that_calls_itself_calls_the_overrides(
    tmp_path: Path, name: str, expected: set[str]
) -> None:
    found = await ask(tmp_path, name, OVERRIDDEN)
    (callers,) = shown(found).values()
    assert (callers, found.certain, found.untold) == (expected, True, 0)


async def test_a_subclass_that_changes_changes_the_callers_in_its_base(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {path: dedent(text).lstrip("\n") for path, text in OVERRIDDEN.items()})
    async with opened(root) as graph:
        await graph.refresh()
        (root / "sub.py").write_text("from base import Base\nclass Late(Base):\n    def hook(self): ...\n")
        await graph.refresh()
        assert shown(await graph.callers("Late.hook")) == {"sub.py#Late.hook": {"base.py:3"}}


async def test_a_module_that_its_package_imports_from_itself_is_followed(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "from . import json as json\nfrom . import tools\n",
        "pkg/json/__init__.py": "def dumps(x): ...\ndef loads(x): ...\n",
        "pkg/tools.py": "def loads(x): ...\n",
        "use.py": "import pkg\nfrom pkg import json\ndef one(): pkg.json.dumps(1)\ndef two(): json.dumps(2)\n",
    }
    found = await ask(tmp_path, "pkg.json.dumps", files)
    assert shown(found) == {"pkg/json/__init__.py#dumps": {"use.py:3", "use.py:4"}}
    assert (found.certain, found.untold) == (True, 0)


async def test_a_function_that_calls_itself_is_its_caller(tmp_path: Path) -> None:
    files = {"a.py": "def walk(n):\n    walk(n - 1)\ndef go():\n    walk(3)\n"}
    assert shown(await ask(tmp_path, "walk", files)) == {"a.py#walk": {"a.py:2", "a.py:4"}}


TESTED = {
    "a.py": """
        class Map:
            def lists(self): ...
        class Table:
            def lists(self): ...
        def one(given):
            if isinstance(given, Map):
                given.lists()
            elif isinstance(given, (Table, str)):
                given.lists()
        def two(given):
            if not isinstance(given, Map):
                return
            given.lists()
        def three(given: Map | Table):
            assert not isinstance(given, Map)
            given.lists()
        def four(given):
            if isinstance(given, Map):
                given = Table()
                given.lists()
    """
}


@pytest.mark.parametrize(("name", "lines"), [("Map.lists", {7, 13}), ("Table.lists", {9, 16, 20})])
async def test_isinstance_tells_whose_method_is_called(tmp_path: Path, name: str, lines: set[int]) -> None:
    found = await ask(tmp_path, name, TESTED)
    assert {line for each in found.symbols for link in each.callers for line in link.lines} == lines


async def test_casts_copies_and_the_class_of_an_object_are_followed(tmp_path: Path) -> None:
    files = {
        "a.py": """
            import copy, typing as t
            class A:
                def save(self): ...
                def twin(self):
                    return self.__class__()
            class B:
                def save(self): ...
            def one(given):
                t.cast("A", A()).save()
                copy.copy(A()).save()
                A().twin().save()
        """
    }
    (caller,) = (await ask(tmp_path, "A.save", files)).symbols[0].callers
    assert (caller.node.name, caller.lines, caller.is_guess) == ("one", (9, 10, 11), False)


async def test_a_class_is_called_through_its_constructor(tmp_path: Path) -> None:
    files = {"a.js": "class A {\n  constructor () {}\n}\nfunction make () {\n  return new A()\n}\n"}
    assert shown(await ask(tmp_path, "a.js#A.constructor", files)) == {"a.js#A.constructor": {"a.js:5"}}


async def test_a_method_of_an_unnamed_receiver_is_no_function_of_the_file(tmp_path: Path) -> None:
    files = {"a.js": "function set () {}\nfunction go (cache, key) {\n  cache[key].set(1)\n}\n"}
    assert shown(await ask(tmp_path, "a.js#set", files)) == {"a.js#set": set()}


LIKELY = {
    "python": (
        "Cookies.fetch",
        {
            "a.py": """
                class Cookies:
                    def fetch(self): ...
                class Headers:
                    def fetch(self): ...
            """,
            "use.py": """
                def use(cookies, self_headers, thing, request):
                    cookies.fetch()
                    request.cookies.fetch()
                    self_headers.fetch()
                    thing.fetch()
            """,
        },
        {"use.py:2", "use.py:3"},
        {"a.py#Cookies.fetch": 2, "a.py#Headers.fetch": 1, "": 1},
    ),
    "property": (
        "Request.form",
        {
            "a.py": """
                class Request:
                    @property
                    def form(self): ...
                class Builder:
                    @property
                    def form(self): ...
            """,
            "use.py": """
                def use(request, b):
                    request.form.get("x")
                    b.form.get("x")
            """,
        },
        {"use.py:2"},
        {"a.py#Request.form": 1, "": 1},
    ),
    "go": (
        "Error.JSON",
        {
            "errors.go": "package gin\ntype Error struct{}\nfunc (msg *Error) JSON() {}\ntype errorMsgs []*Error\n"
            "func (a errorMsgs) JSON() {}\ntype Context struct{}\nfunc (c *Context) JSON() {}\n",
            "use.go": "package gin\nfunc use() {\n\terr := pick(1)\n\terr.JSON()\n\terrs := pick(2)\n\terrs.JSON()\n"
            "\tc := pick(3)\n\tc.JSON()\n\tpick(4).JSON()\n}\n",
        },
        {"use.go:4"},
        {"errors.go#Error.JSON": 1, "errors.go#errorMsgs.JSON": 1, "errors.go#Context.JSON": 1, "": 1},
    ),
}


@pytest.mark.parametrize("language", LIKELY)
async def test_ambiguous_calls_are_grouped_by_likely_owner(tmp_path: Path, language: str) -> None:
    name, files, likely, owners = LIKELY[language]
    found = await ask(tmp_path, name, files)
    assert {f"{call.path}:{call.line}" for call in found.places if call.is_likely} == likely
    assert (found.owners, found.untold) == (owners, sum(owners.values()))
    assert [call.is_likely for call in found.places] == sorted((call.is_likely for call in found.places), reverse=True)


async def test_methods_that_built_in_types_have_need_the_whole_name_of_their_owner(tmp_path: Path) -> None:
    files = {
        "a.py": "class LocalStack:\n    def pop(self): ...\nclass Headers:\n    def pop(self): ...\n",
        "use.py": "def use(stack, headers, local_stack):\n    stack.pop()\n    headers.pop()\n    local_stack.pop()\n",
    }
    found = await ask(tmp_path, "LocalStack.pop", files)
    assert found.owners == {"a.py#LocalStack.pop": 1, "a.py#Headers.pop": 1, "": 1}
    assert [call.line for call in found.places if call.is_likely] == [4]
