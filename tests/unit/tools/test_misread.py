"""What a model is told of JSON that cannot be read: where it is wrong and which JSON is expected, never any Python."""

from typing import Any

import pytest
from pydantic import ValidationError

from fermata.tools.hosted import Tables
from fermata.tools.misread import misread
from fermata.tools.site.scales import ScaleSettings
from fermata.tools.site.snapshot import Catalogue, Lenient

GROUP: dict[str, Any] = {
    "mode": "x",
    "min": {"size": float("inf")},
    "steps": 1,
    "baseScaleIndex": 1.5,
    "isDisabled": "maybe",
}


def told(part: type[Lenient], value: Any) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        part.read(value)
    return misread(refused.value)


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        (Catalogue, 5, ["the whole value: Expected object"]),
        (Catalogue, {}, ["page: Expected required property", "site: Expected required property"]),
        (Catalogue, {"page": {"id": 1}, "site": []}, ["page.id: Expected string", "site: Expected object"]),
        (Tables, {"tables": 5}, ["tables: Expected array"]),
        (Tables, {"tables": ["x"]}, ["tables[0]: Expected object"]),
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
def test_each_mistake_is_told_by_its_path_and_the_json_that_is_expected(
    part: type[Lenient], value: Any, says: list[str]
) -> None:
    assert told(part, value) == says
