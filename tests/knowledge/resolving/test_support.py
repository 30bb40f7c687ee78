"""How far a source speaks of what a question is about."""

from __future__ import annotations

from clew.knowledge.resolving.support import build_wanted, support_of
from tests.knowledge.nodes import ACADEMIC, CODE, node


def test_support_is_the_share_of_the_words_by_their_rarity() -> None:
    wanted = build_wanted(["rare", "usual"], {"rare": 9.0, "usual": 1.0})
    assert support_of(wanted, node(CODE, "rare_thing", "")) == 0.9
    assert support_of(wanted, node(CODE, "UsualThing", "")) == 0.1
    assert support_of(wanted, node(CODE, "x", "usual and rare")) == 1.0
    assert support_of(wanted, node(CODE, "x", "neither")) == 0.0


def test_a_word_that_stands_nowhere_weighs_more_than_any_other() -> None:
    wanted = build_wanted(["payment", "gateway"], {"payment": 0.0, "gateway": 8.0})
    assert support_of(wanted, node(CODE, "gateway", "")) < wanted.least


def test_words_that_stand_far_apart_do_not_speak_of_one_thing() -> None:
    wanted = build_wanted(["tabs", "spaces"], {})
    assert support_of(wanted, node(ACADEMIC, "x", "tabs or spaces")) == 1.0
    assert support_of(wanted, node(ACADEMIC, "x", f"tabs {'word ' * 500} spaces")) == 0.5


def test_what_stands_in_a_body_alone_counts_less() -> None:
    wanted = build_wanted(["connection"], {})
    assert 0.5 < support_of(wanted, node(CODE, "release", ""), "self.connection.close()") < 1.0


def test_short_forms_and_words_that_say_the_same_are_one() -> None:
    wanted = build_wanted(["configuration", "remove"], {})
    assert support_of(wanted, node(CODE, "delete_cfg", "")) == 1.0


def test_without_words_nothing_is_supported_and_of_many_words_fewer_will_do() -> None:
    assert support_of(build_wanted([], {}), node(CODE, "x", "y")) == 0.0
    assert build_wanted(list("abcdefgh"), {}).least < build_wanted(list("ab"), {}).least
