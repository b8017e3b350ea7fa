"""JSON the way Go's encoding/json reads and writes it, because clients see its habits through the API.

Only the first value of a text is read; keys match without regard to case; unknown keys are skipped; null leaves a field
alone; a value of the wrong type is reported (the first one), yet every other field is still decoded. Error texts are
Go's.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(rb"[0-9]*")
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord("t"): (b"true", True), ord("f"): (b"false", False), ord("n"): (b"null", None)}
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_FLOAT32_LIMIT = 2.0**128 - 2.0**103  # from here on rounding to 32 bits overflows
_MAX_DEPTH = 250  # Go stops at 10,000; this stays inside Python's own recursion limit
_KIND_NAMES = {"bool": "bool", "str": "string", "Number": "number", "list": "array", "Object": "object"}


class GoError(Exception):
    """What Go's decoder says about a text it cannot use."""


class Number(str):
    """A number as it was written: whether `1.0` is an integer depends on the field that it is for."""

    __slots__ = ()


@dataclass(frozen=True)
class Object:
    """An object with its keys in order of appearance, repeated ones too: a later one overwrites an earlier one."""

    pairs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Struct:
    """A Go struct to decode into. Field kinds: string, bool, int, int64, float32, or another Struct.

    `type_name` is how Go prints the type, `name` what it prints before a field's path (empty for an unnamed struct).
    """

    type_name: str
    name: str
    fields: Mapping[str, str | Struct]


@dataclass
class Decoded:
    """The fields that could be decoded (nested structs as dicts) and the first complaint, if there was one."""

    values: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def complain(self, text: str) -> None:
        """Keep the first complaint."""
        self.error = self.error or text


def parse(text: bytes) -> Any:
    """The first JSON value of `text`; what follows it is ignored. Raises GoError with Go's words."""
    scanner = _Scanner(text)
    scanner.skip_space()
    if scanner.at == len(text):
        raise GoError("EOF")
    return scanner.value(0)


def decode(value: Any, target: Struct) -> Decoded:
    """Fit a parsed value into a struct as Unmarshal does: as much as possible, first complaint kept."""
    decoded = Decoded()
    if isinstance(value, Object):
        decoded.values = _decode_object(value, target, "", decoded)
    elif value is not None:
        decoded.complain(f"json: cannot unmarshal {kind_of(value)} into Go value of type {target.type_name}")
    return decoded


def kind_of(value: Any) -> str:
    """Go's word for the kind of a parsed value."""
    return _KIND_NAMES[type(value).__name__]


def _decode_object(value: Object, target: Struct, path: str, decoded: Decoded) -> dict[str, Any]:
    values: dict[str, Any] = {}
    folded = {name.lower(): name for name in target.fields}
    for key, item in value.pairs:
        name = key if key in target.fields else folded.get(key.lower())
        if name is None or item is None:
            continue
        kind = target.fields[name]
        if isinstance(kind, Struct) and isinstance(item, Object):
            values[name] = values.get(name, {}) | _decode_object(item, kind, f"{path}{name}.", decoded)
            continue
        problem, result = (kind_of(item), None) if isinstance(kind, Struct) else _decode_scalar(item, kind)
        if problem is None:
            values[name] = result
            continue
        type_name = kind.type_name if isinstance(kind, Struct) else kind
        field_name = f"Go struct field {target.name}.{path}{name} of type {type_name}"
        decoded.complain(f"json: cannot unmarshal {problem} into {field_name}")
    return values


def _decode_scalar(item: Any, kind: str) -> tuple[str | None, Any]:
    """(what is wrong with it, None) or (None, its Python value)."""
    if kind == "string" and type(item) is str:
        return None, item
    if kind == "bool" and isinstance(item, bool):
        return None, item
    if isinstance(item, Number):
        return _decode_number(item, kind)
    return kind_of(item), None


def _decode_number(item: Number, kind: str) -> tuple[str | None, Any]:
    if kind in ("int", "int64"):
        fits = re.fullmatch(r"-?[0-9]{1,19}", item) is not None and -(2**63) <= int(item) < 2**63
        return (None, int(item)) if fits else (f"number {item}", None)
    if kind == "float32":
        wide = float(item)
        fits = abs(wide) < _FLOAT32_LIMIT
        return (None, struct.unpack("f", struct.pack("f", wide))[0]) if fits else (f"number {item}", None)
    return "number", None


def encode(value: Any) -> str:
    """Compact JSON as Go writes it: `<`, `>`, `&` and the two Unicode line separators are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES).encode("utf-8", "replace").decode()


def encode_float32(value: float) -> str:
    """The shortest decimal that names this 32-bit float, as Go prints it in JSON."""
    wanted = struct.pack("f", value)
    digits = next(n for n in range(1, 10) if struct.pack("f", float(f"{value:.{n}g}")) == wanted)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return f"{Decimal(f'{value:.{digits}g}'):f}"
    text = f"{value:.{digits - 1}e}"
    return text.replace("e-0", "e-")


class _Scanner:
    """Reads one value from bytes. Every unexpected byte is named as Go's scanner names it."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def skip_space(self) -> None:
        self.at = self._after(_SPACE)

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise GoError("exceeded max depth")
        self.skip_space()
        head = self._peek()
        if head == ord('"'):
            return self._string()
        if head == ord("{"):
            return self._object(depth)
        if head == ord("["):
            return self._array(depth)
        if head in _LITERALS:
            return self._literal(*_LITERALS[head])
        if head == ord("-") or ord("0") <= head <= ord("9"):
            return self._number()
        raise self._unexpected("looking for beginning of value")

    def _object(self, depth: int) -> Object:
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        self.skip_space()
        if self._take(b"}"):
            return Object(())
        while True:
            self.skip_space()
            if self._peek() != ord('"'):
                raise self._unexpected("looking for beginning of object key string")
            key = self._string()
            self.skip_space()
            if not self._take(b":"):
                raise self._unexpected("after object key")
            pairs.append((key, self.value(depth + 1)))
            self.skip_space()
            if self._take(b"}"):
                return Object(tuple(pairs))
            if not self._take(b","):
                raise self._unexpected("after object key:value pair")

    def _array(self, depth: int) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        self.skip_space()
        if self._take(b"]"):
            return items
        while True:
            items.append(self.value(depth + 1))
            self.skip_space()
            if self._take(b"]"):
                return items
            if not self._take(b","):
                raise self._unexpected("after array element")

    def _string(self) -> str:
        start = self.at
        self.at += 1
        while True:
            self.at = self._after(_PLAIN)
            if self._take(b'"'):
                break
            if not self._take(b"\\"):
                raise self._unexpected("in string literal")
            self._escape()
        # Unpaired surrogates and bad UTF-8 become U+FFFD, as in Go.
        text = json.loads(self.text[start : self.at].decode("utf-8", "replace"))
        return str(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _escape(self) -> None:
        if not self._take(b"u"):
            if self._peek() not in b'bfnrt\\/"':
                raise self._unexpected("in string escape code")
            self.at += 1
            return
        for _ in range(4):
            if self._peek() not in _HEX:
                raise self._unexpected("in \\u hexadecimal character escape")
            self.at += 1

    def _literal(self, word: bytes, meaning: bool | None) -> bool | None:
        for expected in word:
            if self._peek() != expected:
                raise self._unexpected(f"in literal {word.decode()} (expecting {_quoted(expected)})")
            self.at += 1
        return meaning

    def _number(self) -> Number:
        start = self.at
        self._take(b"-")
        if not self._take(b"0"):
            self._digits("in numeric literal")
        if self._take(b"."):
            self._digits("after decimal point in numeric literal")
        if self._take(b"e") or self._take(b"E"):
            if not self._take(b"+"):
                self._take(b"-")
            self._digits("in exponent of numeric literal")
        return Number(self.text[start : self.at].decode())

    def _digits(self, where: str) -> None:
        end = self._after(_DIGITS)
        if end == self.at:
            self._peek()
            raise self._unexpected(where)
        self.at = end

    def _after(self, pattern: re.Pattern[bytes]) -> int:
        found = pattern.match(self.text, self.at)
        return found.end() if found else self.at

    def _peek(self) -> int:
        if self.at >= len(self.text):
            raise GoError("unexpected EOF")
        return self.text[self.at]

    def _take(self, byte: bytes) -> bool:
        found = self.text.startswith(byte, self.at)
        self.at += found
        return found

    def _unexpected(self, where: str) -> GoError:
        return GoError(f"invalid character {_quoted(self._peek())} {where}")


def _quoted(byte: int) -> str:
    """One byte in quotes as Go shows it."""
    special = {
        ord("'"): "\\'",
        ord("\\"): "\\\\",
        7: "\\a",
        8: "\\b",
        9: "\\t",
        10: "\\n",
        11: "\\v",
        12: "\\f",
        13: "\\r",
    }
    if byte in special:
        return f"'{special[byte]}'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    return f"'\\u{byte:04x}'" if 0x80 <= byte < 0xA1 or byte == 0xAD else f"'{chr(byte)}'"
