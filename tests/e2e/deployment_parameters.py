"""Template parameters and functions of the end-to-end tests' deployment."""

from typing import Any

from local import template

SHORT_TIMINGS: dict[str, Any] = {
    "HeartbeatSeconds": 240,
    "BrowserWaitSeconds": 240,
    "ReaderHeartbeatSeconds": 1,
    "ProviderStallSeconds": 10,
    "MaxRounds": 250,
    "MaxRepeatedCalls": 0,
    "MaxFailedRounds": 0,
}
SHORT_START_GRACE = {"START_GRACE_SECONDS": 1}
"""Environment variable: how long a turn may take to start before the sweep looks at it."""


def function_folders() -> list[str]:
    """List the folders of all functions."""
    deployed = template.resources_of_type(template.load_template(), "Function").values()
    return [function["Properties"]["CodeUri"].rpartition("/")[2] for function in deployed]
