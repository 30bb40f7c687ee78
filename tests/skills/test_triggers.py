"""Skills that come by themselves."""

from __future__ import annotations

import pytest

from clew.errors import ValidationError
from clew.skills.manifest import Skill, Triggers
from clew.skills.triggers import Turn, expand, match


def skill(name: str = "s", **given: object) -> Skill:
    triggers = {key: given.pop(key) for key in ("words", "pattern", "phases", "paths") if key in given}
    return Skill(name=name, description="d", triggers=Triggers(**triggers), **given)  # type: ignore[arg-type]


def names(turn: Turn, *skills: Skill) -> list[str]:
    return [each.skill for each in match(skills, turn)]


@pytest.mark.req("SYL-20")
@pytest.mark.parametrize(
    ("pattern", "text", "fires"),
    [
        ("stop|wait|pause", "Please STOP that", True),
        ("depend", "which dependencies are there?", True),
        ("depend", "an independent module", False),
        ("other session|past", "in the other  session", True),
        ("other session|past", "another session", False),
        ("roll ?out", "the rollout", True),
        ("roll ?out", "roll out now", True),
        ("roll ?out", "rolling", False),
        ("rfc", "", False),
        ("naïve|größe", "Die GRÖSSE zählt", True),
        ("日本", "日本語で", True),
    ],
)
def test_a_pattern_is_an_alternation_of_phrases(pattern: str, text: str, fires: bool) -> None:
    assert bool(names(Turn(text=text), skill(pattern=pattern))) is fires


@pytest.mark.parametrize(
    ("text", "fires"), [("deploy it", True), ("Deploy!", True), ("deployment", False), ("redeploy", False)]
)
def test_words_and_keywords_are_whole_words(text: str, fires: bool) -> None:
    assert bool(names(Turn(text=text), skill(words=("deploy",)))) is fires
    assert bool(names(Turn(text=text), skill(keywords=("deploy",)))) is fires


def test_the_phase_of_the_work_triggers() -> None:
    assert names(Turn(phase="Review"), skill(phases=("review",))) == ["s"]
    assert names(Turn(phase="plan"), skill(phases=("review",))) == []
    assert names(Turn(), skill(phases=("",))) == []


def test_a_path_that_is_worked_on_triggers_and_says_so() -> None:
    (found,) = match([skill(paths=("src/**/*.sql",))], Turn(paths=("README.md", "src/db/x.sql")))
    assert (found.via, found.why) == ("path", "path src/db/x.sql matches src/**/*.sql")
    assert names(Turn(paths=("x.sql",)), skill(paths=("src/**/*.sql",))) == []


@pytest.mark.req("SYL-19")
def test_only_the_second_tier_comes_by_itself() -> None:
    three = [skill(f"t{tier}", tier=tier, words=("go",)) for tier in (1, 2, 3)]
    assert names(Turn(text="go"), *three) == ["t2"]


@pytest.mark.req("SYL-20")
def test_priority_orders_and_names_break_ties() -> None:
    given = [skill("b", words=("go",)), skill("c", words=("go",), priority=5), skill("a", words=("go",))]
    assert names(Turn(text="go"), *given) == ["c", "a", "b"]


def test_a_skill_without_triggers_is_never_triggered() -> None:
    assert names(Turn(text="anything at all", phase="p", paths=("a",)), skill()) == []


def test_a_phrase_stands_for_all_its_spellings() -> None:
    assert set(expand("roll ?out| Ship it |")) == {"roll out", "rollout", "ship it"}
    assert expand("") == ()


@pytest.mark.parametrize("pattern", ["(a+)+$", "a*", "[ab]", "a{2}", "^stop", "\\bstop", ".*", "?a"])
def test_other_regular_expressions_are_refused_with_the_way_out(pattern: str) -> None:
    with pytest.raises(ValidationError, match="phrases") as raised:
        expand(pattern)
    assert raised.value.context["trigger"] == pattern


@pytest.mark.parametrize("pattern", ["a?" * 40, "x" * 501, "|".join(f"w{n}" for n in range(100))])
def test_a_pattern_cannot_grow_without_end(pattern: str) -> None:
    with pytest.raises(ValidationError):
        expand(pattern)


def test_a_pattern_that_should_not_be_in_a_manifest_triggers_nothing() -> None:
    assert names(Turn(text="aaaa"), skill(pattern="(a+)+$")) == []
