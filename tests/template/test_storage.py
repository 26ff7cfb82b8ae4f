"""Storage: tables, bucket and key are encrypted, recoverable, retained with the stack, and expire in time."""

import json
from typing import Any

import pytest

from fermata.aws import uploads
from fermata.aws.blob_store import conversation_folder, turn_folder
from fermata.aws.settings import Settings
from tests.template import templates
from tests.template.templates import Template, resources_of_type

TABLES = {"ConversationsTable", "BridgesTable", "PricingTable", "UsageTable", "SettingsTable", "ContentTable"}
EXPIRING = {"ConversationsTable", "BridgesTable", "UsageTable", "ContentTable"}
INDEXES = {
    "ConversationsTable": {"byUser": ("gpk", "gsk")},
    "BridgesTable": {"open": ("open", "openSince")},
    "UsageTable": {"byTime": ("gpk", "gsk")},
    "ContentTable": {"byDue": ("gpk", "gsk")},
}


@pytest.fixture(scope="session")
def tables(deployed: Template) -> dict[str, Template]:
    return resources_of_type(deployed, "AWS::DynamoDB::Table")


@pytest.fixture(scope="session")
def bucket(deployed: Template) -> Template:
    return resources_of_type(deployed, "AWS::S3::Bucket")["Bucket"]


def keys(schema: list[dict[str, str]]) -> tuple[str, ...]:
    return tuple(key["AttributeName"] for key in schema)


def test_the_template_has_these_tables(tables: dict[str, Template]) -> None:
    assert set(tables) == TABLES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_encrypted_recoverable_and_paid_by_use(tables: dict[str, Template], name: str) -> None:
    table = tables[name]
    assert table["SSESpecification"]["SSEEnabled"] is True
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert keys(table["KeySchema"]) == ("pk", "sk")


@pytest.mark.parametrize("name", sorted(TABLES | {"Bucket", "VectorBucket", "Key"}))
def test_tables_bucket_and_key_outlive_the_stack(deployed: Template, name: str) -> None:
    """RetainExceptOnCreate is Retain, except that a failed first deployment leaves nothing behind."""
    assert deployed["Resources"][name]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert deployed["Resources"][name]["UpdateReplacePolicy"] == "Retain"


def test_rows_with_a_ttl_expire(tables: dict[str, Template]) -> None:
    expiring = {name: table["TimeToLiveSpecification"] for name, table in tables.items() if EXPIRING & {name}}
    assert expiring == {name: {"AttributeName": "ttl", "Enabled": True} for name in EXPIRING}


def test_settings_and_prices_never_expire(tables: dict[str, Template]) -> None:
    assert not any("TimeToLiveSpecification" in tables[name] for name in TABLES - EXPIRING)


def test_the_ledger_and_content_stream_their_new_rows(tables: dict[str, Template]) -> None:
    streams = {name: table["StreamSpecification"] for name, table in tables.items() if "StreamSpecification" in table}
    assert streams == {name: {"StreamViewType": "NEW_IMAGE"} for name in ("UsageTable", "ContentTable")}


def test_conversations_are_found_by_user_and_open_turns_by_age(tables: dict[str, Template]) -> None:
    found = {
        name: {index["IndexName"]: keys(index["KeySchema"]) for index in table["GlobalSecondaryIndexes"]}
        for name, table in tables.items()
        if "GlobalSecondaryIndexes" in table
    }
    assert found == INDEXES


def test_the_bucket_is_private(bucket: Template) -> None:
    assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def test_blobs_are_encrypted_at_rest_and_in_transit(deployed: Template, bucket: Template) -> None:
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    for policy in resources_of_type(deployed, "AWS::S3::BucketPolicy").values():
        statement = policy["PolicyDocument"]["Statement"][0]
        assert statement["Effect"] == "Deny"
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_vectors_are_encrypted_at_rest(deployed: Template) -> None:
    (vectors,) = resources_of_type(deployed, "AWS::S3Vectors::VectorBucket").values()
    assert vectors["EncryptionConfiguration"] == {"SseType": "AES256"}


def test_a_stack_without_a_vector_bucket_grants_nothing_on_it(transformed: Template) -> None:
    without = templates.resolve_conditions(transformed, templates.OWN_TABLES | {"HasVectorBucket": False})
    del without["Resources"]["VectorBucket"]
    assert "s3vectors:" not in json.dumps(without)
    assert transformed["Resources"]["VectorBucket"]["Condition"] == "HasVectorBucket"
    variables = resources_of_type(without, "AWS::Lambda::Function")["RoundFunction"]["Environment"]["Variables"]
    assert variables["VECTOR_BUCKET_ARN"] == ""


def test_a_turns_blobs_expire_with_the_turn_and_a_conversations_do_not(bucket: Template) -> None:
    required = {name.upper() for name, field in Settings.model_fields.items() if field.is_required()}
    lifetime = Settings.from_environment(dict.fromkeys(required, "any")).turn_lifetime_seconds
    rule = expiring(bucket, "turns/")
    assert rule["ExpirationInDays"] * 86400 == lifetime
    assert turn_folder("t", "turn").startswith(rule["Prefix"])
    assert not conversation_folder("t", "conversation").startswith(rule["Prefix"])


def expiring(bucket: Template, prefix: str) -> dict[str, Any]:
    """Return the only rule that expires objects under this prefix."""
    rules = [rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule]
    assert {rule["Prefix"] for rule in rules} == {"turns/", "uploads/", "exports/"}
    (rule,) = [rule for rule in rules if rule["Prefix"] == prefix and rule["Status"] == "Enabled"]
    return dict(rule)


def test_an_upload_is_kept_as_long_as_its_reference_is_valid(bucket: Template) -> None:
    """S3 counts days from the next midnight, so an upload never expires earlier."""
    assert expiring(bucket, "uploads/")["ExpirationInDays"] * 86400 == uploads.UPLOAD_TTL_SECONDS


def test_a_browser_may_only_put_what_was_presigned(bucket: Template) -> None:
    (rule,) = bucket["CorsConfiguration"]["CorsRules"]
    assert rule["AllowedMethods"] == ["PUT"]
    assert set(rule["AllowedHeaders"]) == set(uploads.Upload("snapshot", 1, "a" * 64, 1).client_headers)
    assert rule["AllowedOrigins"] == {"Ref": "UploadOrigins"}


def test_unfinished_uploads_are_aborted(bucket: Template) -> None:
    rules: list[dict[str, Any]] = bucket["LifecycleConfiguration"]["Rules"]
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules)


def test_dynamodb_refuses_to_delete_a_table_unless_a_parameter_allows_it(
    source: Template, tables: dict[str, Template]
) -> None:
    assert source["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert source["Conditions"]["ProtectsTables"] == {"Fn::Equals": [{"Ref": "DeletionProtection"}, "true"]}
    protected = {"Fn::If": ["ProtectsTables", True, False]}
    assert {name for name, table in tables.items() if table["DeletionProtectionEnabled"] == protected} == TABLES


def test_a_former_version_of_an_object_is_kept_for_days_and_not_for_ever(bucket: Template) -> None:
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = bucket["LifecycleConfiguration"]["Rules"]
    former = {
        rule["Prefix"]: rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in rules
        if "NoncurrentVersionExpiration" in rule and rule["Status"] == "Enabled"
    }
    recovery = {"Ref": "BlobRecoveryDays"}
    assert former == {
        "turns/": recovery, "conversations/": recovery, "agents/": recovery, "content/": recovery, "uploads/": 1,
        "exports/": 1,
    }  # fmt: skip
    assert any(rule.get("ExpiredObjectDeleteMarker") for rule in rules)


def test_access_logs_are_off_unless_a_parameter_says_for_how_many_days_they_are_kept(
    source: Template, deployed: Template
) -> None:
    assert source["Parameters"]["AccessLogDays"]["Default"] == 0
    assert source["Conditions"]["KeepsAccessLogs"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "AccessLogDays"}, 0]}]}
    for name in ("ApiAccessLogs", "AccessLogBucket", "AccessLogBucketPolicy"):
        assert deployed["Resources"][name]["Condition"] == "KeepsAccessLogs"
    kept = templates.resolve_conditions(deployed["Resources"], {"KeepsAccessLogs": False})
    assert "LoggingConfiguration" not in {
        name for name, value in kept["Bucket"]["Properties"].items() if value != {"Ref": "AWS::NoValue"}
    }


def test_the_log_of_the_api_names_routes_and_nothing_that_a_caller_wrote(deployed: Template) -> None:
    (stage,) = resources_of_type(deployed, "AWS::ApiGateway::Stage").values()
    condition, setting, _ = stage["AccessLogSetting"]["Fn::If"]
    assert condition == "KeepsAccessLogs"
    line = json.loads(setting["Format"])
    assert line["requestId"] == "$context.requestId", "API Gateway wants it"
    assert set(line.values()) == {
        "$context.requestId",
        "$context.requestTimeEpoch",
        "$context.identity.sourceIp",
        "$context.httpMethod",
        "$context.resourcePath",
        "$context.status",
        "$context.responseLength",
        "$context.responseLatency",
        "$context.integrationStatus",
        "$context.error.responseType",
    }


def test_only_s3_of_this_account_writes_the_log_of_the_bucket(deployed: Template, bucket: Template) -> None:
    condition, logging, _ = bucket["LoggingConfiguration"]["Fn::If"]
    assert (condition, logging["DestinationBucketName"]) == ("KeepsAccessLogs", {"Ref": "AccessLogBucket"})
    policy = resources_of_type(deployed, "AWS::S3::BucketPolicy")["AccessLogBucketPolicy"]
    (allowed,) = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert str(allowed["Resource"]["Fn::Sub"]).endswith(f"/{logging['LogFilePrefix']}*")
    (rule,) = resources_of_type(deployed, "AWS::S3::Bucket")["AccessLogBucket"]["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == {"Ref": "AccessLogDays"}


def test_the_key_is_rotated_every_year(deployed: Template) -> None:
    assert resources_of_type(deployed, "AWS::KMS::Key")["Key"]["EnableKeyRotation"] is True
