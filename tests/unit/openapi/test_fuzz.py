"""Schemathesis against all functions: every response to every request is one that the document has.

A request that the document allows may still be refused for what it refers to: a credential that does not exist, an
event that has not happened. So schemathesis does not check "400 to a valid request". This test checks that parsing of
the body has not refused it. Responses without a valid token do not depend on the rest of a request: test_responses.py
requests each operation once without one.
"""

import functools
import json
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from fermata.wire.http.json_body import INVALID_BODY_PREFIX
from fermata.wire.operations import surface
from fermata.wire.operations.operation import BaseOperation
from tests import images
from tests.recordings import RECORDINGS
from tests.unit.openapi.schemathesis_schema import AnyCase, check_stream_lines, schema
from tests.unit.openapi.service import Service

pytestmark = pytest.mark.exhaustive

SETTINGS = settings(
    max_examples=3,  # of each operation, beside those that cover its schema (decision 0585)
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
IMAGES = {f"image/{kind}": images.make_image(kind=kind.upper()) for kind in ("jpeg", "png", "gif", "webp")}
OPERATIONS = {operation.name: operation for operation in surface.OPERATIONS}
FUZZED = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
INEXPRESSIBLE_ERRORS = ("may name each user once.", "goes with an approval only.", "either 'data' or an 'error'.")
"""Errors that JSON Schema cannot express."""


def get_operation(case: AnyCase) -> BaseOperation:
    return OPERATIONS[case.operation.definition.raw["operationId"]]


def is_wrong_on_purpose(case: AnyCase, *places: ParameterLocation) -> bool:
    return case.meta is not None and any(case.meta.is_negative_at(place) for place in places or ParameterLocation)


def with_real_ids(case: AnyCase, known: dict[str, Any]) -> AnyCase:
    """Put real ids where the case has any, unless it is wrong on purpose. Cases share parts, so none is changed."""
    places = {
        "path_parameters": ParameterLocation.PATH,
        "query": ParameterLocation.QUERY,
        "body": ParameterLocation.BODY,
    }
    for name, place in places.items():
        container = getattr(case, name)
        if isinstance(container, dict) and not is_wrong_on_purpose(case, place):
            setattr(case, name, {member: known.get(member, value) for member, value in container.items()})
    return case


def with_real_files(case: AnyCase) -> AnyCase:
    """Put a picture or a recording into every part of one, because a generated text is none, and no address outside."""
    body: Any = case.body
    if isinstance(body, dict) and not is_wrong_on_purpose(case, ParameterLocation.BODY):
        for part in body.get("content") or []:
            if part.get("kind") == "image":
                part.pop("uploadRef", None)
                part["data"] = images.to_base64(IMAGES[part["mimeType"]])
            elif part.get("kind") == "audio":
                part.pop("uploadRef", None)
                part["data"] = images.to_base64(RECORDINGS[part["mimeType"]])
            elif part.get("kind") == "file":
                part["url"] = "https://127.0.0.1/file"
    return case


def hash_case(case: AnyCase) -> int:
    """Hash the request: the same number for the same request in every process."""
    text = json.dumps([case.path_parameters, case.query, case.body], default=lambda part: type(part).__name__)
    return zlib.crc32(text.encode())


@pytest.mark.parametrize("fuzzed", FUZZED, ids=lambda fuzzed: fuzzed.label)
def test_every_response_is_documented(service: Service, fuzzed: APIOperation[Any, Any, Any, Any]) -> None:
    """`schema.parametrize()` would derive all cases of all operations whenever tests are collected (decision 0505)."""
    load_all_checks()
    test = build_operation_test(
        config=schema.config, operation=fuzzed, test_func=check_response, given_kwargs={}, feedback=derive_feedback()
    )
    test(service=service, unused_ids=[])


@functools.cache
def derive_feedback() -> FeedbackSources:
    return FeedbackSources(constants_value_source=make_constants_value_source(schema))


@SETTINGS
def check_response(case: AnyCase, service: Service, unused_ids: list[dict[str, str]]) -> None:
    """Send a request, with real ids in every second one. Ids that were only read, or refused, are used again."""
    operation = get_operation(case)
    case_hash = hash_case(case)
    ids = {} if case_hash % 2 == 0 else unused_ids.pop() if unused_ids else service.real_ids(operation)
    with_real_ids(case, ids)
    accepts = {"Accept": "application/json"} if case_hash % 3 == 0 else {}
    response = with_real_files(case).call_and_validate(
        headers=service.headers(operation) | accepts, excluded_checks=[positive_data_acceptance, ignored_auth]
    )
    check_stream_lines(response)
    if ids and (response.status_code >= 400 or operation.method == "GET"):
        unused_ids.append(ids)
    if response.status_code == 400 and operation.body is not None and not is_wrong_on_purpose(case):
        answer = response.json()["error"]
        error = answer["message"] if isinstance(answer, dict) else answer  # as OpenAI's clients read it
        assert not error.startswith(INVALID_BODY_PREFIX) or error.endswith(INEXPRESSIBLE_ERRORS), (
            "the document allows this body"
        )
