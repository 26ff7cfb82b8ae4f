"""A model describes an image of the content store; what people have written stays."""

import json
from typing import Any

import pytest

from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor, DocumentVersion
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import create_space
from fermata.content.working_documents import WorkingDocuments
from fermata.credentials.known_capabilities import KnownCapabilities
from fermata.domain.blocks import ImageBlock
from fermata.domain.errors import InvalidRequest, NotFound, Unprocessable
from fermata.domain.model_io import FinishReason
from fermata.turns.generate import ask_model, describe_asset
from tests.images import make_image
from tests.unit.turns.stage import ADA, Stage, reply_with_text

SPACE, AUTHOR = SpaceKey(ADA.tenant, "shop"), ContentAuthor(ADA.user)
FOUND = {"alt": "A  loaf\nof rye", "description": "Dark bread.", "tags": ["bread", " bread ", "rye", ""]}


@pytest.fixture(autouse=True)
def scripted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_model, "get_provider", lambda _provider: stage.driver)
    create_space(stage.resources, SPACE, ContentSpace(), AUTHOR)


def add_image(stage: Stage, alt: str = "") -> str:
    return store_asset(
        WorkingDocuments(stage.resources, SPACE, AUTHOR), make_image(1200, 800), AssetTexts("rye.jpg", alt)
    ).version.id


def describe(stage: Stage, asset: str, *replies: Any) -> DocumentVersion:
    stage.script_replies(*(json.dumps(reply) for reply in replies))
    return describe_asset.describe_asset(
        stage.resources, SPACE, asset, ADA,
        credential=stage.credential.id, model="model-1", locale="de", connection=stage.connection,
    )  # fmt: skip


def test_a_model_fills_what_an_image_does_not_say_yet(stage: Stage) -> None:
    version = describe(stage, add_image(stage), FOUND)
    assert version.content is not None
    fields = version.content.get_locale("data")
    assert (fields["alt"], fields["description"], fields["tags"]) == ("A loaf of rye", "Dark bread.", ["bread", "rye"])
    assert (version.source, version.user) == ("agent", ADA.user)
    [request] = stage.driver.requests
    image = request.messages[-1].content[-1]
    assert isinstance(image, ImageBlock)
    assert image.mime_type == "image/webp"
    assert "in the language de" in str(request.messages[-1].content[0])


def test_what_people_have_written_stays(stage: Stage) -> None:
    version = describe(stage, add_image(stage, "Our best bread"), FOUND)
    assert version.content is not None
    assert version.content.get_locale("data")["alt"] == "Our best bread"


def test_a_model_that_does_not_see_images_is_not_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = KnownCapabilities(vision_input=False)
    monkeypatch.setattr(describe_asset, "get_choice_capabilities", lambda *_: blind)
    with pytest.raises(InvalidRequest, match="does not see images"):
        describe(stage, add_image(stage), FOUND)
    assert stage.driver.requests == []


def test_a_wrong_answer_and_a_missing_image_store_nothing(stage: Stage) -> None:
    asset = add_image(stage)
    with pytest.raises(Unprocessable):
        describe(stage, asset, {"alt": 7}, {"alt": 7})
    with pytest.raises(NotFound):
        describe(stage, "gone")


def test_an_answer_that_was_cut_off_stores_nothing(stage: Stage) -> None:
    asset = add_image(stage)
    stage.script_replies(reply_with_text('{"alt": "A lo', FinishReason.MAX_TOKENS))
    with pytest.raises(Unprocessable, match="ended with maxTokens"):
        describe(stage, asset)
