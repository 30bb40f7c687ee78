"""Numbers that are stored, and so must never move."""

from __future__ import annotations

import pytest

from clew.errors import InvalidInput
from clew.knowledge.nodes.kinds import (
    ConflictKind,
    NodeDomain,
    NodeType,
    SourceKind,
    TrustLevel,
    Verification,
    check_node_type,
    domain_of,
)
from clew.trail.model.edge import REVERSES, Edge, EdgeType, check_edge, stored_types

NODE_TYPES = {
    NodeDomain.CODE: "file package function method struct interface variable constant import",
    NodeDomain.HISTORY: "history_entry session workflow outcome decision pattern failure",
    NodeDomain.ACADEMIC: "paper documentation best_practice rfc stack_overflow blog_post tutorial",
}

EDGE_TYPES = {
    0: "calls called_by imports imported_by implements implemented_by embeds has_field has_method defines"
    " defined_in returns receives",
    50: "produced_by resulted_in similar_to followed_by supersedes",
    100: "modified created deleted based_on references validated_by documents uses_library implements_pattern"
    " referenced_in inspired_by",
    150: "cites related_to",
}


def numbered(first: int, names: str) -> dict[str, int]:
    return {name: first + at for at, name in enumerate(names.split())}


@pytest.mark.req("SYL-71")
def test_node_types_keep_their_numbers():
    expected = {}
    for domain, names in NODE_TYPES.items():
        expected |= numbered(domain * 100, names)
    assert {kind.label: kind.value for kind in NodeType} == expected


@pytest.mark.req("SYL-71")
def test_each_node_type_belongs_to_one_domain():
    for domain, names in NODE_TYPES.items():
        for name in names.split():
            kind = NodeType[name.upper()]
            assert domain_of(kind) is domain
            assert check_node_type(int(domain), int(kind)) == (domain, kind)


@pytest.mark.req("SYL-71")
@pytest.mark.parametrize(
    ("domain", "node_type", "field"),
    [
        (0, 100, "node_type"),
        (1, 0, "node_type"),
        (2, 104, "node_type"),
        (0, 9, "node_type"),
        (0, 99, "node_type"),
        (0, -1, "node_type"),
        (2, 207, "node_type"),
        (3, 300, "domain"),
        (-1, 0, "domain"),
        ("code", 0, "domain"),
    ],
)
def test_a_type_outside_its_domain_is_refused(domain, node_type, field):
    with pytest.raises(InvalidInput) as refused:
        check_node_type(domain, node_type)
    assert refused.value.field == field
    assert refused.value.hint


@pytest.mark.req("SYL-73")
def test_the_numbers_of_evidence_are_fixed():
    assert {kind.label: kind.value for kind in Verification} == numbered(0, "none code history user")
    assert {kind.label: kind.value for kind in SourceKind} == numbered(0, "code history academic llm_inference user")
    assert {kind.label: kind.value for kind in ConflictKind} == numbered(0, "temporal source_mismatch semantic")
    assert {kind.label: kind.value for kind in TrustLevel} == {
        "ground": 100,
        "recent": 80,
        "standard": 70,
        "academic": 60,
        "old_history": 40,
        "blog": 30,
        "llm": 20,
    }


@pytest.mark.req("SYL-72")
def test_edge_types_keep_their_numbers():
    expected = {}
    for first, names in EDGE_TYPES.items():
        expected |= numbered(first, names)
    assert {kind.label: kind.value for kind in EdgeType} == expected


@pytest.mark.req("SYL-72")
def test_every_reverse_name_is_stored_as_its_partner():
    labels = {kind.label for kind in EdgeType}
    assert set(REVERSES) == {"called_by", "imported_by", "implemented_by", "defined_in", "referenced_in"}
    for backwards, forwards in REVERSES.items():
        assert forwards in labels
        assert forwards not in REVERSES
        stored = check_edge(Edge(source="a", target="b", type=backwards))
        assert (stored.source, stored.target, stored.type) == ("b", "a", forwards)


@pytest.mark.req("SYL-72")
def test_a_reverse_name_is_read_in_the_other_direction():
    assert stored_types(["called_by"], "outgoing") == (("calls", "incoming"),)
    assert stored_types(["called_by"], "incoming") == (("calls", "outgoing"),)
    assert stored_types(["calls"], "outgoing") == (("calls", "outgoing"),)
    assert stored_types(["called_by"], "both") == (("calls", "both"),)
