"""Define a content model: what kind of documents it has, and their fields."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasChoices, ConfigDict, Field, ValidationError

from fermata.content.fields import FieldDefinition
from fermata.domain.base import DomainModel
from fermata.domain.errors import InvalidRequest

MODEL_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
DOMAIN_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
META_MODEL = "model"
"""The model whose documents are the other models: they have versions, history and restore as all documents do."""
DEFINITION_LOCALE = "data"
"""Where a document keeps what is the same in all languages."""
MAX_FIELDS = 200
MAX_UNIQUE_FIELDS = 5
MAX_FIELD_NAME_CHARS = 100


class ModelKind(StrEnum):
    """How the documents of a model are kept.

    A `singleton` has one document. A `dictionary` has texts by keys and no fields. A `page` is made of sections, and a
    `section` is a part of pages that has no documents of its own.
    """

    SINGLETON = "singleton"
    COLLECTION = "collection"
    DOCUMENT = "document"
    DICTIONARY = "dictionary"
    PAGE = "page"
    SECTION = "section"


class ContentModel(DomainModel):
    """A model. Members that other programs have added stay in it.

    Attributes:
        domain: The part of the site that its documents belong to, which is the folder of their files.
        i18n: Whether its documents have content for each locale; else they have one for all. Rows may call it `i18N`.
        built_in: Whether every space has it. It can be changed and not be deleted.
        form: How visitors of the site submit documents of it (content/forms/form_definition.py).
    """

    model_config = ConfigDict(extra="allow")

    id: Annotated[str, Field(pattern=f"^{MODEL_ID.pattern}$")]
    kind: ModelKind
    domain: Annotated[str, Field(pattern=f"^{DOMAIN_NAME.pattern}$")] = "site"
    title: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=2000)] = ""
    i18n: Annotated[bool, Field(validation_alias=AliasChoices("i18n", "i18N"), serialization_alias="i18n")] = False
    built_in: bool = False
    fields: Annotated[dict[str, FieldDefinition], Field(max_length=MAX_FIELDS)] = Field(default_factory=dict)
    form: Any = None

    @property
    def unique_fields(self) -> tuple[str, ...]:
        """The fields whose values no two documents share."""
        return tuple(name for name, definition in self.fields.items() if definition.unique)

    @property
    def has_documents(self) -> bool:
        """Whether documents are created of it."""
        return self.kind is not ModelKind.SECTION


def parse_content_model(value: Any) -> ContentModel:
    """Parse the definition of a model.

    Raises:
        InvalidRequest: It is no model; the message says where.
    """
    try:
        model = ContentModel.from_wire(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "model"
        raise InvalidRequest(f"The model is not valid: {place}: {first['msg']}.") from error
    if model.id == META_MODEL:
        raise InvalidRequest(f"No model can be called {META_MODEL}.")
    if long := next((name for name in _iter_field_names(model.fields) if len(name) > MAX_FIELD_NAME_CHARS), ""):
        raise InvalidRequest(f"The name of the field {long[:40]}… has more than {MAX_FIELD_NAME_CHARS} characters.")
    if len(model.unique_fields) > MAX_UNIQUE_FIELDS:
        raise InvalidRequest(f"A model has at most {MAX_UNIQUE_FIELDS} unique fields.")
    return model


def _iter_field_names(fields: Mapping[str, FieldDefinition]) -> Iterator[str]:
    for name, field in fields.items():
        yield name
        while field.items is not None:
            field = field.items
        yield from _iter_field_names(field.fields or {})
