"""One conversation on the cloud and the turn that runs in it, driven step by step."""

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
    """An editor's snapshot whose site has pages with these titles."""
    pages = [{"id": f"p{n}", "title": title, "slug": f"p{n}", "rootNodeId": "root"} for n, title in enumerate(titles)]
    return {"secret": canaries.SNAPSHOT, "page": pages[0], "site": {"pages": pages, "breakpoints": [], "settings": {}}}


def open_http(cloud: LocalCloud, token: str | None = None) -> httpx.Client:
    """A bare client of the front door, for requests a good client does not make."""
    headers = {"authorization": f"Bearer {cloud.token if token is None else token}"}
    return httpx.Client(
        base_url=cloud.url + API_PREFIX, headers=headers, trust_env=False, timeout=BACKSTOP_SECONDS, verify=False
    )


@dataclass
class ConversationDriver:
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
        without_certificates = httpx.HTTPTransport(verify=False)  # reading them takes longer than a turn
        self.client = FermataClient(self.cloud.url, self.token, transport=without_certificates)
        self.conversation = self.conversation or str(self.client.create_conversation(self.scope)["id"])

    def close(self) -> None:
        self.client.close()

    def scripted_prompt(self, *steps: Step, words: str = canaries.PROMPT, **how: Any) -> str:
        """A prompt that the model answers with these steps."""
        self.script = self.model.add_script(*steps, **how)
        return f"{words} {script_marker(self.script)}"

    def start_turn(self, *steps: Step, snapshot: Any = None, words: str = canaries.PROMPT, **how: Any) -> StreamReader:
        """Start a turn without reading it, and a reader beside it."""
        prompt = self.scripted_prompt(*steps, words=words, **how)
        started = self.client.start_turn_detached(
            self.scope, prompt, conversation_id=self.conversation, snapshot=snapshot
        )
        self.bridge = str(started["bridgeId"])
        return self.open_reader()

    def run_turn(self, *steps: Step, **how: Any) -> TurnOutcome:
        """A whole turn, followed by the real client."""
        told = {name: how.pop(name) for name in ("repeat_last", "by") if name in how}
        outcome = run_turn(
            self.client, self.scope, self.scripted_prompt(*steps, **told), conversation_id=self.conversation, **how
        )
        self.bridge = str(outcome.view.bridge_id)
        return outcome

    def open_reader(self, after: int = 0, limit: int | None = None, token: str | None = None) -> StreamReader:
        return StreamReader.for_turn(self.cloud.url, token or self.token, self.bridge, after, limit)

    def answer_request(self, request: Event, result: Json = OK_RESULT, snapshot: Any = None) -> None:
        self.client.post_tool_result(self.bridge, request["requestId"], result, snapshot)

    def post_answer(
        self, request: Event | str, result: Json = OK_RESULT, *, token: str | None = None, bridge: str | None = None
    ) -> httpx.Response:
        """One POST, whatever comes of it."""
        asked = request if isinstance(request, str) else request["requestId"]
        body = {"bridgeId": bridge or self.bridge, "requestId": asked, "result": result}
        with open_http(self.cloud, token or self.token) as bare:
            return bare.post("/tool-result", json=body)

    def cancel_turn(self, token: str | None = None) -> httpx.Response:
        with open_http(self.cloud, token or self.token) as bare:
            return bare.post(f"/bridges/{self.bridge}/cancel")

    def model_requests(self) -> list[Json]:
        """What the provider was sent in this turn."""
        return self.model.list_requests(self.script)

    def tool_results(self, number: int = -1) -> list[Json]:
        """The tool results in the provider request of that number, as the model read them."""
        messages = self.model_requests()[number]["body"]["messages"]
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        return [block for block in blocks if block["type"] == "tool_result"]


def result_text(block: Json) -> str:
    """The text of a tool result as the model reads it."""
    content = block["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
