"""A new route needs its record and a handler: dispatch, document and template follow from the record."""

import json
from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import Field

from fermata.aws.resources import Resources
from fermata.domain.errors import NotFound
from fermata.wire.bodies.fields import StrictBody
from fermata.wire.bodies.responses.common import ResponseModel
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.openapi.document import build_openapi_document
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse
from fermata.wire.operations.surface import OPERATIONS
from local.generate_template_routes import TEMPLATE_PATH, update_routes
from tests.tenant_tokens import make_tenant


class NewToyRoll(StrictBody):
    """How many dice to roll."""

    dice_count: Annotated[int, Field(ge=1, le=6)]


class ToyRollResponse(ResponseModel):
    """The faces of the dice."""

    faces: list[int]


ROLL_DICE = Operation(
    name="rollToyDice",
    function="api",
    method="POST",
    path="/admin/api/ai/toy-dice/{table}",
    capabilities=("ai.chat",),
    summary="Roll the dice",
    parameters=(
        RequestParameter("table", "The table to roll on.", {"type": "string"}, required=True, location="path"),
    ),
    body=NewToyRoll,
    responses=(SuccessResponse("The roll.", ToyRollResponse),),
    errors={404: "There is no such table."},
)
router = Router("api")


@router.handles(ROLL_DICE)
def roll_dice(context: RequestContext) -> Response:
    body = context.parse_body(NewToyRoll)
    if context.path_parameters["table"] != "green":
        raise NotFound("There is no such table.")
    return Response(200, {"faces": [6] * body.dice_count})


@pytest.mark.parametrize(
    ("body", "status", "response"),
    [
        ({"diceCount": 2}, 200, {"faces": [6, 6]}),
        ({"diceCount": 7}, 400, {"error": "Invalid request body. 'diceCount' may be 6 at most."}),
    ],
)
def test_a_request_to_a_new_route_is_dispatched(
    resources: Resources, body: dict[str, int], status: int, response: dict[str, object]
) -> None:
    headers = make_tenant(resources).bearer_headers()
    request = HttpRequest("r", "POST", "/admin/api/ai/toy-dice/green", headers, body=json.dumps(body).encode())
    answer = handle_request(resources, router.routes, request)
    assert (answer.status, answer.body) == (status, response)
    without_capability = make_tenant(resources, "florist").bearer_headers(capabilities=())
    refusal = handle_request(resources, router.routes, HttpRequest("r", "POST", request.path, without_capability))
    assert refusal.status == 403


def test_the_document_describes_a_new_route() -> None:
    document = build_openapi_document((*OPERATIONS, ROLL_DICE))
    operation = document["paths"]["/admin/api/ai/toy-dice/{table}"]["post"]
    assert operation["operationId"] == "rollToyDice"
    assert [parameter["name"] for parameter in operation["parameters"]] == ["table"]
    assert operation["responses"]["404"]["description"] == "There is no such table."
    assert {"200", "400", "401", "403", "404", "413"} <= set(operation["responses"])
    schemas = document["components"]["schemas"]
    assert schemas["NewToyRoll"]["properties"]["diceCount"] == {"maximum": 6, "minimum": 1, "type": "integer"}
    assert schemas["ToyRollResponse"]["required"] == ["faces"]


def test_the_template_routes_a_new_path_to_its_function() -> None:
    template = TEMPLATE_PATH.read_text()
    with_toy = update_routes(template, (*OPERATIONS, ROLL_DICE))
    added = [line.strip() for line in with_toy.splitlines() if line not in template.splitlines()]
    assert added == [
        "RollToyDice:",
        'Properties: {RestApiId: !Ref Api, Path: "/admin/api/ai/toy-dice/{table}", Method: ANY}',
    ]


def test_a_function_handles_only_its_own_operations_and_each_of_them_once() -> None:
    with pytest.raises(ValueError, match="rollToyDice is served by the function api, not stream"):
        Router("stream_turns").handles(ROLL_DICE)(roll_dice)
    with pytest.raises(ValueError, match="rollToyDice has a handler already"):
        router.handles(ROLL_DICE)(roll_dice)


def test_a_path_parameter_without_a_description_is_documented_too() -> None:
    operation = replace(ROLL_DICE, name="rollUndescribed", path="/admin/api/ai/toy-dice/{shape}", parameters=())
    (parameter,) = build_openapi_document((*OPERATIONS, operation))["paths"][operation.path]["post"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("shape", "path", True)
