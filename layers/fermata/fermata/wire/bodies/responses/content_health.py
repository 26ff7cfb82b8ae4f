"""Define the response body about the health of a space."""

from typing import Literal

from fermata.wire.bodies.responses.common import CountField, ResponseModel


class SchemaWarningView(ResponseModel):
    """What is wrong in a model. `field` is the path of the field, and empty for the model itself."""

    model: str
    field: str
    kind: str
    severity: Literal["critical", "error", "warning"]
    message: str


class ChangeSetHealthView(ResponseModel):
    """How many change sets wait. From `refuseFrom` on, no new one can be begun."""

    status: Literal["ok", "warning", "blocked"]
    open: CountField
    warn_from: CountField
    refuse_from: CountField


class SpaceHealthResponse(ResponseModel):
    """The health of a space. `healthScore` is from 0 to 100; `valid` is false where a model cannot work as it is."""

    valid: bool
    health_score: CountField
    model_count: CountField
    valid_models: CountField
    warnings: list[SchemaWarningView]
    change_sets: ChangeSetHealthView
