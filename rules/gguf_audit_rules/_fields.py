"""What rules about metadata have in common."""

from __future__ import annotations

from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from gguf_audit.gguf import Array, Field

__all__ = ["integer", "type_name"]


def integer(fields: Fields, name: str) -> int | None:
    """Return an integer, none for a wrong type too: that is another rule's cause."""
    try:
        return fields.integer(name)
    except Refused:
        return None


def type_name(field: Field) -> str:
    """Return how a message calls the type of a field."""
    if isinstance(field.value, Array):
        return f"an array of {field.value.item_type.name.lower()}"
    return "unknown" if field.type is None else field.type.name.lower()
