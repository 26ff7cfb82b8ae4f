"""A space with a list of members denies everybody else. A row never permits more than the rights of its user."""

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_access import find_space_for_caller
from fermata.content.space_members import (
    MAX_USER_BYTES,
    Membership,
    SpaceMember,
    delete_member_list,
    list_members,
    put_member,
    read_membership,
    remove_member,
)
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Forbidden, InvalidRequest, NotFound
from fermata.privacy.content_authors import iter_content_rows_by, rename_content_author
from fermata.privacy.data_subject import DataSubject
from fermata.tools.studio.project_permissions import ProjectPermissions
from fermata.tools.studio.studio_access import read_caller_permissions, resolve_caller_permissions
from tests.unit.content.conftest import ADA

BOB = SpaceMember("bob", "editor", frozenset({"recipe"}), frozenset({"de"}))
READER = frozenset({Capability.READ_CONTENT})
WRITER = frozenset({Capability.WRITE_CONTENT})
MANAGER = frozenset({Capability.CONTENT})


def read_permissions(resources: Resources, space: SpaceKey, user: str, rights: frozenset[str]) -> ProjectPermissions:
    return read_caller_permissions(OpenedSpace(resources, space, ADA), user, rights)


def test_without_a_list_rights_alone_count(resources: Resources, space: SpaceKey) -> None:
    assert list_members(resources, space) is None
    assert read_membership(resources, space, "bob") == Membership(False)
    assert read_permissions(resources, space, "bob", WRITER) == resolve_caller_permissions(WRITER)


def test_the_first_member_begins_the_list_and_the_last_one_does_not_end_it(
    resources: Resources, space: SpaceKey
) -> None:
    put_member(resources, space, BOB)
    assert list_members(resources, space) == [BOB]
    assert read_membership(resources, space, "ada") == Membership(True)
    remove_member(resources, space, "bob")
    assert list_members(resources, space) == []
    assert read_permissions(resources, space, "bob", WRITER).tools == frozenset()
    delete_member_list(resources, space)
    assert list_members(resources, space) is None


@pytest.mark.parametrize(
    ("role", "rights", "may", "may_not"),
    [
        ("editor", WRITER, "save_content", "merge_branch"),
        ("editor", READER, "get_content", "save_content"),
        ("viewer", WRITER, "get_content", "save_content"),
        ("reviewer", frozenset({*READER, Capability.REVIEW_CONTENT}), "merge_branch", "save_content"),
        ("reviewer", READER, "get_content", "merge_branch"),
        ("reviewer", WRITER, "get_content", "merge_branch"),
        ("reviewer", WRITER | {Capability.REVIEW_CONTENT}, "merge_branch", "save_content"),
        ("editor", WRITER | {Capability.REVIEW_CONTENT}, "save_content", "merge_branch"),
        ("owner of a newer release", WRITER, "get_content", "save_content"),
    ],
)
def test_both_the_row_and_the_rights_have_to_permit_a_tool(
    resources: Resources, space: SpaceKey, role: str, rights: frozenset[str], may: str, may_not: str
) -> None:
    put_member(resources, space, SpaceMember("bob", role))
    tools = read_permissions(resources, space, "bob", rights).tools
    assert (may in tools, may_not in tools) == (True, False)


def test_a_row_names_the_only_models_and_languages(resources: Resources, space: SpaceKey) -> None:
    put_member(resources, space, BOB)
    permissions = read_permissions(resources, space, "bob", WRITER)
    assert (permissions.allowed_models, permissions.allowed_locales) == (BOB.models, BOB.locales)
    put_member(resources, space, SpaceMember("bob", "editor", frozenset()))
    assert read_permissions(resources, space, "bob", WRITER).allowed_models == frozenset()


def test_who_manages_content_needs_no_row(resources: Resources, space: SpaceKey) -> None:
    put_member(resources, space, BOB)
    managers = read_permissions(resources, space, "ada", MANAGER)
    assert managers == resolve_caller_permissions(MANAGER)


def test_no_turn_begins_for_somebody_who_is_not_on_the_list(resources: Resources, space: SpaceKey) -> None:
    put_member(resources, space, BOB)

    def find(user: str) -> SpaceKey:
        return find_space_for_caller(resources, Caller(tenant="bakery", user=user, capabilities=WRITER), "shop")[0]

    assert find("bob") == space
    with pytest.raises(Forbidden, match="not a member of shop/main"):
        find("eve")
    with pytest.raises(Forbidden):
        find("")


@pytest.mark.parametrize("user", ["", "  ", "a\nb", "é" * MAX_USER_BYTES])
def test_a_member_has_the_id_of_a_user(resources: Resources, space: SpaceKey, user: str) -> None:
    with pytest.raises(InvalidRequest, match="'user'"):
        put_member(resources, space, SpaceMember(user, "viewer"))
    assert list_members(resources, space) is None


def test_what_is_not_there_is_named(resources: Resources, space: SpaceKey) -> None:
    with pytest.raises(InvalidRequest, match="no language fr"):
        put_member(resources, space, SpaceMember("bob", "viewer", None, frozenset({"fr"})))
    with pytest.raises(NotFound):
        remove_member(resources, space, "bob")
    with pytest.raises(NotFound):
        put_member(resources, SpaceKey("bakery", "none"), BOB)


def test_the_row_of_an_erased_user_is_exported_and_deleted_and_the_list_stays(
    resources: Resources, space: SpaceKey
) -> None:
    put_member(resources, space, BOB)
    subject = DataSubject(kind="user", tenant="bakery", id="bob")
    assert [row["role"] for row in iter_content_rows_by(resources, subject)] == ["editor"]
    assert rename_content_author(resources, subject, "erased-1") == 1
    assert list_members(resources, space) == []
