"""The definition of an agent in a breadcrumb: instructions, model, triggers, and the sources of its context. An unknown
field is an error, with the nearest known name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import Selector, check_selector

Role = Literal["trigger", "context"]
Method = Literal["event_data", "latest", "recent", "vector", "all"]
"""The way to read a source: the trigger itself, the newest one, the newest few, the closest in meaning, or all."""

Limit = Annotated[int, Meta(ge=1, le=1_000)]
Hops = Annotated[int, Meta(ge=0, le=4)]
Text = Annotated[str, Meta(min_length=1)]
OWN_NAMES = frozenset(("team", "user", "runtime"))
"""Reserved names: the team, users and the runners. An agent with one of these names could impersonate them."""


class Fetch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The way to read a subscription. Each method has a default limit."""

    method: Method = "event_data"
    limit: Limit | None = None


class Subscription(Selector, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Breadcrumbs that an agent, tool or workflow reads: a `trigger` starts it, a `context` is read with the trigger.
    `key` is its name for the handler."""

    role: Role = "trigger"
    key: str = ""
    fetch: Fetch = Fetch()

    @property
    def selector(self) -> Selector:
        """The selector of the breadcrumbs, without their role."""
        return Selector(**{name: getattr(self, name) for name in Selector.__struct_fields__})


class ContextSubscriptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    selectors: tuple[Subscription, ...] = ()


class AlwaysSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Breadcrumbs of a schema or with a tag that every context of the agent contains. The receipt reports a missing
    source that is not `optional`. `section` overrides the section of their schema."""

    type: Literal["schema", "tag"] = "schema"
    schema_name: str = ""
    tag: str = ""
    method: Method = "latest"
    limit: Limit | None = None
    optional: bool = False
    session: bool = False
    section: str = ""


class SemanticSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Records close to the trigger in meaning and words. No schemas means any."""

    enabled: bool = True
    schemas: tuple[str, ...] = ()
    limit: Limit = 10
    section: str = ""


class SessionSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last records of the trigger's session. Without schemas, all schemas that semantic search covers."""

    enabled: bool = True
    schemas: tuple[str, ...] = ()
    limit: Limit = 20
    section: str = ""


class GraphSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The graph walk from the breadcrumbs of the other sources: the number of hops and of results. `costs` are factors
    for the costs of each kind of edge."""

    enabled: bool = True
    hops: Hops = 2
    limit: Limit = 30
    costs: dict[str, Annotated[float, Meta(ge=0, le=100)]] = {}
    section: str = ""


class ContextSources(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sources of an agent's context. `tokens` limits it below the capacity of the model; `shares` are the parts of
    the budget that sections may use."""

    always: tuple[AlwaysSource, ...] = ()
    semantic: SemanticSource = SemanticSource()
    session: SessionSource = SessionSource()
    graph: GraphSource = GraphSource()
    tokens: Annotated[int, Meta(ge=1)] | None = None
    shares: dict[str, Annotated[float, Meta(ge=0, le=1)]] = {}


class Capabilities(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Capabilities of an agent. `tools` are names or globs; None means all that its permissions allow."""

    can_spawn_agents: bool = False
    can_use_tools: bool = True
    tools: tuple[str, ...] | None = None
    max_turns: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent. `id` and `version` are those of its breadcrumb. The budget tree enforces `budget`, the permission
    check `permissions`. `metadata` holds free notes."""

    agent_id: Text
    description: str = ""
    llm_config_id: str | None = None
    model: str | None = None
    system_prompt: str = ""
    capabilities: Capabilities = Capabilities()
    subscriptions: ContextSubscriptions = ContextSubscriptions()
    context_trigger: Selector | None = None
    context_sources: ContextSources = ContextSources()
    budget: dict[str, Any] | None = None
    permissions: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}
    id: str = ""
    version: int = 0


def read_definition(breadcrumb: Breadcrumb) -> AgentDefinition:
    """Return the agent that a breadcrumb defines. Raises InvalidInput with the name of the field."""
    return definition_of({**breadcrumb.context, "id": breadcrumb.id, "version": breadcrumb.version})


def definition_of(context: Mapping[str, Any]) -> AgentDefinition:
    """Return the agent that the context of a breadcrumb defines. Raises InvalidInput with the name of the field."""
    try:
        found = msgspec.convert(dict(context), AgentDefinition)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, AgentDefinition, "context") from None
    if found.agent_id in OWN_NAMES:
        raise InvalidInput("context.agent_id", f"{found.agent_id!r} is reserved by Clew", hint="Choose another name")
    if found.context_trigger is not None:
        _check_below(found.context_trigger, "context_trigger")
        check_trigger(found.context_trigger, "context_trigger")
    for at, subscription in enumerate(found.subscriptions.selectors):
        _check_below(subscription, f"subscriptions.selectors[{at}]")
        if subscription.role == "trigger":
            check_trigger(subscription, f"subscriptions.selectors[{at}]")
    for at, source in enumerate(found.context_sources.always):
        _check_always(source, f"context_sources.always[{at}]")
    return found


def check_trigger(selector: Selector, place: str) -> None:
    """Raise InvalidInput for a trigger that matches everything, because its own results would trigger it again."""
    tags = (*selector.any_tags, *selector.all_tags)
    texts = (*selector.schemas, *tags, selector.tag_prefix, selector.session, selector.path)
    matches = [each for each in selector.context_match if each.op != "ne" and each.value is not False]
    if not any(texts) and not matches:
        raise InvalidInput(place, "matches everything", hint="Name a schema, a tag, a session, a path or a value")


def _check_below(selector: Selector, place: str) -> None:
    try:
        check_selector(selector)
    except InvalidInput as error:
        error.put_below(place)
        raise


def _check_always(source: AlwaysSource, place: str) -> None:
    """Raise InvalidInput for a source without the field that its type needs."""
    named = {"schema": "schema_name", "tag": "tag"}[source.type]
    if not getattr(source, named):
        raise InvalidInput(f"{place}.{named}", "is missing", hint=f"A source of type {source.type} needs it")
