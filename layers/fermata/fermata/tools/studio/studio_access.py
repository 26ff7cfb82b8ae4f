"""Open the project of a turn for the caller of a tool: what it holds, what the caller may do, and its phase."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from fermata.content.asking_key import read_asking_key
from fermata.content.change_sets.branch_names import read_branch_locale, read_branch_model
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_store import list_change_sets
from fermata.content.content_model import DEFINITION_LOCALE, ContentModel
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.documents.review_workflow import AUTO_MERGE_WORKFLOW, has_reviews
from fermata.content.files.entry_meta import derive_title
from fermata.content.files.read_project import HIDDEN_MODELS, read_cached_space
from fermata.content.files.whole_space import WholeSpace
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_members import read_membership
from fermata.domain.caller import Capability
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.studio.phase_guard import derive_project_phase
from fermata.tools.studio.project_permissions import (
    CallerRefused,
    ProjectPermissions,
    resolve_key_permissions,
    resolve_member_permissions,
)
from fermata.tools.studio.tool_rules import ProjectPhase
from fermata.tools.tool import ToolContext, ToolFailure

NO_PERMISSIONS = resolve_member_permissions("member", None)


def read_caller_permissions(opened: OpenedSpace, user: str, capabilities: frozenset[str]) -> ProjectPermissions:
    """Return what a caller may do in a project now: what both its rights and its row of the project permit.

    Args:
        opened: The project.
        user: The caller. What an API key may do is read again each time, because it may be revoked within a turn.
        capabilities: Its rights. Who may manage content needs no row.
    """
    by_rights = resolve_caller_permissions(capabilities)
    key = read_asking_key(opened.resources, opened.space, user)
    if key is not None and not key.is_admitted:
        return NO_PERMISSIONS
    if key is not None and key.rules is not None:
        return _resolve_rules(key.rules, by_rights)
    if by_rights.merges_in_review:
        return by_rights
    membership = read_membership(opened.resources, opened.space, user)
    return by_rights.narrow_to(membership.member) if membership.is_listed else by_rights


def _resolve_rules(rules: ConversationKeyRules, by_rights: ProjectPermissions) -> ProjectPermissions:
    """Return what a key of the Conversation API may do: what both its rules and its rights permit."""
    by_rules = resolve_key_permissions(
        rules.role,
        allowed_tools=_to_set(rules.tools),
        allowed_models=_to_set(rules.models),
        allowed_locales=_to_set(rules.locales),
    )
    return replace(by_rules, tools=by_rules.tools & by_rights.tools)


def _to_set(names: Sequence[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def resolve_caller_permissions(capabilities: frozenset[str]) -> ProjectPermissions:
    """Return what a caller may do in the projects of the workspace by its rights alone (decisions 0423 and 0628)."""
    if Capability.CONTENT in capabilities:
        return resolve_member_permissions("admin", None)
    if not capabilities & {Capability.READ_CONTENT, Capability.WRITE_CONTENT}:
        return NO_PERMISSIONS
    reviews = Capability.REVIEW_CONTENT in capabilities
    found = resolve_member_permissions("member", {"role": "reviewer" if reviews else "viewer"})
    if Capability.WRITE_CONTENT in capabilities:
        editor = resolve_member_permissions("member", {"role": "editor"})
        return replace(editor, tools=editor.tools | found.tools)
    return found


@value_dataclass(frozen=True)
class StudioAccess:
    """A project, opened for one call.

    Attributes:
        ui_context: What the user has open: `activeModelId`, `activeLocale`, `activeEntryId`.
    """

    opened: OpenedSpace
    permissions: ProjectPermissions
    ui_context: Mapping[str, Any]

    @cached_property
    def whole(self) -> WholeSpace:
        """The models and documents of the project."""
        return read_cached_space(self.opened.resources, self.opened.space)

    def without_restrictions(self) -> "StudioAccess":
        """Return the project as somebody sees it who may use all models and languages."""
        everything = replace(self.permissions, allowed_models=None, allowed_locales=None)
        return StudioAccess(self.opened, everything, self.ui_context)

    @cached_property
    def branches(self) -> list[ChangeSet]:
        """The change sets that wait, the newest first."""
        found = list_change_sets(self.opened.resources, self.opened.space)
        return [one for one in found if one.status == "open"]

    @property
    def visible_branches(self) -> list[ChangeSet]:
        """The change sets that wait and are about models and languages that the caller may see, as their names say."""
        permissions = self.permissions
        if not permissions.is_restricted:
            return self.branches
        models, locales = permissions.allowed_models, permissions.allowed_locales
        return [
            one
            for one in self.branches
            if (models is None or read_branch_model(one.branch_name) in models)
            and (locales is None or read_branch_locale(one.branch_name) in locales)
        ]

    @property
    def visible_locales(self) -> tuple[str, ...]:
        """The languages of the project that the caller may see, the default one first."""
        allowed = self.permissions.allowed_locales
        return tuple(one for one in self.whole.record.locales if allowed is None or one in allowed)

    @cached_property
    def phase(self) -> ProjectPhase:
        """The phase of the project."""
        return find_project_phase(self.whole, [one.branch for one in self.branches])

    @property
    def workflow(self) -> str:
        """Whether changes of editors wait for a review. They do not in a plan without reviews."""
        wanted = str(self.config.get("workflow") or AUTO_MERGE_WORKFLOW)
        return wanted if wanted == AUTO_MERGE_WORKFLOW or self.has_reviews else AUTO_MERGE_WORKFLOW

    @cached_property
    def has_reviews(self) -> bool:
        """Whether the plan of the workspace has reviews."""
        return has_reviews(self.opened.resources, self.opened.space.tenant)

    @property
    def publishes_at_once(self) -> bool:
        """Whether what is saved is published: the project says so, or there are no reviews that it could wait for."""
        return self.config.get("autoPublish") is True or not self.has_reviews

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings of the project."""
        found = self.whole.settings.get("config")
        return found if isinstance(found, dict) else {}

    @property
    def models(self) -> dict[str, ContentModel]:
        """The models that the caller may see, by id. Built-in ones are among them when they are used."""
        allowed = self.permissions.allowed_models
        return {
            name: state.model
            for name, state in self.whole.models.items()
            if name not in HIDDEN_MODELS
            and (state.documents or not state.model.built_in)
            and (allowed is None or name in allowed)
        }

    def require_model(self, model_id: str) -> ContentModel:
        """Return a model that the caller may see.

        Raises:
            NotFound: There is none.
        """
        if model_id not in self.models:
            raise NotFound(f"There is no model {model_id}. list_models lists them.")
        return self.models[model_id]

    def choose_locale(self, arguments: Mapping[str, Any]) -> str:
        """Return the locale that is meant: that of the input, or the one that the user has open, or the default.

        Raises:
            InvalidRequest: The project has no such locale.
            CallerRefused: The caller may not use it.
        """
        supported = self.whole.record.locales
        locale = arguments.get("locale") or self.ui_context.get("activeLocale") or supported[0]
        if locale not in supported:
            raise InvalidRequest(f"The project has no locale {locale}. It has {', '.join(supported)}.")
        if self.permissions.allowed_locales is not None and locale not in self.permissions.allowed_locales:
            raise CallerRefused("locale_not_allowed")
        return str(locale)

    def place_of(self, model: ContentModel, locale: str) -> str:
        """Return under which name a document has the content of a locale."""
        return locale if model.i18n else DEFINITION_LOCALE

    def list_entries(self, model: ContentModel) -> dict[str, DocumentContent]:
        """Return the documents of a model by id, each in the languages that the caller may use."""
        allowed = self.permissions.allowed_locales if model.i18n else None
        return {
            key.id: version.content if allowed is None else _keep_locales(model, version.content, allowed)
            for key, version in self.whole.versions.items()
            if key.model == model.id and version.content is not None
        }

    def find_entry(self, model: ContentModel, entry_id: str) -> tuple[DocumentKey, DocumentContent]:
        """Return the document that an id or a slug names.

        Raises:
            NotFound: There is none.
        """
        entries = self.list_entries(model)
        for found, content in entries.items():
            if entry_id in (found, content.slug):
                return DocumentKey(model.id, found), content
        raise NotFound(f"{model.id} has no entry {entry_id}.")


def _keep_locales(model: ContentModel, content: DocumentContent, allowed: frozenset[str]) -> DocumentContent:
    """Return a document in some languages, with a title from one of these: its own is in the default language."""
    kept = {locale: fields for locale, fields in content.locales.items() if locale in allowed}
    titles = (derive_title(model, content, locale) for locale in sorted(kept))
    return content.model_copy(update={"locales": kept, "title": next(filter(None, titles), "")})


def find_project_phase(whole: WholeSpace, branches: list[str]) -> ProjectPhase:
    """Return the phase of a project.

    Args:
        whole: The project.
        branches: The names of the branches that wait.
    """
    return derive_project_phase(
        has_config=whole.get_content(PROJECT_KEY) is not None,
        pending_branches=branches,
        status=str(whole.settings.get("status") or "active"),
    )


def open_studio(context: ToolContext) -> StudioAccess:
    """Open the project of a call.

    Raises:
        ToolFailure: The turn works in none.
    """
    opened = context.open_content()
    if opened is None:
        raise ToolFailure("No project is chosen. Ask the user which one to work on.")
    ui_context = context.snapshot if isinstance(context.snapshot, dict) else {}
    permissions = read_caller_permissions(opened, context.user, context.capabilities)
    # A key that was an admin's when the turn began may be an editor's now.
    opened = replace(opened, is_reviewed=not permissions.merges_in_review)
    return StudioAccess(opened, permissions, ui_context)
