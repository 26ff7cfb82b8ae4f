"""Write documents in a branch of their own, and merge it at once where the workflow says so.

The branch of a call follows from its effect key. A call that is repeated finds it, and goes on where the first has
stopped.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from fermata.content.change_sets.branch_names import BranchScope, build_branch_name
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_backlog import HealthThresholds, describe_change_set_health
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.change_sets.merge_change_set import MergeOptions, MergeRefused, merge_change_set
from fermata.content.documents.change_document import DocumentExists, check_content
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import PROJECT_KEY, WriteBasis
from fermata.content.validation.content_problem import ContentProblem
from fermata.content.validation.unique_values import UniqueValues
from fermata.content.validation.validate_document import ContentRefused
from fermata.tools.studio.auto_merge import merges_at_once
from fermata.tools.studio.studio_access import StudioAccess

ChangeContent = Callable[[DocumentContent | None], DocumentContent | None]
"""Returns what a document says from now on, given what it says; None for one that does not exist."""
ID_DIGITS = 12


def make_effect_id(access: StudioAccess, name: str, digits: int = ID_DIGITS) -> str:
    """Return hexadecimal digits that are the same for every repetition of the call.

    Args:
        access: Of the call.
        name: What the id is for within the call.
        digits: How many.
    """
    seed = access.opened.effect_key or str(access.opened.resources.clock.time())
    return hashlib.sha256(f"{access.opened.space.pk} {seed} {name}".encode()).hexdigest()[:digits]


def open_branch(access: StudioAccess, scope: BranchScope, target: str, locale: str = "") -> ChangeSet:
    """Begin the branch of a call, or return the one that an earlier copy of it has begun.

    Args:
        access: Of the call.
        scope: As in `build_branch_name`.
        target: As in `build_branch_name`.
        locale: As in `build_branch_name`.

    Raises:
        TooManyRequests: Too many branches wait.
    """
    opened = access.opened
    seconds = int(opened.resources.clock.time())
    name = build_branch_name(scope, target, seconds, locale)
    return begin_change_set(
        opened.resources, opened.space, name, opened.author, branch=name, change_set_id=_make_branch_id(access)
    )


def _make_branch_id(access: StudioAccess) -> str:
    return make_effect_id(access, "branch", 32) if access.opened.effect_key else ""


def has_begun_branch(access: StudioAccess) -> bool:
    """Return whether an earlier copy of the call has begun its branch, by which the phase may be another one now."""
    opened, branch_id = access.opened, _make_branch_id(access)
    return bool(branch_id) and any(one.id == branch_id for one in list_change_sets(opened.resources, opened.space))


def write_documents(
    access: StudioAccess,
    tool: str,
    changes: Mapping[DocumentKey, ChangeContent],
    *,
    target: str,
    locale: str = "",
) -> dict[str, Any]:
    """Write documents in a branch, and return what the tool answers.

    Args:
        access: Of the call.
        tool: Which decides whether the branch is merged at once.
        changes: What becomes of each document.
        target: The model, for the name of the branch.
        locale: Its locale, for the name of the branch.

    Raises:
        TooManyRequests: Too many branches wait.
        PayloadTooLarge: There are more documents than one branch holds.
    """
    problems = _find_problems(access, changes)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        return _describe_write("", [], problems, merged=False)
    branch = open_branch(access, "content", target, locale)
    if branch.status == "open":
        for key, change in changes.items():
            change_in_change_set(access.opened.resources, access.opened.space, branch.id, key, _to_decision(change))
    return finish_branch(access, tool, branch, [f"{key.model}/{key.id}" for key in changes], problems)


def _to_decision(change: ChangeContent) -> Callable[[DocumentVersion | None, WriteBasis], DocumentContent | None]:
    return lambda before, _basis: change(before.content if before else None)


def _find_problems(access: StudioAccess, changes: Mapping[DocumentKey, ChangeContent]) -> list[ContentProblem]:
    basis = WriteBasis(access.whole.record, dict(access.whole.models))
    problems: list[ContentProblem] = []
    known: dict[tuple[str, str], UniqueValues] = {}
    for key, change in changes.items():
        content = change(access.whole.get_content(key))
        try:
            found = check_content(content, key, basis)[1]
        except ContentRefused as refused:
            found = refused.problems
        found = (*found, *_find_taken_values(access, key, content, known))
        problems += [one.model_copy(update={"field": f"{key.id}.{one.field}"}) for one in found]
    return problems


def _find_taken_values(
    access: StudioAccess, key: DocumentKey, content: DocumentContent | None, known: dict[tuple[str, str], UniqueValues]
) -> list[ContentProblem]:
    """Return the unique values that another entry has. Values are compared as texts.

    Args:
        access: Of the call.
        key: The entry.
        content: What it says from now on.
        known: Of models and locales, as far as they were read for entries before, with the values of these.
    """
    model = access.models.get(key.model)
    if model is None or content is None or not model.unique_fields:
        return []
    found = []
    for locale, fields in content.locales.items():
        place = (model.id, locale)
        if place not in known:
            entries = access.list_entries(model)
            said = {name: one.get_locale(locale) for name, one in entries.items()}
            known[place] = UniqueValues(said, model.fields)
        for name in model.unique_fields:
            value = fields.get(name)
            if value not in (None, "") and (owner := known[place].find_other_owner(name, value, key.id)):
                message = f"{name} has to be unique. The entry {owner} has it."
                found.append(ContentProblem(field=name, kind="unique", message=message))
        known[place].add(key.id, fields)
    return found


def finish_branch(
    access: StudioAccess, tool: str, branch: ChangeSet, files: list[str], problems: list[ContentProblem]
) -> dict[str, Any]:
    """Merge a branch if the tool and the workflow say so, and return what the tool answers.

    Args:
        access: Of the call.
        tool: The tool.
        branch: The branch.
        files: What it changes.
        problems: Warnings about that.
    """
    opened, name = access.opened, branch.branch or branch.id
    merged = branch.status == "merged"
    conflict: dict[str, Any] = {}
    if not merged and merges_at_once(tool, access.permissions, workflow=access.workflow, branch=name):
        try:
            # Who saves a model is told what it breaks, and has been asked before.
            begins_with = PROJECT_KEY if tool == "init_project" else None
            options = MergeOptions(allow_breaking=tool == "save_model", begins_with=begins_with)
            merge_change_set(opened.resources, opened.space, branch.id, opened.author, options)
            merged = True
        except (MergeRefused, DocumentExists) as refused:
            conflict = {"error": refused.message, **refused.details}
    answer = _describe_write(name, files, problems, merged=merged) | conflict
    limits = HealthThresholds.from_settings(access.whole.settings)
    waiting = {one.id for one in access.branches} | {branch.id}  # which may be newer than the list
    if warning := describe_change_set_health(len(waiting) - merged, limits):
        answer["warning"] = warning
    if merged:
        return answer
    return answer | {"workflow": access.workflow, "reviewBranch": name}


def _describe_write(branch: str, files: list[str], problems: list[ContentProblem], *, merged: bool) -> dict[str, Any]:
    is_valid = not any(problem.severity == "error" for problem in problems)
    digest = hashlib.sha1(f"{branch} {' '.join(files)}".encode(), usedforsecurity=False).hexdigest()
    return {
        "branch": branch,
        "commitSha": digest if branch else "",
        "filesChanged": files,
        "valid": is_valid,
        "errors": [problem.to_wire() for problem in problems],
        "merged": merged,
    }
