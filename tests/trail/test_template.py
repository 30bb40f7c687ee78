from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import TemplateError
from clew.trail.templates.template import RenderBudget, parse, render
from clew.trail.templates.template_helpers import MAX_OUTPUT
from clew.trail.templates.template_tree import MAX_NESTING, MAX_TEMPLATE

TOOL = {
    "name": "browser",
    "tags": ["web", "page"],
    "limits": {"memory": 64, "cpu": 0.5},
    "steps": [{"do": "open", "args": ["a", "b"]}, {"do": "click", "args": []}],
    "off": False,
    "none": None,
    "empty": "",
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.req("RCR-13")
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("no tags at all", "no tags at all"),
        ("", ""),
        ("{{name}}", "browser"),
        ("{{ name }}|{{{name}}}|{{{ name }}}", "browser|browser|browser"),
        ("{{limits.memory}} {{limits.cpu}}", "64 0.5"),
        ("{{tags.1}} {{steps.0.args.1}}", "page b"),
        ("{{tags.9}}{{tags.x}}{{name.0}}{{nothing.at.all}}{{none}}", ""),
        ("{{off}} {{tags}} {{limits}}", 'false ["web","page"] {"memory":64,"cpu":0.5}'),
        ("{{#if name}}yes{{else}}no{{/if}}", "yes"),
        ("{{#if off}}yes{{else}}no{{/if}}{{#if empty}}yes{{/if}}{{#if none}}yes{{/if}}", "no"),
        ("{{#if off}}a{{else if empty}}b{{else if name}}c{{else}}d{{/if}}", "c"),
        ("{{#if off}}a{{else if empty}}b{{else}}d{{/if}}", "d"),
        ("{{#unless off}}on{{else}}off{{/unless}}", "on"),
        ("{{#each tags}}{{@index}}={{this}};{{/each}}", "0=web;1=page;"),
        ("{{#each tags}}{{#if @first}}[{{/if}}{{.}}{{#unless @last}}, {{else}}]{{/unless}}{{/each}}", "[web, page]"),
        ("{{#each limits}}{{@key}}:{{this}} {{/each}}", "memory:64 cpu:0.5 "),
        ("{{#each none}}x{{else}}nothing{{/each}}", "nothing"),
        ("{{#each name}}x{{/each}}", ""),
        ("{{#each steps}}{{do}}@{{../name}}({{#each args}}{{this}}{{../../off}}{{/each}}) {{/each}}",
         "open@browser(afalsebfalse) click@browser() "),
        ("{{#each steps}}{{@root.name}}{{this.do}}{{/each}}", "browseropenbrowserclick"),
        ("{{#with limits}}{{memory}}{{../name}}{{/with}}{{#with none}}x{{else}}y{{/with}}", "64browsery"),
        ("{{#each tags}}{{#with ../limits}}{{@index}}{{memory}}{{/with}}{{/each}}", "064164"),
        ("{{..}}{{../../name}}", ""),
        ("a{{! a note }}b{{!-- with }} inside --}}c", "abc"),
        ('{{join tags}} {{join tags " / "}} {{join name}}', "web, page web / page browser"),
        ("{{json tags}} {{json name}} {{json none}}", '["web","page"] "browser" null'),
        ("{{length tags}} {{length limits}} {{length name}} {{length off}}", "2 2 7 0"),
        ("{{default empty \"-\"}} {{default none 'x'}} {{default off 1}} {{default name 1}}", "- x false browser"),
        ("{{truncate name 4}} {{truncate name 7}}", "bro… browser"),
        ("{{upper name}} {{lower 'ÄB'}}", "BROWSER äb"),
        ("{{#if length tags}}some{{/if}}{{#each default none tags}}{{this}}{{/each}}", "somewebpage"),
        ("{{'{{'}} {{42}} {{-1.5}} {{true}}", "{{ 42 -1.5 true"),
    ],
)  # fmt: skip
def test_a_template_renders_as_handlebars_users_expect(template: str, expected: str) -> None:
    assert render(template, TOOL) == expected


def test_nothing_is_escaped() -> None:
    assert render("{{a}}{{{a}}}", {"a": "<b> & \"c\" 'd'"}) == "<b> & \"c\" 'd'" * 2


def test_values_that_look_like_templates_stay_text() -> None:
    assert render("{{a}}", {"a": "{{b}}", "b": "secret"}) == "{{b}}"


def test_a_block_tag_alone_on_its_line_takes_the_line_with_it() -> None:
    template = "Steps:\n{{#each steps}}\n  - {{do}}\n  {{#if args}}\n    {{join args}}\n  {{/if}}\n{{/each}}\nend"

    assert render(template, TOOL) == "Steps:\n  - open\n    a, b\n  - click\nend"


def test_blank_lines_of_the_author_stay() -> None:
    assert render("a\n\n{{#if x}}\nb\n{{/if}}\n\nc", {"x": 1}) == "a\n\nb\n\nc"
    assert render("a {{#if x}}b{{/if}} c\n", {"x": 1}) == "a b c\n"


@pytest.mark.parametrize(
    "template",
    [
        "{{__class__}}{{__class__.__mro__}}{{a.__class__}}{{a.0.upper}}{{a.0.__len__}}{{a.append}}",
        "{{#with __class__}}x{{/with}}{{#each __dict__}}{{@key}}{{/each}}",
        "{{this.__init__.__globals__}}{{@root.__class__}}{{a.-1}}{{a.1e0}}{{a.²}}{{get}}{{items}}{{keys}}",
    ],
)
def test_names_never_reach_python_attributes(template: str) -> None:
    assert render(template, {"a": ["x", "y"]}) == ""


def test_a_key_with_a_dangerous_name_is_just_a_key() -> None:
    assert render("{{__class__}}{{@type}}", {"__class__": "plain", "@type": "Person"}) == "plainPerson"


@pytest.mark.parametrize(
    "template",
    [
        "{{",
        "{{name",
        "{{{name}}",
        "{{}}",
        "{{  }}",
        "{{!-- never closed }}",
        "{{#if name}}",
        "{{#if name}}{{else}}",
        "{{/if}}",
        "{{/}}",
        "{{#if name}}{{/each}}",
        "{{#if a}}{{else if b}}{{/unless}}",
        "{{else}}",
        "{{#if a}}{{else}}{{else}}{{/if}}",
        "{{#each a}}{{else each b}}{{/if}}",
        "{{#if}}{{/if}}",
        "{{#}}{{/}}",
        "{{#if a b}}{{/if}}",
        "{{#while a}}{{/while}}",
        "{{#each a as |b|}}{{/each}}",
        "{{> partial}}",
        "{{& raw}}",
        "{{frobnicate a}}",
        "{{join}}{{upper a b}}",
        "{{truncate a}}",
        "{{a..b}}",
        "{{a.}}",
        "{{.a}}",
        "{{a/b}}",
        "{{../}}",
        "{{'open}}",
        "{{upper (lower a)}}",
        "{{a[0]}}}}{{=}}",
        "{{" + "a." * 40 + "a}}",
        "{{" + "../" * 40 + "a}}",
    ],
)
def test_a_malformed_template_is_refused(template: str) -> None:
    with pytest.raises(TemplateError):
        parse(template)


def test_an_error_names_the_line() -> None:
    with pytest.raises(TemplateError, match="line 3"):
        parse("one\ntwo\n{{bad call}}")
    with pytest.raises(TemplateError, match=r"'each' that is not closed.*line 2"):
        parse("one\n{{#each a}}\nthree")


def test_limits_hold_at_their_edges() -> None:
    nested = "{{#if a}}" * MAX_NESTING + "x" + "{{/if}}" * MAX_NESTING

    assert render(nested, {"a": 1}) == "x"
    assert render("y" * MAX_TEMPLATE, {}) == "y" * MAX_TEMPLATE
    assert len(render("{{a}}", {"a": "z" * MAX_OUTPUT})) == MAX_OUTPUT
    for template, data in (
        ("{{#if a}}" + nested + "{{/if}}", {"a": 1}),
        ("y" * (MAX_TEMPLATE + 1), {}),
        ("{{a}}", {"a": "z" * (MAX_OUTPUT + 1)}),
        ("{{a}}" * 5_001, {}),
    ):
        with pytest.raises(TemplateError):
            render(template, data)


HUGE = {
    "list": list(range(1_000)),
    "text": "x" * 50_000,
    "deep": ["x" * 100] * 10_000,
    "blank": [""] * 100_000,
    "few": ["x" * 100_000] * 9,
}


@pytest.mark.parametrize(
    "template",
    [
        "{{#each list}}{{#each ../list}}{{#each ../../list}}{{/each}}{{/each}}{{/each}}",
        "{{#each list}}{{#each @root.list}}{{#if this}}{{/if}}{{/each}}{{/each}}",
        "{{#each list}}{{../text}}{{/each}}",
        "{{#each list}}{{truncate ../deep 1}}{{/each}}",
        "{{#each list}}{{#each @root.list}}{{truncate @root.text 1}}{{/each}}{{/each}}",
        "{{#each list}}{{#each @root.list}}{{default '' @root.deep}}{{/each}}{{/each}}",
        "{{join blank text}}",
        "{{#each list}}{{#each @root.list}}{{#if join @root.few}}{{/if}}{{/each}}{{/each}}",
        "{{#each list}}{{#each @root.list}}{{#if (upper @root.text)}}{{/if}}{{/each}}{{/each}}",
        "{{#if a}}" * 5_000,
        "{" * MAX_TEMPLATE,
        "{{a " * (MAX_TEMPLATE // 4),
        "{{" + "../" * 20_000 + "a}}",
        "{{" + "a " * 30_000 + "}}",
        "{{" + "a." * 30_000 + "}}",
        "{{" + "'a'" * 20_000 + '"}}',
        "{{!--" * 10_000,
    ],
)
def test_a_hostile_template_ends_soon(template: str) -> None:
    with pytest.raises(TemplateError):
        render(template, HUGE)


class Counted(str):
    """Text that counts the characters which are looked at in it and in its parts."""

    touched = 0

    def find(self, what: str, start: int = 0) -> int:  # type: ignore[override]  # as the parser calls it
        at = super().find(what, start)
        Counted.touched += (len(self) if at < 0 else at) - start
        return at

    def rfind(self, what: str) -> int:  # type: ignore[override]  # as the parser calls it
        at = super().rfind(what)
        Counted.touched += len(self) - max(at, 0)
        return at

    def strip(self) -> str:  # type: ignore[override]  # as the parser calls it
        Counted.touched += len(self)
        return Counted(super().strip())

    def __getitem__(self, key: Any) -> str:
        part = Counted(super().__getitem__(key))
        Counted.touched += len(part)
        return part


@pytest.mark.parametrize(
    "shape", ["{{#if a}} \n {{/if}}", "{{a}}\n", "{{!-- note --}}\n", "{{{a.b}}} ", "a\n\nb {{a}}"]
)
def test_the_work_of_parsing_grows_with_the_length_only(shape: str) -> None:
    def work(repeats: int) -> int:
        Counted.touched = 0
        parse.__wrapped__(Counted("\n" * 20 * repeats + shape * repeats))
        return Counted.touched

    small, large = work(100), work(1_000)

    assert small > 2_000
    assert large < small * 11


def test_data_that_contains_itself_ends_in_an_error() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop

    with pytest.raises(TemplateError):
        render("{{self}}", loop)
    assert render("{{#with self}}{{#with self}}{{self.self.missing}}{{/with}}{{/with}}", loop) == ""


@pytest.mark.parametrize("value", [object(), [10**5000], [object()], {"a": lambda: None}, "\ud800", ["\ud800"]])
def test_values_outside_of_json_are_never_shown_as_python_objects(value: Any) -> None:
    with pytest.raises(TemplateError, match="JSON"):
        render("{{json a}}", {"a": value})


def test_a_shared_budget_is_spent_by_all_who_share_it() -> None:
    budget = RenderBudget(steps=10, output=10)

    assert render("{{a}}", {"a": "12345"}, budget) == "12345"
    with pytest.raises(TemplateError, match="too much text"):
        render("{{a}}", {"a": "123456"}, budget)
    with pytest.raises(TemplateError, match="too many steps"):
        render("{{#each a}}{{/each}}", {"a": [1] * 20}, budget)


def test_truncate_wants_a_whole_positive_number() -> None:
    for wrong in ("0", "'x'", "true", "1.5", "missing"):
        with pytest.raises(TemplateError, match="truncate"):
            render("{{truncate a " + wrong + "}}", {"a": "abc"})


TAGS = st.sampled_from(
    ["{{a}}", "{{{a.b}}}", "{{#if a}}", "{{else}}", "{{/if}}", "{{#each a}}", "{{/each}}", "{{this}}", "{{@index}}",
     "{{../a}}", "{{join a}}", "{{json this}}", "{{! x }}", "{{", "}}", "\n", " ", "text", "{{#with a}}", "{{/with}}"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(TAGS | st.text(max_size=5), max_size=25).map("".join), st.dictionaries(st.sampled_from("ab"), JSON))
def test_any_template_on_any_data_gives_text_or_a_template_error(template: str, data: dict[str, Any]) -> None:
    try:
        text = render(template, data)
    except TemplateError:
        return
    assert isinstance(text, str)


@settings(deadline=None)
@given(st.text().filter(lambda text: "{{" not in text), JSON)
def test_text_without_tags_comes_out_unchanged(text: str, value: Any) -> None:
    assert render(text, {"a": value}) == text
