"""Define an edit plan, validate a candidate for one, and tell a model what of it to correct."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from fermata.domain.base import DomainModel
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.operations import PLAN_OPERATIONS, PlanOperation

MAX_OPERATIONS = 200
MAX_SUGGESTIONS = 5
MAX_REPORTED_VIOLATIONS = 8

PlanIntent = Literal["edit_plan", "needs_clarification", "content_answer"]
PlanErrorCategory = Literal[
    "schema_violation",
    "ambiguity",
    "not_found",
    "no_effective_change",
    "planner_refusal",
    "incomplete_output",
    "malformed_output",
    "internal_error",
    "canceled",
    "operation_failed",
]


class EditPlan(DomainModel):
    """What a model wants to change, and what it says about it. Its names are those of the model's JSON."""

    model_config = ConfigDict(alias_generator=None)

    intent: PlanIntent
    summary_for_user: Annotated[str, Field(min_length=1)]
    change_log: tuple[str, ...] = ()
    ops: Annotated[tuple[PlanOperation, ...], Field(max_length=MAX_OPERATIONS)] = ()
    suggested_next_actions: Annotated[tuple[str, ...], Field(max_length=MAX_SUGGESTIONS)] = ()

    def list_wire_operations(self) -> list[dict[str, Any]]:
        """Return the operations as JSON."""
        return [operation.to_wire() for operation in self.ops]


@value_dataclass(frozen=True)
class PlanViolation:
    """A place of a plan that is wrong, such as `ops[1].blockId`, and what is wrong with it."""

    path: str
    message: str


class InvalidPlan(Exception):
    """The candidate is no plan, or its operations cannot be applied. `feedback` asks a model to correct it."""

    def __init__(self, violations: Sequence[PlanViolation], category: PlanErrorCategory = "schema_violation") -> None:
        self.violations = tuple(violations)
        self.category = category
        super().__init__("; ".join(f"{one.path}: {one.message}" for one in self.violations))

    def build_feedback(self, operation_count: int) -> str:
        """Return the message of the repair round: what is wrong, where, and that nothing may be dropped.

        Args:
            operation_count: How many operations the refused plan had.
        """
        lines = [f"- {one.path}: {one.message}" for one in self.violations[:MAX_REPORTED_VIOLATIONS]]
        more = len(self.violations) - len(lines)
        if more > 0:
            lines.append(f"- and {more} more of this kind")
        return (
            f"The plan was not accepted ({self.category}), so nothing has changed:\n"
            + "\n".join(lines)
            + "\nCorrect exactly these places and call submit_edit_plan once more with the whole plan. "
            f"Keep all {operation_count} operations, in their order, and do not reword anything else."
        )


def parse_edit_plan(candidate: Mapping[str, Any]) -> EditPlan:
    """Validate a normalized candidate.

    Raises:
        InvalidPlan: It does not match the schema.
    """
    try:
        return EditPlan.model_validate(
            {**candidate, "ops": PLAN_OPERATIONS.validate_python(_limit(candidate.get("ops", [])))}
        )
    except ValidationError as error:
        is_of_operations = error.title != "EditPlan"
        raise InvalidPlan(
            [_describe(problem["loc"], problem["msg"], is_of_operations) for problem in error.errors()]
        ) from None


def _limit(operations: Any) -> Any:
    """Refuse a list that is too long before its operations are validated one by one."""
    if isinstance(operations, (list, tuple)) and len(operations) > MAX_OPERATIONS:
        message = f"A plan has at most {MAX_OPERATIONS} operations; this one has {len(operations)}"
        raise InvalidPlan([PlanViolation("ops", message)])
    return operations


def _describe(location: Sequence[int | str], message: str, is_of_operations: bool) -> PlanViolation:
    """Name the place as the model wrote it: without the operation's class, which pydantic puts into it."""
    parts: list[int | str] = [*location]
    if is_of_operations:
        parts = ["ops", *parts[:1], *parts[2:]]
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return PlanViolation(path, message)
