"""Store blobs in the bucket under content-addressed keys."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws import blob_store
from fermata.aws.resources import Resources
from tests.faults import FaultScript

FOLDER = blob_store.turn_folder("bakery", "turn-1")


@pytest.mark.parametrize("value", [{"html": "🦀 ß"}, ["half \ud83e"], "x" * 1_000_000, None, 1.5, {"deep": [[[1]]]}])
def test_a_value_comes_out_as_it_went_in(resources: Resources, value: Any) -> None:
    assert resources.blobs.get_json(resources.blobs.put_json(FOLDER, value)) == value


def test_bytes_come_out_as_they_went_in(resources: Resources) -> None:
    body = bytes(range(256))
    assert resources.blobs.get_bytes(resources.blobs.put_bytes(FOLDER, body, "image/jpeg")) == body


def test_the_same_content_has_the_same_name_and_another_has_another(resources: Resources) -> None:
    first, again, other = (resources.blobs.put_json(FOLDER, value) for value in ({"a": 1}, {"a": 1}, {"a": 2}))
    assert first == again != other


def test_a_stored_blob_is_put_again_because_that_renews_its_age(resources: Resources, faults: FaultScript) -> None:
    resources.blobs.put_json(FOLDER, {"a": 1})
    puts: list[str] = []
    faults.interrupt("s3.PutObject", lambda: puts.append("put"))
    resources.blobs.put_json(FOLDER, {"a": 1})
    assert puts == ["put"]


def test_a_blob_that_is_known_to_be_young_is_not_put_again(resources: Resources, faults: FaultScript) -> None:
    key = resources.blobs.put_json(FOLDER, {"a": 1})
    faults.fail_call("s3.PutObject", "AccessDenied")
    assert resources.blobs.put_json(FOLDER, {"a": 1}, stored_key=key) == key


class TestCompressedJson:
    @pytest.mark.parametrize("value", [{"html": "🦀 ß"}, ["half \ud83e"], "x" * 1_000_000, None, {}])
    def test_a_compressed_value_comes_out_as_it_went_in(self, resources: Resources, value: Any) -> None:
        assert resources.blobs.get_json(resources.blobs.put_compressed_json(FOLDER, value)) == value

    def test_it_is_smaller_and_has_the_key_of_the_uncompressed_value(self, resources: Resources) -> None:
        value = {"rules": [{"color": "red", "margin": "0 auto"}] * 5_000}
        key = resources.blobs.put_compressed_json(FOLDER, value)
        assert key == resources.blobs.put_json(blob_store.turn_folder("bakery", "turn-1"), value)
        resources.blobs.put_compressed_json(FOLDER, value)
        assert len(resources.blobs.get_bytes(key)) < 5_000

    def test_compressed_before_or_on_storing_it_has_the_same_key(self, resources: Resources) -> None:
        compressed = blob_store.compress_json(b'{"a":1}')
        assert resources.blobs.put_compressed_json(FOLDER, compressed) == resources.blobs.put_compressed_json(
            FOLDER, {"a": 1}
        )
        assert blob_store.compress_json(b'{"a":1}') == compressed

    @pytest.mark.parametrize("value", [{"a": 1}, blob_store.compress_json(b'{"a":1}')])
    def test_a_value_that_is_known_to_be_young_is_not_put_again(
        self, resources: Resources, faults: FaultScript, value: Any
    ) -> None:
        key = resources.blobs.put_compressed_json(FOLDER, {"a": 1})
        faults.fail_call("s3.PutObject", "AccessDenied")
        assert resources.blobs.put_compressed_json(FOLDER, value, stored_key=key) == key


def test_folders_of_turns_conversations_and_tenants_are_distinct() -> None:
    folders = {
        blob_store.turn_folder("bakery", "1"),
        blob_store.turn_folder("butcher", "1"),
        blob_store.conversation_folder("bakery", "1"),
    }
    assert len(folders) == 3
    assert all(folder.split("/")[1] in ("bakery", "butcher") for folder in folders)


def test_several_blobs_are_read_at_once_each_one_time(resources: Resources) -> None:
    keys = [resources.blobs.put_json(FOLDER, number) for number in range(20)]
    assert resources.blobs.get_bytes_by_key([*keys, *keys]) == {
        key: str(number).encode() for number, key in enumerate(keys)
    }
    assert resources.blobs.get_bytes_by_key([]) == {}


def test_reading_a_missing_blob_is_an_error(resources: Resources) -> None:
    with pytest.raises(ClientError, match="NoSuchKey"):
        resources.blobs.get_json(f"{FOLDER}/missing")


def test_deleting_a_folder_deletes_all_of_it_and_nothing_else(resources: Resources) -> None:
    kept = resources.blobs.put_json(blob_store.turn_folder("bakery", "turn-10"), "kept")
    for number in range(3):
        resources.blobs.put_json(FOLDER, number)
    assert resources.blobs.delete_folder(FOLDER) == 3
    assert resources.blobs.delete_folder(FOLDER) == 0
    assert resources.blobs.get_json(kept) == "kept"
