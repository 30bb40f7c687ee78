"""Calls over several Python files: imports of every kind, and changed files."""

from __future__ import annotations

import msgspec
import pytest

from clew.knowledge.code.python_calls.modules import Modules
from clew.knowledge.code.python_calls.statements import summarize
from clew.knowledge.code.python_calls.summary import FlowSummary
from tests.knowledge.code.programs import callers, flow_of


def test_imports_of_names_modules_and_submodules() -> None:
    found = callers(
        "import pkg.deep\nimport pkg.mod as other\nfrom pkg import mod\nfrom pkg.mod import g as h\n"
        "def one(): pkg.deep.f()\ndef two(): other.f()\ndef three(): mod.f()\ndef four(): h()\n",
        pkg____init__="",
        pkg__deep="def f(): ...\n",
        pkg__mod="def f(): ...\ndef g(): ...\n",
    )
    assert found["pkg/deep:f"] == {"one"}
    assert found["pkg/mod:f"] == {"two", "three"}
    assert found["pkg/mod:g"] == {"four"}


def test_names_that_a_package_passes_on_lead_to_where_they_are_defined() -> None:
    found = callers(
        "from pkg import run, Tool, deep\nrun()\nTool().use()\ndeep()\n",
        pkg____init__="from .inner import run, Tool\nfrom .inner.more import *\n",
        pkg__inner____init__="from .work import run\nfrom .work import Tool\n",
        pkg__inner__work="def run(): ...\nclass Tool:\n    def use(self): ...\n",
        pkg__inner__more="from ..far import *\n",
        pkg__far="def deep(): ...\ndef _hidden(): ...\n",
    )
    assert found["pkg/inner/work:run"] == found["pkg/inner/work:Tool.use"] == found["pkg/far:deep"] == {"<main>"}


def test_modules_that_import_each_other_are_followed_once() -> None:
    found = callers(a="from b import g\ndef f(): g()\n", b="from a import f\nfrom a import *\ndef g(): f()\n")
    assert found == {"b:g": {"a:f"}, "a:f": {"b:g"}}


def test_a_decorator_a_base_and_a_callback_of_another_file() -> None:
    found = callers(
        "from lib import traced, Base, later\nclass Own(Base):\n    def hook(self): ...\n"
        "@traced\ndef work(): ...\ndef call(): ...\nwork()\nOwn().run()\nlater(call)\n",
        lib="def traced(f):\n    def inner(): f()\n    return inner\n"
        "class Base:\n    def run(self): self.hook()\ndef later(f): f()\n",
    )
    assert found["work"] == {"lib:traced.inner"}
    assert found["Own.hook"] == {"lib:Base.run"}
    assert found["call"] == {"lib:later"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("main.py", "main"),
        ("src/app/core.py", "app.core"),
        ("src/app/__init__.py", "app"),
        ("src/script.py", "script"),
        ("tools/release.py", "tools.release"),
        ("__init__.py", ""),
    ],
)
def test_the_name_of_a_module_begins_above_its_packages(path: str, name: str) -> None:
    assert Modules([path, "src/app/__init__.py"]).name(path) == name


def test_an_import_means_the_nearest_file_and_never_a_package_of_the_same_name_inside() -> None:
    modules = Modules(["app/__init__.py", "app/types.py", "app/use.py", "tests/helper.py", "tests/test_x.py"])
    assert modules.resolve("types", 0, "app/use.py") == ""
    assert modules.resolve("types", 1, "app/use.py") == "app/types.py"
    assert modules.resolve("helper", 0, "tests/test_x.py") == "tests/helper.py"
    assert modules.resolve("app.types", 0, "tests/test_x.py") == "app/types.py"
    assert modules.resolve("", 9, "app/use.py") == ""


def test_a_changed_file_is_followed_again_with_those_that_import_it() -> None:
    flow = flow_of(main="from lib import f\nfrom again import g\ndef run(): f(); g()\n", again="from lib import g\n",
                   lib="def f(): ...\ndef g(): ...\n", other="def h(): ...\n")  # fmt: skip
    touched = flow.update({"lib.py": summarize(b"# moved\ndef helper(): ...\ndef f(): helper()\ng = helper\n")})
    assert touched == {"lib.py", "main.py", "again.py"}
    assert {(call.target, call.caller) for call in flow.calls("main.py")} == {("f", "run"), ("helper", "run")}
    assert [(call.target, call.caller) for call in flow.calls("lib.py")] == [("helper", "f")]


def test_methods_of_a_changed_base_are_found_from_classes_elsewhere() -> None:
    flow = flow_of(base="class Base:\n    def m(self): ...\n", own="from base import Base\nclass Own(Base): ...\n",
                   main="from own import Own\ndef run(): Own().m()\n")  # fmt: skip
    flow.update({"base.py": summarize(b"X = 1\nclass Above:\n    def m(self): ...\nclass Base(Above): ...\n")})
    assert {call.target for call in flow.calls("main.py")} == {"Own", "Above.m"}


def test_a_removed_file_is_called_by_nobody_and_may_come_back() -> None:
    flow = flow_of(main="from lib import f\nf()\n", lib="def f(): ...\n")
    flow.update({}, ["lib.py"])
    assert flow.calls("main.py") == flow.calls("lib.py") == []
    flow.update({"lib.py": summarize(b"def f(): ...\n")})
    assert [call.target for call in flow.calls("main.py")] == ["f"]


def test_values_that_went_through_a_removed_file_are_forgotten_elsewhere() -> None:
    flow = flow_of(
        utils="found = {}\ndef export(f):\n    found['x'] = f\n    return f\n",
        views="from utils import export\n@export\ndef about(): ...\n",
        app="class App:\n    def read(self):\n        from utils import found\n        self.views = {}\n"
        "        for name, f in found.items():\n            self.views[name] = f\n"
        "    def run(self):\n        self.views['x']()\n",
    )
    assert [call.target for call in flow.calls("app.py")] == ["about"]
    flow.update({}, ["utils.py"])
    assert flow.calls("app.py") == []


def test_a_function_that_comes_back_is_called_again() -> None:
    flow = flow_of(main="import lib\nlib.f(print)\ndef g(): ...\nlib.f(g)\n", lib="def f(x): x()\n")
    flow.update({"lib.py": summarize(b"")})
    assert flow.calls("main.py") == []
    assert "main.py" in flow.update({"lib.py": summarize(b"# moved\ndef f(x): x()\n")})
    assert {call.target for call in flow.calls("main.py")} == {"f"}
    assert {call.target for call in flow.calls("lib.py")} == {"g"}


def test_a_callback_that_a_changed_file_takes_is_still_called_there() -> None:
    flow = flow_of(main="from lib import later\ndef call(): ...\nlater(call)\n", lib="def later(f): f()\n")
    flow.update({"lib.py": summarize(b"# first line\ndef now(g): g()\ndef later(f): now(f)\n")})
    assert {(call.caller, call.target) for call in flow.calls("lib.py")} == {("later", "now"), ("now", "call")}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01",
        b"def f(:\n",
        b"print 'python two'\n",
        b"\xff\xfe latin",
        b"x = " + b"(" * 5_000 + b")" * 5_000,
        b"x = " + b"-" * 50_000 + b"1",
        b"a" + b".b()" * 20_000,
        b"x = " + b"[" * 150 + b"]" * 150,
        b"".join(b" " * depth + b"if x:\n" for depth in range(300)),
        b"# coding: nonsense\nx = 1\n",
        "def größe(): ...\ngröße()\n".encode(),
        b"def f(x): x['\\ud800']()\n",
    ],
)
def test_a_summary_is_made_of_any_bytes(content: bytes) -> None:
    summary = msgspec.msgpack.decode(msgspec.msgpack.encode(summarize(content)), type=FlowSummary)
    assert summary.error == "" or summary.scopes == ()


def test_a_sum_of_thousands_of_terms_is_no_deep_nesting() -> None:
    summary = summarize(b"def f(): ...\nx = " + b" + ".join([b"'a'"] * 2_000) + b"\nf()\n")
    assert (summary.error, len(summary.sites)) == ("", 1)


def test_a_method_that_a_subclass_gets_later_overrides_from_then_on() -> None:
    flow = flow_of(
        base="class Base:\n    def run(self): self.step()\n    def step(self): ...\n",
        sub="from base import Base\nclass Sub(Base): ...\n",
    )
    assert [call.target for call in flow.indirect_calls("base.py")] == []
    touched = flow.update({"sub.py": summarize(b"from base import Base\nclass Sub(Base):\n    def step(self): ...\n")})
    assert "base.py" in touched
    assert [call.target for call in flow.indirect_calls("base.py")] == ["Sub.step"]
    flow.update({"sub.py": summarize(b"from base import Base\nclass Sub(Base): ...\n")})
    assert [call.target for call in flow.indirect_calls("base.py")] == []
