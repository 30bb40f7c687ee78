"""Edges between the symbols of small projects as they are on disk, read by the extractor, in every language."""

from __future__ import annotations

from textwrap import dedent

import pytest

from clew.knowledge.code.languages.detect import language_of
from clew.knowledge.code.languages.extract import extract
from clew.knowledge.code.linking.linker import Linker
from clew.knowledge.code.python_calls.statements import summarize
from tests.knowledge.code.linked_projects import all_edges, shown

PROJECTS = {
    "python": {
        "shop/__init__.py": "from .core import Thing as Item, run\n",
        "shop/core.py": """
            class Base:
                def go(self): ...
            class Thing(Base):
                def work(self): self.go()
            def run(): Thing().work()
        """,
        "use.py": """
            from shop import Item, run
            import shop.core as core
            def main(item: Item):
                run(); core.run(); item.work()
        """,
    },
    "typescript": {
        "src/a.ts": """
            import theirs, { trim as t, Part } from "./util";
            import * as ns from "./ns";
            const old = require("../lib/old");
            class A extends Part {
              go() { this.run(); super.run(); t(); ns.f(); old.start(); theirs(); }
              run() {}
            }
        """,
        "src/util.ts": """
            export function trim() {}
            export class Part { run() {} }
            export default function given() {}
        """,
        "src/ns/index.ts": 'export * from "./f";\n',
        "src/ns/f.ts": "export function f() {}\n",
        "lib/old.js": "function start() {}\nmodule.exports = { start };\n",
    },
    "go": {
        "cmd/main.go": """
            package main
            import (
                "fmt"
                h "github.com/me/tool/internal/http"
            )
            func main() { fmt.Println(); h.Get(); helper() }
        """,
        "cmd/helper.go": "package main\nfunc helper() {}\n",
        "internal/http/get.go": "package http\nfunc Get() {}\n",
    },
    "rust": {
        "web/src/lib.rs": """
            mod routing;
            use crate::routing::method::{get, post as p};
            use web_core::Body;
            pub fn serve() { get(); p(); Body::empty(); routing::merge(); }
        """,
        "web/src/routing/mod.rs": "pub mod method;\npub fn merge() {}\n",
        "web/src/routing/method.rs": "pub fn get() {}\npub fn post() { super::merge() }\n",
        "web-core/src/lib.rs": "pub struct Body;\nimpl Body { pub fn empty() {} }\n",
    },
    "java": {
        "src/main/java/org/app/Run.java": """
            package org.app;
            import org.app.base.Base;
            import static org.app.base.Util.help;
            public class Run extends Base {
              public void go() { prepare(); super.prepare(); Beside.call(); help(); }
            }
        """,
        "src/main/java/org/app/Beside.java": "package org.app;\nclass Beside { static void call() {} }\n",
        "src/main/java/org/app/base/Base.java": "package org.app.base;\npublic class Base { void prepare() {} }\n",
        "src/main/java/org/app/base/Util.java": "package org.app.base;\npublic class Util { static void help() {} }\n",
    },
    "c": {
        "src/main.c": '#include "tree.h"\nint main(void) { tree_new(); return 0; }\n',
        "include/tree.h": "void tree_new(void);\n",
        "src/tree.c": '#include "tree.h"\nvoid tree_new(void) {}\n',
        "x/a.hpp": """
            namespace n { class A { public: void go(); int size() { return 1; } };
            class B : public A { void run(); }; }
        """,
        "x/a.cpp": '#include "a.hpp"\nnamespace n { void A::go() { this->size(); } void B::run() { go(); } }\n',
    },
    "ruby": {
        "lib/app/run.rb": """
            require_relative "base"
            require "app/tool"
            module App
              class Run < Base
                def go
                  prepare
                  Tool.use
                end
              end
            end
        """,
        "lib/app/base.rb": "module App\n  class Base\n    def prepare\n    end\n  end\nend\n",
        "lib/app/tool.rb": "module App\n  class Tool\n    def self.use\n    end\n  end\nend\n",
    },
}
CALLS = {
    "python": {
        "shop/core.py#Thing.work -> shop/core.py#Base.go",
        "shop/core.py#run -> shop/core.py#Thing",
        "shop/core.py#run -> shop/core.py#Thing.work",
        "use.py#main -> shop/core.py#run",
        "use.py#main -> shop/core.py#Thing.work",
    },
    "typescript": {
        "src/a.ts#A.go -> src/a.ts#A.run",
        "src/a.ts#A.go -> src/util.ts#Part.run",
        "src/a.ts#A.go -> src/util.ts#trim",
        "src/a.ts#A.go -> src/ns/f.ts#f",
        "src/a.ts#A.go -> lib/old.js#start",
        "src/a.ts#A.go -> src/util.ts#given",
    },
    "go": {
        "cmd/main.go#main -> internal/http/get.go#Get",
        "cmd/main.go#main -> cmd/helper.go#helper",
    },
    "rust": {
        "web/src/lib.rs#serve -> web/src/routing/method.rs#get",
        "web/src/lib.rs#serve -> web/src/routing/method.rs#post",
        "web/src/lib.rs#serve -> web-core/src/lib.rs#Body.empty",
        "web/src/lib.rs#serve -> web/src/routing/mod.rs#merge",
        "web/src/routing/method.rs#post -> web/src/routing/mod.rs#merge",
    },
    "java": {
        "src/main/java/org/app/Run.java#Run.go -> src/main/java/org/app/base/Base.java#Base.prepare",
        "src/main/java/org/app/Run.java#Run.go -> src/main/java/org/app/Beside.java#Beside.call",
        "src/main/java/org/app/Run.java#Run.go -> src/main/java/org/app/base/Util.java#Util.help",
    },
    "c": {
        "src/main.c#main -> src/tree.c#tree_new",
        "x/a.cpp#n.A.go -> x/a.hpp#n.A.size",
        "x/a.cpp#n.B.run -> x/a.hpp#n.A.go",
    },
    "ruby": {
        "lib/app/run.rb#App.Run.go -> lib/app/base.rb#App.Base.prepare",
        "lib/app/run.rb#App.Run.go -> lib/app/tool.rb#App.Tool.use",
    },
}


@pytest.mark.parametrize("language", PROJECTS)
def test_calls_lead_to_where_things_are_defined(language: str) -> None:
    contents = {path: dedent(text).lstrip().encode() for path, text in PROJECTS[language].items()}
    facts = {path: extract(content, language_of(path, content) or "") for path, content in contents.items()}
    summaries = {path: summarize(content) for path, content in contents.items() if path.endswith(".py")}
    assert shown(all_edges(Linker(facts, summaries), facts), "calls") == CALLS[language]


@pytest.mark.req("SYL-72")
def test_names_lead_to_files_that_values_cannot_be_followed_into() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/later.py": "class Base: ...\n\n\ndef go():\n    match (1:\n",
        "use.py": (
            "from pkg import later\nfrom pkg.later import Base\n\n\n"
            "class Mine(Base):\n    def run(self):\n        later.go()\n"
        ),
    }
    facts = {path: extract(text.encode(), "python") for path, text in files.items()}
    summaries = {path: summarize(text.encode()) for path, text in files.items()}
    assert summaries["pkg/later.py"].error
    edges = all_edges(Linker(facts, summaries), facts)
    assert "use.py#Mine.run -> pkg/later.py#go" in shown(edges, "calls")
    assert "use.py#Mine -> pkg/later.py#Base" in shown(edges, "inherits")
