"""The fixed numbers of knowledge: domains, node types, verification, sources, trust and conflicts. Edge types
are in `edge.py`. Numbers are stored and never change; `label` is the name that tags and texts use."""

from __future__ import annotations

from enum import IntEnum

from clew.errors import InvalidInput

_SPAN = 100


class LabelledNumber(IntEnum):
    """A number with a name."""

    @property
    def label(self) -> str:
        return self.name.lower()


class NodeDomain(LabelledNumber):
    """The domain of a node. Domain n owns the node types n*100 to n*100+99."""

    CODE = 0
    HISTORY = 1
    ACADEMIC = 2


class NodeType(LabelledNumber):
    """The type of a node."""

    FILE = 0
    PACKAGE = 1
    FUNCTION = 2
    METHOD = 3
    STRUCT = 4
    INTERFACE = 5
    VARIABLE = 6
    CONSTANT = 7
    IMPORT = 8
    HISTORY_ENTRY = 100
    SESSION = 101
    WORKFLOW = 102
    OUTCOME = 103
    DECISION = 104
    PATTERN = 105
    FAILURE = 106
    PAPER = 200
    DOCUMENTATION = 201
    BEST_PRACTICE = 202
    RFC = 203
    STACK_OVERFLOW = 204
    BLOG_POST = 205
    TUTORIAL = 206


class Verification(LabelledNumber):
    """The kind of check that a claim passed."""

    NONE = 0
    CODE = 1
    HISTORY = 2
    USER = 3


class SourceKind(LabelledNumber):
    """The origin of a claim."""

    CODE = 0
    HISTORY = 1
    ACADEMIC = 2
    LLM_INFERENCE = 3
    USER = 4


class TrustLevel(LabelledNumber):
    """Trust in a node, from 0 to 100; these are the named levels."""

    GROUND = 100
    RECENT = 80
    STANDARD = 70
    ACADEMIC = 60
    OLD_HISTORY = 40
    BLOG = 30
    LLM = 20


class ConflictKind(LabelledNumber):
    """The kind of disagreement between two nodes."""

    TEMPORAL = 0
    SOURCE_MISMATCH = 1
    SEMANTIC = 2


def domain_of(node_type: NodeType) -> NodeDomain:
    """The domain that owns a node type."""
    return NodeDomain(node_type // _SPAN)


def check_node_type(domain: int, node_type: int) -> tuple[NodeDomain, NodeType]:
    """Convert both to members. Raises InvalidInput when either is unknown or the type belongs to another domain."""
    if domain not in NodeDomain.__members__.values():
        raise InvalidInput("domain", f"{domain!r} is not a domain", hint=f"Domains are {_names(NodeDomain)}")
    owner = NodeDomain(domain)
    if node_type not in NodeType.__members__.values():
        raise InvalidInput("node_type", f"{node_type!r} is not a node type", hint=f"Types are {_names(NodeType)}")
    kind = NodeType(node_type)
    if domain_of(kind) is not owner:
        raise InvalidInput(
            "node_type",
            f"{kind.label} belongs to {domain_of(kind).label}, not to {owner.label}",
            hint=f"Types of {owner.label} are {owner * _SPAN} to {owner * _SPAN + _SPAN - 1}",
        )
    return owner, kind


def _names(kinds: type[LabelledNumber]) -> str:
    return ", ".join(f"{kind.value} {kind.label}" for kind in kinds)
