"""Collect what the calls of a turn have changed, for clients that refresh only that."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fermata.content.change_sets.branch_names import read_branch_locale
from fermata.domain.base import DomainModel
from fermata.tools.studio.project_permissions import CALLER_REFUSALS

REFUSED_CODES = frozenset(CALLER_REFUSALS)
"""Codes of results of calls that did not run."""


class AnsweredStudioCall(Protocol):
    """A call of one of the studio's tools, with its result as clients are told it."""

    @property
    def tool_name(self) -> str: ...

    @property
    def input(self) -> Any: ...

    @property
    def ok(self) -> bool: ...

    @property
    def result(self) -> Any: ...


class AffectedResources(DomainModel):
    """What changed: content of models and locales, the definitions, the list of branches.

    Attributes:
        snapshot_changed: Whether the definitions of models or the settings of the project changed.
        branch: The branch that the newest change is on.
    """

    models: tuple[str, ...] = ()
    locales: tuple[str, ...] = ()
    snapshot_changed: bool = False
    branches_changed: bool = False
    branch: str | None = None

    def merge(self, other: "AffectedResources") -> "AffectedResources":
        """Return both: each model and locale once, in the order in which they came, and the newest branch."""
        return AffectedResources(
            models=tuple(dict.fromkeys((*self.models, *other.models))),
            locales=tuple(dict.fromkeys((*self.locales, *other.locales))),
            snapshot_changed=self.snapshot_changed or other.snapshot_changed,
            branches_changed=self.branches_changed or other.branches_changed,
            branch=other.branch or self.branch,
        )


_DEFINITIONS = AffectedResources(snapshot_changed=True, branches_changed=True)
_BRANCHES = AffectedResources(branches_changed=True)
_EFFECTS: dict[str, tuple[AffectedResources, str, str]] = {
    "save_content": (_BRANCHES, "model", "locale"),
    "delete_content": (_BRANCHES, "model", "locale"),
    "update_status": (_BRANCHES, "model", "locale"),
    "copy_locale": (_BRANCHES, "model", "to"),
    "save_model": (_DEFINITIONS, "", ""),
    "delete_model": (_DEFINITIONS, "model", ""),
    "add_locale": (_DEFINITIONS, "", "locale"),
    "init_project": (_DEFINITIONS, "", ""),
    "merge_branch": (_DEFINITIONS, "", ""),
    "reject_branch": (_BRANCHES, "", ""),
    "vocabulary": (_BRANCHES, "", ""),
    "approve_submission": (_DEFINITIONS, "", ""),
}
"""By tool: what it changes, and the members of its input that name a model and a locale."""


def list_affected(tool_name: str, arguments: Mapping[str, Any], branch: str | None = None) -> AffectedResources:
    """Return what a call of a tool changes. Tools that only read change nothing.

    Args:
        tool_name: The tool.
        arguments: The input of the call, with its defaults.
        branch: The branch that the call has made.
    """
    if tool_name not in _EFFECTS or (tool_name == "vocabulary" and arguments.get("action") != "update"):
        return AffectedResources()
    effect, model, locale = _EFFECTS[tool_name]
    return effect.merge(
        AffectedResources(models=_read(arguments, model), locales=_read(arguments, locale), branch=branch or None)
    )


def _read(arguments: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = arguments.get(name) if name else None
    return (value,) if isinstance(value, str) and value else ()


def collect_affected(calls: Iterable[AnsweredStudioCall]) -> AffectedResources:
    """Return what all calls of a turn have changed. A call that was refused before it ran has changed nothing.

    One that has failed while it ran counts, because a part of it may have been done.
    """
    affected = AffectedResources()
    for call in calls:
        if not _was_refused(call):
            affected = affected.merge(_read_effect(call))
    return affected


def _was_refused(call: AnsweredStudioCall) -> bool:
    result = call.result if isinstance(call.result, dict) else {}
    return not call.ok and (result.get("code") in REFUSED_CODES or "suggestion" in result)


def _read_effect(call: AnsweredStudioCall) -> AffectedResources:
    """Return what a call has changed, in the locale that its branch names if its input names none.

    A change of media that waits for a review is in a branch, too, and changes nothing else yet.
    """
    arguments = call.input if isinstance(call.input, dict) else {}
    result = call.result if isinstance(call.result, dict) else {}
    branch = result.get("branch")
    branch = branch if isinstance(branch, str) else None
    locale = read_branch_locale(branch) if branch else ""
    affected = list_affected(call.tool_name, ({"locale": locale} if locale else {}) | arguments, branch)
    waits_in = result.get("reviewBranch")
    if not isinstance(waits_in, str):
        return affected
    return affected.merge(AffectedResources(branches_changed=True, branch=waits_in))
