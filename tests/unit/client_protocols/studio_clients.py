"""A project that is asked by the studio's own clients, and by programs with keys of the Conversation API."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space
from fermata.credentials import scope_defaults
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.wire.auth.conversation_key_store import create_conversation_key
from tests.unit.client_protocols.conftest import Json, Requester, parse_chunks
from tests.unit.content.files.project_samples import CONFIG, make_tree, text_of
from tests.unit.turns.stage import Stage

PROJECT = SpaceKey("bakery", "studio")
CHAT = "/api/workspaces/bakery/projects/studio/chat"
CONVERSATIONS = "/api/workspaces/bakery/projects/studio/conversations"
MESSAGE, HISTORY = "/api/conversation/v1/studio/message", "/api/conversation/v1/studio/history"
FAQ = DocumentKey("faq", "a1b2c3d4e5f6")
OWNER = Caller(
    tenant="bakery", user="ada", capabilities=frozenset({Capability.CHAT, Capability.KEYS, Capability.CONTENT})
)


def fill_project(stage: Stage, workflow: str = "review", space: SpaceKey = PROJECT) -> None:
    author = ContentAuthor("ada", "import")
    create_space(stage.resources, space, ContentSpace(locales=("en", "tr")), author)
    tree = make_tree() | {".contentrain/config.json": text_of({**CONFIG, "workflow": workflow})}
    write_project(stage.resources, space, parse_project_files(tree), author)
    scope_defaults.set_default(stage.resources, stage.caller, "studio", stage.credential.id, "model-1")


def read_answer(stage: Stage, locale: str = "en") -> Any:
    """Return what the entry of the project says now."""
    content = read_document(stage.resources, PROJECT, FAQ).content
    assert content is not None
    return content.get_locale(locale)["answer"]


@dataclass
class StudioClient:
    """Chats as the studio's pages do: one conversation goes on."""

    stage: Stage
    requester: Requester
    conversation: str = ""
    frames: list[Json] = field(default_factory=list)

    def with_rights(self, *rights: str) -> "StudioClient":
        kept = [right for right in self.requester.capabilities if not right.startswith("ai.content.")]
        return replace(self, requester=Requester(self.requester.signer, (*kept, *rights)))

    def post(self, message: str, headers: dict[str, str] | None = None, **members: Any) -> httpx.Response:
        body = {"message": message} | ({"conversationId": self.conversation} if self.conversation else {}) | members
        return self.requester.send("POST", CHAT, json=body, headers=headers or {})

    def say(self, message: str, **members: Any) -> list[str]:
        """Return the types of the frames of the answer, with pieces of one text as one."""
        self.frames = parse_chunks(self.post(message, **members))
        self.conversation = self.frames[0]["id"]
        types = [frame["type"] for frame in self.frames]
        return [kind for kind, before in zip(types, ["", *types], strict=False) if (kind, before) != ("text", "text")]

    def frame(self, kind: str) -> Json:
        [found] = [frame for frame in self.frames if frame["type"] == kind]
        return found

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.requester.send("GET", path, params=query)


@dataclass
class KeyClient:
    """A program with a key."""

    stage: Stage
    requester: Requester
    key: str
    key_id: str

    @classmethod
    def with_rules(cls, stage: Stage, requester: Requester, **rules: Any) -> "KeyClient":
        key, text = create_conversation_key(
            stage.resources, OWNER, "Robot", ConversationKeyRules(**{"project": PROJECT.name} | rules)
        )
        return cls(stage, requester, text, key.id)

    def send(self, method: str, path: str, headers: dict[str, str] | None = None, **parts: Any) -> httpx.Response:
        sent = {"authorization": f"Bearer {self.key}"} | (headers or {})
        return self.requester.send(method, path, headers=sent, **parts)

    def post(self, message: str, headers: dict[str, str] | None = None, **members: Any) -> httpx.Response:
        return self.send("POST", MESSAGE, headers, json={"message": message} | members)

    def ask(self, message: str, **members: Any) -> Json:
        response = self.post(message, **members)
        assert response.status_code == 200, response.text
        body: Json = json.loads(response.text)
        return body
