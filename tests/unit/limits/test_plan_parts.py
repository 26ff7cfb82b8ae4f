"""Every part of a plan is asked for by the verb that needs it, or the table says why nothing asks for it."""

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fermata
from fermata.aws.resources import Resources
from fermata.client_protocols.mcp_calls import build_call_counts
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import change_document, delete_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.documents.review_workflow import has_reviews
from fermata.content.files.read_project import PROJECT_MODEL
from fermata.content.media.asset_store import AssetTexts, StoredAsset, store_asset
from fermata.content.media.media_room import RECOUNT_SECONDS, MediaRoom
from fermata.content.model_changes import model_to_content
from fermata.content.model_store import create_space, put_model, read_model
from fermata.content.space_members import SpaceMember, put_member
from fermata.content.working_documents import WorkingDocuments
from fermata.content_api.form_requests import submit_form
from fermata.credentials.credential_store import create_credential
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import PaymentRequired
from fermata.domain.plan_parts import PLAN_PARTS, PlanPartName
from fermata.domain.plan_refusals import PlanUpgradeRequired
from fermata.domain.workspace_plan import (
    WORKSPACE_PLANS,
    PlanFeature,
    PlanMeter,
    PlanQuota,
    Subscription,
    WorkspacePlan,
)
from fermata.limits.monthly_messages import MessageSource, MonthlyMessages
from fermata.wire.auth.conversation_key_store import change_conversation_key, create_conversation_key
from fermata.wire.auth.tenant_store import get_tenant, update_tenant
from fermata.wire.http.messages import HttpRequest
from fermata.wire.http.routing import RequestContext
from tests.images import make_image
from tests.resources import TestClock
from tests.tenant_tokens import make_tenant
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
PACKAGE = Path(fermata.__file__).parent
TABLES = {"domain/workspace_plan.py", "domain/plan_parts.py", "domain/plan_refusals.py", "content_api/plan_requests.py"}
"""Modules that name every part and ask for none."""
SPACE = SpaceKey("bakery", "shop")
AUTHOR = ContentAuthor("ada")
ADA = Caller(
    tenant="bakery",
    user="ada",
    capabilities=frozenset({Capability.CHAT, Capability.KEYS, Capability.CONTENT, Capability.PROVIDERS}),
)
FORM = {"enabled": True, "exposedFields": ["name"]}
MODEL = {"id": "contact", "kind": "collection", "fields": {"name": {"type": "string"}}}
Ask = Callable[[Resources], object]


@pytest.fixture
def workspace(resources: Resources) -> Resources:
    """A workspace without a plan, with a project and a form."""
    make_tenant(resources, "bakery")
    create_space(resources, SPACE, ContentSpace(locales=("en", "de")), AUTHOR)
    put_model(resources, SPACE, MODEL | {"form": FORM}, AUTHOR)
    return resources


def choose_plan_without(workspace: Resources, part: PlanPartName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the workspace a plan that has everything but one part."""
    limits = {} if isinstance(part, PlanFeature) else {part: 0}
    monkeypatch.setitem(WORKSPACE_PLANS, "small", WorkspacePlan("small", limits, frozenset(PlanFeature) - {part}))
    update_tenant(workspace, "bakery", subscription=Subscription(plan="small"))


def send_message(source: MessageSource) -> Ask:
    def send(resources: Resources) -> object:
        subscription = get_tenant(resources, "bakery").subscription
        return MonthlyMessages(resources, "bakery", "ada", subscription, source).build_writes()

    return send


def call_by_mcp(resources: Resources) -> object:
    return build_call_counts(
        RequestContext(resources, HttpRequest("1", "POST", "/mcp"), ADA, get_tenant(resources, "bakery"))
    )


def send_form(resources: Resources) -> object:
    path = {"workspace": "bakery", "site": "shop", "environment": "main", "model": "contact"}
    body = json.dumps({"data": {"name": "Eve"}}).encode()
    return submit_form(resources, HttpRequest("1", "POST", "/", body=body, path_parameters=path, source="198.51.100.7"))


def make_key(**rules: tuple[str, ...]) -> Ask:
    return lambda resources: create_conversation_key(
        resources, ADA, "Site", ConversationKeyRules(project=SPACE.name, **rules)
    )


def open_form(**members: object) -> Ask:
    return lambda resources: put_model(resources, SPACE, MODEL | {"id": "order", "form": FORM | members}, AUTHOR)


def store_image(resources: Resources, width: int = 40) -> StoredAsset:
    documents = WorkingDocuments(resources, SPACE, AUTHOR)
    return store_asset(documents, make_image(width, 30), AssetTexts("bread.png"))


def store_in_own_preset(resources: Resources) -> StoredAsset:
    settings = {"config": {"mediaVariants": {"banner": {"wide": {"width": 20, "height": 5}}}}}
    put_model(resources, SPACE, PROJECT_MODEL.to_wire(), AUTHOR)
    own = DocumentContent(title="Project").with_fields("data", settings)
    change_document(resources, SPACE, PROJECT_KEY, AUTHOR, lambda _before, _basis: own)
    return store_asset(WorkingDocuments(resources, SPACE, AUTHOR), make_image(), AssetTexts("a.png"), preset="banner")


def add_member(**only: frozenset[str]) -> Ask:
    return lambda resources: put_member(resources, SPACE, SpaceMember("bob", "editor", **only))


def enter_key(resources: Resources) -> object:
    return create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-own")


ASKS: dict[PlanPartName, tuple[Ask, ...]] = {
    PlanMeter.CHAT_MESSAGES: (send_message("studio"),),
    PlanMeter.API_MESSAGES: (send_message("api"),),
    PlanMeter.MCP_CALLS: (call_by_mcp,),
    PlanMeter.FORM_SUBMISSIONS: (send_form,),
    PlanQuota.API_KEYS: (make_key(),),
    PlanQuota.FORMS: (open_form(),),
    PlanQuota.MEDIA_BYTES: (store_image,),
    PlanQuota.FILE_BYTES: (store_image,),
    PlanQuota.SEATS: (add_member(),),
    PlanFeature.MEDIA_VARIANTS: (store_in_own_preset,),
    PlanFeature.FORM_AUTO_APPROVE: (open_form(autoApprove=True),),
    PlanFeature.FORM_CAPTCHA: (open_form(captcha=True),),
    PlanFeature.OWN_MODEL_KEY: (enter_key,),
    PlanFeature.CONVERSATION_API: (make_key(),),
    PlanFeature.MODEL_RESTRICTIONS: (
        add_member(models=frozenset({"contact"})),
        add_member(locales=frozenset({"de"})),
        make_key(models=("contact",)),
        make_key(locales=("de",)),
    ),
}
"""The verbs that need each part, and refuse without it."""
CHANGES_BEHAVIOUR = {PlanFeature.REVIEW_WORKFLOW}
"""Parts without which something else happens, and nothing is refused: test_studio_tools.py."""


def iter_named_parts() -> Iterator[tuple[str, str]]:
    """Yield the parts that modules name besides the tables, and the module of each."""
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        if module in TABLES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id="PlanMeter" | "PlanQuota" | "PlanFeature" as kind), attr=name):
                    yield f"{kind}.{name}", module


def test_every_part_of_a_plan_is_in_the_table_and_asked_for_or_says_why_not() -> None:
    assert set(PLAN_PARTS) == {*PlanMeter, *PlanQuota, *PlanFeature}
    needed = {part for part, described in PLAN_PARTS.items() if not described.no_counterpart}
    assert set(ASKS) | CHANGES_BEHAVIOUR == needed, "Say here which verb asks for it, or why none does in the table."
    named = {part for part, _ in iter_named_parts()}
    assert {f"{type(part).__name__}.{part.name}" for part in needed} <= named, "No verb asks for it."


@pytest.mark.parametrize("part", ASKS, ids=str)
def test_without_a_part_its_verbs_are_refused_in_words_that_name_the_plan(
    workspace: Resources, part: PlanPartName, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_plan_without(workspace, part, monkeypatch)
    for ask in ASKS[part]:
        with pytest.raises(PaymentRequired) as refused:
            ask(workspace)
        message = refused.value.message
        if part is PlanMeter.FORM_SUBMISSIONS:
            assert "takes no submissions now" in message, "A visitor learns nothing of the plan."
        else:
            assert "The plan small" in message
            assert "hoose" in message
    update_tenant(workspace, "bakery", subscription=Subscription())
    for ask in ASKS[part]:
        ask(workspace)


@pytest.mark.parametrize("part", [PlanQuota.SEATS, PlanFeature.CONVERSATION_API, PlanFeature.OWN_MODEL_KEY], ids=str)
def test_a_locked_plan_is_told_to_be_paid_for(workspace: Resources, part: PlanPartName) -> None:
    locked = Subscription(plan="pro", state="cancelled", until=int(workspace.clock.time()))
    update_tenant(workspace, "bakery", subscription=locked)
    with pytest.raises(PaymentRequired, match=r"was cancelled and has ended. Choose a plan to go on."):
        ASKS[part][0](workspace)


def test_reviews_are_a_part_of_a_plan(workspace: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_reviews(workspace, "bakery")
    choose_plan_without(workspace, PlanFeature.REVIEW_WORKFLOW, monkeypatch)
    assert not has_reviews(workspace, "bakery")


def test_what_an_earlier_plan_allowed_stays_and_can_be_changed(
    workspace: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = SpaceMember("bob", "editor", frozenset({"contact"}))
    put_member(workspace, SPACE, member)
    rules = ConversationKeyRules(project=SPACE.name, models=("contact",))
    key, _ = create_conversation_key(workspace, ADA, "Site", rules)
    put_model(workspace, SPACE, MODEL | {"form": FORM | {"autoApprove": True}}, AUTHOR)
    update_tenant(workspace, "bakery", subscription=Subscription(plan="free", limits={"seats": 0}))
    put_member(workspace, SPACE, SpaceMember("bob", "viewer", frozenset({"contact"})))
    changed = change_conversation_key(
        workspace, ADA, key.id, lambda one: one.model_copy(update={"role": "viewer"}), label="Shop"
    )
    assert changed.conversation
    assert changed.conversation.role == "viewer"
    put_model(workspace, SPACE, MODEL | {"title": "Contact", "form": FORM | {"autoApprove": True}}, AUTHOR)
    with pytest.raises(PlanUpgradeRequired, match="restrictions"):
        put_member(workspace, SPACE, SpaceMember("bob", "viewer", frozenset({"order"})))
    with pytest.raises(PlanUpgradeRequired, match="restrictions"):
        change_conversation_key(workspace, ADA, key.id, lambda one: one.model_copy(update={"locales": ("de",)}))


def test_a_seat_is_taken_once_in_all_projects_of_a_workspace(workspace: Resources) -> None:
    other = SpaceKey("bakery", "blog")
    create_space(workspace, other, ContentSpace(locales=("en",)), AUTHOR)
    update_tenant(workspace, "bakery", subscription=Subscription(plan="starter", limits={"seats": 2}))
    for space, user in ((SPACE, "ada"), (SPACE, "bob"), (other, "ada")):
        put_member(workspace, space, SpaceMember(user, "editor"))
    with pytest.raises(PlanUpgradeRequired, match=r"room for 2 members, and this would be 3. Remove some"):
        put_member(workspace, other, SpaceMember("eve", "editor"))


def test_a_form_that_comes_with_a_change_set_counts_too(workspace: Resources) -> None:
    update_tenant(workspace, "bakery", subscription=Subscription(plan="pro", limits={"forms": 1}))
    put_model(workspace, SPACE, MODEL | {"id": "order"}, AUTHOR)
    model = read_model(workspace, SPACE, "order").model.model_copy(update={"form": FORM})
    change = begin_change_set(workspace, SPACE, "Form", AUTHOR)
    key = DocumentKey(META_MODEL, "order")
    change_in_change_set(workspace, SPACE, change.id, key, lambda _before, _basis: model_to_content(model))
    with pytest.raises(PlanUpgradeRequired, match="room for 1 forms, and this would be 2"):
        merge_change_set(workspace, SPACE, change.id, AUTHOR)


def test_media_fill_their_room_and_deleting_some_makes_room_again(workspace: Resources, clock: TestClock) -> None:
    first = store_image(workspace).version
    room = MediaRoom(workspace, "bakery", Subscription(plan="pro"))
    size = room.count_used()
    assert size > 0
    full = Subscription(plan="pro", limits={"mediaBytes": 2 * size + size // 2})
    update_tenant(workspace, "bakery", subscription=full)
    store_image(workspace, 41)
    assert MediaRoom.open(workspace, "bakery").count_used() > size
    with pytest.raises(PlanUpgradeRequired, match="bytes of media, and this would be"):
        store_image(workspace, 42)
    delete_document(workspace, SPACE, first.key, AUTHOR)
    clock.now += RECOUNT_SECONDS + 61
    store_image(workspace, 43)
    assert MediaRoom.open(workspace, "bakery").count_used() <= 2 * size + size // 2
