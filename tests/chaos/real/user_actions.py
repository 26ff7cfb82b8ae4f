"""Draw from the seed what the users of one tenant do on the local cloud, and do it."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

from tests.chaos.evidence import ClientTurn
from tests.chaos.page import Page
from tests.chaos.provider import make_prompt
from tests.chaos.real.browser import Browser
from tests.chaos.real.http_client_without_retries import HttpClient

CANCEL_RATE = 0.2
RIVAL_RATE = 0.3
UNDO_RATE = 0.35
THROUGH_RATE = 0.3
AUDIT_RATE = 0.5
MAX_ROUNDS = 4
AUDIT_SECONDS = 3.0


class RealUserActions:
    """One tenant: its user's page, conversation, turns and audits."""

    def __init__(self, url: str, token: str, tenant: str, seed: int) -> None:
        self.tenant = tenant
        self.page = Page()
        self.browsers: list[Browser] = []
        self.audits: list[int] = []
        self.complaints: list[str] = []
        self.conversation = ""
        self._seed = seed
        self._client = HttpClient(url, token)
        self._draw = random.Random(f"{seed}/{tenant}")
        self._auditor: asyncio.Task[None] | None = None

    @property
    def turns(self) -> list[ClientTurn]:
        return [browser.turn for browser in self.browsers]

    async def close(self) -> None:
        if self._auditor is not None:
            self._auditor.cancel()
        for browser in self.browsers:
            browser.close()
        await self._client.close()

    async def create_conversation(self) -> None:
        answer = await self._client.request("POST", "/conversations", {"scope": "site"})
        self.conversation = str(answer.body["conversation"]["id"])

    async def work(self, turn_count: int) -> None:
        """Send prompts and undos one after the other; sometimes another tab sends a prompt meanwhile."""
        if self._draw.random() < AUDIT_RATE:
            self._auditor = asyncio.ensure_future(self._read_audits())
        for number in range(turn_count):
            undone = self._choose_turn_to_undo() if self._draw.random() < UNDO_RATE else None
            browser = self._make_prompt(f"t{number}") if undone is None else self._make_undo(f"u{number}", undone)
            work: list[Awaitable[None]] = [browser.run()]
            if self._draw.random() < CANCEL_RATE:
                work.append(browser.cancel(self._draw.uniform(0.1, 6)))
            if self._draw.random() < RIVAL_RATE:
                work.append(self._make_prompt(f"r{number}", max_rounds=1).run(self._draw.uniform(0, 3)))
            await asyncio.gather(*work)

    def _make_prompt(self, name: str, max_rounds: int = MAX_ROUNDS) -> Browser:
        turn = ClientTurn(f"{self.tenant}{name}", "prompt", self.conversation)
        body = {
            "conversationId": self.conversation,
            "prompt": make_prompt(turn.name, self._draw.randint(1, max_rounds), self._seed),
            "snapshot": {"site": {"pages": [], "note": turn.name}},
            "revision": self.page.revision,
        }
        return self._add_browser(turn, "/chat/site", body)

    def _choose_turn_to_undo(self) -> ClientTurn | None:
        """Choose a turn with edits, which may itself be an undo: then the edits are redone."""
        edited = [turn for turn in self.turns if turn.has_ended and turn.acknowledged]
        return self._draw.choice(edited) if edited else None

    def _make_undo(self, name: str, undone: ClientTurn) -> Browser:
        turn = ClientTurn(f"{self.tenant}{name}", "undo", undone.conversation)
        effects = [result["data"]["effect"] for result in undone.acknowledged.values() if result["ok"]]
        is_partial = bool(effects) and self._draw.random() < THROUGH_RATE
        body = {"through": self._draw.choice(effects)} if is_partial else {}
        return self._add_browser(turn, f"/bridges/{undone.bridge}/undo", body)

    def _add_browser(self, turn: ClientTurn, path: str, body: dict[str, Any]) -> Browser:
        self.browsers.append(Browser(self._client, self.page, turn, path, body))
        return self.browsers[-1]

    # audits

    async def _read_audits(self) -> None:
        while True:
            await asyncio.sleep(AUDIT_SECONDS)
            await self.read_audit()

    async def read_audit(self) -> int | None:
        """Return the tokens of an audit, unless the service does not answer."""
        answer = await self._client.request("GET", "/audit?since=2026-01-01")
        if not answer.is_success:
            return None
        totals = answer.body["totals"]
        self.audits.append(int(totals["promptTokens"]) + int(totals["completionTokens"]))
        return self.audits[-1]

    # afterwards

    async def repeat_everything(self) -> None:
        """Send every prompt, undo and answer again. Nothing may happen anew."""
        for browser in [browser for browser in self.browsers if browser.turn.bridge]:
            again = await browser.send_start()
            if again.status != 202 or again.body["bridgeId"] != browser.turn.bridge:
                self.complaints.append(f"{browser.turn.name}: the same request again is answered {again}")
            for request_id, body in browser.answers.items():
                answer = await browser.send_answer(body)
                if not answer.is_success:
                    self.complaints.append(f"the same answer to {request_id} is answered {answer}")

    async def prompt_once_more(self) -> None:
        """Send a prompt that has to succeed."""
        browser = self._make_prompt("last", max_rounds=1)
        browser.may_abandon, browser.turn.must_succeed = False, True
        await browser.run()
