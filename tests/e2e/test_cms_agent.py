"""The CMS agent on the local cloud: a prompt of a person becomes content, and what it has made can be taken back."""

from contextlib import closing

from tests.e2e.chat_session import ChatSession, open_http
from tests.e2e.demo_model_client import tool_call_step

SPACE = {"site": "cmssite", "locales": ["en", "de"]}
HERO = {"kind": "section", "fields": {"title": {"type": "string"}}}
CREATE = (
    "cms_createPageWithContent",
    {"name": "About us", "sections": [{"sectionKey": "hero", "content": {"title": "Hello"}}]},
)


def test_a_prompt_becomes_a_page_with_a_hero_section_and_is_taken_back(session: ChatSession) -> None:
    session.scope = "cms"
    session.conversation = str(session.client.create_conversation("cms")["id"])
    with closing(open_http(session.cloud)) as http:
        assert http.post("/content/spaces", json=SPACE).status_code == 201
        assert http.put("/content/cmssite/main/models/hero", json=HERO).status_code == 200
        changed = http.put(f"/conversations/{session.conversation}", json={"space": "cmssite"})
        assert changed.status_code == 200, changed.text
        assert changed.json()["conversation"]["space"] == "cmssite/main"
        outcome = session.run_turn(tool_call_step(CREATE), {"text": "The page is there."})
        assert outcome.status == "done"
        [page] = http.get("/content/cmssite/main/documents/page").json()["documents"]
        shown = http.get(f"/content/cmssite/main/documents/page/{page['id']}").json()["document"]
        assert (shown["slug"], shown["source"], shown["turn"]) == ("about-us", "agent", session.bridge)
        [section] = shown["locales"]["data"]["sections"]
        assert shown["locales"]["en"] == {section["id"]: {"title": "Hello"}}
        assert http.delete(f"/content/cmssite/main/documents/page/{page['id']}").status_code == 200
        restored = http.post(f"/content/cmssite/main/documents/page/{page['id']}/versions/1/restore")
        assert restored.json()["document"]["slug"] == "about-us"
