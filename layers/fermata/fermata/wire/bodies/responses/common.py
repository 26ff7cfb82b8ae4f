"""Define the base of response bodies, their common field types, and bodies that several operations have."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fermata.domain.wire_names import to_wire_name

InstantField = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""An ISO 8601 instant."""
CountField = Annotated[int, Field(ge=0)]
UsdField = Annotated[float, Field(ge=0)]
"""US dollars with six decimals."""


class ResponseModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_wire_name)


class ErrorResponse(ResponseModel):
    """A sentence that says what is wrong and what to do, and a code where a program can do it.

    `logRewound`: the log of the turn ends before the event that the client named, at `lastSeq`. `invalid_manifest`: the
    member `field` of a tool's manifest is wrong. `invalid_agents`: `problems` has each mistake in files that define
    agents. `contentInvalid`: `problems` has what breaks the rules of a model. `valueTaken`: `owner` is the document
    that has the unique value of `field`. `versionMismatch`: `version` is the current one. `mergeConflict`: `conflicts`
    has the fields that others have changed too (docs/content.md). `unreadableFile`: the file `path` of a project cannot
    be read. `planLocked`, `planUpgradeRequired`, `planLimitReached`: the plan of the workspace does not allow it
    (docs/workspace-plans.md). The members from `errorCode` to `suggestions` are of
    the planner (docs/edit-plans.md).
    """

    error: str
    code: (
        Literal[
            "logRewound",
            "invalid_manifest",
            "invalid_agents",
            "contentInvalid",
            "valueTaken",
            "versionMismatch",
            "mergeConflict",
            "unreadableFile",
            "planLocked",
            "planUpgradeRequired",
            "planLimitReached",
        ]
        | None
    ) = None
    last_seq: CountField | None = None
    field: str | None = None
    problems: list[dict[str, Any]] | None = None
    error_code: str | None = None
    status: str | None = None
    summary: str | None = None
    changes: list[str] | None = None
    mentioned_slugs: list[str] | None = None
    suggestions: list[str] | None = None
    version: CountField | None = None
    owner: str | None = None
    conflicts: list[dict[str, Any]] | None = None
    path: str | None = None


class OkResponse(ResponseModel):
    ok: Literal[True]


class VersionResponse(ResponseModel):
    version: str
    stage: Literal["dev", "prod", "local"]
