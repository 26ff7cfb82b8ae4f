"""Define the models that every space has: pages, posts, assets, navigation, settings, the vocabulary."""

from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.fields import FieldDefinition, FieldType

PAGE_MODEL = ContentModel(
    id="page",
    kind=ModelKind.PAGE,
    title="Pages",
    built_in=True,
    i18n=True,
    fields={
        "indexing": FieldDefinition(type=FieldType.BOOLEAN, default=True),
        "meta": FieldDefinition(
            type=FieldType.OBJECT,
            fields={
                "title": FieldDefinition(type=FieldType.STRING),
                "description": FieldDefinition(type=FieldType.TEXT),
            },
        ),
    },
)
POST_MODEL = ContentModel(
    id="post",
    kind=ModelKind.COLLECTION,
    title="Posts",
    built_in=True,
    i18n=True,
    fields={
        "excerpt": FieldDefinition(type=FieldType.TEXT),
        "body": FieldDefinition(type=FieldType.RICHTEXT),
        "author": FieldDefinition(type=FieldType.STRING),
        "category": FieldDefinition(type=FieldType.STRING),
        "featuredImage": FieldDefinition(type=FieldType.IMAGE),
    },
)
ASSET_MODEL = ContentModel(
    id="asset",
    kind=ModelKind.COLLECTION,
    title="Assets",
    built_in=True,
    fields={
        "filename": FieldDefinition(type=FieldType.STRING, required=True),
        "mediaType": FieldDefinition(type=FieldType.STRING, required=True),
        "format": FieldDefinition(type=FieldType.STRING),
        "size": FieldDefinition(type=FieldType.INTEGER, min=0),
        "sha256": FieldDefinition(type=FieldType.STRING, required=True, unique=True, pattern="^[0-9a-f]{64}$"),
        "width": FieldDefinition(type=FieldType.INTEGER, min=0),
        "height": FieldDefinition(type=FieldType.INTEGER, min=0),
        "blurhash": FieldDefinition(type=FieldType.STRING),
        "focalPoint": FieldDefinition(
            type=FieldType.OBJECT,
            fields={
                "x": FieldDefinition(type=FieldType.NUMBER, required=True, min=0, max=1),
                "y": FieldDefinition(type=FieldType.NUMBER, required=True, min=0, max=1),
            },
        ),
        "alt": FieldDefinition(type=FieldType.STRING),
        "altTexts": FieldDefinition(type=FieldType.OBJECT),
        "tags": FieldDefinition(type=FieldType.ARRAY, items=FieldDefinition(type=FieldType.STRING)),
        "description": FieldDefinition(type=FieldType.TEXT),
        "source": FieldDefinition(type=FieldType.SELECT, options=("upload", "url", "connector", "agent")),
        "files": FieldDefinition(type=FieldType.ARRAY, items=FieldDefinition(type=FieldType.OBJECT)),
    },
)
NAVIGATION_MODEL = ContentModel(
    id="navigation",
    kind=ModelKind.SINGLETON,
    title="Navigation",
    built_in=True,
    fields={
        "items": FieldDefinition(
            type=FieldType.ARRAY,
            items=FieldDefinition(
                type=FieldType.OBJECT,
                fields={
                    "label": FieldDefinition(type=FieldType.STRING, required=True),
                    "href": FieldDefinition(type=FieldType.STRING, required=True),
                    "location": FieldDefinition(type=FieldType.SELECT, options=("header", "footer", "both")),
                    "visible": FieldDefinition(type=FieldType.BOOLEAN),
                },
            ),
        ),
    },
)
SETTING_MODEL = ContentModel(id="setting", kind=ModelKind.SINGLETON, title="Settings", built_in=True)
VOCABULARY_MODEL = ContentModel(
    id="vocabulary", kind=ModelKind.DICTIONARY, title="Vocabulary", built_in=True, i18n=True
)

BUILT_IN_MODELS = (PAGE_MODEL, POST_MODEL, ASSET_MODEL, NAVIGATION_MODEL, SETTING_MODEL, VOCABULARY_MODEL)
