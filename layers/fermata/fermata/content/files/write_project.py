"""Make a space what a project says: models first, then all documents at one moment.

Everything is validated before anything is written. A space is not locked meanwhile: a document that somebody changes at
the same moment is read again. Repeating an import writes what is still missing, and nothing else.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import (
    ChangeOptions,
    DocumentExists,
    build_next_version,
    change_document,
    check_content,
)
from fermata.content.documents.commit_errors import ContentMoved, EffectRepeated
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_commit import commit_documents, make_way
from fermata.content.documents.document_writes import DocumentStep
from fermata.content.documents.read_document import (
    PROJECT_KEY,
    ModelState,
    WriteBasis,
    read_newest_version,
    read_write_basis,
)
from fermata.content.files.project_files import ContentProject
from fermata.content.files.read_project import (
    HIDDEN_MODELS,
    PROJECT_MODEL,
    VOCABULARY_KEY,
    read_cached_space,
    read_whole_space,
)
from fermata.content.files.split_by_models import split_by_models
from fermata.content.files.whole_space import WholeSpace
from fermata.content.forms.submission_store import delete_submissions_of_model
from fermata.content.media.asset_files import measure_assets
from fermata.content.model_changes import check_deleted_models, check_model_change, model_to_content
from fermata.content.model_store import check_forms_fit_plan, delete_model, put_model
from fermata.content.space_locales import change_space_locales
from fermata.content.validation.content_problem import ContentProblem, limit_problems
from fermata.content.validation.validate_document import ContentRefused
from fermata.domain.errors import Conflict, InvalidRequest, ServiceUnavailable, VersionMismatch
from fermata.domain.value_dataclass import value_dataclass

MAX_IMPORT_ATTEMPTS = 5


@value_dataclass(frozen=True)
class ImportSummary:
    """What an import has changed: the numbers of documents and of models."""

    written: int
    deleted: int
    models: int


def write_project(
    resources: Resources,
    space: SpaceKey,
    project: ContentProject,
    author: ContentAuthor,
    *,
    seen: WholeSpace | None = None,
) -> ImportSummary:
    """Make a space what a project says. What the project does not have is deleted, and can be restored.

    Args:
        resources: Of the process.
        space: The space.
        project: What it is to be.
        author: Who does it.
        seen: The space from which the project was made. What somebody has changed since is then not replaced.

    Raises:
        NotFound: There is no such space.
        ContentMoved: Somebody has changed what was seen and is to be written; it is as they have left it.
        ContentRefused: A document breaks the rules of its model; nothing was written.
        InvalidRequest: A model has a name that cannot be used.
        Conflict: A model changes what its documents do not allow, or a unique value is taken.
        PlanLocked: Nobody pays for the workspace, and a model gets a form; nothing was written.
        PlanUpgradeRequired: The plan of the workspace has no such forms; nothing was written.
    """
    _check_project(project)
    whole = seen or read_whole_space(resources, space)
    known = {name: state.model for name, state in whole.models.items()}
    check_forms_fit_plan(resources, space, [(known.get(name), model) for name, model in project.models.items()])
    is_strict = seen is not None
    if whole.record.locales != project.locales:
        change_space_locales(resources, space, project.locales, seen=whole.record.locales if is_strict else None)
    wanted = _list_wanted(project)
    gone = [key for key in whole.versions if key not in wanted and key.model != PROJECT_MODEL.id]
    # A model becomes another one only without documents.
    remade = {state.model.id for state in whole.models.values() if _is_made_anew(state, project)}
    for first in split_by_models(dict.fromkeys(key for key in gone if key.model in remade)):
        _write_documents(resources, space, first, whole, author, is_strict=is_strict)
    models = _write_models(resources, space, project, whole, author, is_strict=is_strict)
    changed = {key: content for key, content in wanted.items() if content != whole.get_content(key)}
    removed = dict.fromkeys(key for key in gone if key.model not in remade)
    for some in split_by_models({**removed, **changed}):
        _write_documents(resources, space, some, whole, author, is_strict=is_strict)
    models += _delete_models(resources, space, project, whole, author)
    return ImportSummary(len(changed), len(gone), models)


def _is_made_anew(state: ModelState, project: ContentProject) -> bool:
    after = project.models.get(state.model.id)
    try:
        if after is not None:
            check_model_change(state, after)
    except Conflict:
        return True
    return False


def _check_project(project: ContentProject) -> None:
    """Check all documents as they would be checked one by one."""
    reserved = HIDDEN_MODELS.intersection(project.models) | ({META_MODEL} & set(project.models))
    if reserved:
        raise InvalidRequest(f"No model can be called {', '.join(sorted(reserved))}. Rename it.")
    states = {name: ModelState(model, 1, 0) for name, model in project.models.items()}
    basis = WriteBasis(ContentSpace(locales=project.locales), states)
    if problems := list(limit_problems(_iter_problems(project, basis))):
        raise ContentRefused(problems)


def _iter_problems(project: ContentProject, basis: WriteBasis) -> Iterator[ContentProblem]:
    for key, content in project.documents.items():
        try:
            check_content(content, key, basis)
        except ContentRefused as refused:
            place = f"{key.model}/{key.id}"
            for problem in refused.problems:
                message = f"{place}: {problem.message}"
                yield problem.model_copy(update={"field": f"{place}.{problem.field}", "message": message})


def _list_wanted(project: ContentProject) -> dict[DocumentKey, DocumentContent]:
    """Return all documents, with that of the settings and that of the vocabulary."""
    settings = {"config": dict(project.config), "emptyFiles": list(project.empty_files) or None}
    settings["context"] = None if project.context is None else dict(project.context)
    own = DocumentContent(title="Project").with_fields(DEFINITION_LOCALE, settings)
    special = {PROJECT_KEY: own}
    if project.vocabulary.locales:
        special[VOCABULARY_KEY] = project.vocabulary
    return {**special, **project.documents}


def _write_models(
    resources: Resources,
    space: SpaceKey,
    project: ContentProject,
    whole: WholeSpace,
    author: ContentAuthor,
    *,
    is_strict: bool,
) -> int:
    """Write the models that differ. Return how many."""
    changed = 0
    if PROJECT_MODEL.id not in whole.models:
        key = DocumentKey(META_MODEL, PROJECT_MODEL.id)
        change_document(resources, space, key, author, lambda _before, _basis: model_to_content(PROJECT_MODEL))
    for model in project.models.values():
        state = whole.models.get(model.id)
        if state is None or state.model.model_copy(update={"built_in": False}) != _without_mark(model):
            _write_model(resources, space, model, author, (state.version if state else 0) if is_strict else None)
            changed += 1
    return changed


def _write_model(
    resources: Resources, space: SpaceKey, model: ContentModel, author: ContentAuthor, expected_version: int | None
) -> None:
    try:
        put_model(resources, space, model.to_wire(), author, ChangeOptions(expected_version))
    except (DocumentExists, VersionMismatch) as moved:
        raise ContentMoved from moved


def _delete_models(
    resources: Resources, space: SpaceKey, project: ContentProject, whole: WholeSpace, author: ContentAuthor
) -> int:
    """Delete the models that the project does not have. Return how many."""
    changed = 0
    for name, state in whole.models.items():
        if name not in project.models and name not in HIDDEN_MODELS and not state.model.built_in:
            delete_model(resources, space, name, author)
            changed += 1
    return changed


def delete_model_with_documents(
    resources: Resources, space: SpaceKey, model_id: str, author: ContentAuthor, effect_key: str = ""
) -> None:
    """Delete a model and all of its documents, at one moment. Every version stays, but no submission does.

    Args:
        resources: Of the process.
        space: The space.
        model_id: The model.
        author: Who deletes it.
        effect_key: The same for every repetition, which finds it done.

    Raises:
        NotFound: There is no such model.
        Conflict: Pages use it, every space has it, or somebody has added a document meanwhile.
        ServiceUnavailable: Others were faster in each of `MAX_IMPORT_ATTEMPTS` attempts.
    """
    whole = read_cached_space(resources, space)
    own = DocumentKey(META_MODEL, model_id)
    gone = dict.fromkeys([*(key for key in whole.versions if key.model == model_id), own])
    with suppress(EffectRepeated):
        _write_documents(resources, space, gone, whole, author, effect_key)
    delete_submissions_of_model(resources, space, model_id)


def _without_mark(model: ContentModel) -> ContentModel:
    return model.model_copy(update={"built_in": False})


def _write_documents(
    resources: Resources,
    space: SpaceKey,
    contents: Mapping[DocumentKey, DocumentContent | None],
    whole: WholeSpace,
    author: ContentAuthor,
    effect_key: str = "",
    *,
    is_strict: bool = False,
) -> None:
    """Write documents; those that somebody changes meanwhile are replaced too, unless it is strict."""
    if not contents:
        return
    befores: dict[DocumentKey, DocumentVersion | None] = {
        key: read_newest_version(resources, space, key) if key.model == META_MODEL else whole.versions.get(key)
        for key in contents
    }
    models = {key.id if key.model == META_MODEL else key.model for key in contents} | _list_parts(contents)
    for _ in range(MAX_IMPORT_ATTEMPTS):
        basis = read_write_basis(resources, space, models)
        sides = {key: (_get_content(befores[key]), content) for key, content in contents.items()}
        measured = measure_assets(resources, space, sides)
        steps = list(_plan_steps(resources, measured, befores, basis, author))
        check_deleted_models(basis, steps)
        try:
            if steps:
                commit_documents(resources, space, steps, basis, effect_key=effect_key)
        except ContentMoved as moved:
            make_way(resources, space, moved)
            former, befores = befores, _read_befores(resources, space, contents)
            if is_strict and _list_live(former) != _list_live(befores):
                raise
            continue
        return
    raise ServiceUnavailable("Other requests are changing these documents. Try again.", retry_after=1)


def _get_content(version: DocumentVersion | None) -> DocumentContent | None:
    return version.content if version else None


def _list_live(versions: Mapping[DocumentKey, DocumentVersion | None]) -> dict[DocumentKey, int]:
    """Return the numbers of versions of documents that exist."""
    return {key: one.version for key, one in versions.items() if one is not None and not one.is_deleted}


def _list_parts(contents: Mapping[DocumentKey, DocumentContent | None]) -> set[str]:
    return {part for content in contents.values() if content for part in content.parts}


def _read_befores(
    resources: Resources, space: SpaceKey, contents: Mapping[DocumentKey, DocumentContent | None]
) -> dict[DocumentKey, DocumentVersion | None]:
    """Read what somebody has changed meanwhile, or what was deleted before and goes on from the mark of that."""
    whole = read_cached_space(resources, space)
    return {key: whole.versions.get(key) or read_newest_version(resources, space, key) for key in contents}


def _plan_steps(
    resources: Resources,
    batch: Mapping[DocumentKey, DocumentContent | None],
    befores: Mapping[DocumentKey, DocumentVersion | None],
    basis: WriteBasis,
    author: ContentAuthor,
) -> Iterator[DocumentStep]:
    options = ChangeOptions()
    for key, content in batch.items():
        before = befores[key]
        if _get_content(before) == content:
            continue
        checked, _warnings = check_content(content, key, basis)
        yield DocumentStep(before, build_next_version(resources, key, author, before, checked, options))
