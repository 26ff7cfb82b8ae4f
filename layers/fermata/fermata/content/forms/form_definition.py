"""Define the form of a model: which of its fields visitors fill in, and what limits them (decision 0482)."""

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.fields import FieldDefinition, FieldType
from fermata.domain.base import DomainModel
from fermata.domain.errors import InvalidRequest

DEFAULT_HONEYPOT = "website"
MAX_EXPOSED_FIELDS = 50
_UNEXPOSED_TYPES = frozenset({
    FieldType.MARKDOWN, FieldType.RICHTEXT, FieldType.CODE, FieldType.ICON, FieldType.IMAGE, FieldType.VIDEO,
    FieldType.FILE, FieldType.RELATION, FieldType.RELATIONS, FieldType.OBJECT,
})  # fmt: skip
"""Types whose values are shown as more than text, or name what a visitor cannot know."""
_FieldName = Annotated[str, Field(min_length=1, max_length=64)]


def _name_honeypot(value: Any) -> Any:
    """Return the name of the field for a mere true or false."""
    return {True: DEFAULT_HONEYPOT, False: "", None: ""}.get(value, value) if isinstance(value, bool | None) else value


class FormLimits(DomainModel):
    """What a form takes.

    Attributes:
        per_minute: From one address in a minute.
        per_month: From all visitors in a month in UTC.
    """

    model_config = ConfigDict(extra="forbid")

    per_minute: Annotated[int, Field(ge=1, le=10)] = 10
    per_month: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000


class FormDefinition(DomainModel):
    """The form of a model.

    Attributes:
        public: Whether visitors may send it. Without, it is not there for them.
        exposed_fields: The fields that it has, in their order.
        required_overrides: Fields that are required in the form and not in the model, or the other way round.
        honeypot: The name of a field that people do not see, so that only programs fill it in; empty for none.
        captcha: Whether a visitor has to solve the captcha of the space.
        auto_approve: Whether a submission becomes an entry at once, as a draft.
        keep_days: After how many days a submission is deleted; None for never.
    """

    model_config = ConfigDict(extra="forbid")

    enabled: bool = False
    public: bool = True
    exposed_fields: Annotated[tuple[_FieldName, ...], Field(max_length=MAX_EXPOSED_FIELDS)] = ()
    required_overrides: dict[str, bool] = Field(default_factory=dict)
    honeypot: Annotated[str, BeforeValidator(_name_honeypot), Field(max_length=64)] = ""
    captcha: bool = False
    success_message: Annotated[str, Field(max_length=500)] = "Thank you."
    limits: FormLimits = FormLimits()
    auto_approve: bool = False
    keep_days: Annotated[int | None, Field(ge=1, le=3650)] = None

    def list_fields(self, model: ContentModel) -> dict[str, FieldDefinition]:
        """Return the fields of the form, each required or not as the form says."""
        overrides = self.required_overrides
        fields = {name: model.fields[name] for name in self.exposed_fields if name in model.fields}
        return {
            name: field.model_copy(update={"required": overrides.get(name, field.required)})
            for name, field in fields.items()
        }


def parse_form_definition(model: ContentModel) -> FormDefinition | None:
    """Return the form of a model; None if it has none.

    Raises:
        InvalidRequest: What the model says of its form is not valid; the message says what.
    """
    if model.form is None:
        return None
    try:
        form = FormDefinition.from_wire(model.form)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(f"{'.'.join(map(str, ('form', *first['loc'])))}: {first['msg']}.") from error
    _check_fields_of_form(form, model)
    return form


def find_form(model: ContentModel) -> FormDefinition | None:
    """Return the form of a model that visitors may send; None if there is none, or it is not valid."""
    try:
        form = parse_form_definition(model)
    except InvalidRequest:
        return None
    return form if form and form.enabled and form.public else None


def _check_fields_of_form(form: FormDefinition, model: ContentModel) -> None:
    if model.kind is not ModelKind.COLLECTION:
        raise InvalidRequest("form: only a collection has a form, whose submissions become its entries.")
    for name in (*form.exposed_fields, *form.required_overrides):
        if name not in model.fields:
            raise InvalidRequest(f"form.exposedFields: {model.id} has no field {name}.")
    for name in form.exposed_fields:
        if not _may_be_exposed(model.fields[name]):
            kind = model.fields[name].type.value
            raise InvalidRequest(f"form.exposedFields: {name} is of the type {kind}, which visitors cannot fill in.")
    if form.honeypot in form.exposed_fields:
        raise InvalidRequest("form.honeypot: it is one of the exposed fields. Choose another name.")
    if form.enabled and not form.exposed_fields:
        raise InvalidRequest("form.exposedFields: name at least one field.")


def _may_be_exposed(field: FieldDefinition) -> bool:
    if field.type is FieldType.ARRAY:
        return field.items is not None and field.items.type not in {*_UNEXPOSED_TYPES, FieldType.ARRAY}
    return field.type not in _UNEXPOSED_TYPES
