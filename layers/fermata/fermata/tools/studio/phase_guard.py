"""Say in which phase a project is, and refuse calls that its phase does not allow, with what to do instead."""

from collections.abc import Iterable
from typing import Any, Literal

from fermata.content.change_sets.branch_names import INIT_BRANCHES
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.studio.tool_rules import TOOL_RULES, ProjectPhase

PhaseRefusalReason = Literal[
    "not_initialized", "init_pending_merge", "init_already_pending", "already_initialized", "project_error"
]
PhaseAdvice = Literal[
    "call_init_project",
    "merge_init_branch_first",
    "merge_or_reject_init_branch",
    "use_save_content_or_save_model",
    "check_project_settings",
]


@value_dataclass(frozen=True)
class PhaseRefusal:
    """Why a call is refused in a phase, and what to do: as codes for programs and as sentences for models."""

    reason: PhaseRefusalReason
    advice: PhaseAdvice

    @property
    def message(self) -> str:
        """The reason, as a sentence."""
        return _REASONS[self.reason]

    @property
    def suggestion(self) -> str:
        """The advice, as a sentence."""
        return _ADVICE[self.advice]

    def to_result(self) -> dict[str, Any]:
        """Return the result of the call that the model reads."""
        return {"error": self.message, "suggestion": self.suggestion}


_REASONS: dict[PhaseRefusalReason, str] = {
    "not_initialized": "The project has no content structure yet.",
    "init_pending_merge": "The project is not ready: its initialisation waits to be merged.",
    "init_already_pending": "The project was initialised before: a branch with the initialisation waits.",
    "already_initialized": "The project is initialised already.",
    "project_error": "The project is in an error state.",
}
_ADVICE: dict[PhaseAdvice, str] = {
    "call_init_project": "Call init_project first.",
    "merge_init_branch_first": "Merge the branch of the initialisation first.",
    "merge_or_reject_init_branch": "Merge or reject the branch that waits.",
    "use_save_content_or_save_model": "Use save_content or save_model to change it.",
    "check_project_settings": "Ask the user to look at the settings of the project.",
}
_REFUSALS: dict[ProjectPhase, PhaseRefusal] = {
    ProjectPhase.UNINITIALIZED: PhaseRefusal("not_initialized", "call_init_project"),
    ProjectPhase.INIT_PENDING: PhaseRefusal("init_pending_merge", "merge_init_branch_first"),
    ProjectPhase.ACTIVE: PhaseRefusal("already_initialized", "use_save_content_or_save_model"),
    ProjectPhase.ERROR: PhaseRefusal("project_error", "check_project_settings"),
}


def derive_project_phase(*, has_config: bool, pending_branches: Iterable[str], status: str) -> ProjectPhase:
    """Return the phase of a project. Its error status counts before anything else.

    Args:
        has_config: Whether the project has a configuration on its permanent branch.
        pending_branches: The names of the branches that wait.
        status: The status of the project; `error` after a failure that a person has to look at.
    """
    if status == "error":
        return ProjectPhase.ERROR
    if has_config:
        return ProjectPhase.ACTIVE
    waits = any(name.startswith(INIT_BRANCHES) for name in pending_branches)
    return ProjectPhase.INIT_PENDING if waits else ProjectPhase.UNINITIALIZED


def refuse_in_phase(tool_name: str, phase: ProjectPhase) -> PhaseRefusal | None:
    """Return why a call of one of the studio's tools is refused in a phase, or None if it is allowed."""
    if TOOL_RULES[tool_name].is_allowed_in(phase):
        return None
    if tool_name == "init_project" and phase is ProjectPhase.INIT_PENDING:
        return PhaseRefusal("init_already_pending", "merge_or_reject_init_branch")
    return _REFUSALS[phase]
