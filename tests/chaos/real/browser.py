"""Browsers of one tenant over real HTTP: they send prompts, follow turns, carry out tool requests and answer them.

A browser repeats what failed, as its user would: the same prompt with the same key, the same answer, the rest of a
stream from the last event it has.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests.chaos.provider import make_prompt
from tests.chaos.world import SimulatedTurn

API_PREFIX = "/admin/api/ai"
REQUEST_SECONDS = 15.0
STREAM_SILENCE_SECONDS = 8.0
"""When a browser gives a silent stream up. The service sends a line each second."""
RETRY_SECONDS = 0.5
MAX_REPEATS = 400
ABANDON_RATE = 0.1
CANCEL_RATE = 0.2
SECOND_TAB_RATE = 0.3
SLOW_ANSWER_RATE = 0.05
STREAMED_START_RATE = 0.5


class Browser:
    """The tabs of one user. `turns` are those that it has started or tried to start."""

    def __init__(self, url: str, token: str, tenant: str, seed: int) -> None:
        self.tenant = tenant
        self.turns: list[SimulatedTurn] = []
        self._seed = seed
        self._draw = random.Random(f"{seed}/{tenant}")
        headers = {"authorization": f"Bearer {token}"}
        limits = httpx.Limits(max_connections=None)
        self._http = httpx.AsyncClient(
            base_url=url + API_PREFIX, headers=headers, trust_env=False, timeout=REQUEST_SECONDS, limits=limits
        )
        self._background: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for task in self._background:
            task.cancel()
        await self._http.aclose()

    async def create_conversation(self) -> str:
        response = await self._http.post("/conversations", json={"scope": "site"})
        response.raise_for_status()
        return str(response.json()["conversation"]["id"])

    async def run_turns(self, conversation: str, count: int) -> None:
        """Send prompts one after the other; sometimes another tab sends one meanwhile."""
        for number in range(count):
            turn = self._new_turn(f"t{number}", self._draw.randint(1, 4), conversation)
            cancels = self._draw.random() < CANCEL_RATE
            has_rival = self._draw.random() < SECOND_TAB_RATE
            rival = self._new_turn(f"r{number}", 1, conversation) if has_rival else None
            work: list[Awaitable[None]] = [self.run_turn(turn)]
            if cancels:
                work.append(self._cancel_later(turn, self._draw.uniform(0.1, 6)))
            if rival is not None:
                work.append(self._run_later(rival, self._draw.uniform(0, 3)))
            await asyncio.gather(*work)

    async def run_last_turn(self, conversation: str) -> None:
        """Send the prompt that must be accepted when everything is over."""
        await self.run_turn(self._new_turn("last", 1, conversation), may_abandon=False)

    async def run_turn(self, turn: SimulatedTurn, *, may_abandon: bool = True) -> None:
        """Start a turn and follow it until its end."""
        await self._start(turn, may_abandon=may_abandon)
        handled: set[str] = set()
        while not turn.is_over:
            await self._read(turn, handled)
            await asyncio.sleep(0.05)

    async def read_again(self, turn: SimulatedTurn) -> list[tuple[int, dict[str, Any]]]:
        """Read the events of a turn that is over from the beginning."""
        events: list[tuple[int, dict[str, Any]]] = []
        await self._stream("GET", f"/bridges/{turn.bridge}/events?after=0", {}, events.append)
        return events

    def _new_turn(self, name: str, rounds: int, conversation: str) -> SimulatedTurn:
        full_name = f"{self.tenant}{name}"
        turn = SimulatedTurn(full_name, rounds, f"key-{full_name}", conversation)
        self.turns.append(turn)
        return turn

    async def _run_later(self, turn: SimulatedTurn, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.run_turn(turn)

    # the prompt

    async def _start(self, turn: SimulatedTurn, *, may_abandon: bool) -> None:
        draw = random.Random(f"{self._seed}/{turn.name}")
        is_streamed = draw.random() < STREAMED_START_RATE
        body = {
            "conversationId": turn.conversation,
            "prompt": make_prompt(turn.name, turn.rounds, self._seed),
            "snapshot": {"site": {"pages": [], "note": turn.name}},
        }
        headers = {"idempotency-key": turn.idempotency_key}
        problem = ""
        for _ in range(MAX_REPEATS):
            send = self._start_streamed if is_streamed else self._start_detached
            status, problem = await send(turn, body, headers)
            if turn.bridge:
                return
            if 400 <= status < 500 and status not in (409, 429):
                turn.error = f"{status}: {problem}"
                return
            if status not in (409, 429) and may_abandon and draw.random() < ABANDON_RATE:
                turn.is_abandoned = True
                return
            await asyncio.sleep(RETRY_SECONDS)
        turn.error = problem

    async def _start_detached(
        self, turn: SimulatedTurn, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, str]:
        response = await self._send("/chat/site", body, headers | {"accept": "application/json"})
        if response is not None and response.status_code == 202:
            turn.bridge = str(response.json()["bridgeId"])
        return describe(response)

    async def _start_streamed(
        self, turn: SimulatedTurn, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, str]:
        """Read the first events from the response itself, then let the connection break."""

        def take(numbered: tuple[int, dict[str, Any]]) -> None:
            number, event = numbered
            if event["type"] == "bridgeReady":
                turn.bridge = str(event["bridgeId"])
            if number > last_number(turn):
                turn.received.append(numbered)

        return await self._stream("POST", "/chat/site", {"json": body, "headers": headers}, take, max_events=5)

    # the stream

    async def _read(self, turn: SimulatedTurn, handled: set[str]) -> None:
        """Follow a turn until the connection ends."""

        def take(numbered: tuple[int, dict[str, Any]]) -> None:
            turn.received.append(numbered)
            self._answer_new_requests(turn, handled)

        self._answer_new_requests(turn, handled)
        await self._stream("GET", f"/bridges/{turn.bridge}/events?after={last_number(turn)}", {}, take)

    def _answer_new_requests(self, turn: SimulatedTurn, handled: set[str]) -> None:
        for _, event in turn.received:
            if event["type"] == "toolRequest" and event["requestId"] not in handled:
                handled.add(event["requestId"])
                self._start_task(self._answer(turn, event))

    async def _stream(
        self,
        method: str,
        path: str,
        options: dict[str, Any],
        take: Callable[[tuple[int, dict[str, Any]]], None],
        max_events: int | None = None,
    ) -> tuple[int, str]:
        timeout = httpx.Timeout(REQUEST_SECONDS, read=STREAM_SILENCE_SECONDS)
        count = 0
        try:
            async with self._http.stream(method, path, timeout=timeout, **options) as response:
                if response.status_code != 200:
                    await response.aread()
                    return describe(response)
                async for line in response.aiter_lines():
                    event = json.loads(line) if line.strip() else {}
                    if "seq" in event:
                        count += 1
                        take((int(event["seq"]), event))
                    if max_events is not None and count >= max_events:
                        break
        except (httpx.TransportError, json.JSONDecodeError) as error:  # a line may be cut off in the middle
            return 0, repr(error)
        return 200, ""

    # answers

    async def _answer(self, turn: SimulatedTurn, request: dict[str, Any]) -> None:
        draw = random.Random(f"{self._seed}/{turn.name}/{request['requestId']}")
        if draw.random() < SLOW_ANSWER_RATE:
            await asyncio.sleep(draw.uniform(2, 12))
        if request["effectKey"] not in turn.executed:
            turn.executed.append(request["effectKey"])
        result = {"ok": True, "data": {"effect": request["effectKey"]}}
        if draw.random() < SECOND_TAB_RATE:
            self._start_task(self._post_result(turn, request, result, draw.uniform(0, 3)))
        await self._post_result(turn, request, result)

    async def _post_result(
        self, turn: SimulatedTurn, request: dict[str, Any], result: dict[str, Any], delay: float = 0.0
    ) -> None:
        await asyncio.sleep(delay)
        body = {"bridgeId": turn.bridge, "requestId": request["requestId"], "result": result}
        for _ in range(MAX_REPEATS):
            response = await self._send("/tool-result", body, {})
            status, problem = describe(response)
            if status == 200:
                turn.acknowledged[request["requestId"]] = result
                return
            if status == 409:
                turn.refused_repeats.append(f"{request['requestId']}: {problem}")
            if 400 <= status < 500 and status != 429:
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _cancel_later(self, turn: SimulatedTurn, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for _ in range(MAX_REPEATS):
            if turn.is_over:
                return
            response = await self._send(f"/bridges/{turn.bridge}/cancel", {}, {}) if turn.bridge else None
            if response is not None and response.status_code == 200:
                turn.was_cancelled = True
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response | None:
        try:
            return await self._http.post(path, json=body, headers=headers)
        except httpx.TransportError:
            return None

    def _start_task(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def last_number(turn: SimulatedTurn) -> int:
    return turn.received[-1][0] if turn.received else 0


def describe(response: httpx.Response | None) -> tuple[int, str]:
    """Return a response's status and text; 0 for none."""
    return (0, "no response") if response is None else (response.status_code, response.text[:200])
