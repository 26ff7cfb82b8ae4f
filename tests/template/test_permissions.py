"""Least privilege: the permissions that each function has, and those that it must not have."""

from typing import get_args

import pytest

from fermata.aws.vault import SecretPurpose
from tests.template import iam
from tests.template.iam import Role
from tests.template.templates import FUNCTION_FOLDERS, Template, resources_of_type

WITHOUT_RESOURCES = {
    "xray": "X-Ray's write actions have no resource-level permissions",
    "logs": "the delivery of vended logs (Step Functions) has no resource-level permissions",
    "cloudwatch": "CodeDeploy looks at the alarms of a rollout in one request, as its managed policy lets it",
}
"""Services whose actions AWS does not scope to a resource, and why."""
VENDED_LOGS = {
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}


@pytest.fixture(scope="session")
def roles(deployed: Template) -> dict[str, Role]:
    return iam.read_roles(deployed)


@pytest.fixture(scope="session")
def function_roles(deployed: Template) -> dict[str, Role]:
    return iam.roles_by_function(deployed)


def functions_that_may(function_roles: dict[str, Role], action: str, resource: str, **context: str) -> set[str]:
    return {folder for folder, role in function_roles.items() if role.allows(action, resource, **context)}


def test_every_function_has_a_role_of_its_own(function_roles: dict[str, Role]) -> None:
    assert set(function_roles) == set(FUNCTION_FOLDERS)
    assert len({role.name for role in function_roles.values()}) == len(FUNCTION_FOLDERS)


def test_no_role_has_managed_policies(deployed: Template) -> None:
    for name, role in resources_of_type(deployed, "AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role, name


def test_no_permission_has_a_wildcard_action(roles: dict[str, Role]) -> None:
    for role in roles.values():
        assert [action for action in role.actions() if "*" in action] == [], role.name


def test_every_permission_names_its_resource_where_aws_supports_it(roles: dict[str, Role]) -> None:
    for role in roles.values():
        for statement in role.statements:
            if "*" in statement.resources:
                assert {action.partition(":")[0] for action in statement.actions} <= set(WITHOUT_RESOURCES), role.name
    vended = {action for role in roles.values() for action in _unscoped(role) if action.startswith("logs:")}
    assert vended == VENDED_LOGS


def _unscoped(role: Role) -> set[str]:
    return {action for statement in role.statements if "*" in statement.resources for action in statement.actions}


def test_only_blobs_executions_and_a_rollouts_functions_have_resource_wildcards_and_only_at_the_end(
    roles: dict[str, Role],
) -> None:
    resources = {
        resource for role in roles.values() for statement in role.statements for resource in statement.resources
    }
    open_ended = {resource for resource in resources if "*" in resource and resource != "*"}
    assert open_ended == {
        "Bucket/turns/*",
        "Bucket/conversations/*",
        "Bucket/agents/*",
        "Bucket/content/*",
        "Bucket/uploads/*",
        "Bucket/exports/*",
        "VectorBucket/index/*",
        "execution:turn:*",
        "function:*",
    }


def test_uploads_are_presigned_by_one_function_read_where_they_are_used_and_exported_by_one(
    function_roles: dict[str, Role],
) -> None:
    """A presigned URL allows what its signer may do, so the signer has the permission to write."""
    assert functions_that_may(function_roles, "s3:PutObject", "Bucket/uploads/bakery/u/ref") == {"api"}
    assert functions_that_may(function_roles, "s3:GetObject", "Bucket/uploads/bakery/u/ref") == {
        "stream_turns",
        "tool_result",
        "redraw_images",
        "credentials",  # projects that are imported, files of agents
        "purge",
    }


def test_vectors_are_stored_where_content_is_indexed_queried_where_it_is_searched_and_erased_by_one(
    function_roles: dict[str, Role],
) -> None:
    of_index = {
        action: functions_that_may(function_roles, f"s3vectors:{action}", "VectorBucket/index/any")
        for action in ("CreateIndex", "PutVectors", "DeleteVectors", "QueryVectors", "ListVectors", "DeleteIndex")
    }
    indexing, searching = {"credentials", "consume_content"}, {"credentials", "round"}
    assert of_index == {
        "CreateIndex": indexing,
        "PutVectors": indexing,
        "DeleteVectors": indexing | {"purge"},
        "QueryVectors": searching,
        "ListVectors": {"purge"},
        "DeleteIndex": {"purge"},
    }
    assert functions_that_may(function_roles, "s3vectors:DeleteVectorBucket", "VectorBucket") == set()


def test_every_function_writes_only_its_own_log(deployed: Template, function_roles: dict[str, Role]) -> None:
    functions = resources_of_type(deployed, "AWS::Lambda::Function")
    for function in functions.values():
        group = function["LoggingConfig"]["LogGroup"]["Ref"]
        assert functions_that_may(function_roles, "logs:PutLogEvents", group) == {iam.function_folder(function)}


def test_provider_keys_are_decrypted_only_where_providers_are_requested(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "kms:Decrypt", "Key", purpose="provider-key") == {
        "round",
        "credentials",
        "consume_content",
        "stream_turns",  # it transcribes recordings before a turn starts (decision 0500)
    }


def test_only_the_credentials_function_encrypts_and_only_provider_keys(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "kms:Encrypt", "Key", purpose="provider-key") == {"credentials"}
    assert functions_that_may(function_roles, "kms:Encrypt", "Key", purpose="caller-secret") == set()


def test_only_the_refresh_writes_prices_and_it_uses_no_other_table(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "dynamodb:PutItem", "PricingTable") == {"refresh_prices"}
    used = {resource for statement in function_roles["refresh_prices"].statements for resource in statement.resources}
    assert used == {"RefreshPricesLogs", "*", "PricingTable", "RefreshPricesDeadLetters"}


def test_the_round_function_cannot_change_a_credential(function_roles: dict[str, Role]) -> None:
    for action in ("PutItem", "UpdateItem", "DeleteItem"):
        assert not function_roles["round"].allows(f"dynamodb:{action}", "SettingsTable")


def test_only_functions_behind_the_api_decrypt_caller_secrets(function_roles: dict[str, Role]) -> None:
    at_the_edge = {"stream_turns", "tool_result", "api", "credentials", "redraw_images"}
    assert functions_that_may(function_roles, "kms:Decrypt", "Key", purpose="caller-secret") == at_the_edge


def test_only_the_round_function_decrypts_host_secrets_and_none_encrypts_them(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "kms:Decrypt", "Key", purpose="host-secret") == {"round"}
    assert functions_that_may(function_roles, "kms:Encrypt", "Key", purpose="host-secret") == set()


def test_users_headers_are_sealed_where_turns_start_and_opened_where_tools_are_called(
    function_roles: dict[str, Role],
) -> None:
    assert functions_that_may(function_roles, "kms:Encrypt", "Key", purpose="caller-authorization") == {"stream_turns"}
    assert functions_that_may(function_roles, "kms:Decrypt", "Key", purpose="caller-authorization") == {"round"}


def test_the_key_cannot_be_used_without_a_purpose(function_roles: dict[str, Role], deployed: Template) -> None:
    for action in ("kms:Encrypt", "kms:Decrypt"):
        assert functions_that_may(function_roles, action, "Key") == set()
        account = Role(
            "the account", iam.allow_statements(resources_of_type(deployed, "AWS::KMS::Key")["Key"]["KeyPolicy"])
        )
        for purpose in get_args(SecretPurpose):
            assert account.allows(action, "Key", purpose=purpose)
        assert not account.allows(action, "Key")


def test_the_tool_result_function_has_only_the_permissions_that_it_needs(function_roles: dict[str, Role]) -> None:
    role = function_roles["tool_result"]
    assert role.actions("states:") == {"states:SendTaskSuccess", "states:SendTaskHeartbeat"}
    assert role.actions("kms:") == {"kms:Decrypt"}
    assert role.actions("s3:") == {"s3:GetObject", "s3:PutObject"}
    assert not any(
        role.allows(f"dynamodb:{write}", "SettingsTable") for write in ("PutItem", "UpdateItem", "DeleteItem")
    )
    assert not any(role.allows(f"dynamodb:{use}", "UsageTable") for use in ("GetItem", "PutItem", "UpdateItem"))


def test_the_hold_function_uses_only_the_turn(function_roles: dict[str, Role]) -> None:
    used = {resource for statement in function_roles["store_hold_token"].statements for resource in statement.resources}
    assert used == {"HoldLogs", "*", "BridgesTable", "Bucket/turns/*", "stateMachine:turn"}


def test_the_ledger_can_only_be_added_to_except_by_erasures(function_roles: dict[str, Role]) -> None:
    for action in ("dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"):
        assert functions_that_may(function_roles, action, "UsageTable") == {"purge"}


def test_only_settings_and_purged_conversations_are_deleted(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "dynamodb:DeleteItem", "SettingsTable") == {"credentials", "purge"}
    assert functions_that_may(function_roles, "dynamodb:DeleteItem", "BridgesTable") == {
        "purge",  # empty counts
        "deliver_webhooks",  # marks of entries that were handed out
    }
    assert functions_that_may(function_roles, "dynamodb:DeleteItem", "PricingTable") == set()
    assert functions_that_may(function_roles, "dynamodb:DeleteItem", "ConversationsTable") == {
        "api", "round", "stream_turns",  # versions of drafts that an edit makes unneeded
        "tool_result", "deliver_webhooks",  # the same, of a plan that somebody approves
    }  # fmt: skip
    assert functions_that_may(function_roles, "dynamodb:BatchWriteItem", "ConversationsTable") == {"purge"}
    for key in ("conversations/bakery/c1/abc", "turns/bakery/t1/abc", "exports/bakery/j1/part", "uploads/bakery/u1/a"):
        assert functions_that_may(function_roles, "s3:DeleteObjectVersion", f"Bucket/{key}") == {"purge"}
    assert functions_that_may(function_roles, "s3:DeleteObject", "Bucket/conversations/bakery/c1/abc") == {"purge"}
    unused = "Bucket/content/bakery/shop/main/media/upload/file"
    assert functions_that_may(function_roles, "s3:DeleteObject", unused) == {"purge"}
    assert functions_that_may(function_roles, "s3:DeleteObject", "Bucket/turns/bakery/t1/abc") == set()


def test_only_the_purge_scans_tables_and_lists_the_bucket(
    function_roles: dict[str, Role],
) -> None:
    assert {name for name, role in function_roles.items() if "dynamodb:Scan" in role.actions()} == {"purge"}
    assert functions_that_may(function_roles, "s3:ListBucket", "Bucket", prefix="conversations/bakery/c1/") == {"purge"}
    assert functions_that_may(function_roles, "s3:ListBucket", "Bucket", prefix="turns/bakery/") == {"purge"}
    assert functions_that_may(function_roles, "s3:ListBucket", "Bucket") == set()


def test_the_purge_opens_no_secret_and_starts_no_workflow(function_roles: dict[str, Role]) -> None:
    """It exports and erases everything, so it may read it, but it opens no key."""
    assert not function_roles["purge"].actions("kms:")
    assert function_roles["purge"].actions("states:") == {"states:SendTaskSuccess"}


def test_each_index_is_queried_by_the_functions_that_need_it(function_roles: dict[str, Role]) -> None:
    assert functions_that_may(function_roles, "dynamodb:Query", "ConversationsTable/index/byUser") == {"api", "purge"}
    assert functions_that_may(function_roles, "dynamodb:Query", "BridgesTable/index/open") == {"recover", "tool_result"}
    assert functions_that_may(function_roles, "dynamodb:Query", "UsageTable/index/byTime") == {"api", "purge"}
    assert functions_that_may(function_roles, "dynamodb:Query", "ContentTable/index/byDue") == {"purge"}


def test_the_rollup_function_uses_only_the_usage_table(function_roles: dict[str, Role]) -> None:
    used = {resource for statement in function_roles["rollup"].statements for resource in statement.resources}
    assert used == {"RollupLogs", "*", "UsageTable", "UsageTable/stream", "RollupDeadLetters"}


def test_only_the_stream_recover_and_round_functions_start_executions_and_none_stops_one(
    function_roles: dict[str, Role],
) -> None:
    assert functions_that_may(function_roles, "states:StartExecution", "stateMachine:turn") == {
        "stream_turns",
        "recover",
        "round",  # turns of sub-agents
    }
    assert functions_that_may(function_roles, "states:StopExecution", "execution:turn:a-1") == set()


def test_the_workflow_invokes_exactly_its_three_functions(roles: dict[str, Role]) -> None:
    invoked = {
        resource
        for statement in roles["TurnMachineRole"].statements
        if "lambda:InvokeFunction" in statement.actions
        for resource in statement.resources
    }
    functions = {"RoundFunction", "HoldFunction", "RecoverFunction"}
    assert invoked == functions | {f"{name}:live" for name in functions}


def test_a_rollout_moves_aliases_of_the_stacks_functions_and_nothing_else(roles: dict[str, Role]) -> None:
    role = roles["RolloutRole"]
    assert role.actions("lambda:") == {
        "lambda:GetAlias",
        "lambda:UpdateAlias",
        "lambda:GetProvisionedConcurrencyConfig",
    }
    assert role.actions() - role.actions("lambda:") == {"cloudwatch:DescribeAlarms"}
    assert not role.allows("lambda:UpdateAlias", "function-of-another-stack")


def test_the_policy_evaluator_denies_by_default() -> None:
    role = Role("r", (iam.Statement(("s3:GetObject",), ("Bucket/turns/*",), {}),))
    assert role.allows("s3:GetObject", "Bucket/turns/t/1")
    assert not role.allows("s3:PutObject", "Bucket/turns/t/1")
    assert not role.allows("s3:GetObject", "Bucket/conversations/t/1")
