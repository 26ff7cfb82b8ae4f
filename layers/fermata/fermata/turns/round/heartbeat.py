"""Keep the workflow's task from timing out while an invocation works."""

from fermata.aws.resources import Resources

MAX_HEARTBEAT_INTERVAL_SECONDS = 30.0
"""The interval is a third of the workflow's HeartbeatSeconds where that is less."""


class Heartbeat:
    """One per invocation, so that the heartbeat survives many short rounds as well as one long round."""

    def __init__(self, resources: Resources, token: str) -> None:
        self._resources = resources
        self._token = token
        self._interval = min(MAX_HEARTBEAT_INTERVAL_SECONDS, resources.settings.heartbeat_seconds / 3)
        self._sent_at = resources.clock.monotonic()

    def send_if_due(self) -> None:
        """Send a heartbeat if the interval has passed. Callable as often as needed, from any thread."""
        now = self._resources.clock.monotonic()
        if now - self._sent_at >= self._interval:
            self._sent_at = now
            self._resources.workflow.send_heartbeat(self._token)
