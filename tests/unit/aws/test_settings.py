"""Read settings from environment variables and name the missing or invalid ones."""

import pytest

from fermata.aws.resources import Resources
from fermata.aws.settings import TURN_RETENTION_SECONDS, Settings, SettingsError
from fermata.domain.use_limits import DEFAULT_USER_LIMITS
from tests.resources import environment_from_resources


def test_every_setting_can_be_read_from_the_environment(resources: Resources) -> None:
    assert Settings.from_environment(environment_from_resources(resources)) == resources.settings


def test_numbers_come_as_text(resources: Resources) -> None:
    environment = environment_from_resources(resources) | {
        "HEARTBEAT_SECONDS": "3",
        "BROWSER_WAIT_SECONDS": "0.5",
        "UNANSWERED_CALLS": "tell_model",
    }
    settings = Settings.from_environment(environment)
    assert (settings.heartbeat_seconds, settings.browser_wait_seconds) == (3, 0.5)
    assert settings.unanswered_calls == "tell_model"


def test_an_operator_chooses_limits_of_all_tenants(resources: Resources) -> None:
    chosen = {"USE_LIMITS": "user_turns_at_once=2,tenant_bytes_per_day=5000000000"}
    limits = Settings.from_environment(environment_from_resources(resources) | chosen).caller_limits
    assert (limits.user.turns_at_once, limits.tenant.bytes_per_day) == (2, 5_000_000_000)
    assert limits.user.readers_at_once == DEFAULT_USER_LIMITS.readers_at_once


def test_a_limit_out_of_range_is_named(resources: Resources) -> None:
    chosen = {"USE_LIMITS": "user_turns_at_once=2,tenant_bytes_per_day=1"}
    with pytest.raises(SettingsError, match="tenant_bytes_per_day: input should be greater"):
        Settings.from_environment(environment_from_resources(resources) | chosen)


def test_an_empty_variable_counts_as_none(resources: Resources) -> None:
    assert Settings.from_environment(environment_from_resources(resources) | {"FLUSH_MS": ""}).flush_ms == 250


@pytest.mark.parametrize(
    "wrong",
    [
        {"BRIDGES_TABLE": ""},
        {"MAX_ROUNDS": "many"},
        {"UNANSWERED_CALLS": "shrug"},
        {"PROVIDER_URLS": "https://a.example"},
        {"PROVIDER_URLS": '{"openai": 1}'},
        {"USE_LIMITS": "user_turns_at_once"},
        {"USE_LIMITS": "user_turns_at_once=0"},
        {"USE_LIMITS": "user_turns_at_once=many"},
        {"USE_LIMITS": "user_turns=2"},
    ],
)
def test_a_missing_or_invalid_variable_is_named(resources: Resources, wrong: dict[str, str]) -> None:
    [name] = wrong
    with pytest.raises(SettingsError, match=name):
        Settings.from_environment(environment_from_resources(resources) | wrong)


def test_an_invalid_variable_is_told_apart_from_a_missing_one(resources: Resources) -> None:
    wrong = {"BRIDGES_TABLE": "", "PROVIDER_URLS": "https://secret.example", "MAX_ROUNDS": "many"}
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environment_from_resources(resources) | wrong)
    assert "environment variables of the function: BRIDGES_TABLE." in str(caught.value)
    assert "PROVIDER_URLS: Value error, a JSON object of URLs is expected." in str(caught.value)
    assert "MAX_ROUNDS: Input should be a valid integer" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_turn_lives_for_its_longest_hold_and_a_week(resources: Resources) -> None:
    settings = resources.settings.model_copy(update={"hold_days": 2})
    assert settings.turn_lifetime_seconds == 2 * 86400 + TURN_RETENTION_SECONDS


def test_the_local_stage_refuses_to_work_on_aws(resources: Resources) -> None:
    deployed = environment_from_resources(resources) | {
        "FERMATA_STAGE": "local",
        "AWS_LAMBDA_FUNCTION_NAME": "fermata-round",
    }
    with pytest.raises(SettingsError, match="Stage=dev or Stage=prod"):
        Settings.from_environment(deployed)
    here = deployed | {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
    assert Settings.from_environment(here).is_loopback_allowed
