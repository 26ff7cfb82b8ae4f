"""Tell whether stacks of CloudFormation are being changed, and whether such a change is saved."""

import sys

StackStatuses = dict[str, tuple[str, int]]
"""By the stack's id: its status, and how many events it has had."""

_saved_statuses: StackStatuses = {}


def read_stack_statuses() -> StackStatuses:
    cloudformation = sys.modules.get("ministack.services.cloudformation")
    if cloudformation is None:
        return {}
    event_counts = {scoped_id[-1]: len(events) for scoped_id, events in cloudformation._stack_events.all_items()}
    stacks = cloudformation._stacks.all_values()
    return {stack["StackId"]: (stack["StackStatus"], event_counts.get(stack["StackId"], 0)) for stack in stacks}


def is_stack_changing() -> bool:
    """Return whether a stack is being changed. If that were saved, it could not be deployed again after a kill."""
    return any(
        status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"
        for status, _ in read_stack_statuses().values()
    )


def is_ended_change_unsaved() -> bool:
    """Return whether a change of a stack has ended since the last snapshot."""
    return _saved_statuses != read_stack_statuses() and not is_stack_changing()


def note_saved_stacks(statuses: StackStatuses) -> None:
    """Note what the newest snapshot holds."""
    _saved_statuses.clear()
    _saved_statuses.update(statuses)
