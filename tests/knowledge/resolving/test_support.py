"""How far a source speaks of what a question is about."""

from __future__ import annotations

from clew.knowledge.resolving.support import actions_in, build_wanted, support_of
from tests.knowledge.nodes import ACADEMIC, CODE, node


def test_support_is_the_share_of_the_words_by_their_rarity() -> None:
    wanted = build_wanted(["rare", "usual"], {"rare": 9.0, "usual": 1.0})
    assert support_of(wanted, node(CODE, "rare_thing", "")) == 0.9
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


def test_what_lacks_the_rarest_thing_of_a_short_question_is_no_answer_whatever_else_it_has() -> None:
    rarity = {"kubernetes": 0.0, "operator": 2.0, "deployed": 2.0}
    wanted = build_wanted(list(rarity), rarity, actions=actions_in("how is the kubernetes operator deployed"))
    assert support_of(wanted, node(ACADEMIC, "x", "the operator is deployed")) == 0.0
    assert support_of(wanted, node(ACADEMIC, "x", "kubernetes and its operator")) > wanted.least
    long = build_wanted(list("abcdefg"), dict.fromkeys("bcdefg", 2.0))
    assert support_of(long, node(ACADEMIC, "x", "b c d e f g")) > long.least


def test_what_is_done_may_be_said_in_another_word() -> None:
    question = "explain how we print the attributes"
    assert actions_in(question) == {"print"}
    assert actions_in("who may refund 300 euros") == {"300"}
    wanted = build_wanted(["print", "attributes"], {"attributes": 2.0}, actions=actions_in(question))
    assert support_of(wanted, node(CODE, "show_attributes", "")) > 0.0
    assert support_of(wanted, node(CODE, "print_colours", "")) == 0.0


def test_a_word_that_is_needed_may_be_said_as_those_who_commit_say_it() -> None:
    wanted = build_wanted(["mongodb", "dropped"], {}, needed=["dropped"])
    assert support_of(wanted, node(ACADEMIC, "x", "MongoDB is a database")) == 0.0
    assert support_of(wanted, node(ACADEMIC, "x", "Remove MongoDB")) > 0.0
