"""Say what a member or an API key may do in a project: which tools, models and locales. The unknown is denied."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from fermata.content.space_members import SpaceMember
from fermata.domain.errors import Forbidden
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.studio.tool_rules import TOOL_RULES, ProjectRole

WorkspaceRole = Literal["owner", "admin", "member"]
_FULL_ROLES = ("owner", "admin")
_LEAST_ROLE: ProjectRole = "viewer"
_KEY_ROLES = ("viewer", "editor")
_TOOLS_OF_ALL_LOCALES = frozenset({"delete_model", "init_project"})
"""They change content in all languages at once, so nobody calls them who may use some languages only."""
_TOOLS_OF_ALL_MODELS = frozenset({"init_project", "add_locale"})
"""They make models of any name, or change all of them, so nobody calls them who may use some models only."""


CallerRefusalCode = Literal["permission_denied", "model_access_denied", "locale_not_allowed"]
CALLER_REFUSALS: dict[CallerRefusalCode, str] = {
    "permission_denied": "You may not call this tool in this project. Tell the user what needs which right.",
    "model_access_denied": "You may not read or change this model.",
    "locale_not_allowed": "You may not read or change content in this language.",
}
"""What a model is told of a call that its user may not make, by the code of the reason."""


class CallerRefused(Forbidden):
    """A call that its user may not make. It has changed nothing."""

    def __init__(self, code: CallerRefusalCode, message: str = "") -> None:
        """Create the error.

        Args:
            code: The reason.
            message: Words of its own; the usual ones of the reason without them.
        """
        super().__init__(message or CALLER_REFUSALS[code])
        self.code = code


@value_dataclass(frozen=True)
class ProjectPermissions:
    """What a caller may do in a project.

    Attributes:
        tools: The names of the tools that the caller may use.
        allowed_models: The only models whose content the caller may read or write; None for all.
        allowed_locales: The only locales; None for all.
    """

    workspace_role: WorkspaceRole
    project_role: ProjectRole | None
    tools: frozenset[str]
    allowed_models: frozenset[str] | None = None
    allowed_locales: frozenset[str] | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether the caller may see a part of the project only."""
        return self.allowed_models is not None or self.allowed_locales is not None

    @property
    def merges_in_review(self) -> bool:
        """Whether the caller's changes are merged although the project's workflow asks for a review."""
        return self.workspace_role in _FULL_ROLES

    def narrow_to(self, member: SpaceMember | None) -> "ProjectPermissions":
        """Return what is permitted both by these permissions and by a row of the project; nothing without a row."""
        if member is None:
            return resolve_member_permissions("member", None)
        row = {
            "role": member.role,
            "specificModels": member.models is not None,
            "allowedModels": member.models,
        }
        by_row = resolve_member_permissions("member", row)
        return replace(by_row, tools=by_row.tools & self.tools, allowed_locales=member.locales)


def resolve_member_permissions(workspace_role: str, membership: Mapping[str, Any] | None) -> ProjectPermissions:
    """Return the permissions of a member of a workspace. A restriction stays in force in a plan that has none any more.

    Args:
        workspace_role: `owner`, `admin` or `member`. Anything else is a member.
        membership: The member's row of the project: `role`, `specificModels`, `allowedModels`. None without one, which
            permits nothing. A missing or unknown role is that of a viewer.
    """
    if workspace_role in _FULL_ROLES:
        return ProjectPermissions(cast(WorkspaceRole, workspace_role), None, frozenset(TOOL_RULES))
    if membership is None:
        return ProjectPermissions("member", None, frozenset())
    role = _read_role(membership.get("role"))
    models = None
    if membership.get("specificModels"):
        models = frozenset(membership.get("allowedModels") or ())
    return ProjectPermissions("member", role, _list_tools_of(role), models)


def resolve_key_permissions(
    role: str,
    *,
    allowed_tools: frozenset[str] | None = None,
    allowed_models: frozenset[str] | None = None,
    allowed_locales: frozenset[str] | None = None,
) -> ProjectPermissions:
    """Return the permissions of an API key. The role `admin` is that of a workspace's admin.

    Args:
        role: `viewer`, `editor` or `admin`. Anything else is a viewer.
        allowed_tools: The only tools of the role that the key may use; None for all of them.
        allowed_models: The only models; None for all.
        allowed_locales: The only locales; None for all.
    """
    is_admin = role == "admin"
    project_role = None if is_admin else cast(ProjectRole, role) if role in _KEY_ROLES else _LEAST_ROLE
    tools = frozenset(TOOL_RULES) if project_role is None else _list_tools_of(project_role)
    if allowed_tools is not None:
        tools &= allowed_tools
    return ProjectPermissions("admin" if is_admin else "member", project_role, tools, allowed_models, allowed_locales)


def refuse_for_caller(
    tool_name: str, arguments: Mapping[str, Any], permissions: ProjectPermissions
) -> CallerRefusalCode | None:
    """Return the code of the reason why a call is refused, or None. It is asked when a call is executed.

    Args:
        tool_name: The tool.
        arguments: The input of the call, with its defaults.
        permissions: What the caller may do.
    """
    if tool_name not in permissions.tools:
        return "permission_denied"
    models = permissions.allowed_models
    if models is not None and (model := _find_model(tool_name, arguments)) is not None and model not in models:
        return "model_access_denied"
    if models is not None and tool_name in _TOOLS_OF_ALL_MODELS:
        return "model_access_denied"
    locales = permissions.allowed_locales
    if locales is not None and tool_name in _TOOLS_OF_ALL_LOCALES:
        return "locale_not_allowed"
    if locales is not None and any(locale not in locales for locale in _list_locales(arguments)):
        return "locale_not_allowed"
    return None


def _find_model(tool_name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the model that a call names: models have their own id in calls that change them."""
    name = "id" if tool_name == "save_model" else "modelId" if tool_name == "list_submissions" else "model"
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def _list_locales(arguments: Mapping[str, Any]) -> list[str]:
    return [value for name in ("locale", "from", "to", "copyFrom") if isinstance(value := arguments.get(name), str)]


def _list_tools_of(role: ProjectRole) -> frozenset[str]:
    return frozenset(name for name, rule in TOOL_RULES.items() if role in rule.project_roles)


def _read_role(value: Any) -> ProjectRole:
    return cast(ProjectRole, value) if value in ("viewer", "reviewer", "editor") else _LEAST_ROLE
