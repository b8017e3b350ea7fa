"""Quantities that carry their unit in text and are plain numbers in arithmetic.

`Duration`, `Rate`, `Ratio` and `Size` are `float`/`int` subclasses: seconds, per second, 0 to 1, bytes. They parse only
text with a unit (`15s`, `20/s`, `99.5%`, `64KiB`) and print themselves the same way, so a number without a unit can
never slip from a file into a plan.
"""

from __future__ import annotations

import re
from typing import Self

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PER_SECOND = {"s": 1.0, "m": 1 / 60, "h": 1 / 3600}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_NUMBER = r"(\d+(?:\.\d+)?)"


class UnitError(ValueError):
    """Text that is not a quantity of the wanted kind; `example` is one that would be."""

    def __init__(self, wanted: str, example: str) -> None:
        """Say what was wanted and show one valid example."""
        super().__init__(f"not a {wanted}")
        self.wanted = wanted
        self.example = example


def _plain(number: float) -> str:
    """Six significant digits without an exponent, so that what is printed can be read back."""
    if abs(number) >= 1e6:
        return f"{number:.0f}"
    short = f"{number:.6g}"
    return short if "e" not in short else f"{number:.15f}".rstrip("0")


class Duration(float):
    """A length of time in seconds. Text: `250us`, `40ms`, `15s`, `2m`, `1h`."""

    wanted = "duration"
    example = "30s"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `15s`. Raises UnitError."""
        found = re.fullmatch(_NUMBER + r"(us|ms|s|m|h)", text)
        if not found:
            raise UnitError(cls.wanted, f"{text}s" if re.fullmatch(_NUMBER, text) else cls.example)
        return cls(float(found[1]) * _SECONDS[found[2]])

    def __str__(self) -> str:
        if self and abs(self) < 1e-3:
            return _plain(self * 1e6) + "us"
        if self and abs(self) < 1:
            return _plain(self * 1e3) + "ms"
        return _plain(float(self)) + "s"

    __repr__ = __str__


class Rate(float):
    """Events per second. Text: `20/s`, `90/m`, `10/h`."""

    wanted = "rate"
    example = "20/s"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `20/s`. Raises UnitError."""
        found = re.fullmatch(_NUMBER + r"/(s|m|h)", text)
        if not found:
            raise UnitError(cls.wanted, f"{text}/s" if re.fullmatch(_NUMBER, text) else cls.example)
        return cls(float(found[1]) * _PER_SECOND[found[2]])

    def __str__(self) -> str:
        return _plain(float(self)) + "/s"

    __repr__ = __str__


class Ratio(float):
    """A share from 0 to 1. Text: `99.5%`."""

    wanted = "percentage"
    example = "99%"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `99.5%`. Raises UnitError, also above 100%."""
        found = re.fullmatch(_NUMBER + r"%", text)
        if not found or float(found[1]) > 100:
            raise UnitError(cls.wanted, f"{text}%" if re.fullmatch(r"\d{1,2}(\.\d+)?", text) else cls.example)
        return cls(float(found[1]) / 100)

    def __str__(self) -> str:
        return _plain(float(self) * 100) + "%"

    __repr__ = __str__


class Size(int):
    """An amount of data in bytes. Text: `512B`, `64KB`, `64KiB`, `1GiB`."""

    wanted = "size"
    example = "64KiB"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `64KiB`. Raises UnitError."""
        found = re.fullmatch(_NUMBER + r"(B|KB|MB|GB|KiB|MiB|GiB)", text)
        if not found:
            raise UnitError(cls.wanted, f"{text}KiB" if re.fullmatch(_NUMBER, text) else cls.example)
        return cls(float(found[1]) * _BYTES[found[2]])

    def __str__(self) -> str:
        for unit in ("GiB", "MiB", "KiB"):
            if self and self % _BYTES[unit] == 0:
                return f"{int(self) // _BYTES[unit]}{unit}"
        return f"{int(self)}B"

    __repr__ = __str__
