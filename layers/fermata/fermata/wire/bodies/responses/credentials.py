"""Define the response bodies of operations on provider credentials and their models."""

from typing import Literal

from fermata.domain.model_info import ModelInfo
from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class CredentialView(ResponseModel):
    """A credential without its key. `keyFingerprintCurrent` is false when the key has to be entered again."""

    id: str
    provider_id: str
    auth_mode: Literal["apiKey", "baseUrl"]
    display_label: str
    base_url: str | None
    key_fingerprint_current: bool
    created_at: InstantField
    last_used_at: InstantField | None


class CredentialResponse(ResponseModel):
    credential: CredentialView


class CredentialListResponse(ResponseModel):
    credentials: list[CredentialView]


class CredentialTestResponse(ResponseModel):
    """The result of a test. A key that does not work is a result, not an error."""

    ok: bool
    model_count: CountField | None = None
    error: str | None = None


class ModelListResponse(ResponseModel):
    models: list[ModelInfo]
