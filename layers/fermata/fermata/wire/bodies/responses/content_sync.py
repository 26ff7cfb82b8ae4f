"""Define the response of clients that keep a copy of a project."""

from typing import Any

from fermata.wire.bodies.responses.common import CountField, ResponseModel
from fermata.wire.bodies.responses.content_health import SchemaWarningView


class ContentPlaceView(ResponseModel):
    """Entries of a model in a language: their fields in `data`, what is known besides in `meta`, by id or slug.

    A singleton or a dictionary has its own fields there.
    """

    kind: str
    data: dict[str, Any]
    meta: dict[str, Any]


class ContentCountView(ResponseModel):
    """How many entries a model has, and how many in each language."""

    kind: str
    entries: CountField
    locales: dict[str, CountField]


class SchemaHealthView(ResponseModel):
    """What is wrong in the models. `healthScore` is from 0 to 100."""

    valid: bool
    health_score: CountField
    model_count: CountField
    valid_models: CountField
    warnings: list[SchemaWarningView]


class DeletedPartsView(ResponseModel):
    """What is gone: models by id, entries by `model:locale`. That of a singleton or a dictionary is called `main`."""

    models: list[str]
    entries: dict[str, list[str]]


class ContentSyncResponse(ResponseModel):
    """What the caller does not have. A member that is missing is as it was, if the response is not `full`.

    `content` is by `model:locale`; the locale of a model without translations is `data`.
    """

    tree_sha: str
    unchanged: bool
    full: bool
    config: dict[str, Any] | None = None
    content_context: Any = None
    vocabulary: dict[str, Any] | None = None
    content_summary: dict[str, ContentCountView] | None = None
    schema_health: SchemaHealthView | None = None
    models: dict[str, dict[str, Any]]
    content: dict[str, ContentPlaceView]
    deleted: DeletedPartsView | None = None
    next_cursor: str | None = None
