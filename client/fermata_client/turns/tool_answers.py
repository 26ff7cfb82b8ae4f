"""Execute the tool requests of a turn in the editor and post their results, each effect at most once."""

import json
import logging
from functools import partial

from fermata_client.service.client import FermataClient
from fermata_client.service.errors import RequestRefusedError
from fermata_client.service.json_types import Event
from fermata_client.service.retry import RetryPolicy
from fermata_client.turns.editor_callbacks import EditorCallbacks, ToolOutput

CONTENT_TOO_LARGE = 413
ALREADY_DECIDED = (404, 409)
"""404: the request expired or the turn is over. 409: another client answered. The event stream says what happened."""

logger = logging.getLogger(__name__)


class ToolAnswers:
    """Answers of one editor. Results are remembered by effect, so a request that comes again has no new effect.

    An effect is its key and the call. The key alone is not enough after the log was rewound: a round that is run again
    may call another tool under the same key (decision 0162).
    """

    def __init__(self, client: FermataClient, editor: EditorCallbacks, retry_policy: RetryPolicy) -> None:
        self._client = client
        self._editor = editor
        self._retry_policy = retry_policy
        self._result_by_effect: dict[tuple[str, str], ToolOutput] = {}

    def is_pending(self, bridge_id: str, request: Event) -> bool:
        """Return whether the service still waits for an answer to this request."""
        bridge = self._retry_policy.call_with_retries(lambda: self._client.get_bridge(bridge_id))
        return any(call.get("requestId") == request["requestId"] for call in bridge.get("pending", []))

    def answer(self, bridge_id: str, request: Event) -> None:
        """Execute a request, unless its effect was executed before, and post the result."""
        key = str(request.get("effectKey") or request["requestId"])
        effect = (key, json.dumps([request.get("toolName"), request.get("input")], sort_keys=True))
        if effect not in self._result_by_effect:
            self._result_by_effect[effect] = self._execute(request)
        self._post(bridge_id, str(request["requestId"]), self._result_by_effect[effect])

    def _execute(self, request: Event) -> ToolOutput:
        try:
            return self._editor.executor(request)
        except Exception as error:
            logger.exception("%s failed", request.get("toolName"))
            return {"ok": False, "error": f"{request.get('toolName')} failed in the editor: {error}"}

    def _post(self, bridge_id: str, request_id: str, result: ToolOutput) -> None:
        """Post the result; where the service finds it too large, its next smaller form."""
        snapshot = self._editor.read_snapshot()
        revision = self._editor.read_revision()
        forms = _result_forms(result)
        for form in forms:
            post = partial(self._client.post_tool_result, bridge_id, request_id, form, snapshot, revision)
            try:
                self._retry_policy.call_with_retries(post)
                return
            except RequestRefusedError as error:
                if error.status in ALREADY_DECIDED:
                    return
                if error.status != CONTENT_TOO_LARGE or form is forms[-1]:
                    raise


def _result_forms(result: ToolOutput) -> list[ToolOutput]:
    """Return the result and its smaller forms, largest first.

    The form without the inverse keeps the result of an edit that was made: it must not be reported as failed.
    """
    forms = [result]
    if "inverse" in result:
        forms.append({name: member for name, member in result.items() if name != "inverse"})
    return [*forms, {"ok": False, "error": "The result is too large to send."}]
