"""The workflow's clock is wound up while an invocation works, however many rounds and tools that takes."""

from fermata.aws.desk import Desk

BEAT_SECONDS = 30.0
"""At most this between two heartbeats; a third of the workflow's HeartbeatSeconds where that is less."""


class Pulse:
    """One per wake-up: many short rounds in a row must not let the clock ring any more than one long round."""

    def __init__(self, desk: Desk, token: str) -> None:
        self._desk, self._token = desk, token
        self._every = min(BEAT_SECONDS, desk.settings.heartbeat_seconds / 3)
        self._beaten = desk.clock.monotonic()

    def keep(self) -> None:
        """Send a heartbeat if one is due. Whoever works calls this as often as it likes, from whatever thread."""
        now = self._desk.clock.monotonic()
        if now - self._beaten >= self._every:
            self._beaten = now
            self._desk.workflow.beat(self._token)
