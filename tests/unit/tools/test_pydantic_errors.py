"""Validation errors are described by the path and the expected JSON, without any Python."""

from typing import Any

import pytest
from pydantic import ValidationError

from fermata.tools.host_queries import HostTables
from fermata.tools.lenient_models import LenientModel
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.site.design_tokens.scales import ScaleSettings
from fermata.tools.site.snapshot import DocumentsPart

GROUP: dict[str, Any] = {
    "mode": "x",
    "min": {"size": float("inf")},
    "steps": 1,
    "baseScaleIndex": 1.5,
    "isDisabled": "maybe",
}


def describe_errors(model: type[LenientModel], value: Any) -> list[str]:
    with pytest.raises(ValidationError) as error_info:
        model.from_wire(value)
    return describe_pydantic_errors(error_info.value)


@pytest.mark.parametrize(
    ("model", "value", "errors"),
    [
        (DocumentsPart, 5, ["the whole value: Expected object"]),
        (DocumentsPart, {}, ["page: Expected required property", "site: Expected required property"]),
        (DocumentsPart, {"page": {"id": 1}, "site": []}, ["page.id: Expected string", "site: Expected object"]),
        (HostTables, {"tables": 5}, ["tables: Expected array"]),
        (HostTables, {"tables": ["x"]}, ["tables[0]: Expected object"]),
        (
            ScaleSettings,
            {"groups": [GROUP]},
            [
                'groups[0].mode: Expected "fluid" or "fluid_manual"',
                "groups[0].min.size: Expected number",
                "groups[0].steps: Expected string",
                "groups[0].baseScaleIndex: Expected integer",
                "groups[0].isDisabled: Expected boolean",
            ],
        ),
    ],
)
def test_each_error_is_described_by_its_path_and_the_expected_json(
    model: type[LenientModel], value: Any, errors: list[str]
) -> None:
    assert describe_errors(model, value) == errors
