"""Edges between symbols in other languages: imports resolve to files, and names to symbols by scope and import."""

from __future__ import annotations

from pathlib import Path

from clew.knowledge.code.linking.imports import DeclaredFolders
from tests.knowledge.code.linked_projects import edges_of, facts
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sample_project import opened


def test_scripts_import_by_relative_path_ending_and_index() -> None:
    files = {
        "src/app.ts": facts(
            "typescript",
            symbols={"main": "function"},
            imports=[("./util", "trim"), ("./parts", "Part"), ("../lib/old.js", "", "old"), ("react", "useState")],
            uses=[
                ("call", "trim", "main"),
                ("call", "Part.make", "main"),
                ("call", "old.start", "main"),
                ("call", "useState", "main"),
            ],
        ),
        "src/util.ts": facts("typescript", symbols={"trim": "function"}),
        "src/parts/index.tsx": facts("tsx", imports=[("./part", "Part")]),
        "src/parts/part.tsx": facts("tsx", symbols={"Part": "class", "Part.make": "method"}),
        "lib/old.ts": facts("typescript", symbols={"start": "function"}),
    }
    assert edges_of(files, "calls") == {
        "src/app.ts#main -> src/util.ts#trim",
        "src/app.ts#main -> src/parts/part.tsx#Part.make",
        "src/app.ts#main -> lib/old.ts#start",
    }
    assert "src/app.ts# -> src/parts/part.tsx#Part" in edges_of(files, "imports")


def test_go_uses_packages_by_module_path_and_files_beside_it() -> None:
    files = {
        "cmd/main.go": facts(
            "go",
            symbols={"main": "function"},
            imports=[("github.com/me/tool/internal/http",), ("net/http", "", "web")],
            uses=[("call", "http.Get", "main"), ("call", "web.Listen", "main"), ("call", "helper", "main")],
        ),
        "cmd/helper.go": facts("go", symbols={"helper": "function"}),
        "internal/http/get.go": facts("go", symbols={"Get": "function", "Listen": "function"}),
    }
    expected = {"cmd/main.go#main -> internal/http/get.go#Get", "cmd/main.go#main -> cmd/helper.go#helper"}
    assert edges_of(files, "calls", packages=DeclaredFolders(go={"": "github.com/me/tool"})) == expected
    assert edges_of(files, "calls") == expected


async def test_a_crate_is_found_by_the_name_that_its_manifest_gives_it(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": "[workspace]\nmembers = ['crates/*']\n",
        "crates/matcher/Cargo.toml": '[package]\nversion = "1"\nname = "grep-matcher"\n[dependencies]\nname = "no"\n',
        "crates/matcher/src/lib.rs": "pub mod lines;\n\npub trait Matcher {\n    fn find(&self);\n}\n",
        "crates/matcher/src/lines.rs": "pub fn count() -> u32 {\n    1\n}\n",
        "crates/regex/Cargo.toml": "[package]\nname = 'grep-regex'\n",
        "crates/regex/src/lib.rs": (
            "use grep_matcher::{lines, Matcher};\n\npub struct Regex;\n\n"
            "impl Matcher for Regex {\n    fn find(&self) {\n        lines::count();\n    }\n}\n"
        ),
    }
    async with opened(make_repository(tmp_path / "r", files)) as graph:
        await graph.refresh()
        found = await graph.dependents("crates/matcher/src/lib.rs#Matcher", edge_type="implements")
        assert [(link.node.path, link.node.name, link.is_guess) for link in found] == [
            ("crates/regex/src/lib.rs", "Regex", False)
        ]
        [caller] = await graph.dependents("crates/matcher/src/lines.rs#count", edge_type="calls")
        assert (caller.node.name, caller.is_guess) == ("Regex.find", False)


def test_rust_uses_modules_of_its_crate_and_of_crates_beside_it() -> None:
    files = {
        "web/src/lib.rs": facts(
            "rust",
            symbols={"serve": "function"},
            imports=[("routing", ""), ("crate::routing::method", "get"), ("web_core", "Body")],
            uses=[("call", "get", "serve"), ("call", "Body::empty", "serve"), ("call", "routing::merge", "serve")],
        ),
        "web/src/routing/mod.rs": facts("rust", symbols={"merge": "function"}),
        "web/src/routing/method.rs": facts(
            "rust",
            symbols={"get": "function"},
            imports=[("super", "merge")],
            uses=[("call", "merge", "get")],
        ),
        "web-core/src/lib.rs": facts("rust", symbols={"Body": "class", "Body.empty": "method"}),
    }
    assert edges_of(files, "calls") == {
        "web/src/lib.rs#serve -> web/src/routing/method.rs#get",
        "web/src/lib.rs#serve -> web-core/src/lib.rs#Body.empty",
        "web/src/lib.rs#serve -> web/src/routing/mod.rs#merge",
        "web/src/routing/method.rs#get -> web/src/routing/mod.rs#merge",
    }


def test_java_finds_classes_of_packages_methods_of_bases_and_neighbours() -> None:
    root = "core/src/main/java/org/app"
    files = {
        f"{root}/Run.java": facts(
            "java",
            symbols={"Run": "class", "Run.go": "method"},
            imports=[("org.app.base.Base",), ("java.util.List",)],
            uses=[
                ("inherit", "Base", "Run"),
                ("call", "prepare", "Run.go"),
                ("call", "this.prepare", "Run.go"),
                ("call", "Beside.help", "Run.go"),
            ],
        ),
        f"{root}/Beside.java": facts("java", symbols={"Beside": "class", "Beside.help": "method"}),
        f"{root}/base/Base.java": facts("java", symbols={"Base": "class", "Base.prepare": "method"}),
    }
    assert edges_of(files, "calls") == {
        f"{root}/Run.java#Run.go -> {root}/base/Base.java#Base.prepare",
        f"{root}/Run.java#Run.go -> {root}/Beside.java#Beside.help",
    }
    assert edges_of(files, "inherits") == {f"{root}/Run.java#Run -> {root}/base/Base.java#Base"}


def test_c_follows_includes_to_what_implements_them() -> None:
    files = {
        "src/main.c": facts(
            "c",
            symbols={"main": "function"},
            imports=[("tree.h",), ("stdio.h",)],
            uses=[("call", "tree_new", "main"), ("call", "printf", "main")],
        ),
        "include/tree.h": facts("c"),
        "src/tree.c": facts("c", symbols={"tree_new": "function"}, imports=[("tree.h",)]),
    }
    assert edges_of(files, "calls") == {"src/main.c#main -> src/tree.c#tree_new"}
    assert "src/main.c# -> include/tree.h#" in edges_of(files, "imports")


def test_ruby_requires_and_inherits() -> None:
    files = {
        "lib/app/run.rb": facts(
            "ruby",
            symbols={"Run": "class", "Run.go": "method"},
            imports=[("./base",), ("app/tool",)],
            uses=[("inherit", "Base", "Run"), ("call", "prepare", "Run.go"), ("call", "Tool.use", "Run.go")],
        ),
        "lib/app/base.rb": facts("ruby", symbols={"Base": "class", "Base.prepare": "method"}),
        "lib/app/tool.rb": facts("ruby", symbols={"Tool": "class", "Tool.use": "method"}),
    }
    assert edges_of(files, "calls") == {
        "lib/app/run.rb#Run.go -> lib/app/base.rb#Base.prepare",
        "lib/app/run.rb#Run.go -> lib/app/tool.rb#Tool.use",
    }


def test_a_name_is_guessed_only_within_its_language_and_where_one_symbol_has_it() -> None:
    files = {
        "a.js": facts(
            "javascript",
            symbols={"run": "function"},
            uses=[("call", "thing.renderAll", "run"), ("call", "thing.twice", "run"), ("call", "thing.push", "run")],
        ),
        "b.js": facts("javascript", symbols={"renderAll": "function", "One.twice": "method", "push": "function"}),
        "c.js": facts("javascript", symbols={"Two.twice": "method"}),
        "d.rb": facts("ruby", symbols={"renderAll": "function"}),
    }
    assert edges_of(files, "calls") == {"a.js#run -> b.js#renderAll?"}


def test_files_that_pass_names_around_in_a_circle_come_to_an_end() -> None:
    files = {
        "a.ts": facts("typescript", imports=[("./b", "x"), ("./b", "*")], uses=[("call", "x", ""), ("call", "y", "")]),
        "b.ts": facts("typescript", imports=[("./a", "x"), ("./a", "*")]),
    }
    assert edges_of(files, "calls") == set()
