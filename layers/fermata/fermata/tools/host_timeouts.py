"""Define timeouts and retries of tools that query the tenant's content system (docs/host.md)."""

from fermata.tools.tool import ToolRetryPolicy

HOST_RETRY_POLICY = ToolRetryPolicy(max_attempts=3, backoff_seconds=0.5, within_seconds=3.0)
"""Together with the last attempt at most 12 seconds, or 21 for a tool that sends two requests."""
HOST_TIMEOUT_SECONDS = 20.0
"""Per attempt. Two requests fit in, each as slow as hosts/client.py allows."""
PLUGIN_BUILD_TIMEOUT_SECONDS = 80.0
"""Per attempt, for one request that builds a plugin."""
