"""Define type aliases for JSON that the service sends."""

from typing import Any

JsonObject = dict[str, Any]

Event = JsonObject
"""One line of a turn's event stream: `type`, `seq` and the members of that type."""
