"""Begin a project, and change its models and languages, for the tools of the studio."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import discard_change_set
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel, parse_content_model
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.document_writes import build_effect_put
from fermata.content.documents.read_document import PROJECT_KEY, read_newest_version
from fermata.content.files.read_project import CONFIG_VERSION, HIDDEN_MODELS, PROJECT_MODEL
from fermata.content.files.write_project import delete_model_with_documents
from fermata.content.model_changes import list_breaking_changes, model_to_content
from fermata.content.space_locales import add_space_locale, change_space_locales, check_locales
from fermata.content.validation.schema_health import iter_schema_warnings
from fermata.domain.errors import ApiError, Conflict, InvalidRequest
from fermata.tools.studio.auto_merge import merges_at_once
from fermata.tools.studio.branch_writes import ChangeContent, finish_branch, open_branch, write_documents
from fermata.tools.studio.content_tools import copy_entry
from fermata.tools.studio.project_permissions import CallerRefused
from fermata.tools.studio.studio_access import StudioAccess

_DOCUMENTS_AT_ONCE = 100


def init_project(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Begin a project: its settings and its first models. It is merged at once, or nothing is left of it."""
    locales, domains = check_locales(arguments["locales"]), arguments["domains"]
    models = [_parse_studio_model(one) for one in arguments.get("models") or ()]
    if errors := _find_schema_errors(models, {}):
        return _refuse_models(errors)
    opened = access.opened
    branch = open_branch(access, "new", "init")
    config = {
        "version": CONFIG_VERSION,
        "stack": arguments["stack"],
        "workflow": "auto-merge",
        "domains": domains,
        "locales": {"default": locales[0], "supported": list(locales)},
    }
    files = ["config", "vocabulary", *(f"model/{model.id}" for model in models)]
    try:
        if branch.status == "open":
            _write_beginning(access, branch, models, config)
        written = finish_branch(access, "init_project", branch, files, [])
    except ApiError:
        _discard_beginning(access, branch)
        raise
    if not written["merged"]:
        _discard_beginning(access, branch)
        raise _make_begun_error()
    change_space_locales(opened.resources, opened.space, locales)
    return written


def _write_beginning(
    access: StudioAccess, branch: ChangeSet, models: Sequence[ContentModel], config: Mapping[str, Any]
) -> None:
    """Write what a project begins with. With its settings, it is active: all of this is there at one moment.

    Raises:
        Conflict: Somebody else has begun the project since its phase was read.
    """
    begun = read_newest_version(access.opened.resources, access.opened.space, PROJECT_KEY)
    if begun is not None and begun.content is not None:
        raise _make_begun_error()
    for model in (PROJECT_MODEL, *models):
        _change_in_branch(access, branch, DocumentKey(META_MODEL, model.id), model_to_content(model))
    own = DocumentContent(title="Project").with_fields(DEFINITION_LOCALE, {"config": config})
    _change_in_branch(access, branch, PROJECT_KEY, own)


def _make_begun_error() -> Conflict:
    return Conflict("Somebody else has begun this project at the same moment. Look at what is there, and go on.")


def _discard_beginning(access: StudioAccess, branch: ChangeSet) -> None:
    """Discard the branch of a beginning that is refused, which would keep the project from being begun otherwise."""
    with suppress(Conflict):  # another copy of the call has merged it
        discard_change_set(access.opened.resources, access.opened.space, branch.id)


def save_studio_model(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Create a model, or change one. Fields that are not named stay, and one that is null is removed."""
    before = access.whole.models.get(arguments["id"])
    known = before.model.to_wire() if before else {}
    fields = {**known.get("fields", {}), **(arguments.get("fields") or {})}
    kept = {name: field for name, field in fields.items() if field is not None}
    model = _parse_studio_model({**known, **arguments, "fields": kept})
    if errors := _find_schema_errors([model], access.models):
        return _refuse_models(errors)
    branch = open_branch(access, "model", model.id)
    if branch.status == "open":
        _change_in_branch(access, branch, DocumentKey(META_MODEL, model.id), model_to_content(model))
    written = finish_branch(access, "save_model", branch, [f"model/{model.id}"], [])
    breaking = list_breaking_changes(before.model, model) if before else []
    return written | ({"breakingChanges": breaking} if breaking else {})


def _find_schema_errors(models: Sequence[ContentModel], known: Mapping[str, ContentModel]) -> list[dict[str, str]]:
    """Return what keeps models from being stored.

    Args:
        models: The models that are new or change.
        known: Those that there are.
    """
    together = {**known, **{model.id: model for model in models}}
    twice = [name for name, count in Counter(model.id for model in models).items() if count > 1]
    errors = [_describe_error(name, "duplicate_model", f"There are several models {name}.") for name in twice]
    reserved = [model.id for model in models if model.id in {*HIDDEN_MODELS, META_MODEL}]
    errors += [
        _describe_error(name, "reserved_model", f"{name} is a model of the store. Use another id.") for name in reserved
    ]
    for model in models:
        found = [one for one in iter_schema_warnings(model, together) if one.severity != "warning"]
        place = f"{model.id}." if len(models) > 1 else ""
        errors += [_describe_error(place + one.field, one.kind, one.message) for one in found]
    return errors


def _describe_error(field: str, kind: str, message: str) -> dict[str, str]:
    return {"field": field, "severity": "error", "kind": kind, "message": message}


def _refuse_models(errors: list[dict[str, str]]) -> dict[str, Any]:
    return {"branch": "", "commitSha": "", "filesChanged": [], "valid": False, "errors": errors, "merged": False}


def _change_in_branch(
    access: StudioAccess, branch: ChangeSet, key: DocumentKey, content: DocumentContent | None
) -> None:
    opened = access.opened
    change_in_change_set(opened.resources, opened.space, branch.id, key, lambda _before, _basis: content)


def _parse_studio_model(definition: Mapping[str, Any]) -> ContentModel:
    members = {name: value for name, value in definition.items() if name != "name"}
    return parse_content_model({**members, "title": definition.get("name") or definition.get("title", "")})


def delete_studio_model(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Delete a model with all of its content, unless others point to it. Every version can be restored."""
    opened = access.opened
    if not opened.has_been_done() and (question := _question_deletion(arguments, access)):
        return question
    model_id = arguments["model"]
    branch = open_branch(access, "model", model_id)
    keys = [key for key in access.whole.versions if key.model == model_id]
    if merges_at_once("delete_model", access.permissions, workflow=access.workflow, branch=branch.branch or branch.id):
        delete_model_with_documents(opened.resources, opened.space, model_id, opened.author, opened.effect_key)
    elif branch.status == "open":
        for key in (*keys, DocumentKey(META_MODEL, model_id)):
            _change_in_branch(access, branch, key, None)
    written = finish_branch(access, "delete_model", branch, [f"model/{model_id}"], [])
    return written | {"deleted": written["merged"]}


def _question_deletion(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any] | None:
    """Return what is answered instead of a deletion: who points to the model, or what has to be confirmed."""
    model = access.require_model(arguments["model"])
    users = _list_referencing_fields(model.id, access)
    if users:
        return {"deleted": False, "referencedBy": users}
    if _list_referencing_fields(model.id, access.without_restrictions()):
        raise CallerRefused("model_access_denied", f"A model that you may not change points to {model.id}.")
    if arguments.get("confirm") is True:
        return None
    count = len(access.list_entries(model))
    message = f"Delete {model.id} with {count} entries? Ask the user, and call again with confirm."
    return {"deleted": False, "requiresConfirmation": True, "message": message, "referencedBy": []}


def _list_referencing_fields(model_id: str, access: StudioAccess) -> list[str]:
    return [
        f"{other.id}.{name}"
        for other in access.models.values()
        for name, field in other.fields.items()
        if model_id in field.model and other.id != model_id
    ]


def add_locale(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Add a language to the project, with a copy of the content of another one if that is asked for."""
    opened, locale, supported = access.opened, arguments["locale"], access.whole.record.locales
    if locale in supported and not opened.has_been_done():
        raise Conflict(f"The project has the locale {locale} already.")
    source = arguments.get("copyFrom")
    if source is not None and source not in supported:
        raise InvalidRequest(f"The project has no locale {source}. It has {', '.join(supported)}.")
    changes: dict[DocumentKey, ChangeContent] = {}
    for model in access.models.values() if source else ():
        for name, content in access.list_entries(model).items() if model.i18n else ():
            if content.get_locale(str(source)):
                changes[DocumentKey(model.id, name)] = partial(copy_entry, str(source), locale)
    # The mark stands beside the language: a call that died before it had copied is repeated, and goes on.
    key = opened.effect_key
    mark = [build_effect_put(opened.resources, opened.space, key, [])] if key else []
    record = add_space_locale(opened.resources, opened.space, locale, mark)
    fresh = StudioAccess(opened, access.permissions, access.ui_context)
    written: dict[str, Any] = {"branch": "", "valid": True, "errors": [], "merged": True, "filesChanged": ["config"]}
    if changes:
        written = _copy_in_parts(fresh, changes, locale)
    return written | {"locales": list(record.locales)}


def _copy_in_parts(access: StudioAccess, changes: dict[DocumentKey, ChangeContent], locale: str) -> dict[str, Any]:
    """Write as many documents as one branch holds; say how many are left for copy_locale."""
    first = dict(list(changes.items())[:_DOCUMENTS_AT_ONCE])
    written = write_documents(access, "add_locale", first, target="locale", locale=locale)
    left = len(changes) - len(first)
    return written | ({"notCopied": left} if left else {})
