"""How long, and how often, a tool waits for the tenant's content system."""

from fermata.tools.tool import ToolRetryPolicy

HOST_RETRY_POLICY = ToolRetryPolicy(max_attempts=3, backoff_seconds=0.5, within_seconds=3.0)
"""With the last attempt that is 12 seconds at most, or 21 for a tool that asks twice (docs/host.md)."""
HOST_TIMEOUT_SECONDS = 20.0
"""Per attempt: two requests at their slowest (hosts/client.py) fit in."""
PLUGIN_BUILD_TIMEOUT_SECONDS = 80.0
"""The same for one request that builds a plugin."""
