"""A plan: nodes with dependencies, the files that each may change and the checks that each must pass. `check_plan`
refuses a plan that cannot be carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.step_order import OrderedStep, require_order

MAX_TIMEOUT_MS = 86_400_000
MAX_NODES = 200
MAX_PROMPT = 100_000
MAX_FILES = 500
Identifier = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,47}\Z")]
Builder = Literal["engineer", "designer"]


class RetryLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a node is tried again after an error, and the first pause."""

    max: Annotated[int, Meta(ge=0, le=10)] = 2
    backoff_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 2_000


class NodeContext(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Background for the agent of a node. `upstream_outputs` are filled in when the node starts."""

    relevant_files: tuple[str, ...] = ()
    reason: str = ""
    constraints: tuple[str, ...] = ()
    upstream_outputs: dict[str, str] = {}


class NodeMetadata(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`timeout_ms` limits one run of the agent; 0 means the limit of the session. `file_operations` describe the
    expected changes."""

    priority: Literal["low", "normal", "high", "urgent"] = "normal"
    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_TIMEOUT_MS)] = 0
    retry: RetryLimits | None = None
    file_operations: tuple[str, ...] = ()


class PlanNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task. `files` are paths or patterns that it may change; none means any. `checks` are shell commands that
    must pass, `criteria` are sentences that the Inspector judges."""

    id: Identifier
    agent: Builder = "engineer"
    title: str = ""
    prompt: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT)]
    context: NodeContext = NodeContext()
    files: Annotated[tuple[str, ...], Meta(max_length=MAX_FILES)] = ()
    checks: Annotated[tuple[str, ...], Meta(max_length=20)] = ()
    criteria: Annotated[tuple[str, ...], Meta(max_length=50)] = ()
    depends_on: tuple[str, ...] = ()
    metadata: NodeMetadata = NodeMetadata()

    @property
    def label(self) -> str:
        """The title, or the first line of the prompt."""
        return self.title or self.prompt.strip().splitlines()[0][:80]


class PlanPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_concurrency: Annotated[int, Meta(ge=1, le=64)] = 4
    fail_fast: bool = True
    default_retry: RetryLimits = RetryLimits()


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan for one request. `execution_order` holds the layers, for display and for checking; a node starts when its
    own dependencies have passed."""

    id: str = ""
    session_id: str = ""
    prompt: str = ""
    summary: str = ""
    nodes: Annotated[tuple[PlanNode, ...], Meta(min_length=1, max_length=MAX_NODES)]
    execution_order: tuple[tuple[str, ...], ...] = ()
    policy: PlanPolicy = PlanPolicy()
    touches_tests: bool = False
    """Whether the plan states that tests are removed, skipped or made weaker."""

    def node(self, id: str) -> PlanNode:
        return next(each for each in self.nodes if each.id == id)


def read_plan(given: Mapping[str, Any]) -> Plan:
    """Read and check a plan. Raises InvalidInput with the name of the field."""
    nodes = given.get("nodes")
    if isinstance(nodes, Sequence) and len(nodes) > MAX_NODES:
        raise InvalidInput("nodes", f"are {len(nodes):,}; at most {MAX_NODES} are allowed", hint="Merge small tasks")
    try:
        plan = msgspec.convert(given, Plan)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, Plan, "plan") from None
    return check_plan(plan)


def check_plan(plan: Plan) -> Plan:
    """The plan with its layers. Raises InvalidInput for cycles, unknown ids, layers that contradict the dependencies,
    paths outside of the project, and files that two parallel nodes may change."""
    needs = require_order([OrderedStep(each.id, None, each.depends_on) for each in plan.nodes], "nodes")
    order = layers_of(needs)
    if plan.execution_order and [set(each) for each in plan.execution_order] != [set(each) for each in order]:
        raise InvalidInput("execution_order", "contradicts depends_on", hint="Leave it out; it is computed")
    for node in plan.nodes:
        for path in node.files:
            _check_path(path, f"nodes.{node.id}.files")
    _check_overlaps(plan, needs)
    return msgspec.structs.replace(plan, execution_order=order)


def layers_of(needs: Mapping[str, frozenset[str]]) -> tuple[tuple[str, ...], ...]:
    """The nodes in layers: each layer depends only on those before it."""
    layers: list[tuple[str, ...]] = []
    waiting = dict(needs)
    while waiting:
        ready = tuple(id for id, wanted in waiting.items() if not wanted & waiting.keys())
        layers.append(ready)
        for id in ready:
            del waiting[id]
    return tuple(layers)


def overlap(first: str, second: str) -> bool:
    """Whether two paths or patterns can mean the same file."""
    if first == second or fnmatchcase(first, second) or fnmatchcase(second, first):
        return True
    short, long = sorted((first.rstrip("/"), second.rstrip("/")), key=len)
    if long.startswith(f"{short}/"):
        return True
    stems = [each.partition("*")[0].partition("?")[0].partition("[")[0] for each in (first, second)]
    is_pattern = any(each != stem for each, stem in zip((first, second), stems, strict=True))
    return (
        is_pattern and (stems[0].startswith(stems[1]) or stems[1].startswith(stems[0])) and _same_suffix(first, second)
    )


def _same_suffix(first: str, second: str) -> bool:
    """Whether a file can match the file extensions of both patterns."""
    ends = [PurePosixPath(each).suffix for each in (first, second)]
    return not all(ends) or ends[0] == ends[1] or any("*" in each for each in ends)


def ancestors_of(needs: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """For each node, all nodes that it depends on, directly or indirectly."""
    found: dict[str, set[str]] = {}
    for layer in layers_of(needs):
        for id in layer:
            found[id] = set(needs[id]).union(*(found[each] for each in needs[id]))
    return found


def _check_overlaps(plan: Plan, needs: Mapping[str, frozenset[str]]) -> None:
    before = ancestors_of(needs)
    for at, first in enumerate(plan.nodes):
        for second in plan.nodes[at + 1 :]:
            if first.id in before[second.id] or second.id in before[first.id]:
                continue
            shared = next((a for a in first.files for b in second.files if overlap(a, b)), None)
            if shared is not None:
                hint = "Let one depend on the other, or give each its own files"
                raise InvalidInput("nodes", f"{first.id} and {second.id} run in parallel and share {shared}", hint=hint)


def _check_path(path: str, place: str) -> None:
    pure = PurePosixPath(path)
    if not path.strip() or pure.is_absolute() or ".." in pure.parts or "\0" in path or "\\" in path:
        raise InvalidInput(place, f"{path[:100]!r} is not a path inside the project", hint="For example src/api/*.py")
    if pure.parts[:1] == (".git",) or pure.parts[:1] == (".clew",):
        raise InvalidInput(place, f"{path[:100]!r} belongs to git or Clew", hint="Name files of the project")
