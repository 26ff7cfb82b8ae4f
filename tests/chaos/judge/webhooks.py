"""Judge webhooks: each receiver is told of each event, by one id, truly, and its answers count once they are taken."""

import base64
import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.evidence import TERMINAL_TYPES, Event, Evidence
from tests.chaos.judge.find_rows import LoggedEvent, read_log, turn_of
from tests.chaos.webhook_receivers import SentEvent, WebhookReceivers

TOLD_AS = {"toolRequest": "toolRequest", "approvalRequested": "approvalRequest"} | dict.fromkeys(
    TERMINAL_TYPES, "turnEnd"
)
"""What receivers are told of, by the type of the event of the log."""
AT_ONCE = 3
MAX_CLOCK_SECONDS = 5.0
"""Clocks that differ, and slow calls of AWS."""
UNDISTURBED_SECONDS = 100.0
"""How long an event may take to receivers that are not down: a sweep, slow receivers and slots that are taken."""
Subject = tuple[str, str, str]
"""A turn, the type of an event, and what tells events of this type apart."""


def judge_webhooks(evidence: Evidence, receivers: WebhookReceivers) -> Iterator[str]:
    logged = dict(_iter_told_events(evidence))
    requests = [sent for sent in receivers.sent if sent.begun_at <= evidence.ended_at]
    for receiver in receivers.names.values():
        own = [sent for sent in requests if sent.receiver == receiver]
        yield from (f"{receiver}: {problem}" for problem in judge_receiver(evidence, logged, own))
    for sent in requests:
        yield from (f"event {sent.event_id}: {problem}" for problem in judge_request_sent(receivers, sent))
    webhooks = {receiver: webhook for webhook, receiver in receivers.names.items()}
    for sent in requests:
        delivered_at = receivers.delivered_at.get((webhooks[sent.receiver], sent.event_id))
        is_late = delivered_at is not None and sent.begun_at > delivered_at + MAX_CLOCK_SECONDS
        if is_late and sent.invocation not in evidence.struck_requests:
            yield f"event {sent.event_id} was sent to {sent.receiver} after it was delivered"
    for event_id in sorted(receivers.untaken):
        yield f"event {event_id} counts as delivered, and what was answered is not in the log"
    answered = [sent for sent in requests if sent.is_taken and "result" in sent.answer]
    yield from (problem for sent in answered for problem in judge_answer(evidence, sent))
    yield from judge_delivery_rows(evidence, receivers)


def _iter_told_events(evidence: Evidence) -> Iterator[tuple[Subject, LoggedEvent]]:
    for turn in sorted({turn_of(row) for row in evidence.bridges if row["sk"] == "turn"}):
        for logged in read_log(evidence, turn):
            if logged.event["type"] in TOLD_AS:
                yield _subject_of(turn, logged.event), logged


def _subject_of(turn: str, event: Event) -> Subject:
    return turn, event["type"], str(event.get("requestId") or event.get("approvalId") or "")


def judge_receiver(evidence: Evidence, logged: dict[Subject, LoggedEvent], own: list[SentEvent]) -> Iterator[str]:
    """It has got each event, under one id, and nothing that is not in a log."""
    ids: dict[Subject, set[str]] = defaultdict(set)
    taken: Counter[Subject] = Counter()
    first: dict[Subject, float] = {}
    for sent in own:
        payload = json.loads(sent.body)
        subject = _subject_of(payload["data"]["bridgeId"], payload["data"]["event"])
        ids[subject].add(sent.event_id)
        taken[subject] += sent.is_taken
        first.setdefault(subject, sent.begun_at)
        kept = logged.get(subject)
        told = payload["data"]["event"]
        is_true = kept and all(kept.event.get(name) == value for name, value in told.items() if value is not None)
        if not is_true or payload["type"] != TOLD_AS[told["type"]]:
            yield f"was told {payload}, and the log has {kept}"
    names = [event_id for found in ids.values() for event_id in found]
    yield from (f"got {subject} as {sorted(found)}" for subject, found in ids.items() if len(found) > 1)
    yield from (f"got several events as {name}" for name, count in Counter(names).items() if count > 1)
    for subject, kept in logged.items():
        if not taken[subject]:
            yield f"was never told of {subject}"
        elif evidence.is_undisturbed and taken[subject] > 1:
            yield f"was told {taken[subject]} times of {subject}, and nothing was disturbed"
        elif evidence.is_undisturbed and first[subject] - kept.at_ms / 1000 > UNDISTURBED_SECONDS:
            yield f"was told of {subject} late, and nothing was disturbed"


def judge_request_sent(receivers: WebhookReceivers, sent: SentEvent) -> Iterator[str]:
    """It is signed as Standard Webhooks says, and no more than three are under way at once."""
    secret = base64.b64decode(receivers.secrets[sent.receiver].removeprefix("whsec_"))
    signed = f"{sent.event_id}.{sent.headers['webhook-timestamp']}.".encode() + sent.body
    signature = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    if sent.headers["webhook-signature"] != f"v1,{signature}":
        yield "its signature is wrong"
    if sent.at_once > AT_ONCE:
        yield f"{sent.at_once} requests of the workspace were under way at once"


def judge_answer(evidence: Evidence, sent: SentEvent) -> Iterator[str]:
    """What a response answers is the call's result, as what an editor would have answered is the same."""
    data = json.loads(sent.body)["data"]
    log = [logged.event for logged in read_log(evidence, data["bridgeId"])]
    call = data["event"]["toolCallId"]
    oks = {event["ok"] for event in log if event["type"] == "toolResult" and event["toolCallId"] == call}
    if log[-1]["type"] == "done" and oks != {sent.answer["result"]["ok"]}:
        yield f"event {sent.event_id} was answered {sent.answer}, and the log has {oks}"


def judge_delivery_rows(evidence: Evidence, receivers: WebhookReceivers) -> Iterator[str]:
    """When everything is over, nothing waits to be delivered."""
    for row in evidence.bridges:
        if "#hook#" in row["pk"] and row["state"] != "delivered":
            yield f"event {row['event_id']} is {row['state']}, and nothing delivers it any more"
        if row["sk"].startswith("w#"):
            yield f"the entry {row['pk']} {row['sk']} was never handed out"
    yield from (f"a message was set aside: {one.body}" for one in receivers.world.cloud.sqs.dead_letters)
