"""Define the bodies of requests on conversations, credentials, defaults, uploads and budgets."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from fermata.aws import uploads
from fermata.domain.agent_ids import ConversationScope
from fermata.wire.bodies.fields import (
    JSON_INTEGER,
    NULL_SCHEMA,
    ApiKey,
    ContentSpaceName,
    NonBlankTitle,
    NonBlankUrl,
    ResourceId,
    StrictBody,
)
from fermata.wire.bodies.studio_requests import NewConversationKeyRules

_MAX_ANNOUNCED_BYTES = 999_999_999
"""More than an upload of any kind may have. The limit of each kind is checked when the upload is announced."""


def _is_string(member: str) -> JsonDict:
    """Build the JSON Schema of an object with a member that is not null."""
    return {"required": [member], "properties": {member: {"type": "string"}}}


class NewUpload(StrictBody):
    """The announcement of an upload: its size in bytes, and its SHA-256 in hexadecimal."""

    kind: uploads.UploadKind
    size: Annotated[int, Field(ge=1, le=_MAX_ANNOUNCED_BYTES, alias="bytes"), JSON_INTEGER]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class NewConversation(StrictBody):
    """A new conversation. An empty title is the same as none. `space` is for agents that work in a content space."""

    scope: ConversationScope
    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = None
    credential_id: ResourceId | None = None
    model_id: ResourceId | None = None
    space: ContentSpaceName | None = None


class ConversationChange(StrictBody):
    """The new values of a conversation. Members that are left out keep their value."""

    title: NonBlankTitle | None = None
    credential_id: ResourceId | None = None
    model_id: ResourceId | None = None
    space: ContentSpaceName | None = None


class NewCredential(StrictBody):
    """A new credential. Which members a provider needs is checked by credentials/credential_store.py."""

    provider_id: ResourceId
    auth_mode: Literal["apiKey", "baseUrl"]
    display_label: NonBlankTitle
    api_key: ApiKey | None = None
    base_url: NonBlankUrl | None = None


class CredentialChange(StrictBody):
    """The new values of a credential: at least one."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [_is_string("displayLabel"), _is_string("apiKey"), _is_string("baseUrl")]}
    )

    display_label: NonBlankTitle | None = None
    api_key: ApiKey | None = None
    base_url: NonBlankUrl | None = None

    @model_validator(mode="after")
    def _check_change(self) -> "CredentialChange":
        if self.display_label is None and self.api_key is None and self.base_url is None:
            raise ValueError("send what is to change: 'displayLabel', 'apiKey' or 'baseUrl'")
        return self


CapabilityName = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,100}$")]


class NewApiKey(StrictBody):
    """A new API key: of a server, with `capabilities`, or of the Conversation API, with `conversation`.

    Without `scopes` it is for all scopes, without `expires_in_seconds` it does not expire.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "required": ["capabilities"],
                    "properties": {"capabilities": {"type": "array"}, "conversation": NULL_SCHEMA},
                },
                {
                    "required": ["conversation"],
                    "properties": {
                        "conversation": {"type": "object"},
                        "capabilities": NULL_SCHEMA,
                        "scopes": NULL_SCHEMA,
                    },
                },
            ]
        }
    )

    label: NonBlankTitle
    capabilities: Annotated[list[CapabilityName], Field(min_length=1, max_length=100)] | None = None
    conversation: NewConversationKeyRules | None = None
    scopes: Annotated[list[ConversationScope], Field(min_length=1, max_length=20)] | None = None
    expires_in_seconds: Annotated[int, Field(ge=60, le=10 * 366 * 86_400), JSON_INTEGER] | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.capabilities is None) == (self.conversation is None):
            raise ValueError("send either 'capabilities' or 'conversation'")
        if self.conversation is not None and self.scopes is not None:
            raise ValueError("a key with 'conversation' has no 'scopes'")
        return self


class ApiKeyRotation(StrictBody):
    """How long the old secret stays valid beside the new one, in seconds: a day, unless it is said."""

    overlap_seconds: Annotated[int, Field(ge=0, le=30 * 86_400), JSON_INTEGER] = 86_400


class NewConnector(StrictBody):
    """A new MCP connector. It is valid for 90 days, or for `ttlDays`; null for one that never expires.

    Its agents work in the content space that it names.
    """

    label: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
    type: Literal["local", "remote"]
    capabilities: Annotated[list[CapabilityName], Field(min_length=1, max_length=100)]
    ttl_days: Annotated[int, Field(ge=1, le=3650), JSON_INTEGER] | None = 90
    space: ContentSpaceName | None = None


class NewDefault(StrictBody):
    """The new default model of a scope."""

    credential_id: ResourceId
    model_id: ResourceId


class NewPrivacyJob(StrictBody):
    """Whose data is meant: exactly one of a conversation, a user, or the caller's tenant by its name."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_is_string("conversationId"), _is_string("userId"), _is_string("tenant")]}
    )

    conversation_id: ResourceId | None = None
    user_id: ResourceId | None = None
    tenant: ResourceId | None = None

    @model_validator(mode="after")
    def _check_subject(self) -> "NewPrivacyJob":
        if sum(member is not None for member in (self.conversation_id, self.user_id, self.tenant)) != 1:
            raise ValueError("send exactly one of 'conversationId', 'userId' and 'tenant'")
        return self


MIN_BUDGET_USD = 0.000_001


def _check_minimum(usd: float) -> float:
    """Refuse amounts that DynamoDB or the display of amounts would round to zero."""
    if 0 < usd < MIN_BUDGET_USD:
        raise ValueError(f"must be 0, or {MIN_BUDGET_USD:f} at least")
    return usd


_BudgetUsd = Annotated[
    float,
    Field(ge=0, le=1_000_000_000, json_schema_extra={"anyOf": [{"const": 0}, {"minimum": MIN_BUDGET_USD}]}),
    AfterValidator(_check_minimum),
]
MAX_QUEUED_TEXT_CHARACTERS = 400_000
MAX_BUDGET_USERS = 300
"""All users are stored in one DynamoDB item of at most 400 KB; an id may have 800 bytes."""


class QueuedPromptChange(StrictBody):
    """The new text of a prompt that waits, and the version that the client has seen."""

    prompt: Annotated[str, Field(min_length=1, max_length=MAX_QUEUED_TEXT_CHARACTERS, pattern=r"\S")]
    version: Annotated[int, Field(ge=1)] | None = None


class NewBudgetLimits(StrictBody):
    """Limits of a budget. A limit that is left out or null is unlimited."""

    daily_usd: _BudgetUsd | None = None
    monthly_usd: _BudgetUsd | None = None


class NewUserBudgetLimits(NewBudgetLimits):
    """The limits of one user."""

    user_id: ResourceId


class NewBudgets(StrictBody):
    """All limits of a tenant. `each_user` applies to users who are not in `users`."""

    tenant: NewBudgetLimits = NewBudgetLimits()
    each_user: NewBudgetLimits = NewBudgetLimits()
    users: Annotated[list[NewUserBudgetLimits], Field(max_length=MAX_BUDGET_USERS)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_users(self) -> "NewBudgets":
        names = [user.user_id for user in self.users]
        if len(set(names)) != len(names):
            raise ValueError("'users' may name each user once")
        return self
