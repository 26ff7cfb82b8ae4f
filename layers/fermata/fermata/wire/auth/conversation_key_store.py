"""Create, change and admit keys of the Conversation API, which are stored as all API keys are (decision 0474)."""

from collections.abc import Callable

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import InvalidRequest, Unauthorized
from fermata.wire.auth.api_key import (
    CAPABILITIES_OF_KEY_ROLES,
    CONVERSATION_KEY_MARK,
    ServerApiKey,
    parse_api_key,
)
from fermata.wire.auth.api_key_store import (
    admit_key,
    read_api_key,
    read_live_key,
    replace_key,
    require_content_manager,
    store_new_key,
)


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
    """
    require_content_manager(caller)
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
    """
    key = read_live_key(resources, caller.tenant, key_id)
    if key.conversation is None:
        raise InvalidRequest("Only keys of the Conversation API can be changed. Create another key instead.")
    require_content_manager(caller)
    rules = change(key.conversation)
    granted = CAPABILITIES_OF_KEY_ROLES[rules.role]
    update = {"conversation": rules, "capabilities": granted, "label": label or key.label}
    return replace_key(resources, key, key.model_copy(update=update))


def authenticate_conversation_key(resources: Resources, text: str) -> ServerApiKey:
    """Return the key of the Conversation API that a client sent. It is read at each request, so that changes count.

    Raises:
        Unauthorized: It is no key of that API, or one that is revoked or has expired.
    """
    parts = parse_api_key(text)
    if parts is None or parts.mark != CONVERSATION_KEY_MARK:
        raise Unauthorized("Unauthorized", reason="malformed")
    return admit_key(resources, parts, read_api_key(resources, parts.tenant, parts.id))
