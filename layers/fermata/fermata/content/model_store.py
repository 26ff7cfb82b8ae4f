"""Create spaces, and create, change, restore and delete their models, which are documents of a model themselves."""

from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription, require_plan_feature
from fermata.content.built_in_models import BUILT_IN_MODELS
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel, parse_content_model
from fermata.content.content_space import (
    MAX_SPACES,
    ContentSpace,
    SpaceKey,
    check_space_names,
    list_spaces,
    space_to_item,
)
from fermata.content.documents.change_document import (
    ChangeOptions,
    WrittenDocument,
    build_next_version,
    change_document,
)
from fermata.content.documents.commit_errors import ContentMoved
from fermata.content.documents.document import (
    ContentAuthor,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_commit import commit_documents
from fermata.content.documents.document_writes import DocumentStep
from fermata.content.documents.read_document import (
    ModelState,
    WriteBasis,
    model_state_from_item,
    read_restorable_content,
    read_write_basis,
)
from fermata.content.documents.staged_rows import show_rows
from fermata.content.forms.form_definition import find_form, parse_form_definition
from fermata.content.forms.submission_store import delete_submissions_of_model
from fermata.content.model_changes import (
    check_model_change,
    check_model_deletion,
    model_to_content,
    require_no_breaking,
)
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.plan_refusals import check_plan_quota
from fermata.domain.workspace_plan import PlanFeature, PlanQuota

MAX_MODELS = 300


def create_space(resources: Resources, space: SpaceKey, record: ContentSpace, author: ContentAuthor) -> ContentSpace:
    """Create a space with the models that every space has, in one transaction.

    Args:
        resources: Of the process.
        space: Its name.
        record: How it is set up.
        author: Who creates it.

    Raises:
        InvalidRequest: The name is none, or the tenant has as many spaces as it may have.
        Conflict: There is such a space.
    """
    check_space_names(space.site, space.environment)
    if len(list_spaces(resources, space.tenant)) >= MAX_SPACES:
        raise InvalidRequest(f"A workspace has at most {MAX_SPACES} sites and environments.")
    record = record.model_copy(update={"created_at": resources.clock.now_iso(), "user": author.user})
    put = Put(resources.settings.content_table, space_to_item(space, record), if_absent=True)
    steps = [DocumentStep(None, _build_first_version(resources, model, author)) for model in BUILT_IN_MODELS]
    try:
        commit_documents(resources, space, steps, WriteBasis(record, {}), extra=[put])
    except ContentMoved:
        raise Conflict(
            f"There is a space {space.name} already, or one of this name is being erased: then it is free in an hour."
        ) from None
    return record


def _build_first_version(resources: Resources, model: ContentModel, author: ContentAuthor) -> DocumentVersion:
    key = DocumentKey(META_MODEL, model.id)
    return build_next_version(resources, key, author, None, model_to_content(model), ChangeOptions())


def list_content_models(resources: Resources, space: SpaceKey) -> list[ModelState]:
    """Return the models of a space, by id."""
    prefix = f"d#{META_MODEL}#"
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", limit=MAX_MODELS
    )
    return [model_state_from_item(row) for row in show_rows(resources, space, rows)]


def read_model(resources: Resources, space: SpaceKey, model_id: str) -> ModelState:
    """Return a model.

    Args:
        resources: Of the process.
        space: The space.
        model_id: The model.

    Raises:
        NotFound: The space or the model does not exist.
    """
    basis = read_write_basis(resources, space, [model_id])
    basis.require_model(model_id)
    return basis.models[model_id]


def put_model(
    resources: Resources,
    space: SpaceKey,
    definition: dict[str, Any],
    author: ContentAuthor,
    options: ChangeOptions | None = None,
    *,
    keeps_unsaid: bool = False,
    refuses_breaking: bool = False,
) -> WrittenDocument:
    """Create a model, or change one.

    Args:
        resources: Of the process.
        space: The space.
        definition: The whole model.
        author: Who changes it.
        options: What the change depends on.
        keeps_unsaid: Whether the model keeps its form, and members of other programs, if the definition does not
            mention them. It may mention none of these that the model does not have.
        refuses_breaking: Whether the documents of the model have to fit afterwards, as in `require_no_breaking`.

    Raises:
        InvalidRequest: The definition is none.
        BreakingModels: Documents may not fit any more, and that is refused.
        Conflict: The model is in use, and its documents are not what the new definition makes of them.
        PlanLocked: Nobody pays for the workspace, and the model gets a form.
        PlanUpgradeRequired: The plan of the workspace has no more forms, or none that approve at once.
    """
    model = parse_content_model(definition)
    parse_form_definition(model)

    def decide(before: DocumentVersion | None, basis: WriteBasis) -> DocumentContent:
        state = basis.models.get(model.id)
        if state is not None:
            check_model_change(state, model)
        is_built_in = state is not None and state.model.built_in
        wanted = model.model_copy(update={"built_in": is_built_in})
        if keeps_unsaid:
            wanted = _keep_unsaid(wanted, state.model if state else None, definition)
        check_forms_fit_plan(resources, space, [(state.model if state else None, wanted)])
        content = model_to_content(wanted)
        if refuses_breaking:
            require_no_breaking(basis, {model.id: content})
        # The same definition again is no change.
        published_at = before.content.published_at if before and before.content else ""
        return content.model_copy(update={"published_at": published_at})

    return change_document(resources, space, DocumentKey(META_MODEL, model.id), author, decide, options)


def _keep_unsaid(wanted: ContentModel, known: ContentModel | None, definition: dict[str, Any]) -> ContentModel:
    """Return a model with what it has and its new definition does not mention.

    Raises:
        InvalidRequest: The definition has a member that neither models nor this one have.
    """
    others = dict(known.model_extra or {}) if known else {}
    if strange := sorted((wanted.model_extra or {}).keys() - others.keys()):
        raise InvalidRequest(f"Invalid request body. '{strange[0]}' is not known here.")
    if known is not None and "form" not in definition:
        wanted = wanted.model_copy(update={"form": known.form})
        parse_form_definition(wanted)
    return ContentModel.from_wire({**others, **wanted.to_wire()}) if others else wanted


def check_forms_fit_plan(
    resources: Resources, space: SpaceKey, changes: Iterable[tuple[ContentModel | None, ContentModel]]
) -> None:
    """Check that the plan of a workspace has what the forms of models become. One that stays as it is may stay.

    Args:
        resources: Of the process.
        space: The space of the models.
        changes: Each model as it is, None for a new one, and as it is to be.

    Raises:
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: Its plan has no more forms, or none that approve at once.
    """
    forms = [(model.id, find_form(before) if before else None, find_form(model)) for before, model in changes]
    changed = [(known, form) for _, known, form in forms if form and form != known]
    if any(form.auto_approve and not (known and known.auto_approve) for known, form in changed):
        require_plan_feature(resources, space.tenant, PlanFeature.FORM_AUTO_APPROVE)
    if any(form.captcha and not (known and known.captcha) for known, form in changed):
        require_plan_feature(resources, space.tenant, PlanFeature.FORM_CAPTCHA)
    if all(known for known, _ in changed):
        return
    subscription = read_subscription(resources, space.tenant)
    is_limited = subscription.get_limit(PlanQuota.FORMS) is not None
    others = list_open_forms(resources, space.tenant) if is_limited else frozenset()
    after = others - {(space, name) for name, _, _ in forms} | {(space, name) for name, _, form in forms if form}
    check_plan_quota(subscription, PlanQuota.FORMS, len(after), resources.clock.time())


def list_open_forms(resources: Resources, tenant: str) -> frozenset[tuple[SpaceKey, str]]:
    """Return the models of a workspace whose forms visitors may send, each with its space."""
    return frozenset(
        (space, state.model.id)
        for space, _ in list_spaces(resources, tenant)
        for state in list_content_models(resources, space)
        if find_form(state.model)
    )


def delete_model(
    resources: Resources, space: SpaceKey, model_id: str, author: ContentAuthor, options: ChangeOptions | None = None
) -> WrittenDocument:
    """Delete a model that no document and no page uses. Its versions stay, and can be restored; submissions do not.

    Args:
        resources: Of the process.
        space: The space.
        model_id: The model.
        author: Who deletes it.
        options: What the change depends on.

    Raises:
        NotFound: There is no such model.
        Conflict: It is in use, or every space has it.
    """

    def decide(_before: DocumentVersion | None, basis: WriteBasis) -> None:
        state = basis.models.get(model_id)
        if state is None:
            raise NotFound(f"There is no model {model_id}.")
        check_model_deletion(state, model_id)

    deleted = change_document(resources, space, DocumentKey(META_MODEL, model_id), author, decide, options)
    delete_submissions_of_model(resources, space, model_id)
    return deleted


def restore_model(
    resources: Resources,
    space: SpaceKey,
    model_id: str,
    version: int,
    author: ContentAuthor,
    options: ChangeOptions | None = None,
) -> WrittenDocument:
    """Let a model be again what it was at a version.

    Args:
        resources: Of the process.
        space: The space.
        model_id: The model, which may be deleted.
        version: The version.
        author: Who restores it.
        options: What the change depends on.

    Raises:
        NotFound: There is no such version, or it is the mark of a deletion.
        Conflict: Its documents are not what that version makes of them.
    """
    former = read_restorable_content(resources, space, DocumentKey(META_MODEL, model_id), version)
    options = (options or ChangeOptions())._replace(action="restore", restored_from=version)
    return put_model(resources, space, dict(former.get_locale(DEFINITION_LOCALE)), author, options)
