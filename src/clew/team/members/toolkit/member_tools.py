"""All tools of members in one tuple. Which of them a member sees follows from its skills."""

from __future__ import annotations

from clew.team.members.toolkit.consultation_toolkit import consultation_toolkit
from clew.team.members.toolkit.design_toolkit import design_toolkit
from clew.team.members.toolkit.file_toolkit import TreeFiles, file_toolkit
from clew.team.members.toolkit.guide_toolkit import guide_toolkit
from clew.team.members.toolkit.inspection_toolkit import inspection_toolkit
from clew.team.members.toolkit.knowledge_toolkit import knowledge_toolkit
from clew.team.members.toolkit.member_deps import MemberDeps
from clew.team.members.toolkit.planning_toolkit import planning_toolkit
from clew.team.members.toolkit.scratchpad import scratchpad_toolkit
from clew.team.members.toolkit.task_checkpoints import checkpoint_toolkit
from clew.team.members.toolkit.task_toolkit import task_toolkit
from clew.team.members.toolkit.testing_toolkit import testing_toolkit
from clew.tools.tool import Tool
from clew.trail.model.flow import Flow

CROSS_AGENT = (
    "guide_route_message",
    "guide_classify_intent",
    "guide_get_status",
    "archivalist_store_entry",
    "archivalist_query_chronicle",
    "archivalist_get_briefing",
    "archivalist_record_file",
    "archivalist_record_pattern",
    "archivalist_record_failure",
    "librarian_search_code",
    "librarian_get_file",
    "librarian_get_structure",
    "librarian_get_dependencies",
    "engineer_read_file",
    "engineer_write_file",
    "engineer_edit_file",
    "engineer_run_command",
    "engineer_signal_complete",
    "engineer_request_help",
)
"""Names of the form agent_action_domain, which mean the same for every agent."""


def member_tools(deps: MemberDeps, flow: Flow) -> tuple[Tool, ...]:
    """Return the tools of all members. None is searchable, so only an agent that names one has it."""
    files = TreeFiles(deps)
    return (
        *file_toolkit(deps, files),
        *task_toolkit(deps),
        *planning_toolkit(deps),
        *inspection_toolkit(deps, files),
        *testing_toolkit(deps, files),
        *design_toolkit(deps, files),
        *guide_toolkit(deps),
        *knowledge_toolkit(deps),
        *consultation_toolkit(deps),
        *scratchpad_toolkit(deps),
        *checkpoint_toolkit(deps, flow.response),
    )
