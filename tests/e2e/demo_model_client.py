"""The demo model told what to say, and asked what it was sent.

key = model.tell(says("One moment."), calls(("insertHtml", {"parentId": "root", "html": "<p>x</p>"})))
prompt = f"Please. {marker(key)}"
model.requests(key)                      # every request it got, with bodies and moments
"""

import itertools
import time
import uuid
from typing import Any

import httpx

from tests.waiting import wait_until

Step = dict[str, Any]
Json = dict[str, Any]
_numbers = itertools.count(1)


def text_step(text: str, **faults: Any) -> Step:
    """One answer of text; `chunkMs`, `stall`, `cut` and the like as local/demo_model/scripted_answers.py has them."""
    return {"text": text, **faults}


def tool_call_step(*named: tuple[str, Json], text: str = "", **faults: Any) -> Step:
    return {"text": text, "toolCalls": [{"name": name, "input": given} for name, given in named], **faults}


def slow_text_step(text: str, seconds: float, **faults: Any) -> Step:
    """The text word by word, evenly over so many seconds."""
    words = text.count(" ") + 1
    return text_step(text, chunkMs=1000 * seconds / max(1, words - 1), **faults)


def script_marker(key: str) -> str:
    return f"[[script:{key}]]"


class DemoModelClient:
    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=30)

    def close(self) -> None:
        self._http.close()

    def add_script(self, *steps: Step, repeat_last: bool = False, by: str = "request") -> str:
        """The n-th request with the marker in its prompt (or of a turn's n-th round) gets the n-th step."""
        key = f"script-{next(_numbers)}-{uuid.uuid4().hex[:6]}"
        script = {"key": key, "steps": list(steps), "by": by, "repeatLast": repeat_last}
        self._http.post("/demo/script", json=script).raise_for_status()
        return key

    def delete_script(self, key: str) -> None:
        """Answer by the rules again, whatever the script had left."""
        self._http.delete("/demo/script", params={"key": key}).raise_for_status()

    def list_requests(self, key: str, *, bodies: bool = True) -> list[Json]:
        answer = self._http.get("/demo/requests", params={"key": key, "bodies": int(bodies)})
        found: list[Json] = answer.json()["requests"]
        return found

    def wait_for_requests(self, key: str, times: int = 1, timeout_seconds: float = 15) -> list[Json]:
        """Waits until the provider has been asked so often."""

        def look() -> list[Json]:
            found = self.list_requests(key)
            return found if len(found) >= times else []

        return wait_until(look, f"the provider is asked {times} times by {key}", timeout_seconds)

    def wait_for_close(self, key: str, number: int = -1, timeout_seconds: float = 15) -> float:
        """Waits until the service closed the connection of that request; the moment on the monotonic clock."""

        def look() -> float:
            return (self.list_requests(key, bodies=False)[number]["closedByPeerNs"] or 0) / 1e9

        return wait_until(look, f"the connection of {key} is closed", timeout_seconds)


def monotonic_seconds() -> float:
    """The clock that the demo model's moments are told on."""
    return time.monotonic()
