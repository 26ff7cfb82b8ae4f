"""Drive one conversation on the local cloud, and the turn that runs in it, step by step."""

from dataclasses import dataclass, field
from typing import Any

import httpx

from fermata.aws.resources import Resources
from fermata_client import FermataClient, TurnOutcome, run_turn
from local.cloud import LocalCloud
from local.seed import TENANT
from tests.e2e import canaries
from tests.e2e.demo_model_client import DemoModelClient, Step, script_marker
from tests.e2e.stream_reader import API_PREFIX, Event, StreamReader
from tests.waiting import BACKSTOP_SECONDS

Json = dict[str, Any]
OK_RESULT: Json = {"ok": True, "data": {"nodeIds": ["n1"], "note": canaries.RESULT}}
NamedCall = tuple[str, Json]
INSERT_CALL: NamedCall = ("insertHtml", {"parentId": "root", "html": f"<p>{canaries.PAGE}</p>"})
DELETE_CALL: NamedCall = ("deleteNode", {"nodeId": "old"})
READ_CALL: NamedCall = ("read_document", {})
DOCUMENTS_CALL: NamedCall = ("list_documents", {})


def make_snapshot(*titles: str) -> Json:
    """Make an editor's snapshot of a site that has pages with these titles."""
    pages = [{"id": f"p{n}", "title": title, "slug": f"p{n}", "rootNodeId": "root"} for n, title in enumerate(titles)]
    return {"secret": canaries.SNAPSHOT, "page": pages[0], "site": {"pages": pages, "breakpoints": [], "settings": {}}}


def open_http(cloud: LocalCloud, token: str | None = None) -> httpx.Client:
    """Open a plain HTTP client of the front door, for requests that the real client does not send."""
    headers = {"authorization": f"Bearer {cloud.token if token is None else token}"}
    return httpx.Client(
        base_url=cloud.url + API_PREFIX, headers=headers, trust_env=False, timeout=BACKSTOP_SECONDS, verify=False
    )


@dataclass
class ChatSession:
    """A conversation. `bridge` is the id of its newest turn, `script` the key of the script that answers it."""

    cloud: LocalCloud
    resources: Resources
    model: DemoModelClient
    token: str
    client: FermataClient = field(init=False)
    conversation: str = ""
    bridge: str = ""
    script: str = ""
    tenant: str = TENANT
    scope: str = "site"

    def __post_init__(self) -> None:
        transport = httpx.HTTPTransport(verify=False)  # loading certificates takes longer than a turn
        self.client = FermataClient(self.cloud.url, self.token, transport=transport)
        self.conversation = self.conversation or str(self.client.create_conversation(self.scope)["id"])

    def close(self) -> None:
        self.client.close()

    def scripted_prompt(
        self, *steps: Step, words: str = canaries.PROMPT, repeat_last: bool = False, by: str = "request"
    ) -> str:
        """Make a prompt that the model answers with these steps."""
        self.script = self.model.add_script(*steps, repeat_last=repeat_last, by=by)
        return f"{words} {script_marker(self.script)}"

    def start_turn(
        self, *steps: Step, snapshot: Any = None, words: str = canaries.PROMPT, repeat_last: bool = False
    ) -> StreamReader:
        """Start a turn without reading its response, and open a reader of its events."""
        prompt = self.scripted_prompt(*steps, words=words, repeat_last=repeat_last)
        started = self.client.start_turn_detached(
            self.scope, prompt, conversation_id=self.conversation, snapshot=snapshot
        )
        self.bridge = str(started["bridgeId"])
        return self.open_reader()

    def run_turn(self, *steps: Step, by: str = "request", repeat_last: bool = False, **options: Any) -> TurnOutcome:
        """Run a whole turn with the real client. `options` are those of `fermata_client.run_turn`."""
        prompt = self.scripted_prompt(*steps, by=by, repeat_last=repeat_last)
        outcome = run_turn(self.client, self.scope, prompt, conversation_id=self.conversation, **options)
        self.bridge = str(outcome.view.bridge_id)
        return outcome

    def open_reader(self, after: int = 0, limit: int | None = None, token: str | None = None) -> StreamReader:
        return StreamReader.for_turn(self.cloud.url, token or self.token, self.bridge, after, limit)

    def answer_request(self, request: Event, result: Json = OK_RESULT, snapshot: Any = None) -> None:
        self.client.post_tool_result(self.bridge, request["requestId"], result, snapshot)

    def post_answer(
        self, request: Event | str, result: Json = OK_RESULT, *, token: str | None = None, bridge: str | None = None
    ) -> httpx.Response:
        """Post a tool result and return the response, of whatever status."""
        request_id = request if isinstance(request, str) else request["requestId"]
        body = {"bridgeId": bridge or self.bridge, "requestId": request_id, "result": result}
        with open_http(self.cloud, token or self.token) as http:
            return http.post("/tool-result", json=body)

    def cancel_turn(self, token: str | None = None) -> httpx.Response:
        with open_http(self.cloud, token or self.token) as http:
            return http.post(f"/bridges/{self.bridge}/cancel")

    def model_requests(self) -> list[Json]:
        """List the requests that the provider has received in this turn."""
        return self.model.list_requests(self.script)

    def tool_results(self, number: int = -1) -> list[Json]:
        """Get the tool results in the provider request of that number, as the model reads them."""
        messages = self.model_requests()[number]["body"]["messages"]
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        return [block for block in blocks if block["type"] == "tool_result"]


def result_text(block: Json) -> str:
    """Get the text of a tool result as the model reads it."""
    content = block["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
