"""Define the response bodies of operations on API keys."""

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class ApiKeyView(ResponseModel):
    """An API key without its secret. `prefix` is the beginning of its text; `user` is the name it acts under."""

    id: str
    prefix: str
    label: str
    user: str
    capabilities: list[str]
    scopes: list[str] | None
    created_by: str
    created_at: InstantField
    rotated_at: InstantField
    expires_at: InstantField | None
    revoked_at: InstantField | None
    last_used_at: InstantField | None


class ApiKeyListResponse(ResponseModel):
    api_keys: list[ApiKeyView]


class NewApiKeyResponse(ResponseModel):
    """A key with its text in `key`, which is never shown again."""

    api_key: ApiKeyView
    key: str
