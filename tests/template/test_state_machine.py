"""The workflow of a turn: its payloads, retries, catches, and the number of transitions."""

import re
from typing import Any

import pytest

from fermata.aws.settings import Settings
from tests.template.templates import STATE_MACHINE, SUBSTITUTES, Template, resources_of_type

State = dict[str, Any]
WAITING = ("RunRound", "Hold")
TIME_OUTS = {"States.HeartbeatTimeout", "States.Timeout"}
LAMBDA_ERRORS = ("Lambda.ServiceException", "Lambda.SdkClientException", "Lambda.TooManyRequestsException")
PAYLOAD = {"v", "tenant", "turn", "n", "token", "entered", "retry", "hint"}


@pytest.fixture(scope="session")
def states(machine: Template) -> dict[str, State]:
    found: dict[str, State] = machine["States"]
    return found


def retrier(state: State, error: str) -> State:
    """Return the first retrier that matches an error, as Step Functions does."""
    for one in state["Retry"]:
        names = set(one["ErrorEquals"])
        wild = "States.TaskFailed" in names and error != "States.Timeout"
        if error in names or wild or "States.ALL" in names:
            found: State = one
            return found
    raise AssertionError(f"no retrier matches {error}")


def caught(state: State, error: str) -> str:
    for one in state["Catch"]:
        if error in one["ErrorEquals"] or "States.ALL" in one["ErrorEquals"]:
            return str(one["Next"])
    raise AssertionError(f"{error} ends the execution")


def next_states(state: State) -> set[str]:
    choices = [choice["Next"] for choice in state.get("Choices", [])]
    catches = [one["Next"] for one in state.get("Catch", [])]
    return {name for name in (state.get("Next"), state.get("Default"), *choices, *catches) if name}


def test_the_template_makes_every_substitution_the_workflow_asks_for(deployed: Template) -> None:
    (machine,) = resources_of_type(deployed, "AWS::StepFunctions::StateMachine").values()
    assert set(machine["DefinitionSubstitutions"]) == set(SUBSTITUTES)
    assert all(f"${{{name}}}" in STATE_MACHINE.read_text() for name in SUBSTITUTES)


def test_it_is_a_standard_workflow_that_logs_errors_without_data(deployed: Template) -> None:
    (machine,) = resources_of_type(deployed, "AWS::StepFunctions::StateMachine").values()
    assert machine["StateMachineType"] == "STANDARD"
    assert machine["LoggingConfiguration"]["Level"] == "ERROR"
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_the_workflow_names_services_in_the_partition_of_its_stack(deployed: Template) -> None:
    (machine,) = resources_of_type(deployed, "AWS::StepFunctions::StateMachine").values()
    assert machine["DefinitionSubstitutions"]["Partition"] == {"Ref": "AWS::Partition"}
    assert re.findall(r"arn:(?!\$\{Partition\}:)\S+", STATE_MACHINE.read_text()) == []


def test_every_state_is_reached_and_every_next_state_exists(machine: Template, states: dict[str, State]) -> None:
    reached = {machine["StartAt"]}.union(*(next_states(state) for state in states.values()))
    assert reached == set(states)


def test_an_execution_outlives_the_longest_hold(machine: Template) -> None:
    assert machine["TimeoutSeconds"] > 37 * 86400


@pytest.mark.parametrize("name", WAITING)
def test_a_waiting_state_hands_out_its_token_and_ids_only(states: dict[str, State], name: str) -> None:
    state = states[name]
    payload = state["Arguments"]["Payload"]
    assert state["Resource"] == "arn:aws:states:::lambda:invoke.waitForTaskToken"
    assert set(payload) == PAYLOAD
    assert payload["token"] == "{% $states.context.Task.Token %}"
    assert payload["entered"] == "{% $states.context.State.EnteredTime %}"
    assert payload["retry"] == "{% $states.context.State.RetryCount %}"


def test_both_waiting_states_have_the_same_payload(states: dict[str, State]) -> None:
    round_, hold = (states[name]["Arguments"] for name in WAITING)
    assert round_["Payload"] == hold["Payload"]
    assert round_["FunctionName"] == SUBSTITUTES["RoundFunctionArn"]
    assert hold["FunctionName"] == SUBSTITUTES["HoldFunctionArn"]


@pytest.mark.parametrize("name", [*WAITING, "Recover"])
@pytest.mark.parametrize("error", LAMBDA_ERRORS)
def test_a_failure_of_lambda_itself_is_retried_for_minutes(states: dict[str, State], name: str, error: str) -> None:
    found = retrier(states[name], error)
    longest = sum(min(2.0**attempt, found["MaxDelaySeconds"]) for attempt in range(found["MaxAttempts"]))
    assert (found["IntervalSeconds"], found["BackoffRate"], found["JitterStrategy"]) == (1, 2, "FULL")
    assert longest / 2 > 5 * 60, "a full jitter waits for half of it on average"
    assert longest < Settings.model_fields["stalled_turn_seconds"].default, "nobody takes the conversation meanwhile"


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("error", ["RuntimeError", "Lambda.Unknown", "Runtime.ExitError", "Sandbox.Timedout"])
def test_a_failure_of_the_function_is_retried_once(states: dict[str, State], name: str, error: str) -> None:
    assert retrier(states[name], error)["MaxAttempts"] == 1


def test_a_time_out_is_never_retried_because_the_round_must_check_first(states: dict[str, State]) -> None:
    for error in TIME_OUTS:
        assert retrier(states["RunRound"], error)["MaxAttempts"] == 0
    assert retrier(states["Hold"], "States.Timeout")["MaxAttempts"] == 0


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("error", sorted(TIME_OUTS))
def test_a_time_out_invokes_the_round_which_decides(states: dict[str, State], name: str, error: str) -> None:
    assert caught(states[name], error) == "RunRound"


@pytest.mark.parametrize("name", WAITING)
def test_every_other_failure_leads_to_recovery(states: dict[str, State], name: str) -> None:
    assert caught(states[name], "RuntimeError") == "Recover"
    assert next_states(states["Recover"]) == {"Failed"}


def test_the_round_has_a_heartbeat_and_the_hold_has_its_own_deadline(states: dict[str, State]) -> None:
    assert states["RunRound"]["HeartbeatSeconds"] == "{% 90 %}"
    assert "HeartbeatSeconds" not in states["Hold"]
    assert states["Hold"]["TimeoutSeconds"] == "{% $states.input.seconds %}"


def test_the_functions_result_selects_the_next_state(states: dict[str, State]) -> None:
    ways = {choice["Condition"]: choice["Next"] for choice in states["Next"]["Choices"]}
    assert ways == {
        "{% $states.input.next = 'round' %}": "RunRound",
        "{% $states.input.next = 'hold' %}": "Hold",
        "{% $states.input.next = 'finish' %}": "Finished",
    }
    assert states["Next"]["Default"] == "Recover"


def test_a_browser_round_costs_two_transitions_and_a_turn_of_text_four(states: dict[str, State]) -> None:
    to_the_next_round = ["RunRound", states["RunRound"]["Next"]]
    assert to_the_next_round == ["RunRound", "Next"]
    assert "RunRound" in next_states(states["Next"])
    of_a_text = ["the start", *to_the_next_round, "Finished"]
    assert len(to_the_next_round) <= 2
    assert len(of_a_text) <= 4


def test_the_workflow_carries_only_the_functions_results(states: dict[str, State]) -> None:
    """Ids come from the execution's input. A caught error, whose text may be long, stays in the history."""
    assert not any("Assign" in state for state in states.values())
    for name in WAITING:
        assert "Output" not in states[name]
        assert [one["Output"] for one in states[name]["Catch"]] == [{}, {}]
    assert states["Recover"]["Output"] == {}
