"""Script the demo model's answers, and read the requests it has received.

key = model.add_script(text_step("One moment."), tool_call_step(("insertHtml", {"parentId": "root", "html": ""})))
prompt = f"Please. {script_marker(key)}"
model.list_requests(key)
"""

import itertools
import uuid
from pathlib import Path
from typing import Any

import httpx

from local.signed_pages import RunSignature
from tests.waiting import BACKSTOP_SECONDS, wait_until

Step = dict[str, Any]
Json = dict[str, Any]
NEVER_MS = 24 * 3600 * 1000
"""A `firstMs` for an answer whose first byte is never sent."""
NO_FILE = "/dev/null/none"
_numbers = itertools.count(1)


def text_step(text: str, **faults: Any) -> Step:
    """Make an answer of text. `faults` are those of local/demo_model/scripted_answers.py, in camel case."""
    return {"text": text, **faults}


def tool_call_step(*named: tuple[str, Json], text: str = "", **faults: Any) -> Step:
    """Make an answer with tool calls, given as pairs of name and input."""
    return {"text": text, "toolCalls": [{"name": name, "input": arguments} for name, arguments in named], **faults}


def slow_text_step(text: str, seconds: float, **faults: Any) -> Step:
    """Make an answer that sends its words evenly over so many seconds."""
    words = text.count(" ") + 1
    return text_step(text, chunkMs=1000 * seconds / max(1, words - 1), **faults)


def unfinished_text_step(text: str, after: int = 60) -> Step:
    """Make an answer that ends within its text, without a stall, until its connection is closed."""
    return text_step(text, after=after, holdUntilFile=NO_FILE)


def held_text_step(text: str, gate: Path, after: int = 8) -> Step:
    """Make an answer that stands still after so many characters until the file `gate` exists."""
    return text_step(text, after=after, holdUntilFile=str(gate))


def script_marker(key: str) -> str:
    return f"[[script:{key}]]"


class DemoModelClient:
    """A client of the demo model's own pages."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, auth=RunSignature(), trust_env=False, timeout=BACKSTOP_SECONDS)

    def close(self) -> None:
        self._http.close()

    def add_script(self, *steps: Step, repeat_last: bool = False, by: str = "request") -> str:
        """Add a script and return its key.

        Args:
            steps: the answers to requests whose prompt holds the script's marker.
            repeat_last: whether the last step answers all further requests. Else the demo model's rules do.
            by: `request` takes the steps in the order of requests, `round` by the number of the turn's round.
        """
        key = f"script-{next(_numbers)}-{uuid.uuid4().hex[:6]}"
        script = {"key": key, "steps": list(steps), "by": by, "repeatLast": repeat_last}
        self._http.post("/demo/script", json=script).raise_for_status()
        return key

    def delete_script(self, key: str) -> None:
        """Delete a script, so that the rules answer again."""
        self._http.delete("/demo/script", params={"key": key}).raise_for_status()

    def list_requests(self, key: str, *, bodies: bool = True) -> list[Json]:
        """List the requests that a script has answered, with the times of their responses."""
        answer = self._http.get("/demo/requests", params={"key": key, "bodies": int(bodies)})
        requests: list[Json] = answer.json()["requests"]
        return requests

    def wait_for_requests(self, key: str, count: int = 1) -> list[Json]:
        """Wait until the script has received so many requests."""

        def find_requests() -> list[Json]:
            requests = self.list_requests(key)
            return requests if len(requests) >= count else []

        return wait_until(find_requests, f"the provider is asked {count} times by {key}")

    def wait_for_close(self, key: str, number: int = -1) -> None:
        """Wait until the service has closed the connection of that request before its response was complete."""
        wait_until(
            lambda: self.list_requests(key, bodies=False)[number]["closedByPeerNs"],
            f"the connection of {key} is closed",
        )
