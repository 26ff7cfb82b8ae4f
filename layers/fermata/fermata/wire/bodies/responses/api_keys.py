"""Define the response bodies of operations on API keys."""

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class ConversationKeyRulesView(ResponseModel):
    """What a key of the Conversation API may do. A list that is null narrows nothing."""

    project: str
    role: str
    models: list[str] | None
    tools: list[str] | None
    locales: list[str] | None
    instructions: str
    model_id: str
    messages_per_minute: int
    messages_per_month: int


class ApiKeyView(ResponseModel):
    """An API key without its secret. `prefix` is the beginning of its text; `user` is the name it acts under.

    `conversation` has the rules of a key of the Conversation API; it is null for a server's key. Lists say of one
    that is in use how many messages it has sent in this month, and when they are counted anew.
    """

    id: str
    prefix: str
    label: str
    user: str
    capabilities: list[str]
    scopes: list[str] | None
    conversation: ConversationKeyRulesView | None
    created_by: str
    created_at: InstantField
    rotated_at: InstantField
    expires_at: InstantField | None
    revoked_at: InstantField | None
    last_used_at: InstantField | None
    messages_this_month: CountField | None = None
    renews_at: InstantField | None = None


class ApiKeyListResponse(ResponseModel):
    api_keys: list[ApiKeyView]


class ApiKeyResponse(ResponseModel):
    api_key: ApiKeyView


class NewApiKeyResponse(ResponseModel):
    """A key with its text in `key`, which is never shown again."""

    api_key: ApiKeyView
    key: str
