"""An editor that is open in a browser: it follows its bridge over a socket and answers the calls that come."""

import json
import threading
from collections.abc import Callable
from typing import Any, Self

import httpx

from tests.waiting import BACKSTOP_SECONDS

AI = "/admin/api/ai"


class OpenEditor:
    """Follows the bridge in a thread, as an editor does, until it is closed."""

    def __init__(
        self, url: str, headers: dict[str, str], carry_out: Callable[[dict[str, Any]], Any], scope: str = "site"
    ) -> None:
        self.lines: list[dict[str, Any]] = []
        self.answers: list[httpx.Response] = []
        self.snapshot: Any = None
        self._carry_out = carry_out
        self._scope = scope
        self._http = httpx.Client(base_url=url, headers=headers, timeout=BACKSTOP_SECONDS)
        self._ready = threading.Event()
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(BACKSTOP_SECONDS), "the bridge was not opened"
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bridge_id(self) -> str:
        return str(self.lines[0]["bridgeId"])

    def close(self) -> None:
        """Close the tab."""
        if self._response is not None:
            self._response.close()
        self._thread.join(BACKSTOP_SECONDS)
        self._http.close()

    def answer(self, request_id: str, result: Any, **members: Any) -> httpx.Response:
        body = {"bridgeId": self.bridge_id, "requestId": request_id, "result": result, **members}
        return self._http.post(f"{AI}/tool-result", json=body)

    def _follow(self) -> None:
        try:
            with self._http.stream("GET", f"{AI}/editor-bridge", params={"scope": self._scope}) as response:
                assert response.status_code == 200, response.read()
                self._response = response
                for line in response.iter_lines():
                    if line.strip():
                        self._take(json.loads(line))
        except (httpx.HTTPError, httpx.StreamClosed, OSError, ValueError):
            return  # the tab was closed

    def _take(self, event: dict[str, Any]) -> None:
        self.lines.append(event)
        if event["type"] == "bridgeReady":
            self._ready.set()
            return
        result = self._carry_out(event)
        if result is not None:
            members = {} if self.snapshot is None else {"snapshot": self.snapshot}
            self.answers.append(self.answer(event["requestId"], result, **members))
