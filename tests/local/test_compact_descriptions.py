"""botocore's descriptions of AWS services without their documentation, in the process that functions share (0609)."""

import boto3
import pytest

from local.emulator.runtime.compact_descriptions import CompactFileLoader, read_compactly
from local.processes import FUNCTION_SERVICES


def empty_documentation(value: object) -> object:
    if isinstance(value, dict):
        members = {name: empty_documentation(member) for name, member in value.items()}
        return members | {"documentation": ""} if isinstance(members.get("documentation"), str) else members
    return [empty_documentation(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("service", ["kms", "stepfunctions"])
def test_a_description_lacks_nothing_but_its_documentation(service: str) -> None:
    usual, compact = boto3.Session(), boto3.Session()
    read_compactly(compact)
    described = [each._session.get_service_model(service)._service_description for each in (usual, compact)]
    assert described[1] == empty_documentation(described[0])
    assert described[1]["documentation"] == ""
    assert described[0]["documentation"]


def test_all_services_that_functions_call_work_with_it() -> None:
    session = boto3.Session(aws_access_key_id="-", aws_secret_access_key="-", region_name="eu-west-1")
    read_compactly(session)
    models = [session.client(service).meta.service_model for service in FUNCTION_SERVICES.split()]
    assert {parameter.documentation for model in models for parameter in model.client_context_parameters} == {""}
    url = session.client("s3").generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    assert "/b/k?" in url, "endpoints are found with the parameters of the description"


def test_a_file_that_is_not_there_is_none() -> None:
    assert CompactFileLoader().load_file("/nowhere/service-2") is None
