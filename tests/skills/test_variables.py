"""Placeholders in prompts and skills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ConfigError, ValidationError
from clew.skills.variables import Source, Variables, find_names, inject

VALUES = {"VAR": "x", "INNER": "i", "OTHER": "o", "CAFÉ": "c", "日本語": "j", "a.b-c": "d"}


@pytest.mark.req("CAR-28")
@pytest.mark.parametrize("text", ["{{VAR}}", "{{ VAR}}", "{{VAR }}", "{{ VAR }}", "{{\tVAR\n}}", "{{     VAR     }}"])
def test_a_placeholder_may_have_any_spacing_inside(text: str) -> None:
    assert inject(f"<{text}>", VALUES) == "<x>"


@pytest.mark.req("CAR-28")
@pytest.mark.parametrize("text", ["{{ var }}", "{{ MISSING }}", "{{ Var }}", "{{ VARS }}"])
def test_an_undefined_placeholder_stays_and_names_are_case_sensitive(text: str) -> None:
    assert inject(text, VALUES) == text


@pytest.mark.req("CAR-28")
def test_every_source_wins_over_those_before_it() -> None:
    variables = Variables(
        dict.fromkeys(("A", "B", "C", "APP_D"), "constructor"),
        env_prefixes=("APP_",),
        environ={"APP_D": "environment", "A": "leak", "SECRET": "leak"},
    )
    found = variables.resolve(
        {"B": "additional", "C": "additional", "APP_D": "additional"}, {"C": "call", "APP_D": "call"}
    )
    assert found == {"A": "constructor", "B": "additional", "C": "call", "APP_D": "environment"}


@pytest.mark.req("CAR-28")
def test_the_environment_is_seen_only_through_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_PROMPT_TEAM", "blue")
    monkeypatch.setenv("CLEW_TOKEN", "hidden-value")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-value")
    text = "{{ CLEW_PROMPT_TEAM }} {{ CLEW_TOKEN }} {{ AWS_SECRET_ACCESS_KEY }}"
    shown = inject(text, Variables().resolve())
    assert shown == "blue {{ CLEW_TOKEN }} {{ AWS_SECRET_ACCESS_KEY }}"


@pytest.mark.parametrize("prefix", ["", "  "])
def test_a_prefix_that_would_show_everything_is_refused(prefix: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^an empty prefix would show the whole environment to a model.*CLEW_PROMPT_"
    ):
        Variables(env_prefixes=("APP_", prefix))


def test_a_single_prefix_is_that_prefix_and_not_its_letters() -> None:
    environ = {"APP_A": "x", "AWS_SECRET_ACCESS_KEY": "hidden-value", "PATH": "hidden-value"}
    assert Variables(env_prefixes="APP_", environ=environ).resolve() == {"APP_A": "x"}


@pytest.mark.req("CAR-28")
def test_the_order_of_the_sources_can_be_chosen() -> None:
    variables = Variables(
        {"APP_A": "constructor"},
        env_prefixes=("APP_",),
        environ={"APP_A": "environment", "APP_B": "environment"},
        order=("environment", "additional", "call", "constructor"),
    )
    found = variables.resolve({"APP_A": "additional", "APP_B": "additional"}, {"APP_B": "call"})
    assert found == {"APP_A": "constructor", "APP_B": "call"}


@pytest.mark.parametrize("order", [(), ("call",), ("call", "call", "additional", "environment"), ("weather",)])
def test_an_order_that_does_not_name_each_source_once_is_refused(order: tuple[Source, ...]) -> None:
    with pytest.raises(ConfigError, match=f"each once, not {', '.join(order)}.*constructor, additional, call, env"):
        Variables(order=order)


def test_no_prefix_at_all_shows_nothing_of_the_environment() -> None:
    assert Variables(env_prefixes=(), environ={"CLEW_PROMPT_A": "x"}).resolve() == {}


@pytest.mark.req("CAR-29")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("}} {{VAR}} }} {{VAR}} {{", "}} x }} x {{"),
        ("{{ {{VAR}}", "{{ x"),
        ("{{VAR}}{{VAR}}", "xx"),
        ("{ {VAR} }{{VAR}}", "{ {VAR} }x"),
    ],
)
def test_braces_without_a_partner_do_not_keep_others_from_being_filled(text: str, shown: str) -> None:
    assert inject(text, VALUES) == shown


@pytest.mark.req("CAR-29")
def test_variables_that_name_each_other_do_not_go_round() -> None:
    assert inject("{{ A }}", {"A": "{{ B }}", "B": "{{ A }}"}) == "{{ B }}"
    assert inject("{{ A }}", {"A": "{{ A }}{{ A }}"}) == "{{ A }}{{ A }}"


@pytest.mark.req("CAR-29")
def test_a_value_cannot_bring_in_another_variable() -> None:
    assert inject("{{ USER }} {{ KEY }}", {"USER": "{{ KEY }}", "KEY": "k"}) == "{{ KEY }} k"


@pytest.mark.req("CAR-29")
@pytest.mark.parametrize(
    "text",
    [
        "{{ VAR }",
        "{ VAR }}",
        "{{ VAR",
        "VAR }}",
        "{{{ VAR }}}",
        "{{ VAR }}}",
        "{{{{ VAR }}}}",
        "{{}}",
        "{{ }}",
        "{{ VAR_{{ INNER }} }}",
        "{{ {{ VAR }} }}",
        "{{ {VAR} }}",
        "{{ 1VAR }}",
        "{{ VAR OTHER }}",
        "{{ VAR | upper }}",
        "{{ VAR\x00 }}",
        "{{ " + "V" * 300 + " }}",
    ],
)
def test_malformed_braces_stay_as_they_are(text: str) -> None:
    assert inject(text, VALUES) == text
    assert inject(f"{text} {{{{ VAR }}}}", VALUES) == f"{text} x"


@pytest.mark.req("CAR-29")
@pytest.mark.parametrize(("name", "value"), [("CAFÉ", "c"), ("日本語", "j"), ("a.b-c", "d")])
def test_names_may_be_of_any_language(name: str, value: str) -> None:
    assert inject(f"{{{{ {name} }}}}", VALUES) == value


@pytest.mark.req("CAR-29")
def test_a_megabyte_goes_in_whole_and_many_braces_cost_little() -> None:
    assert inject("<{{ VAR }}>", {"VAR": "y" * 1_000_000}) == "<" + "y" * 1_000_000 + ">"
    hostile = "{{" * 200_000 + " VAR " + "}}" * 200_000
    assert inject(hostile, VALUES) == hostile
    unclosed = "{{ VAR } " * 50_000
    assert inject(unclosed + "{{ VAR }}", VALUES) == unclosed + "x"


def test_code_with_braces_is_left_alone() -> None:
    code = 'data = {"a": {"b": 1}}\nf"{{literal}} {VAR}"\n'
    assert inject(code + "{{ VAR }}", VALUES) == code + "x"


def test_braces_that_never_close_do_not_hide_what_follows_far_below() -> None:
    assert inject("{{ VAR } " + "." * 500 + "{{ OTHER }} {'a': {'b': 1}}", VALUES).endswith("o {'a': {'b': 1}}")


def test_names_are_listed_once_in_their_order() -> None:
    assert find_names("{{ B }} {{ A }} {{B}} {{ {{ C }} }} {{ }}") == ["B", "A"]


@pytest.mark.parametrize(
    ("value", "shown"), [("t", "t"), (3, "3"), (1.5, "1.5"), (True, "true"), (["a", "b"], "a, b"), ((), "")]
)
def test_numbers_flags_and_lists_are_shown_as_text(value: object, shown: str) -> None:
    assert Variables({"A": value}, environ={}).resolve() == {"A": shown}  # type: ignore[dict-item]


@pytest.mark.req("CAR-31")
@pytest.mark.parametrize("value", [None, {"a": 1}, [1, 2], object()])
def test_other_values_are_refused_with_what_is_allowed(value: object) -> None:
    with pytest.raises(ValidationError, match="the variable A is") as raised:
        Variables().resolve({"A": value})  # type: ignore[dict-item]
    assert raised.value.context == {"variable": "A"}
    assert "text" in raised.value.allowed


@given(st.text(alphabet="{} VA\n"), st.text())
def test_text_around_placeholders_is_never_changed(text: str, value: str) -> None:
    assert inject(text, {}) == text
    marker = inject(text, {"VA": value})
    assert marker == text or value in marker


@pytest.mark.req("CAR-29")
def test_a_placeholder_may_be_two_hundred_characters_long_and_no_longer() -> None:
    name = "N" * 196
    assert inject(f"{{{{{name}}}}}", {name: "x", f"{name}N": "y"}) == "x"
    assert inject(f"{{{{{name}N}}}}", {name: "x", f"{name}N": "y"}) == f"{{{{{name}N}}}}"


@pytest.mark.req("CAR-29")
@pytest.mark.parametrize(
    "text", ["{{}VAR}}", "{{VAR{}}", "{{ }VAR }}", "{{{VAR}}", "{{VAR}}}", "{{{VAR}}}", "{{{{VAR}}}}"]
)
def test_a_brace_too_many_leaves_all_as_it_is(text: str) -> None:
    assert inject(text, VALUES) == text
    assert find_names(text) == []


def test_names_are_found_without_any_spacing() -> None:
    assert find_names("{{A}} {{ B }}{{A}}") == ["A", "B"]


@pytest.mark.req("CAR-31")
def test_a_value_that_is_no_text_is_reported_with_what_is_allowed() -> None:
    with pytest.raises(ValidationError) as caught:
        Variables({"A": {"b": "c"}})  # type: ignore[dict-item]
    said = "the variable A is dict, not one of: text, number, true or false, list of strings"
    assert str(caught.value).startswith(said)
    assert caught.value.context["variable"] == "A"


@pytest.mark.req("CAR-31")
def test_a_name_that_is_no_text_is_reported() -> None:
    with pytest.raises(ValidationError, match="the name 1 of a variable is not text"):
        Variables().resolve(call={"A": "b", 1: "x"})  # type: ignore[dict-item]
