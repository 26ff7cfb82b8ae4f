"""List node types of forms, with the editor's ids, props, choices and defaults (decision 0104)."""

from fermata.tools.site.node_types.definition import DISABLED_CONTROL, NodeType, PropControl

_TYPED = ("text", "email", "password", "search", "tel", "url", "number", "date", "time", "datetime-local")
_INPUTS = {kind: kind for kind in (*_TYPED, "file", "hidden")}
_NAMED: dict[str, PropControl] = {
    "fieldId": ("text", "Field of the data table", ""),
    "name": ("text", "Name in the submission", ""),
    "id": ("text", "Id", ""),
}
_REQUIRED: PropControl = ("toggle", "Required", False)
_READ_ONLY: PropControl = ("toggle", "Read-only", False)
_LENGTHS: dict[str, PropControl] = {
    "minLength": ("number", "Least characters, 0 for any", 0),
    "maxLength": ("number", "Most characters, 0 for any", 0),
}
_CHOICE: dict[str, PropControl] = {
    **_NAMED,
    "value": ("text", "Value when chosen", "on"),
    "checked": ("toggle", "Chosen from the start", False),
    "required": _REQUIRED,
    "disabled": DISABLED_CONTROL,
}
FORM_ELEMENTS: dict[str, NodeType] = {
    "base.checkbox": NodeType(name="Checkbox", category="Forms", description="A box to tick in a form.", props=_CHOICE),
    "base.form": NodeType(
        name="Form",
        category="Forms",
        description="A form whose submissions become rows of a data table, or go to an address of its own.",
        props={
            "mode": ("select", "Where submissions go", "cms", {"cms": "Data table", "custom": "Own address"}),
            "formId": ("text", "Id of the form", "form"),
            "targetTableId": ("dataTable", "Data table, where `mode` is cms", ""),
            "action": ("url", "Address, where `mode` is custom", ""),
            "method": ("select", "Method", "post", {"get": "GET", "post": "POST", "dialog": "Dialog"}),
            "successBehavior": ("select", "Afterwards", "message", {"message": "Message", "redirect": "Redirect"}),
            "successMessage": ("text", "Message afterwards", "Thanks. Your submission was received."),
            "redirectUrl": ("url", "Page to show afterwards", ""),
            "honeypotName": ("text", "Name of the trap for robots", "company"),
            "minSubmitSeconds": ("number", "Seconds a person needs at least", 2),
        },
        can_have_children=True,
    ),
    "base.form-message": NodeType(
        name="Form message",
        category="Forms",
        description="Where a form says how a submission went.",
        props={
            "formId": ("text", "Id of the form", ""),
            "kind": ("select", "Kind", "status", {"status": "Status", "success": "Success", "error": "Error"}),
            "text": ("text", "Text", ""),
        },
    ),
    "base.input": NodeType(
        name="Input",
        category="Forms",
        description="A form field of one line.",
        props={
            "inputType": ("select", "Kind of input", "text", _INPUTS),
            **_NAMED,
            "placeholder": ("text", "Placeholder", ""),
            "value": ("text", "Value from the start", ""),
            "required": _REQUIRED,
            "disabled": DISABLED_CONTROL,
            "readOnly": _READ_ONLY,
            "autocomplete": ("text", "Autocomplete", ""),
            "min": ("text", "Least value", ""),
            "max": ("text", "Greatest value", ""),
            **_LENGTHS,
            "pattern": ("text", "Pattern", ""),
        },
    ),
    "base.label": NodeType(
        name="Label",
        category="Forms",
        description="The caption of a form field.",
        props={
            "text": ("text", "Text", "Label"),
            "targetMode": ("select", "Belongs to", "auto", {"auto": "The next field", "explicit": "A named field"}),
            "targetId": ("text", "Id of that field", ""),
        },
    ),
    "base.option": NodeType(
        name="Option",
        category="Forms",
        description="One choice of a select.",
        props={
            "value": ("text", "Value", ""),
            "label": ("text", "Label", "Option"),
            "selected": ("toggle", "Chosen from the start", False),
            "disabled": DISABLED_CONTROL,
        },
    ),
    "base.option-group": NodeType(
        name="Option group",
        category="Forms",
        description="Choices of a select under a heading.",
        props={"label": ("text", "Heading", "Group"), "disabled": DISABLED_CONTROL},
        can_have_children=True,
    ),
    "base.radio": NodeType(name="Radio", category="Forms", description="One of several choices.", props=_CHOICE),
    "base.select": NodeType(
        name="Select",
        category="Forms",
        description="A form field whose options are its children.",
        props={**_NAMED, "required": _REQUIRED, "disabled": DISABLED_CONTROL, "multiple": ("toggle", "Several", False)},
        can_have_children=True,
    ),
    "base.submit": NodeType(
        name="Submit",
        category="Forms",
        description="The button that sends a form.",
        props={
            "label": ("text", "Label", "Submit"),
            "disabled": DISABLED_CONTROL,
            "formId": ("text", "Id of another form", ""),
        },
    ),
    "base.textarea": NodeType(
        name="Textarea",
        category="Forms",
        description="A form field of several lines.",
        props={
            **_NAMED,
            "placeholder": ("text", "Placeholder", ""),
            "value": ("textarea", "Value from the start", ""),
            "required": _REQUIRED,
            "disabled": DISABLED_CONTROL,
            "readOnly": _READ_ONLY,
            "rows": ("number", "Lines", 4),
            **_LENGTHS,
        },
    ),
}
