"""Merge branches, and reject them, for the tools of the studio."""

from typing import Any

from fermata.content.change_sets.branch_names import read_branch_locale
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_store import discard_change_set, list_change_sets, read_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.read_document import read_versions_at_once
from fermata.domain.errors import Conflict, NotFound
from fermata.tools.studio.auto_merge import refuse_branch
from fermata.tools.studio.project_permissions import CallerRefused
from fermata.tools.studio.studio_access import StudioAccess


def merge_branch(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Merge a branch: all of its changes, or none and a list of the conflicts."""
    branch = _find_branch(arguments["branch"], access)
    opened = access.opened
    merged = merge_change_set(opened.resources, opened.space, branch.id, opened.author)
    return {"merged": True, "sha": f"{merged.version:040x}", "pullRequestUrl": None, "branch": arguments["branch"]}


def reject_branch(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Reject a branch. Its changes are gone."""
    branch = _find_branch(arguments["branch"], access)
    discard_change_set(access.opened.resources, access.opened.space, branch.id)
    return {"rejected": True, "branch": arguments["branch"]}


def _find_branch(name: str, access: StudioAccess) -> ChangeSet:
    """Return a branch that the caller may decide about.

    Raises:
        NotFound: There is none of this name.
        Conflict: It can be neither merged nor rejected.
        CallerRefused: It changes models or languages that the caller may not see.
    """
    refusal = refuse_branch(name)
    if refusal is not None:
        raise Conflict(refusal)
    opened = access.opened
    for one in list_change_sets(opened.resources, opened.space):
        if name in (one.branch, f"cr/{one.id}"):
            _check_models(one, access)
            _check_locale(one, name, access)
            return one
    raise NotFound(f"There is no branch {name}. list_branches lists them.")


def _check_models(branch: ChangeSet, access: StudioAccess) -> None:
    allowed = access.permissions.allowed_models
    if allowed is None:
        return
    contents = read_change_set(access.opened.resources, access.opened.space, branch.id)
    if any(document.model not in allowed for document in contents.documents):
        raise CallerRefused("model_access_denied")


def _check_locale(branch: ChangeSet, name: str, access: StudioAccess) -> None:
    """Refuse a branch that changes another language than its name says, or whose name says none of the caller's."""
    allowed = access.permissions.allowed_locales
    if allowed is None:
        return
    if read_branch_locale(name) not in allowed or _list_changed_locales(branch, access) - {*allowed, DEFINITION_LOCALE}:
        raise CallerRefused("locale_not_allowed")


def _list_changed_locales(branch: ChangeSet, access: StudioAccess) -> set[str]:
    """Return the languages in which the documents of a branch say something else than before."""
    resources, space = access.opened.resources, access.opened.space
    documents = read_change_set(resources, space, branch.id).documents
    bases = read_versions_at_once(resources, space, [(one.key, one.base_version) for one in documents])
    changed = set()
    for one in documents:
        base = bases.get((one.key, one.base_version))
        before = base.content.locales if base and base.content else {}
        after = one.content.locales if one.content else {}
        changed |= {locale for locale in {*before, *after} if before.get(locale) != after.get(locale)}
    return changed
