"""Build manifests and small tools of manifests for the tests."""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.remote_tools.manifest_tool_executor import ExecutionClock, ManifestTool
from fermata.remote_tools.tool_manifest import ToolManifest, parse_manifest

ABSENT = object()


def make_manifest_json(**changes: Any) -> dict[str, Any]:
    """Return a valid manifest of a read, with `changes`. A member that is ABSENT is left out."""
    manifest = {
        "name": "pim.getProduct",
        "description": "Finds a product by its number.",
        "inputSchema": {"type": "object"},
        "outputSchema": {},
        "capability": "read",
        "timeoutMs": 3000,
        "retryPolicy": {"maxAttempts": 2},
        "idempotent": True,
    }
    return {name: value for name, value in (manifest | changes).items() if value is not ABSENT}


def make_manifest(**changes: Any) -> ToolManifest:
    return parse_manifest(make_manifest_json(**changes))


def make_manifest_tool(attempt: Callable[[Mapping[str, Any]], Any], **changes: Any) -> ManifestTool:
    return ManifestTool(make_manifest(**changes), attempt)


class ExecutionTime:
    """A clock on which only sleeping takes time. It records the sleeps."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []
        self.clock = ExecutionClock(lambda: self.now, self.sleep, lambda: jitter)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
