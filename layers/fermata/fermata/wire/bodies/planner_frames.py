"""Define the frames of the planner's stream, each a line of JSON behind `data:`, by their `type`."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fermata.domain.wire_names import to_wire_name


class PlannerFrame(BaseModel):
    """A frame. `_seq` grows from frame to frame and may have gaps."""

    model_config = ConfigDict(alias_generator=to_wire_name, populate_by_name=True, extra="ignore", frozen=True)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form. Members that were not set are left out."""
        return {"type": self.__dict__["type"], **self.model_dump(mode="json", by_alias=True, exclude_unset=True)}


class StatusFrame(PlannerFrame):
    type: Literal["status"] = "status"
    message: str


class HeartbeatFrame(PlannerFrame):
    type: Literal["heartbeat"] = "heartbeat"
    stage: str
    label: str
    elapsed_ms: int


class TokenFrame(PlannerFrame):
    type: Literal["token"] = "token"
    text: str


class FieldDraftFrame(PlannerFrame):
    type: Literal["field_draft"] = "field_draft"
    block_id: str
    editable_path: str
    value: str
    page_slug: str | None = None


class SummaryTokenFrame(PlannerFrame):
    type: Literal["summary_token"] = "summary_token"
    text: str


class ThinkingStartFrame(PlannerFrame):
    type: Literal["thinking_start"] = "thinking_start"


class ThinkingTokenFrame(PlannerFrame):
    type: Literal["thinking_token"] = "thinking_token"
    text: str


class ThinkingEndFrame(PlannerFrame):
    type: Literal["thinking_end"] = "thinking_end"
    duration_ms: int | None = None


class ChangelogEntryFrame(PlannerFrame):
    type: Literal["changelog_entry"] = "changelog_entry"
    entry: str


class OpCandidateFrame(PlannerFrame):
    type: Literal["op_candidate"] = "op_candidate"
    index: int
    op: Any


class OpSkippedFrame(PlannerFrame):
    type: Literal["op_skipped"] = "op_skipped"
    index: int
    total: int
    op: Any = None
    reason: str | None = None


class PlanMetaFrame(PlannerFrame):
    type: Literal["plan_meta"] = "plan_meta"
    intent: str | None = None
    summary: str | None = None
    estimated_ops: int | None = None


class OpAppliedFrame(PlannerFrame):
    type: Literal["op_applied"] = "op_applied"
    index: int
    total: int
    op: Any = None
    preview_version: int
    focus_block_id: str | None = None
    updated_slug: str | None = None


class RollbackStartedFrame(PlannerFrame):
    type: Literal["rollback_started"] = "rollback_started"
    applied_count: int
    reason: str | None = None


class RollbackDoneFrame(PlannerFrame):
    type: Literal["rollback_done"] = "rollback_done"
    restored_version: int | None = None


class ImageProgressFrame(PlannerFrame):
    type: Literal["image_progress"] = "image_progress"
    percent: float | None = None
    stage: str | None = None


class FinalFrame(PlannerFrame):
    type: Literal["final"] = "final"
    result: dict[str, Any]


class ErrorFrame(PlannerFrame):
    type: Literal["error"] = "error"
    result: dict[str, Any] | None = None
    code: int | str | None = None


class CanceledFrame(PlannerFrame):
    type: Literal["canceled"] = "canceled"
    message: str | None = None


AnyPlannerFrame = (
    StatusFrame
    | HeartbeatFrame
    | TokenFrame
    | FieldDraftFrame
    | SummaryTokenFrame
    | ThinkingStartFrame
    | ThinkingTokenFrame
    | ThinkingEndFrame
    | ChangelogEntryFrame
    | OpCandidateFrame
    | OpSkippedFrame
    | PlanMetaFrame
    | OpAppliedFrame
    | RollbackStartedFrame
    | RollbackDoneFrame
    | ImageProgressFrame
    | FinalFrame
    | ErrorFrame
    | CanceledFrame
)
PLANNER_FRAMES: TypeAdapter[AnyPlannerFrame] = TypeAdapter(Annotated[AnyPlannerFrame, Field(discriminator="type")])
PLANNER_FRAME_COUNT = len(get_args(AnyPlannerFrame))
