"""Webhooks are told what became of content: each change once, only of their tenant, and nothing of what is gone."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put, Update, serialize_item
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, discard_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_consumers import tell_content_consumers
from fermata.content.content_space import ContentSpace, SpaceKey, forget_deleted_space, mark_space_deleted
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.settle_commit import finish_commit
from fermata.content.forms.submission import Submission, SubmissionSender, build_submission_puts, make_submission_id
from fermata.content.forms.submission_store import decide_submission, delete_submission
from fermata.content.model_store import create_space, put_model
from fermata.content.outbox import consume_content_changes
from fermata.domain.caller import Caller
from fermata.domain.errors import Forbidden
from fermata.signed_requests.signature import verify_request
from fermata.webhooks.delivery import list_deliveries
from fermata.webhooks.redeliver_event import list_webhook_deliveries, redeliver_event
from fermata.webhooks.webhook_event import TURN_EVENTS, WebhookEvent
from fermata.webhooks.webhook_registry import WebhookChange, add_webhook, change_webhook, remove_webhook
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.scripted_queue import ScriptedQueue, install_scripted_queue

__all__ = ["clock", "resources", "shared_resources"]
RIGHTS = frozenset({"ai.tools.manage", "ai.content.manage"})
ADMIN = Caller(tenant="bakery", user="root", capabilities=RIGHTS)
ADA = ContentAuthor("ada", "agent", "turn-1", "turn-1/2/0")
SHOP = SpaceKey("bakery", "shop")
RYE = DocumentKey("post", "rye")
CONTENT_EVENTS = tuple(event for event in WebhookEvent if event.is_of_content)
Publish = Callable[[DocumentContent], DocumentContent]


def set_status(status: ContentStatus) -> Publish:
    return lambda content: content.with_status(status, "2026-11-29T00:00:00.000Z")


class ContentStage:
    """A tenant with a space, a queue of webhooks, and the stream of its content."""

    def __init__(self, resources: Resources, receiver: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.resources = resources
        self.receiver = receiver
        self.records: list[dict[str, Any]] = []
        self._write = resources.tables.write_items
        self.queue: ScriptedQueue = install_scripted_queue(resources)
        for tenant in ("bakery", "smithy"):
            make_tenant(resources, tenant)
        self.create_space(SHOP)
        monkeypatch.setattr(resources.tables, "write_items", self._record)

    def create_space(self, space: SpaceKey) -> None:
        create_space(self.resources, space, ContentSpace(locales=("en",)), ADA)

    def _record(self, *writes: Any) -> None:
        before = [self._read(one) for one in writes]
        self._write(*writes)
        for one, old in zip(writes, before, strict=True):
            if isinstance(one, Put) and one.table == self.resources.settings.content_table:
                image = {"SequenceNumber": str(len(self.records)), "NewImage": serialize_item(one.item)}
                self.records.append({"eventName": "MODIFY" if old else "INSERT", "dynamodb": image})

    def _read(self, write: Any) -> Any:
        if not isinstance(write, Put) or isinstance(write, Update):
            return None
        return self.resources.tables.get_item(write.table, write.item["pk"], write.item["sk"])

    def listen(self, *events: WebhookEvent, caller: Caller = ADMIN) -> tuple[str, str]:
        stored = add_webhook(self.resources, caller, self.receiver.url, events)
        return stored.view["id"], stored.signing_secret or ""

    def consume(self) -> None:
        """Tell the consumers of what the stream has, as the function does."""
        records, self.records = self.records, []
        failures = consume_content_changes(
            records, partial(tell_content_consumers, self.resources), partial(finish_commit, self.resources)
        )
        assert failures == {"batchItemFailures": []}

    def deliver(self) -> list[str]:
        """Deliver all that has changed; return the events that the receiver was told since the last time."""
        self.consume()
        told = len(self.receiver.calls)
        self.queue.deliver(self.resources)
        return [call.body["type"].rpartition(".")[2] for call in self.receiver.calls[told:]]

    def write_rye(self, status: ContentStatus = ContentStatus.DRAFT, space: SpaceKey = SHOP) -> None:
        content = DocumentContent(slug="rye", title="Rye", status=status)
        create_document(self.resources, space, "post", ADA, content, document_id="rye")

    def send_form(self) -> Submission:
        sent = Submission(
            id=make_submission_id(self.resources.clock.time()),
            model="message",
            data={"email": "lea@example.org"},
            locale="en",
            sender=SubmissionSender(address="192.0.2.7", agent="Visitor/1"),
            created_at=self.resources.clock.now_iso(),
        )
        self.resources.tables.write_items(*build_submission_puts(self.resources.settings.content_table, SHOP, sent))
        return sent

    def update_rye(self, change: Publish) -> None:
        update_document(self.resources, SHOP, RYE, ADA, change)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as running:
        yield running


@pytest.fixture
def stage(
    resources: Resources, clock: TestClock, server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> ContentStage:
    server.calls.clear()
    server.answers.clear()
    return ContentStage(resources_of_new_process(resources, fermata_stage="local"), server, monkeypatch)


def test_the_life_of_a_document_is_told_in_its_events(stage: ContentStage) -> None:
    stage.listen(*CONTENT_EVENTS)
    told = []
    stage.write_rye()
    told.append(stage.deliver())
    for status in (ContentStatus.IN_REVIEW, ContentStatus.PUBLISHED):
        stage.update_rye(set_status(status))
        told.append(stage.deliver())
    stage.update_rye(lambda content: content.model_copy(update={"title": "Dark rye"}))
    told.append(stage.deliver())
    stage.update_rye(set_status(ContentStatus.ARCHIVED))
    told.append(stage.deliver())
    delete_document(stage.resources, SHOP, RYE, ADA)
    told.append(stage.deliver())
    stage.write_rye(ContentStatus.PUBLISHED)
    told.append(stage.deliver())
    delete_document(stage.resources, SHOP, RYE, ADA)
    told.append(stage.deliver())
    put_model(stage.resources, SHOP, {"id": "recipe", "kind": "collection"}, ADA)
    told.append(stage.deliver())
    assert [sorted(events) for events in told] == [
        ["documentCreated"],
        ["documentChanged"],
        ["documentChanged", "documentPublished"],
        ["documentChanged", "documentPublished"],
        ["documentChanged", "documentUnpublished"],
        ["documentDeleted"],
        ["documentCreated", "documentPublished"],
        ["documentDeleted", "documentUnpublished"],
        ["modelChanged"],
    ]


def test_an_event_is_signed_and_says_what_has_changed_but_not_what_it_says(
    stage: ContentStage, clock: TestClock
) -> None:
    webhook, secret = stage.listen(WebhookEvent.DOCUMENT_PUBLISHED)
    stage.write_rye(ContentStatus.PUBLISHED)
    assert stage.deliver() == ["documentPublished"]
    [call] = stage.receiver.calls
    verify_request([secret], call.headers, clock.time(), call.raw)
    at_ms = int(clock.time() * 1000)
    assert call.headers["webhook-id"] == f"d.shop.main.post.rye.1.{at_ms}.documentPublished"
    assert call.body["data"] == {
        "tenant": "bakery",
        "space": "shop/main",
        "model": "post",
        "documentId": "rye",
        "version": 1,
        "action": "create",
        "userId": "ada",
        "source": "agent",
        "bridgeId": "turn-1",
        "title": "Rye",
        "slug": "rye",
        "status": "published",
        "locales": [],
    }
    [delivery] = list_webhook_deliveries(stage.resources, ADMIN, webhook)
    assert (delivery["event"], delivery["state"]) == ("content.documentPublished", "delivered")
    redeliver_event(stage.resources, ADMIN, webhook, delivery["id"])
    stage.queue.deliver(stage.resources)
    assert [one.headers["webhook-id"] for one in stage.receiver.calls] == [call.headers["webhook-id"]] * 2


def test_change_sets_are_told_when_they_are_opened_merged_and_rejected(stage: ContentStage) -> None:
    stage.listen(*CONTENT_EVENTS)
    merged, rejected = (begin_change_set(stage.resources, SHOP, name, ADA).id for name in ("Spring", "Autumn"))
    assert stage.deliver() == ["changeSetOpened"] * 2
    rye = DocumentContent(slug="rye", title="Rye")
    change_in_change_set(stage.resources, SHOP, merged, RYE, lambda *_: rye)
    assert stage.deliver() == [], "what is in a change set is seen by nobody yet"
    merge_change_set(stage.resources, SHOP, merged, ADA)
    discard_change_set(stage.resources, SHOP, rejected)
    closed = [dict(record) for record in stage.records]
    assert sorted(stage.deliver()) == ["changeSetMerged", "changeSetRejected", "documentCreated"]
    facts = {call.body["type"]: call.body["data"] for call in stage.receiver.calls}
    assert facts["content.changeSetMerged"] == {
        "tenant": "bakery",
        "space": "shop/main",
        "changeSetId": merged,
        "title": "Spring",
        "status": "merged",
        "userId": "ada",
        "documents": 1,
    }
    assert facts["content.documentCreated"]["changeSetId"] == merged
    stage.records = closed
    assert stage.deliver() == [], "the stream repeats a batch, and a row whose author is renamed"


def test_a_submission_is_told_when_it_is_received_and_decided_without_what_was_sent(stage: ContentStage) -> None:
    webhook, _ = stage.listen(*CONTENT_EVENTS)
    sent = stage.send_form()
    assert stage.deliver() == ["submissionReceived"]
    rejected = decide_submission(stage.resources, SHOP, sent, "rejected", "ada")
    decided = [dict(record) for record in stage.records]
    assert stage.deliver() == ["submissionDecided"]
    told = stage.receiver.calls[-1].body["data"]
    assert told == {
        "tenant": "bakery",
        "space": "shop/main",
        "submissionId": sent.id,
        "model": "message",
        "status": "rejected",
        "version": 2,
        "locale": "en",
    }
    assert "lea@example.org" not in repr([call.raw for call in stage.receiver.calls])
    stage.records = decided
    assert stage.deliver() == [], "the stream repeats a batch, and a row whose moderator is renamed"
    waiting = decide_submission(stage.resources, SHOP, rejected, "pending", "ada")
    decide_submission(stage.resources, SHOP, waiting, "spam", "ada")
    assert stage.deliver() == ["submissionDecided"], "of decisions right after one another the last one is told"
    assert stage.receiver.calls[-1].body["data"]["status"] == "spam"
    events = [one.event for one in list_deliveries(stage.resources, "bakery", webhook)]
    assert sorted(events) == ["forms.submissionDecided"] * 2 + ["forms.submissionReceived"]


def test_a_submission_that_was_deleted_before_the_delivery_is_told_to_nobody(stage: ContentStage) -> None:
    stage.listen(WebhookEvent.SUBMISSION_RECEIVED)
    sent = stage.send_form()
    stage.consume()
    assert len(stage.queue.messages) == 1
    delete_submission(stage.resources, SHOP, sent.id)
    assert stage.deliver() == []


def test_a_change_that_is_told_twice_is_delivered_once(stage: ContentStage) -> None:
    stage.listen(WebhookEvent.DOCUMENT_CREATED)
    stage.write_rye()
    stage.records *= 3
    assert stage.deliver() == ["documentCreated"]


def test_a_receiver_that_is_down_is_told_later_under_the_same_id(stage: ContentStage) -> None:
    webhook, _ = stage.listen(WebhookEvent.DOCUMENT_CREATED)
    stage.receiver.script_answer({}, status=503)
    stage.receiver.script_answer({})
    stage.write_rye()
    assert stage.deliver() == ["documentCreated"]
    [(message, delay)] = stage.queue.messages
    assert (message["webhook"], message["event"], delay > 3) == (webhook, "content.documentCreated", True)
    stage.queue.messages = [(message, 0)]
    assert stage.deliver() == ["documentCreated"]
    assert len({call.headers["webhook-id"] for call in stage.receiver.calls}) == 1
    [delivery] = list_deliveries(stage.resources, "bakery", webhook)
    assert (delivery.state, delivery.attempts) == ("delivered", 2)


def test_a_tenant_never_hears_of_anothers_content(stage: ContentStage) -> None:
    smith = Caller(tenant="smithy", user="smith", capabilities=RIGHTS)
    stage.listen(*CONTENT_EVENTS, caller=smith)
    stage.write_rye()
    assert stage.deliver() == []
    assert stage.queue.messages == []
    stage.queue.send({"tenant": "smithy", "content": "d.shop.main.post.rye.1"})
    assert stage.deliver() == [], "a subject is looked up among the spaces of its message's tenant"
    stage.listen(*CONTENT_EVENTS)
    stage.create_space(SpaceKey("smithy", "forge"))
    stage.write_rye(space=SpaceKey("smithy", "forge"))
    stage.deliver()
    assert {call.body["data"]["tenant"] for call in stage.receiver.calls} == {"smithy"}


def test_only_who_may_manage_content_lets_a_webhook_hear_of_all_of_it(stage: ContentStage) -> None:
    other = Caller(tenant="bakery", user="dev", capabilities=frozenset({"ai.tools.manage", "ai.content.write"}))
    with pytest.raises(Forbidden, match="content"):
        stage.listen(WebhookEvent.MODEL_CHANGED, caller=other)
    webhook, _ = stage.listen(caller=other)
    assert stage.write_rye() is None
    assert stage.deliver() == [], "a webhook that names no events is told about turns"
    with pytest.raises(Forbidden, match="content"):
        change_webhook(stage.resources, other, webhook, WebhookChange(events=CONTENT_EVENTS))
    view = change_webhook(stage.resources, other, webhook, WebhookChange(events=())).view
    assert view["events"] == list(TURN_EVENTS)


def test_nothing_is_told_of_what_was_deleted_before_the_delivery(stage: ContentStage) -> None:
    """A space and a webhook may be gone when a message arrives, and a space of the same name may be there again."""
    webhook, _ = stage.listen(WebhookEvent.DOCUMENT_CREATED)
    stage.write_rye()
    assert stage.deliver() == ["documentCreated"]
    create_document(stage.resources, SHOP, "post", ADA, DocumentContent(slug="spelt"), document_id="spelt")
    stage.consume()
    assert len(stage.queue.messages) == 1
    mark_space_deleted(stage.resources, SHOP)
    assert stage.deliver() == []
    assert stage.queue.messages == []
    table = stage.resources.settings.content_table
    rows = stage.resources.tables.query_items(table, SHOP.pk)
    stage.resources.tables.batch_delete(table, [(row["pk"], row["sk"]) for row in rows])
    forget_deleted_space(stage.resources, SHOP)
    stage.resources.clock.now += 60  # type: ignore[attr-defined]
    stage.create_space(SHOP)
    stage.write_rye()
    assert stage.deliver() == ["documentCreated"], "another document, under an id that the receiver has not seen"
    create_document(stage.resources, SHOP, "post", ADA, DocumentContent(slug="oat"), document_id="oat")
    stage.consume()
    remove_webhook(stage.resources, ADMIN, webhook)
    assert stage.deliver() == []


def test_changes_of_a_burst_are_a_message_each_however_many_webhooks_there_are(
    stage: ContentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        stage.listen(*CONTENT_EVENTS)
    stage.write_rye(ContentStatus.PUBLISHED)
    [record] = [one for one in stage.records if one["dynamodb"]["NewImage"]["sk"]["S"].startswith("h#")]
    monkeypatch.setattr("fermata.content.content_consumers.CONTENT_CONSUMERS", {"webhooks": WEBHOOK_CONSUMER})
    stage.records = [record] * 50
    stage.consume()
    assert [message for message, _ in stage.queue.messages] == [
        {"tenant": "bakery", "content": "d.shop.main.post.rye.1"}
    ] * 50
    assert stage.receiver.calls == []


WEBHOOK_CONSUMER = "fermata.turns.webhooks.queue_content_events:queue_content_change"


def test_a_queue_that_refuses_lets_the_stream_repeat_the_change(stage: ContentStage) -> None:
    stage.listen(WebhookEvent.DOCUMENT_CREATED)
    stage.write_rye()
    stage.queue.is_down = True
    failures = consume_content_changes(
        stage.records, partial(tell_content_consumers, stage.resources), partial(finish_commit, stage.resources)
    )
    assert len(failures["batchItemFailures"]) == 1
    stage.queue.is_down = False
    assert stage.deliver() == ["documentCreated"]
