"""Finds tasks and questions of a team by the names that people use, and the evidence of a task at any time. No I/O."""

from __future__ import annotations

import msgspec

from clew.errors import IllegalState, InvalidInput, NotFound
from clew.team.evidence.gate import CompletionClaim, Verdict
from clew.team.evidence.task_evidence import TaskEvidence
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.machines.team_state import TeamState
from clew.team.runtime.completion_gate import evidence_of


def find_task(state: TeamState, which: str) -> TaskPipeline:
    """The pipeline of a task: by the id of the pipeline or the task, or by the number of the task in the plan. If a
    task has several pipelines, it is the newest one. Raises NotFound."""
    plan = state.dag.plan if state.dag else None
    ids = [each.id for each in plan.nodes] if plan else []
    if which.isdecimal() and 1 <= int(which) <= len(ids):
        which = ids[int(which) - 1]
    found = [each for each in state.pipelines.values() if which in (each.id, each.task_id)]
    if not found:
        hint = f"Tasks are {', '.join(f'{at} {id}' for at, id in enumerate(ids, 1))}" if ids else "No task has started"
        raise NotFound("task", which[:50], hint=hint)
    return found[-1]


def task_evidence(state: TeamState, which: str) -> TaskEvidence:
    """The evidence of a task. For an unfinished task it includes the progress. Raises NotFound."""
    try:
        pipeline = find_task(state, which)
    except NotFound:
        if (waiting := _find_waiting(state, which)) is None:
            raise
        return waiting
    node = state.find_node(pipeline.task_id)
    assert node is not None  # a pipeline belongs to a plan
    found = evidence_of(pipeline, node)
    if pipeline.is_over:
        return found
    rounds = max(pipeline.inspector_loops, pipeline.tester_loops) + 1
    return msgspec.structs.replace(found, progress=f"is under way: {pipeline.stage or pipeline.state}, round {rounds}")


def _find_waiting(state: TeamState, which: str) -> TaskEvidence | None:
    """A task of the plan that has not started."""
    nodes = state.plan.nodes if state.plan else ()
    number = int(which) if which.isdecimal() and len(which) < 6 else 0
    node = next((each for at, each in enumerate(nodes, 1) if each.id == which or at == number), None)
    if node is None:
        return None
    reason = f"; it comes after {', '.join(node.depends_on)}" if node.depends_on else ""
    progress = f"has not started{reason if state.is_approved else '; the plan waits for your approval'}"
    claim = CompletionClaim(session=state.session, pipeline="", commit="", tree="", base_commit="", changed=())
    return TaskEvidence(task=node.id, title=node.label, progress=progress, claim=claim, verdict=Verdict(accepted=False))


def find_question(state: TeamState, question: str) -> str:
    """The id of an open question, found by its number, its id, or the beginning or end of its id. If `question` is
    empty, the only open question. Raises NotFound, InvalidInput, and IllegalState if no question is open."""
    ids = list(state.questions)
    if not ids:
        raise IllegalState("answer", "a question", "without an open question", ("wait for one",))
    listed = "; ".join(f"{at}: {each.question[:80]}" for at, each in enumerate(state.questions.values(), 1))
    if question.isdecimal() and 1 <= int(question) <= len(ids):
        return ids[int(question) - 1]
    found = [id for id in ids if not question or id.startswith(question) or id.endswith(question)]
    if not found:
        raise NotFound("question", question[:50], hint=f"Open questions are {listed}")
    if len(found) > 1:
        raise InvalidInput("question", f"{len(found)} are open", hint=f"Name one by its number: {listed}")
    return found[0]
