"""Execution: nodes start as pipelines, pipelines that passed are merged one after the other, and failures are retried
or end the plan."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import IllegalState
from clew.team.machines import dag as dags
from clew.team.machines import handoff, quality_phase
from clew.team.machines import pipeline as pipelines
from clew.team.machines.dag import MAX_CONFLICTS, NodeStatus
from clew.team.machines.effects import AskAgent, Effects, SendMessage, StartTimer, send
from clew.team.machines.phases import Phase
from clew.team.machines.pipeline_moves import fail
from clew.team.machines.pipeline_state import PipelineContext, TaskPipeline, repeated
from clew.team.machines.planning_phase import ask_architect
from clew.team.machines.team_end import Moved, call_tool, end_failed
from clew.team.machines.team_state import Outcome, TeamStage, TeamState
from clew.team.messages.conversation import MAIN, QUERY, conversation_id
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, ORCHESTRATOR, MessageType
from clew.team.messages.payloads import CallResult, DagProgress, PipelineResult, PlanProposal, UserInterrupt
from clew.team.planning.plan import MAX_TIMEOUT_MS, Plan
from clew.team.planning.plan_text import plan_text

MAX_SIDE = 4_000
"""Characters of each side of a conflict that a prompt shows."""


def execute(state: TeamState, message: TeamMessage) -> Moved:
    """Carry out a plan: the approved one, a plan of corrections, or a change of the running plan."""
    plan = _with_time_limit(msgspec.convert(message.payload, PlanProposal).plan, state)
    if state.phase is Phase.EXECUTION and state.dag is not None and not state.dag.is_over:
        return start_nodes(msgspec.structs.replace(state, dag=dags.extend(state.dag, plan)), message)
    is_fix = state.stage is TeamStage.FIX
    if state.phase is not Phase.EXECUTION and not is_fix:
        return state, ()
    plan = msgspec.structs.replace(plan, id=message.id if is_fix else plan.id, session_id=state.session)
    begun = dags.begin(_with_free_ids(plan, state) if is_fix else plan)
    state = msgspec.structs.replace(
        state,
        phase=Phase.EXECUTION,
        stage=TeamStage.BUILD,
        dag=begun,
        dag_history=(*state.dag_history, begun.plan.id),
        earlier_plans=(*state.earlier_plans, *((state.dag.plan,) if state.dag else ())),
    )
    return start_nodes(state, message)


def _with_time_limit(plan: Plan, state: TeamState) -> Plan:
    """The plan with the session's time limit on all tasks that have none of their own."""
    limit = min(int(state.request.task_timeout * 1_000), MAX_TIMEOUT_MS) if state.request else 0
    if not limit:
        return plan
    nodes = tuple(
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, timeout_ms=limit))
        if not each.metadata.timeout_ms
        else each
        for each in plan.nodes
    )
    return msgspec.structs.replace(plan, nodes=nodes)


def _with_free_ids(plan: Plan, state: TeamState) -> Plan:
    """A plan of corrections whose nodes are renamed if earlier nodes have the same ids."""
    taken = {each.task_id for each in state.pipelines.values()}
    names = {each.id: f"fix{state.fix_rounds}-{each.id}"[:48] if each.id in taken else each.id for each in plan.nodes}
    nodes = tuple(
        msgspec.structs.replace(each, id=names[each.id], depends_on=tuple(names.get(id, id) for id in each.depends_on))
        for each in plan.nodes
    )
    return msgspec.structs.replace(plan, nodes=nodes, execution_order=())


def start_nodes(state: TeamState, message: TeamMessage) -> Moved:
    """Start all nodes that can start. When all nodes have passed, continue with the inspection."""
    if state.dag is None or state.is_over or state.phase is not Phase.EXECUTION:
        return state, ()
    effects: Effects = ()
    if not state.is_halted:
        most = state.request.max_agents if state.request else 1
        engineers = state.request.max_engineers if state.request else 0
        for id in dags.startable(state.dag, most, engineers):
            state, more = start_node(state, id, message)
            effects += more
    assert state.dag is not None
    if not state.dag.is_over or state.is_halted:
        return state, effects
    if not state.dag.has_passed:
        failed = [f"{id}: {each.reason}" for id, each in state.dag.nodes.items() if each.status is NodeStatus.FAILED]
        state, more = end_failed(state, "; ".join(failed) or "the plan was cancelled")
        return state, (*effects, *more)
    state, more = quality_phase.begin(state, message)
    return state, (*effects, *more)


def start_node(state: TeamState, id: str, message: TeamMessage) -> Moved:
    """Start the next pipeline of a node. After an error the pipeline continues from the commit of the previous one;
    after a conflict it starts from the head of the session."""
    assert state.dag is not None
    node, progress = state.dag.plan.node(id), state.dag.nodes[id]
    previous, attempts = state.pipelines.get(progress.pipeline), progress.attempts + 1
    name = f"{id}.{attempts}"
    if previous is not None and not previous.base_commit and not progress.note:
        return _start(state, repeated(previous, name, message), attempts)
    context = PipelineContext(
        task_prompt=f"{node.prompt}\n\n{progress.note}" if progress.note else node.prompt,
        task_constraints=node.context.constraints,
        compliance_criteria=node.criteria,
        upstream_outputs=dags.upstream_outputs(state.dag, id),
        inspector_feedback=previous.context.inspector_feedback if previous else (),
        tester_feedback=previous.context.tester_feedback if previous else (),
    )
    new = TaskPipeline(
        id=name,
        session_id=state.session,
        dag_id=state.dag.plan.id,
        task_id=id,
        builder=node.agent,
        created_at=message.timestamp,
        context=context,
        previous=progress.pipeline,
        start_from=previous.commit if previous and not progress.note else "",
        skips_inspector=previous.skips_inspector if previous else False,
        skips_tester=previous.skips_tester if previous else False,
        touches_tests=state.dag.plan.touches_tests,
    )
    return _start(state, new, attempts)


def _start(state: TeamState, new: TaskPipeline, attempts: int) -> Moved:
    assert state.dag is not None
    new, effects = pipelines.start(new)
    dag = dags.mark(state.dag, new.task_id, NodeStatus.RUNNING, pipeline=new.id, attempts=attempts, note="")
    return msgspec.structs.replace(state, dag=dag, pipelines={**state.pipelines, new.id: new}), effects


# -- the end of a pipeline -----------------------------------------------------------------------------------------


def on_pipeline_end(state: TeamState, message: TeamMessage) -> Moved:
    """Handle the end of a pipeline. After success it waits for its merge; after a failure it is retried, or its node
    fails."""
    result = msgspec.convert(message.payload, PipelineResult)
    if state.dag is None or result.task not in state.dag.nodes:
        return state, ()
    node = state.dag.nodes[result.task]
    if node.pipeline != result.pipeline or node.status is not NodeStatus.RUNNING:
        return state, ()
    if not result.success:
        return _retry_or_fail(state, result, message)
    dag = dags.mark(state.dag, result.task, NodeStatus.MERGING)
    state = msgspec.structs.replace(state, dag=dag, merge_queue=(*state.merge_queue, result.pipeline))
    state, merging = _merge_next(state)
    state, started = start_nodes(state, message)
    return state, (*merging, *started)


def _merge_next(state: TeamState) -> Moved:
    """Merge the next pipeline, one at a time."""
    if state.merging or not state.merge_queue:
        return state, ()
    first, *rest = state.merge_queue
    state = msgspec.structs.replace(state, merging=first, merge_queue=tuple(rest))
    return call_tool(state, "merge", "team-merge", {"session": state.session, "pipeline": first})


def merged(state: TeamState, result: CallResult, message: TeamMessage) -> Moved:
    """Handle the end of a merge: the node has passed, or its change conflicts with another one and the node is repeated
    on the new head."""
    done, dag = state.pipelines[state.merging], state.dag
    state = msgspec.structs.replace(state, merging="")
    assert dag is not None  # a merge belongs to a plan
    if result.status != "success":
        state, effects = _fail_node(state, done.task_id, f"its merge failed: {result.error}", message)
    elif result.output.get("merged"):
        head, tree = str(result.output.get("head") or ""), str(result.output.get("tree") or "")
        dag = dags.mark(dag, done.task_id, NodeStatus.PASSED, output=done.engineer_result)
        state = msgspec.structs.replace(state, dag=dag, head=head, tree=tree)
        effects = (_progress(state, f"{done.task_id} is merged"),)
    else:
        state, effects = _on_conflict(state, done, result.output, message)
    state, merging = _merge_next(state)
    state, started = start_nodes(state, message)
    return state, (*effects, *merging, *started)


def _on_conflict(state: TeamState, done: TaskPipeline, output: dict[str, Any], message: TeamMessage) -> Moved:
    assert state.dag is not None
    conflicts = list(output.get("conflicts") or ())
    paths = ", ".join(str(each.get("path")) for each in conflicts)
    count = state.dag.nodes[done.task_id].conflicts + 1
    if count > MAX_CONFLICTS:
        return _fail_node(state, done.task_id, f"it still conflicts with other changes in {paths}", message)
    sides = "\n\n".join(_sides(each) for each in conflicts[:10])
    note = (
        f"You did this task before, but another task has changed the same lines of {paths}. Your work tree has that "
        f"change. Do the task again so that both changes hold.\n\n{sides}"
    )
    dag = dags.mark(state.dag, done.task_id, NodeStatus.PENDING, conflicts=count, note=note)
    state = msgspec.structs.replace(state, dag=dag)
    return state, (_progress(state, f"{done.task_id} conflicts in {paths} and is done again"),)


def _sides(conflict: dict[str, Any]) -> str:
    merged_side, own = str(conflict.get("ours") or "")[:MAX_SIDE], str(conflict.get("theirs") or "")[:MAX_SIDE]
    return f"{conflict.get('path')}, merged so far:\n{merged_side}\n\nyour version:\n{own}"


def _retry_or_fail(state: TeamState, result: PipelineResult, message: TeamMessage) -> Moved:
    assert state.dag is not None
    ended = state.pipelines[result.pipeline]
    errors = state.dag.nodes[result.task].errors + 1
    dag = dags.mark(state.dag, result.task, NodeStatus.RUNNING, errors=errors, reason=result.reason)
    pause = dags.retry_pause(dag, result.task) if ended.is_retryable else None
    state = msgspec.structs.replace(state, dag=dag)
    if pause is None:
        taken_back = handoff.take_back(state, ended)
        state, effects = taken_back or _fail_node(state, result.task, result.reason, message)
        state, more = start_nodes(state, message)
        return state, (*effects, *more)
    waiting = dags.mark(dag, result.task, NodeStatus.WAITING)
    timer = StartTimer(key=f"{MAIN}/retry/{result.task}/{errors}", seconds=pause)
    state, started = start_nodes(msgspec.structs.replace(state, dag=waiting), message)
    return state, (timer, *started)


def on_timer(state: TeamState, message: TeamMessage) -> Moved:
    """Start the next attempt after its pause."""
    _, _, rest = str(message.payload["key"]).partition("/retry/")
    id, _, errors = rest.rpartition("/")
    if state.dag is None or id not in state.dag.nodes:
        return state, ()
    node = state.dag.nodes[id]
    if node.status is not NodeStatus.WAITING or str(node.errors) != errors:
        return state, ()
    state = msgspec.structs.replace(state, dag=dags.mark(state.dag, id, NodeStatus.PENDING))
    return start_nodes(state, message)


def _fail_node(state: TeamState, id: str, reason: str, message: TeamMessage) -> Moved:
    """Mark a node as finally failed, and cancel the pipelines that are no longer needed."""
    assert state.dag is not None
    dag, gone = dags.fail_node(state.dag, id, reason)
    state = msgspec.structs.replace(state, dag=dag)
    return cancel_pipelines(state, gone, f"cancelled because {id} failed", message)


def cancel_pipelines(state: TeamState, names: tuple[str, ...], reason: str, message: TeamMessage) -> Moved:
    """End these pipelines. Their work trees and branches stay."""
    effects: Effects = ()
    for name in names:
        found = state.pipelines[name]
        if found.is_over:
            continue
        failed, more = fail(found, reason, message)
        state = msgspec.structs.replace(state, pipelines={**state.pipelines, name: failed})
        effects += more
    queue = tuple(each for each in state.merge_queue if each not in names)
    return msgspec.structs.replace(state, merge_queue=queue), effects


def _progress(state: TeamState, note: str) -> SendMessage:
    assert state.dag is not None
    progress = DagProgress(passed=state.dag.passed, total=len(state.dag.nodes), note=note)
    return send(MessageType.DAG_STATUS, ORCHESTRATOR, ARCHITECT, progress)


def _question(state: TeamState, text: str) -> AskAgent:
    """The effect that asks the Architect a question of the user about the whole work, in a separate conversation."""
    plan = state.dag.plan if state.dag else state.plan
    shown = plan_text(plan, state.dag.statuses() if state.dag else None) if plan else "There is no plan yet."
    prompt = f"The user asks about the work of the team.\n\n{shown}\n\nQuestion: {text}\n\nAnswer it. Plan nothing."
    return AskAgent(role=ARCHITECT, conversation=conversation_id(state.session, "", QUERY), prompt=prompt)


# -- the user ------------------------------------------------------------------------------------------------------


def interrupt(state: TeamState, given: UserInterrupt, message: TeamMessage) -> Moved:
    """Handle an interruption by the user: halt, suspend, continue, stop, ask, or add a requirement."""
    match given.kind:
        case "halt" | "suspend":
            return msgspec.structs.replace(state, is_halted=True), ()
        case "continue":
            return start_nodes(msgspec.structs.replace(state, is_halted=False), message)
        case "stop":
            state, effects = cancel_pipelines(state, tuple(state.pipelines), "stopped by the user", message)
            state, more = end_failed(state, "stopped by the user", Outcome.STOPPED)
            return state, (*effects, *more)
        case "ask":
            return state, (_question(state, given.text),)
    if state.phase is not Phase.EXECUTION:
        raise IllegalState("add a requirement", "to the plan", f"in the phase {state.phase}", ("modify the plan",))
    text = (
        f"The user adds a requirement while the team works: {given.text}\n\nCall `modify_plan` with the tasks to add."
    )
    return ask_architect(state, text)
