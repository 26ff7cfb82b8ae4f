"""List what governs each of the studio's 29 tools: the phases that offer it, the roles that may call it, its workflow.

One table is read by the list that a model is offered, by the check when a call is executed, and by the documents.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

from fermata.domain.value_dataclass import value_dataclass


class ProjectPhase(StrEnum):
    """How far a project is."""

    UNINITIALIZED = "uninitialized"
    INIT_PENDING = "init_pending"
    ACTIVE = "active"
    ERROR = "error"


class StudioWorkflow(StrEnum):
    """What follows a write: nothing, a person's decision, what the project's workflow says, or a merge at once."""

    NONE = "none"
    MANUAL = "manual"
    WORKFLOW_DEPENDENT = "workflow-dependent"
    AUTO_MERGE = "auto-merge"


ProjectRole = Literal["viewer", "reviewer", "editor"]
ALL_PHASES = frozenset(ProjectPhase)
_ACTIVE = frozenset({ProjectPhase.ACTIVE})
_WITH_INIT = frozenset({ProjectPhase.ACTIVE, ProjectPhase.INIT_PENDING})
_WITH_BRANCHES = _WITH_INIT | {ProjectPhase.ERROR}
_READERS = frozenset[ProjectRole](("viewer", "reviewer", "editor"))
_EDITORS = frozenset[ProjectRole](("editor",))
_REVIEWERS = frozenset[ProjectRole](("reviewer",))
_ADMINS = frozenset[ProjectRole]()


@value_dataclass(frozen=True)
class StudioToolRule:
    """What governs one tool.

    Attributes:
        offered_phases: The phases in which a model is offered the tool.
        also_allowed_phases: Phases in which a call is allowed although the tool is not offered (contract §4.2).
        project_roles: The roles of a project's members that may call it. Owners and admins may call every tool.
        is_read: Whether nothing changes.
    """

    offered_phases: frozenset[ProjectPhase] = _ACTIVE
    also_allowed_phases: frozenset[ProjectPhase] = frozenset()
    project_roles: frozenset[ProjectRole] = _READERS
    workflow: StudioWorkflow = StudioWorkflow.NONE
    is_read: bool = False

    def is_allowed_in(self, phase: ProjectPhase) -> bool:
        """Return whether a call is allowed in a phase."""
        return phase in self.offered_phases or phase in self.also_allowed_phases


_READ = StudioToolRule(is_read=True)
_WRITE = StudioToolRule(project_roles=_EDITORS, workflow=StudioWorkflow.WORKFLOW_DEPENDENT)
_MEDIA_WRITE = StudioToolRule(project_roles=_EDITORS)
_MODEL_WRITE = StudioToolRule(project_roles=_ADMINS, workflow=StudioWorkflow.WORKFLOW_DEPENDENT)
_DECISION = StudioToolRule(
    offered_phases=_WITH_INIT,
    also_allowed_phases=frozenset({ProjectPhase.ERROR}),
    project_roles=_REVIEWERS,
    workflow=StudioWorkflow.MANUAL,
)
TOOL_RULES: dict[str, StudioToolRule] = {
    "list_models": StudioToolRule(offered_phases=ALL_PHASES, is_read=True),
    "get_content": _READ,
    "save_content": _WRITE,
    "delete_content": _WRITE,
    "save_model": _MODEL_WRITE,
    "validate": StudioToolRule(offered_phases=ALL_PHASES, is_read=True),
    "list_branches": StudioToolRule(offered_phases=_WITH_BRANCHES, also_allowed_phases=ALL_PHASES, is_read=True),
    "merge_branch": _DECISION,
    "reject_branch": _DECISION,
    "init_project": StudioToolRule(
        offered_phases=frozenset({ProjectPhase.UNINITIALIZED}),
        project_roles=_ADMINS,
        workflow=StudioWorkflow.AUTO_MERGE,
    ),
    "copy_locale": _WRITE,
    "brain_query": _READ,
    "brain_search": _READ,
    "search_media": _READ,
    "upload_media": _MEDIA_WRITE,
    "get_media": _READ,
    "update_status": _WRITE,
    "update_media": _MEDIA_WRITE,
    "delete_media": _MEDIA_WRITE,
    "branch_health": StudioToolRule(offered_phases=_WITH_BRANCHES, is_read=True),
    "relation_expand": _READ,
    "vocabulary": _WRITE,
    "add_locale": _MODEL_WRITE,
    "delete_model": _MODEL_WRITE,
    "brain_analyze": _READ,
    "validate_schema": StudioToolRule(also_allowed_phases=ALL_PHASES, is_read=True),
    "list_submissions": StudioToolRule(also_allowed_phases=ALL_PHASES, is_read=True),
    "approve_submission": StudioToolRule(project_roles=_REVIEWERS, workflow=StudioWorkflow.WORKFLOW_DEPENDENT),
    "reject_submission": StudioToolRule(project_roles=_REVIEWERS),
}


def list_offered_tools(phase: ProjectPhase) -> Iterator[str]:
    """Yield the tools that a model is offered in a phase, in the order of the table."""
    return (name for name, rule in TOOL_RULES.items() if phase in rule.offered_phases)
