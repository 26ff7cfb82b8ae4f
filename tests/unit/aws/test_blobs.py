"""What is large lies in the bucket under the name of its own content."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws import blobs
from fermata.aws.desk import Desk
from tests.seam import Seam

FOLDER = blobs.turn_folder("bakery", "turn-1")


@pytest.mark.parametrize("value", [{"html": "🦀 ß"}, ["half \ud83e"], "x" * 1_000_000, None, 1.5, {"deep": [[[1]]]}])
def test_a_value_comes_out_as_it_went_in(desk: Desk, value: Any) -> None:
    assert desk.blobs.get(desk.blobs.put(FOLDER, value)) == value


def test_bytes_come_out_as_they_went_in(desk: Desk) -> None:
    body = bytes(range(256))
    assert desk.blobs.get_bytes(desk.blobs.put_bytes(FOLDER, body, "image/jpeg")) == body


def test_the_same_content_has_the_same_name_and_another_has_another(desk: Desk) -> None:
    first, again, other = (desk.blobs.put(FOLDER, value) for value in ({"a": 1}, {"a": 1}, {"a": 2}))
    assert first == again != other


def test_a_blob_that_is_there_is_put_again_because_that_renews_its_age(desk: Desk, seam: Seam) -> None:
    desk.blobs.put(FOLDER, {"a": 1})
    puts: list[str] = []
    seam.meanwhile("s3.PutObject", lambda: puts.append("put"))
    desk.blobs.put(FOLDER, {"a": 1})
    assert puts == ["put"]


def test_a_blob_that_is_known_to_be_young_is_not_put_again(desk: Desk, seam: Seam) -> None:
    key = desk.blobs.put(FOLDER, {"a": 1})
    seam.refuse("s3.PutObject", "AccessDenied")
    assert desk.blobs.put(FOLDER, {"a": 1}, known=key) == key


class TestPacked:
    @pytest.mark.parametrize("value", [{"html": "🦀 ß"}, ["half \ud83e"], "x" * 1_000_000, None, {}])
    def test_what_was_packed_comes_out_as_it_went_in(self, desk: Desk, value: Any) -> None:
        assert desk.blobs.get(desk.blobs.put_packed(FOLDER, value)) == value

    def test_it_takes_less_room_and_has_the_name_of_what_it_was(self, desk: Desk) -> None:
        value = {"rules": [{"color": "red", "margin": "0 auto"}] * 5_000}
        key = desk.blobs.put_packed(FOLDER, value)
        assert key == desk.blobs.put(blobs.turn_folder("bakery", "turn-1"), value)
        desk.blobs.put_packed(FOLDER, value)
        assert len(desk.blobs.get_bytes(key)) < 5_000

    def test_packed_before_or_now_it_lies_in_the_same_place(self, desk: Desk) -> None:
        packed = blobs.pack(b'{"a":1}')
        assert desk.blobs.put_packed(FOLDER, packed) == desk.blobs.put_packed(FOLDER, {"a": 1})
        assert blobs.pack(b'{"a":1}') == packed

    @pytest.mark.parametrize("value", [{"a": 1}, blobs.pack(b'{"a":1}')])
    def test_one_that_is_known_to_be_young_is_not_put_again(self, desk: Desk, seam: Seam, value: Any) -> None:
        key = desk.blobs.put_packed(FOLDER, {"a": 1})
        seam.refuse("s3.PutObject", "AccessDenied")
        assert desk.blobs.put_packed(FOLDER, value, known=key) == key


def test_a_turns_and_a_conversations_blobs_lie_apart_and_by_tenant() -> None:
    folders = {
        blobs.turn_folder("bakery", "1"),
        blobs.turn_folder("butcher", "1"),
        blobs.conversation_folder("bakery", "1"),
    }
    assert len(folders) == 3
    assert all(folder.split("/")[1] in ("bakery", "butcher") for folder in folders)


def test_many_are_fetched_at_once_each_one_time(desk: Desk) -> None:
    keys = [desk.blobs.put(FOLDER, number) for number in range(20)]
    assert desk.blobs.get_all([*keys, *keys]) == {key: str(number).encode() for number, key in enumerate(keys)}
    assert desk.blobs.get_all([]) == {}


def test_what_is_not_there_is_an_error(desk: Desk) -> None:
    with pytest.raises(ClientError, match="NoSuchKey"):
        desk.blobs.get(f"{FOLDER}/missing")


def test_a_folder_is_removed_whole_and_alone(desk: Desk) -> None:
    kept = desk.blobs.put(blobs.turn_folder("bakery", "turn-10"), "kept")
    for number in range(3):
        desk.blobs.put(FOLDER, number)
    assert desk.blobs.remove_folder(FOLDER) == 3
    assert desk.blobs.remove_folder(FOLDER) == 0
    assert desk.blobs.get(kept) == "kept"
