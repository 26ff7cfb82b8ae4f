"""Check that the emulator says which turn logs grow, and that readers of the local cloud hear of it."""

import queue

from local.aws_clients import get_client
from local.front_door.append_listener import listen_for_appends
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab

TABLE = "lab-logs"


class QueueHearer:
    """Keeps what a poller would be told."""

    def __init__(self) -> None:
        self.heard: queue.Queue[str | bool] = queue.Queue()

    def poll_now(self, pk: str) -> None:
        self.heard.put(pk)

    def set_hearing(self, hears_appends: bool) -> None:
        self.heard.put(hears_appends)


def put(lab: EmulatorLab, pk: str, sk: str) -> None:
    lab.dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": pk}, "sk": {"S": sk}})


def test_a_listener_hears_of_each_entry_that_is_appended(lab: EmulatorLab, emulator: EmulatorProcess) -> None:
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    lab.dynamodb.create_table(
        TableName=TABLE, KeySchema=keys, AttributeDefinitions=attributes, BillingMode="PAY_PER_REQUEST"
    )
    hearer = QueueHearer()
    listen_for_appends(emulator.endpoint, hearer)
    assert hearer.heard.get(timeout=60) is True, "the listener is connected"
    put(lab, "another", "turn")
    put(lab, "one", "e#000001")
    transaction = [
        {"Put": {"TableName": TABLE, "Item": {"pk": {"S": pk}, "sk": {"S": sk}}}}
        for pk, sk in (("two", "e#000002"), ("two", "p#000001"), ("three", "m#000001"))
    ]
    get_client("dynamodb", lab.endpoint).transact_write_items(TransactItems=transaction)
    assert [hearer.heard.get(timeout=60) for _ in range(2)] == ["one", "two"]
