"""Least privilege: what each door may do, and above all what it may not."""

import pytest

from tests.template import iam
from tests.template.iam import Role
from tests.template.templates import Template, resources_of_type

DOORS = ("stream", "tool_result", "api", "credentials", "round", "hold", "recover", "rollup", "refresh_prices", "purge")
WITHOUT_RESOURCES = {
    "xray": "X-Ray's write actions know no resources",
    "logs": "the delivery of vended logs (Step Functions) knows no resources",
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
def doors(deployed: Template) -> dict[str, Role]:
    return iam.roles_by_function(deployed)


def who_may(doors: dict[str, Role], action: str, resource: str, **context: str) -> set[str]:
    return {door for door, role in doors.items() if role.allows(action, resource, **context)}


def test_every_door_has_a_role_of_its_own(doors: dict[str, Role]) -> None:
    assert set(doors) == set(DOORS)
    assert len({role.name for role in doors.values()}) == len(DOORS)


def test_no_role_borrows_what_somebody_else_wrote(deployed: Template) -> None:
    for name, role in resources_of_type(deployed, "AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role, name


def test_no_permission_is_given_for_whatever_a_service_can_do(roles: dict[str, Role]) -> None:
    for role in roles.values():
        assert [action for action in role.actions() if "*" in action] == [], role.name


def test_every_permission_names_its_resource_where_aws_knows_one(roles: dict[str, Role]) -> None:
    for role in roles.values():
        for statement in role.statements:
            if "*" in statement.resources:
                assert {action.partition(":")[0] for action in statement.actions} <= set(WITHOUT_RESOURCES), role.name
    vended = {action for role in roles.values() for action in _unscoped(role) if action.startswith("logs:")}
    assert vended == VENDED_LOGS


def _unscoped(role: Role) -> set[str]:
    return {action for statement in role.statements if "*" in statement.resources for action in statement.actions}


def test_a_resource_is_left_open_only_at_its_end_and_only_for_blobs_and_executions(roles: dict[str, Role]) -> None:
    resources = {one for role in roles.values() for statement in role.statements for one in statement.resources}
    open_ended = {one for one in resources if "*" in one and one != "*"}
    assert open_ended == {"Bucket/turns/*", "Bucket/conversations/*", "Bucket/uploads/*", "execution:turn:*"}


def test_uploads_are_let_in_by_one_door_read_by_two_and_written_by_none(doors: dict[str, Role]) -> None:
    """Whoever signs an address may do what it lets others do; no door puts anything there itself."""
    assert who_may(doors, "s3:PutObject", "Bucket/uploads/bakery/u/ref") == {"api"}
    assert who_may(doors, "s3:GetObject", "Bucket/uploads/bakery/u/ref") == {"stream", "tool_result"}


def test_every_door_writes_its_own_log_and_no_other(deployed: Template, doors: dict[str, Role]) -> None:
    functions = resources_of_type(deployed, "AWS::Lambda::Function")
    for function in functions.values():
        group = function["LoggingConfig"]["LogGroup"]["Ref"]
        assert who_may(doors, "logs:PutLogEvents", group) == {iam.function_folder(function)}


def test_provider_keys_are_opened_only_where_providers_are_asked(doors: dict[str, Role]) -> None:
    assert who_may(doors, "kms:Decrypt", "Key", purpose="provider-key") == {"round", "credentials"}


def test_only_the_credentials_door_seals_and_only_provider_keys(doors: dict[str, Role]) -> None:
    assert who_may(doors, "kms:Encrypt", "Key", purpose="provider-key") == {"credentials"}
    assert who_may(doors, "kms:Encrypt", "Key", purpose="caller-secret") == set()


def test_prices_are_written_by_the_refresh_alone_which_touches_nothing_else(doors: dict[str, Role]) -> None:
    assert who_may(doors, "dynamodb:PutItem", "PricingTable") == {"refresh_prices"}
    used = {one for statement in doors["refresh_prices"].statements for one in statement.resources}
    assert used == {"RefreshPricesLogs", "*", "PricingTable", "RefreshPricesDeadLetters"}


def test_whoever_runs_a_round_cannot_change_a_credential(doors: dict[str, Role]) -> None:
    for action in ("PutItem", "UpdateItem", "DeleteItem"):
        assert not doors["round"].allows(f"dynamodb:{action}", "SettingsTable")


def test_the_doors_that_meet_callers_open_caller_secrets(doors: dict[str, Role]) -> None:
    at_the_edge = {"stream", "tool_result", "api", "credentials"}
    assert who_may(doors, "kms:Decrypt", "Key", purpose="caller-secret") == at_the_edge


def test_only_a_round_opens_host_secrets_and_no_door_seals_them(doors: dict[str, Role]) -> None:
    assert who_may(doors, "kms:Decrypt", "Key", purpose="host-secret") == {"round"}
    assert who_may(doors, "kms:Encrypt", "Key", purpose="host-secret") == set()


def test_without_a_purpose_nobody_uses_the_key(doors: dict[str, Role], deployed: Template) -> None:
    for action in ("kms:Encrypt", "kms:Decrypt"):
        assert who_may(doors, action, "Key") == set()
        account = Role(
            "the account", iam.allow_statements(resources_of_type(deployed, "AWS::KMS::Key")["Key"]["KeyPolicy"])
        )
        for purpose in ("provider-key", "caller-secret", "host-secret"):
            assert account.allows(action, "Key", purpose=purpose)
        assert not account.allows(action, "Key")


def test_the_door_for_answers_can_do_what_an_answer_needs_and_nothing_else(doors: dict[str, Role]) -> None:
    role = doors["tool_result"]
    assert role.actions("states:") == {"states:SendTaskSuccess", "states:SendTaskHeartbeat"}
    assert role.actions("kms:") == {"kms:Decrypt"}
    assert role.actions("s3:") == {"s3:GetObject", "s3:PutObject"}
    assert not any(
        role.allows(f"dynamodb:{write}", "SettingsTable") for write in ("PutItem", "UpdateItem", "DeleteItem")
    )
    assert not any(role.allows(f"dynamodb:{use}", "UsageTable") for use in ("GetItem", "PutItem", "UpdateItem"))


def test_a_long_wait_is_kept_without_a_look_at_anything_but_the_turn(doors: dict[str, Role]) -> None:
    used = {one for statement in doors["hold"].statements for one in statement.resources}
    assert used == {"HoldLogs", "*", "BridgesTable", "Bucket/turns/*", "stateMachine:turn"}


def test_the_ledger_can_only_be_added_to(doors: dict[str, Role]) -> None:
    for action in ("dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"):
        assert who_may(doors, action, "UsageTable") == set()


def test_nobody_deletes_anything_but_settings_and_what_is_purged(doors: dict[str, Role]) -> None:
    assert who_may(doors, "dynamodb:DeleteItem", "SettingsTable") == {"api", "credentials"}
    for table in ("ConversationsTable", "BridgesTable", "PricingTable", "UsageTable"):
        assert who_may(doors, "dynamodb:DeleteItem", table) == set()
    assert who_may(doors, "dynamodb:BatchWriteItem", "ConversationsTable") == {"purge"}
    assert who_may(doors, "s3:DeleteObject", "Bucket/conversations/bakery/c1/abc") == {"purge"}
    assert who_may(doors, "s3:DeleteObject", "Bucket/turns/bakery/t1/abc") == set()


def test_nobody_scans_a_table_and_only_the_purge_lists_the_bucket_where_conversations_lie(
    doors: dict[str, Role],
) -> None:
    for role in doors.values():
        assert "dynamodb:Scan" not in role.actions()
    assert who_may(doors, "s3:ListBucket", "Bucket", prefix="conversations/bakery/c1/") == {"purge"}
    assert who_may(doors, "s3:ListBucket", "Bucket", prefix="turns/") == set()
    assert who_may(doors, "s3:ListBucket", "Bucket") == set()


def test_the_purge_reads_no_message_no_secret_and_no_turn(doors: dict[str, Role]) -> None:
    used = {one for statement in doors["purge"].statements for one in statement.resources}
    table = {"ConversationsTable", "ConversationsTable/index/byUser"}
    assert used == {"PurgeLogs", "*", "PurgeDeadLetters", "Bucket", "Bucket/conversations/*"} | table
    assert not doors["purge"].allows("s3:GetObject", "Bucket/conversations/bakery/c1/abc")


def test_each_index_is_asked_by_the_doors_that_need_it(doors: dict[str, Role]) -> None:
    assert who_may(doors, "dynamodb:Query", "ConversationsTable/index/byUser") == {"api", "purge"}
    assert who_may(doors, "dynamodb:Query", "BridgesTable/index/open") == {"recover"}
    assert who_may(doors, "dynamodb:Query", "UsageTable/index/byTime") == {"api"}


def test_whoever_counts_the_ledger_touches_nothing_else(doors: dict[str, Role]) -> None:
    used = {one for statement in doors["rollup"].statements for one in statement.resources}
    assert used == {"RollupLogs", "*", "UsageTable", "UsageTable/stream", "RollupDeadLetters"}


def test_only_a_prompt_and_the_recovery_start_executions_and_nobody_stops_one(doors: dict[str, Role]) -> None:
    assert who_may(doors, "states:StartExecution", "stateMachine:turn") == {"stream", "recover"}
    assert who_may(doors, "states:StopExecution", "execution:turn:a-1") == set()


def test_the_workflow_invokes_exactly_its_three_functions(roles: dict[str, Role]) -> None:
    invoked = {
        one
        for statement in roles["TurnMachineRole"].statements
        if "lambda:InvokeFunction" in statement.actions
        for one in statement.resources
    }
    assert invoked == {"RoundFunction", "HoldFunction", "RecoverFunction"}


def test_the_evaluator_itself_denies_what_no_statement_allows() -> None:
    role = Role("r", (iam.Statement(("s3:GetObject",), ("Bucket/turns/*",), {}),))
    assert role.allows("s3:GetObject", "Bucket/turns/t/1")
    assert not role.allows("s3:PutObject", "Bucket/turns/t/1")
    assert not role.allows("s3:GetObject", "Bucket/conversations/t/1")
