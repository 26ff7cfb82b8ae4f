"""Check that the emulator says which turn logs grow, and that readers of the local cloud hear of it."""

import queue

from local.aws_clients import get_client
from local.front_door.append_listener import listen_for_appends
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.waiting import wait_until

TABLE = "lab-logs"


def put(lab: EmulatorLab, pk: str, sk: str) -> None:
    lab.dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": pk}, "sk": {"S": sk}})


def test_a_listener_hears_of_each_entry_that_is_appended(lab: EmulatorLab, emulator: EmulatorProcess) -> None:
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    lab.dynamodb.create_table(
        TableName=TABLE, KeySchema=keys, AttributeDefinitions=attributes, BillingMode="PAY_PER_REQUEST"
    )
    heard: queue.Queue[str] = queue.Queue()
    listen_for_appends(emulator.endpoint, heard.put)

    def is_listening() -> bool:
        put(lab, "probe", "e#000001")
        return not heard.empty()

    wait_until(is_listening, "the listener is connected")
    put(lab, "another", "turn")
    put(lab, "one", "e#000001")
    transaction = [
        {"Put": {"TableName": TABLE, "Item": {"pk": {"S": pk}, "sk": {"S": sk}}}}
        for pk, sk in (("two", "e#000002"), ("two", "p#000001"), ("three", "m#000001"))
    ]
    get_client("dynamodb", lab.endpoint).transact_write_items(TransactItems=transaction)
    found: list[str] = []
    while "two" not in found:
        found.append(heard.get(timeout=60))
    assert [key for key in found if key != "probe"] == ["one", "two"]
