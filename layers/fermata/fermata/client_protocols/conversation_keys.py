"""Check the rules of a key of the Conversation API against what exists: project, tools, models, languages."""

from collections.abc import Iterable, Sequence

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, parse_space_name, read_space
from fermata.content.model_store import list_content_models
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import InvalidRequest
from fermata.tools.studio.project_permissions import resolve_key_permissions
from fermata.wire.bodies.studio_requests import ChangedConversationKeyRules, NewConversationKeyRules

_KEPT_IF_NULL = frozenset({"role", "instructions", "messages_per_minute", "messages_per_month"})


def build_key_rules(resources: Resources, tenant: str, body: NewConversationKeyRules) -> ConversationKeyRules:
    """Return the rules of a new key.

    Args:
        resources: Of the process.
        tenant: Whose key it is.
        body: The rules as they were sent.

    Raises:
        NotFound: The tenant has no such project.
        InvalidRequest: A name is none of the project, or no tool is left.
    """
    project = parse_space_name(tenant, body.project)
    members = body.model_dump(exclude={"project", "model_id"}) | {"model_id": body.model_id or ""}
    return check_key_rules(resources, project, ConversationKeyRules(project=project.name, **members))


def change_key_rules(
    resources: Resources, tenant: str, rules: ConversationKeyRules, body: ChangedConversationKeyRules
) -> ConversationKeyRules:
    """Return the changed rules of a key. Raises as `build_key_rules`.

    Args:
        resources: Of the process.
        tenant: Whose key it is.
        rules: As they are.
        body: What changes.
    """
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    kept = {name for name, value in sent.items() if value is None and name in _KEPT_IF_NULL}
    update = {name: value for name, value in sent.items() if name not in kept}
    if "model_id" in update:
        update["model_id"] = update["model_id"] or ""
    changed = ConversationKeyRules.model_validate(rules.model_dump() | update)
    return check_key_rules(resources, parse_space_name(tenant, rules.project), changed)


def check_key_rules(resources: Resources, project: SpaceKey, rules: ConversationKeyRules) -> ConversationKeyRules:
    """Return rules whose names all exist.

    Raises:
        NotFound: There is no such project.
        InvalidRequest: A name is none of the project, or no tool is left.
    """
    space = read_space(resources, project)
    _require_known("language", rules.locales, space.locales)
    permitted = resolve_key_permissions(rules.role).tools
    _require_known(f"tool of the role {rules.role}", rules.tools, permitted)
    if rules.models is not None:
        _require_known("model", rules.models, (state.model.id for state in list_content_models(resources, project)))
    return rules


def _require_known(what: str, names: Sequence[str] | None, known: Iterable[str]) -> None:
    """Raise InvalidRequest if a name is none of those that are known."""
    if names is None:
        return
    choices = set(known)
    if unknown := [name for name in names if name not in choices]:
        raise InvalidRequest(f"There is no {what} {unknown[0][:80]!r} in this project.")
