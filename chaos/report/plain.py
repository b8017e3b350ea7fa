"""Text from outside made harmless for any page or terminal: one line, nothing that a terminal would obey."""

from __future__ import annotations


def plain(text: object) -> str:
    """One line: white space becomes single spaces; control characters (escape sequences, NUL) become U+FFFD."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(str(text).split()))
