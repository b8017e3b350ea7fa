"""Server-sent events from bytes that come in any pieces: hand in chunks, take out the data of whole events. Pure.

Lines end with LF, CRLF or CR; comments and other fields are skipped (WHATWG HTML, section 9.2.6). A line without an
end is bounded.
"""

from __future__ import annotations

LONGEST_LINE = 4 * 2**20


class SseParser:
    """Feeds on bytes; never raises. `overflow` turns true when a line outgrew the bound, and nothing more comes out."""

    def __init__(self) -> None:
        """At the start of a stream."""
        self._rest = b""
        self._data: list[bytes] = []
        self._after_cr = False
        self.overflow = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that became whole with this chunk."""
        if self.overflow or not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the second half of a CRLF
        self._after_cr = chunk.endswith(b"\r")
        text = self._rest + chunk
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        self.overflow = len(self._rest) > LONGEST_LINE
        events = (self._line(line) for line in lines)
        return [event for event in events if event is not None]

    def _line(self, line: bytes) -> bytes | None:
        """Take one line; an empty one ends the event."""
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data) if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
