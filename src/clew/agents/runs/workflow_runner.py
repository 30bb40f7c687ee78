"""The workflow runner: runs written steps. Steps of a group run in parallel and the next group waits for them;
`depends_on` orders single steps. The state is read from the trail at every step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.permissions.lasting_permissions import TRIGGER_TAG
from clew.agents.runs.executor import Gathered, UniversalExecutor
from clew.agents.runs.requests import ToolResponse, read_response, request_draft
from clew.agents.runs.run_limits import RunLimits, begun, refused
from clew.agents.runs.run_records import RunRecords
from clew.context.definition import Subscription, check_trigger
from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import MISSING, Selector, check_selector, find_value, split_path
from clew.trail.model.step_order import OrderedStep, dependencies, require_order
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, find_requester, find_run, run_tag

MAX_STEPS = 200
REFERENCE = "$from"
"""The only key of an object that refers to another value, such as `trigger.context.title` or `steps.ID.output`."""


class WorkflowStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a tool. Without `depends_on` it waits for the preceding group."""

    id: str
    tool: str
    input: dict[str, Any] = {}
    parallel_group: str | None = None
    depends_on: tuple[str, ...] | None = None
    config_id: str | None = None


class Workflow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workflow: its triggers, and its steps in order."""

    workflow_id: str
    trigger: Selector
    steps: tuple[WorkflowStep, ...]
    description: str = ""

    @property
    def requester(self) -> str:
        return f"workflow:{self.workflow_id}"


def read_workflow(breadcrumb: Breadcrumb) -> Workflow:
    """Raises InvalidInput with the name of the field, for circular dependencies too."""
    try:
        found = msgspec.convert(breadcrumb.context, Workflow)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, Workflow, "context") from None
    check_selector(found.trigger)
    check_trigger(found.trigger, "trigger")
    if not 1 <= len(found.steps) <= MAX_STEPS:
        raise InvalidInput("steps", f"must be 1 to {MAX_STEPS}")
    require_order(_ordered(found), "steps")
    return found


def _ordered(workflow: Workflow) -> list[OrderedStep]:
    return [OrderedStep(each.id, each.parallel_group, each.depends_on) for each in workflow.steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDeps:
    trail: Trail
    flow: Flow
    by: Principal
    runs: RunRecords


def workflow_executor(workflow: Workflow, deps: WorkflowDeps) -> UniversalExecutor:
    """The handler of one workflow: for its triggers, and for the responses to its requests."""
    trigger = Subscription(
        **{name: getattr(workflow.trigger, name) for name in Selector.__struct_fields__}, role="trigger"
    )
    responses = Subscription(schema_name=deps.flow.response, all_tags=(CONSUMER_TAG + workflow.requester,))
    return UniversalExecutor([responses, trigger], WorkflowRunner(workflow, deps).execute)


class WorkflowRunner:
    """Takes one workflow a step further for each event."""

    def __init__(self, workflow: Workflow, deps: WorkflowDeps) -> None:
        self._workflow = workflow
        self._deps = deps
        self._flow = deps.flow
        self._beginnings = RunLimits(deps.trail, deps.flow, by=deps.by)

    async def execute(self, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        """The next requests of a run, or the first ones. A record that this workflow produced does not start a new
        run."""
        if find_requester_of(trigger) == self._workflow.requester:
            return await self._further(trigger, is_response=True)
        if self._workflow.requester in (find_requester(trigger), *trigger.tags):
            return ()
        verdict = await self._beginnings.judge(trigger, self._workflow.requester)
        if verdict.may:
            return begun(await self._further(trigger, is_response=False), trigger)
        if not verdict.reason:
            return ()
        result = self._result(trigger.id, "error", {}, f"it did not start: {verdict.reason}")
        return [refused(result, trigger, self._workflow.requester)]

    async def _further(self, trigger: Breadcrumb, *, is_response: bool) -> list[Draft]:
        run = (find_run(trigger) if is_response else None) or trigger.id
        records = await self._deps.runs.read(run)
        started = trigger if not is_response else await self._deps.trail.records.get(run, by=self._deps.by)
        asked, done = self._standing(records)
        if not is_response and asked:
            return []
        if failed := [step for step, response in done.items() if response.status != "success"]:
            is_last = set(done) == set(asked)
            return [self._result(run, "error", done, f"{failed[0]} failed")] if is_last else []
        if len(done) == len(self._workflow.steps):
            return [self._result(run, "success", done)]
        needs = dependencies(_ordered(self._workflow))
        ready = [step for step in self._workflow.steps if step.id not in asked and needs[step.id] <= done.keys()]
        try:
            return [self._request(step, run, started, done) for step in ready]
        except InvalidInput as error:
            return [self._result(run, "error", done, str(error))]

    def _standing(self, records: Mapping[str, Breadcrumb]) -> tuple[list[str], dict[str, ToolResponse]]:
        """The requested steps, and the responses by step."""
        mine = [
            each
            for each in records.values()
            if each.schema_name == self._flow.request and find_requester(each) == self._workflow.requester
        ]
        responses = {
            read_response(each).request_id: read_response(each)
            for each in records.values()
            if each.schema_name == self._flow.response
        }
        asked = [_step_of(each) for each in mine]
        ids = {_step_of(each): str(each.context.get("requestId")) for each in mine}
        return asked, {step: responses[ids[step]] for step in asked if ids[step] in responses}

    def _request(self, step: WorkflowStep, run: str, trigger: Breadcrumb, done: Mapping[str, ToolResponse]) -> Draft:
        known = {
            "trigger": {
                "id": trigger.id,
                "title": trigger.title,
                "tags": list(trigger.tags),
                "context": trigger.context,
            },
            "steps": {id: {"status": each.status, "output": each.output} for id, each in done.items()},
        }
        return request_draft(
            self._flow,
            step.tool,
            fill(step.input, known),
            request_id=f"{run}.{self._workflow.workflow_id}.{step.id}",
            requested_by=self._workflow.requester,
            config_id=step.config_id,
            tags=(run_tag(run), f"step:{step.id}", TRIGGER_TAG + trigger.id),
        )

    def _result(self, run: str, status: str, done: Mapping[str, ToolResponse], reason: str = "") -> Draft:
        """The result of a run. It is written only once, even if several responses complete the run at the same time."""
        steps = {
            step: {"status": each.status, **({"output": each.output} if not each.error else {"error": each.error})}
            for step, each in done.items()
        }
        digest = hashlib.blake2b(f"{self._workflow.workflow_id}\0{run}".encode(), digest_size=16).hexdigest()
        return Draft(
            title=f"Result of {self._workflow.workflow_id}: {status}"[:200],
            schema_name=self._flow.workflow_result,
            tags=("workflow:result", self._workflow.requester, run_tag(run)),
            context={
                "workflow_id": self._workflow.workflow_id,
                "run": run,
                "status": status,
                "steps": steps,
                **({"reason": reason} if reason else {}),
            },
            idempotency_key=f"result/{digest}",
        )


def find_requester_of(response: Breadcrumb) -> str | None:
    """The agent or workflow that a response is addressed to."""
    return next((tag.removeprefix(CONSUMER_TAG) for tag in response.tags if tag.startswith(CONSUMER_TAG)), None)


def fill(value: Any, known: Mapping[str, Any]) -> Any:
    """Return a value with its references replaced by their values. Raises InvalidInput for a reference that leads
    nowhere."""
    if isinstance(value, dict):
        if set(value) == {REFERENCE}:
            return _look_up(str(value[REFERENCE]), known)
        return {key: fill(each, known) for key, each in value.items()}
    return [fill(each, known) for each in value] if isinstance(value, list) else value


def _look_up(path: str, known: Mapping[str, Any]) -> Any:
    found = find_value(dict(known), split_path(path))
    if found is MISSING:
        raise InvalidInput("input", f"{path} does not exist", hint="Use trigger.context.… or steps.ID.output")
    return found


def _step_of(request: Breadcrumb) -> str:
    return next((tag.removeprefix("step:") for tag in request.tags if tag.startswith("step:")), "")
