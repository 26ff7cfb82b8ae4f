"""Create, change and admit keys of the Conversation API, which are stored as all API keys are (decision 0474)."""

from collections.abc import Callable

from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import require_plan_feature
from fermata.domain.caller import Caller
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import InvalidRequest, Unauthorized
from fermata.domain.workspace_plan import PlanFeature
from fermata.wire.auth.api_key import (
    CAPABILITIES_OF_KEY_ROLES,
    CONVERSATION_KEY_MARK,
    ServerApiKey,
    parse_api_key,
)
from fermata.wire.auth.api_key_store import (
    read_api_key,
    read_live_key,
    replace_key,
    require_content_manager,
    store_new_key,
)
from fermata.wire.auth.authenticate_api_key import admit_key


def create_conversation_key(
    resources: Resources,
    caller: Caller,
    label: str,
    rules: ConversationKeyRules,
    *,
    expires_in_seconds: int | None = None,
) -> tuple[ServerApiKey, str]:
    """Create a key of the Conversation API. Its names of project, tools and the like are not looked up here.

    Args:
        caller: Who creates it, and has to manage content, because a role may be that of an admin.
        label: What people call it.
        rules: What it may do.
        expires_in_seconds: Its lifetime; None for one that ends only when it is revoked.

    Returns:
        The key, and its text, which cannot be read again.

    Raises:
        Forbidden: The caller may not manage content.
        InvalidRequest: The tenant has too many keys.
        PlanLocked: Nobody pays for the tenant.
        PlanUpgradeRequired: Its plan has no Conversation API, no more keys, or no restrictions.
    """
    require_content_manager(caller)
    require_plan_feature(resources, caller.tenant, PlanFeature.CONVERSATION_API)
    _require_restrictions(resources, caller.tenant, rules)
    granted = CAPABILITIES_OF_KEY_ROLES[rules.role]
    return store_new_key(resources, caller, label, granted, None, expires_in_seconds, rules)


def change_conversation_key(
    resources: Resources,
    caller: Caller,
    key_id: str,
    change: Callable[[ConversationKeyRules], ConversationKeyRules],
    *,
    label: str | None = None,
) -> ServerApiKey:
    """Change the rules of a key. The next call of a tool follows them, also of a turn that runs.

    Args:
        caller: Who changes it, and has to manage content.
        key_id: The id of the key, as a client sent it.
        change: Returns the new rules.
        label: A new label; None keeps it.

    Raises:
        NotFound: The caller's tenant has no such key, or it is revoked.
        Forbidden: The caller may not manage content.
        InvalidRequest: It is a server's key.
        Conflict: The key was changed meanwhile.
        PlanUpgradeRequired: It would be narrowed, and the plan has no restrictions.
    """
    key = read_live_key(resources, caller.tenant, key_id)
    if key.conversation is None:
        raise InvalidRequest("Only keys of the Conversation API can be changed. Create another key instead.")
    require_content_manager(caller)
    rules = change(key.conversation)
    if (rules.models, rules.locales) != (key.conversation.models, key.conversation.locales):
        _require_restrictions(resources, caller.tenant, rules)
    granted = CAPABILITIES_OF_KEY_ROLES[rules.role]
    update = {"conversation": rules, "capabilities": granted, "label": label or key.label}
    return replace_key(resources, key, key.model_copy(update=update))


def _require_restrictions(resources: Resources, tenant: str, rules: ConversationKeyRules) -> None:
    if rules.models is not None or rules.locales is not None:
        require_plan_feature(resources, tenant, PlanFeature.MODEL_RESTRICTIONS)


def authenticate_conversation_key(resources: Resources, text: str) -> ServerApiKey:
    """Return the key of the Conversation API that a client sent. It is read at each request, so that changes count.

    Raises:
        Unauthorized: It is no key of that API, or one that is revoked or has expired.
    """
    parts = parse_api_key(text)
    if parts is None or parts.mark != CONVERSATION_KEY_MARK:
        raise Unauthorized("Unauthorized", reason="malformed")
    return admit_key(resources, parts, read_api_key(resources, parts.tenant, parts.id))
