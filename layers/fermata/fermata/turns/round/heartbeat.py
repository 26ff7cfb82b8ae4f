"""The workflow's clock is wound up while an invocation works, however many rounds and tools that takes."""

from fermata.aws.resources import Resources

MAX_HEARTBEAT_INTERVAL_SECONDS = 30.0
"""At most this between two heartbeats; a third of the workflow's HeartbeatSeconds where that is less."""


class Heartbeat:
    """One per wake-up: many short rounds in a row must not let the clock ring any more than one long round."""

    def __init__(self, resources: Resources, token: str) -> None:
        self._resources, self._token = resources, token
        self._every = min(MAX_HEARTBEAT_INTERVAL_SECONDS, resources.settings.heartbeat_seconds / 3)
        self._beaten = resources.clock.monotonic()

    def send_if_due(self) -> None:
        """Send a heartbeat if one is due. Whoever works calls this as often as it likes, from whatever thread."""
        now = self._resources.clock.monotonic()
        if now - self._beaten >= self._every:
            self._beaten = now
            self._resources.workflow.send_heartbeat(self._token)
