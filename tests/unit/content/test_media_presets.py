"""A project has presets of its own for the sizes of its images; alternative texts are bounded."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import change_document
from fermata.content.documents.document import DocumentContent
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.files.read_project import PROJECT_MODEL
from fermata.content.media.asset_files import list_asset_files
from fermata.content.media.asset_store import AssetTexts, fetch_asset_file, store_asset
from fermata.content.media.project_presets import MAX_OWN_PRESETS, find_preset_sizes, parse_media_presets
from fermata.content.model_store import put_model
from fermata.content.validation.alternative_texts import find_alternative_text_problems
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import InvalidRequest
from tests.images import make_image, open_image
from tests.unit.content.conftest import ADA

WIDE = {"width": 40, "height": 10, "format": "jpeg"}


def define_presets(resources: Resources, space: SpaceKey, presets: Any) -> None:
    put_model(resources, space, PROJECT_MODEL.to_wire(), ADA)
    content = DocumentContent(title="Project").with_fields("data", {"config": {"mediaVariants": presets}})
    change_document(resources, space, PROJECT_KEY, ADA, lambda _before, _basis: content)


def test_an_image_has_the_sizes_of_a_preset_of_its_project_and_others_when_that_changes(
    resources: Resources, space: SpaceKey
) -> None:
    define_presets(resources, space, {"banner": {"wide": WIDE, "all": {"width": 50, "height": 50, "fit": "contain"}}})
    documents, raw = WorkingDocuments(resources, space, ADA), make_image(100, 50)
    stored = store_asset(documents, raw, AssetTexts("a.jpg"), preset="banner").version
    sizes = {
        file["name"]: (file["mediaType"], file["width"], file["height"]) for file in list_asset_files(stored.content)
    }
    assert sizes["banner-wide"] == ("image/jpeg", 40, 10)
    assert sizes["banner-all"] == ("image/webp", 50, 25)
    media_type, data = fetch_asset_file(resources, space, stored, "banner-wide")
    assert (media_type, open_image(data).size) == ("image/jpeg", (40, 10))
    again = store_asset(documents, raw, AssetTexts("a.jpg"), preset="banner")
    assert again.version.version == stored.version, "as it is defined, it is drawn"
    define_presets(resources, space, {"banner": {"wide": {**WIDE, "height": 20}}})
    redrawn = store_asset(documents, raw, AssetTexts("a.jpg"), preset="banner").version
    assert open_image(fetch_asset_file(resources, space, redrawn, "banner-wide")[1]).size == (40, 20)


def test_a_preset_that_nobody_has_defined_is_refused_with_those_that_there_are(
    resources: Resources, space: SpaceKey
) -> None:
    with pytest.raises(InvalidRequest, match=r"no preset banner. There are hero-image, .* logo\."):
        find_preset_sizes(resources, space, "banner")
    define_presets(resources, space, {"poster": {"tall": WIDE}})
    with pytest.raises(InvalidRequest, match=r"logo, poster\."):
        find_preset_sizes(resources, space, "banner")


@pytest.mark.parametrize(
    ("presets", "message"),
    [
        ([], "must be an object"),
        ({f"p{number}": {"a": WIDE} for number in range(MAX_OWN_PRESETS + 1)}, "at most 20 presets"),
        ({"Banner": {"a": WIDE}}, "small letters"),
        ({"avatar": {"a": WIDE}}, "Choose another"),
        ({"banner": {}}, "1 to 8 sizes"),
        ({"banner": {"a-b": WIDE}}, "small letters and digits"),
        ({"banner": {"a": 7}}, "must be an object with fit"),
        ({"banner": {"a": {**WIDE, "quality": 4}}}, "only"),
        ({"banner": {"a": {**WIDE, "width": 2561}}}, "from 1 to 2560"),
        ({"banner": {"a": {**WIDE, "width": True}}}, "from 1 to 2560"),
        ({"banner": {"a": {**WIDE, "format": "avif"}}}, "webp, jpeg, png"),
        ({"banner": {"a": {**WIDE, "fit": []}}}, "cover, contain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_preset_that_is_not_defined_as_it_should_be_says_what_is_wrong(presets: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_media_presets({"mediaVariants": presets})


@pytest.mark.parametrize(
    ("texts", "kinds"),
    [
        ({"de": "Brot", "pt-BR": "P" * 500}, []),
        ({"de": "x" * 501, "en": 7, "../x": "y"}, ["range", "type", "locale"]),
        ({f"a{chr(97 + n // 26)}{chr(97 + n % 26)}": "" for n in range(51)}, ["range"]),
        (["no object"], []),
    ],
)
def test_alternative_texts_are_by_language_and_few_and_short(texts: Any, kinds: list[str]) -> None:
    assert [problem.kind for problem in find_alternative_text_problems(texts)] == kinds
