"""Put a new block between the markers of a page and leave every other byte as it was."""

from __future__ import annotations

from chaos.runbooks.parse import BEGIN, END, RunbookError, split


def refresh(text: bytes, block: str) -> bytes:
    """The page with `block` between its markers, in the line ends that the page itself uses. Refreshing twice
    changes nothing.

    Raises BrokenMarkers, MergeConflict, and RunbookError for a block that holds a marker itself.
    """
    encoded = block.strip("\n").encode("utf-8")
    if BEGIN in encoded or END in encoded:
        raise RunbookError("the block holds a marker of its own")
    page = split(text)
    newline = b"\r\n" if b"\r\n" in page.before + page.after else b"\n"
    lines = encoded.replace(b"\r\n", b"\n").split(b"\n")
    return page.before + newline + newline.join(lines) + newline + page.after
