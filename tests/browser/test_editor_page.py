"""The page of an editor under development does its work: prompts, streams, uploads."""

import hashlib
from typing import Any

import httpx
import pytest
from playwright.sync_api import Error, Page

from local.cloud import LocalCloud
from local.seed import EDITOR_ORIGINS
from tests.browser.hostile_page import rebind

USE = """
async ({url, token}) => {
  const api = `${url}/admin/api/ai`, headers = {authorization: `Bearer ${token}`, "content-type": "application/json"};
  const post = (path, body) => fetch(api + path, {method: "POST", headers, body: JSON.stringify(body)});
  const created = await (await post("/conversations", {scope: "site"})).json();
  const raw = new TextEncoder().encode(JSON.stringify({pages: [], site: {from: origin}}));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", raw));
  const sha256 = Array.from(digest, byte => byte.toString(16).padStart(2, "0")).join("");
  const announced = await (await post("/uploads", {kind: "snapshot", bytes: raw.length, sha256})).json();
  const put = await fetch(announced.url, {method: "PUT", body: raw, headers: announced.headers});
  const prompt = {conversationId: created.conversation.id, prompt: "Hello", snapshotRef: announced.ref};
  const answer = await post("/chat/site", prompt);
  const events = (await answer.text()).trim().split("\\n").filter(Boolean).map(line => JSON.parse(line));
  const other = await fetch(announced.url.replace("snapshot-", "snapshot-9"), {method: "PUT", body: raw});
  return {put: put.status, chat: answer.status, last: events.at(-1).type, other: other.status, url: announced.url};
}
"""


@pytest.mark.parametrize("origin", [EDITOR_ORIGINS[0], "http://localhost:5173"])
def test_the_page_of_an_allowed_origin_prompts_and_uploads(page: Page, cloud: LocalCloud, origin: str) -> None:
    page.goto(rebind(page, origin))
    seen: dict[str, Any] = page.evaluate(USE, {"url": cloud.url, "token": cloud.token})
    assert (seen["put"], seen["chat"], seen["last"], seen["other"]) == (200, 200, "done", 403)
    assert seen["url"].startswith(f"{cloud.url}/_bucket/")


def test_an_upload_address_is_of_no_use_to_another_origins_page(page: Page, cloud: LocalCloud) -> None:
    raw = b"{}"
    wanted = {"kind": "snapshot", "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    headers = {"authorization": f"Bearer {cloud.token}"}
    upload = httpx.post(f"{cloud.url}/admin/api/ai/uploads", json=wanted, headers=headers, trust_env=False).json()
    put = "({url, headers}) => fetch(url, {method: 'PUT', body: '{}', headers}).then(answer => answer.status)"
    page.goto(rebind(page, "http://evil.example:5173"))
    with pytest.raises(Error, match="Failed to fetch"):
        page.evaluate(put, upload)
    page.goto(rebind(page, EDITOR_ORIGINS[0]))
    assert page.evaluate(put, upload) == 200


def test_a_browser_keeps_the_refusal_of_the_editors_bridge(page: Page, cloud: LocalCloud) -> None:
    page.goto(f"{cloud.url}/healthz")
    ask = """async () => {
      const answer = await fetch("/admin/api/ai/editor-bridge?scope=site", {credentials: "same-origin"});
      return [answer.status, answer.headers.get("x-request-id")];
    }"""
    first = page.evaluate(ask)
    assert first[0] == 403
    assert [page.evaluate(ask) for _ in range(3)] == [first] * 3
