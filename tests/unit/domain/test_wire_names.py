import pytest

from fermata.domain.wire_names import to_wire_name


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("id", "id"),
        ("created_at", "createdAt"),
        ("i18n", "i18n"),
        ("sha256", "sha256"),
        ("input_per_m_tok", "inputPerMTok"),
    ],
)
def test_a_field_is_named_as_in_json(field: str, name: str) -> None:
    assert to_wire_name(field) == name
