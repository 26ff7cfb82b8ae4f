"""Name the events that a webhook may be told about."""

from enum import StrEnum


class WebhookEvent(StrEnum):
    """What a webhook may be told about."""

    TOOL_REQUEST = "toolRequest"
    APPROVAL_REQUEST = "approvalRequest"
    TURN_END = "turnEnd"
