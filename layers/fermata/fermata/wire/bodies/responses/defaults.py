"""Define the response bodies of operations on the default model of each scope."""

from fermata.domain.agent_ids import ScopeName
from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class ModelChoiceView(ResponseModel):
    credential_id: str
    model_id: str


class DefaultListResponse(ResponseModel):
    """The defaults of the scopes that have one."""

    defaults: dict[ScopeName, ModelChoiceView]


class DefaultView(ModelChoiceView):
    scope: ScopeName
    updated_at: InstantField
    updated_by: str


class DefaultResponse(ResponseModel):
    default: DefaultView
