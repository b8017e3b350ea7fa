"""The page of code by which programs read the clock without a system call (vdso(7)), and how to have it tell a wrong
time. Linux on x86-64.

    clock_gettime ─► jmp ─┐          the first five bytes of three functions are replaced,
    gettimeofday  ─► jmp ─┼─► ours   ours lies in the unused end of the page:
    time          ─► jmp ─┘          it asks the kernel, and moves what it says

Every process has the same page, so our own shows what each must be again. One that is changed becomes the process's
own; its children inherit it, and a new program starts with the right one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FUNCTIONS = ("__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time")
WORD = 8
_MAGIC = b"brownout"
_DATA = struct.Struct("<8s8sqqq")
"""Magic, mark, nanoseconds ahead, drift in 2^-32, and the time since which it drifts, in nanoseconds since 1970."""
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PT_LOAD, _PT_DYNAMIC = 1, 2
_AT_SYSINFO_EHDR = 33
"""In the auxiliary vector of a process (getauxval(3))."""
_DT_HASH, _DT_STRTAB, _DT_SYMTAB = 4, 5, 6

_CODE = """
clock_gettime       (edi: which clock, rsi: where to)
    b8e4000000          mov   eax, 228
    0f05                syscall
    85c0                test  eax, eax
    7531                jnz   end
    85ff                test  edi, edi              CLOCK_REALTIME
    740a                jz    wall
    83ff05              cmp   edi, 5                CLOCK_REALTIME_COARSE
    7405                jz    wall
    83ff0b              cmp   edi, 11               CLOCK_TAI
    7523                jne   end
wall
    48690600ca9a3b      imul  rax, [rsi], 1000000000
    48034608            add   rax, [rsi+8]
    e895000000          call  moved
    b900ca9a3b          mov   ecx, 1000000000
    31d2                xor   edx, edx
    48f7f1              div   rcx
    488906              mov   [rsi], rax
    48895608            mov   [rsi+8], rdx
    31c0                xor   eax, eax
end
    c3                  ret

gettimeofday        (rdi: where to, may be null; rsi: the zone)
    b860000000          mov   eax, 96
    0f05                syscall
    85c0                test  eax, eax
    7539                jnz   end
    4885ff              test  rdi, rdi
    7434                jz    end
    48690740420f00      imul  rax, [rdi], 1000000
    48034708            add   rax, [rdi+8]
    4869c0e8030000      imul  rax, rax, 1000
    e85a000000          call  moved
    b9e8030000          mov   ecx, 1000
    31d2                xor   edx, edx
    48f7f1              div   rcx
    b940420f00          mov   ecx, 1000000
    31d2                xor   edx, edx
    48f7f1              div   rcx
    488907              mov   [rdi], rax
    48895708            mov   [rdi+8], rdx
    31c0                xor   eax, eax
end
    c3                  ret

time                (rdi: where to, may be null)
    4989f9              mov   r9, rdi
    4883ec18            sub   rsp, 24
    b8e4000000          mov   eax, 228              clock_gettime(CLOCK_REALTIME, on the stack)
    31ff                xor   edi, edi
    4889e6              mov   rsi, rsp
    0f05                syscall
    4869042400ca9a3b    imul  rax, [rsp], 1000000000
    4803442408          add   rax, [rsp+8]
    e817000000          call  moved
    b900ca9a3b          mov   ecx, 1000000000
    31d2                xor   edx, edx
    48f7f1              div   rcx
    4883c418            add   rsp, 24
    4d85c9              test  r9, r9
    7403                jz    end
    498901              mov   [r9], rax
end
    c3                  ret

moved               (rax: nanoseconds since 1970) = rax + ahead + (rax - since) * drift
    4889c1              mov   rcx, rax
    482b0530ffffff      sub   rax, [rip+since]
    48f72d21ffffff      imul  qword [rip+drift]
    480facd020          shrd  rax, rdx, 32
    4801c8              add   rax, rcx
    4803050affffff      add   rax, [rip+ahead]
    c3                  ret
"""
_STARTS = ("clock_gettime", "gettimeofday", "time")


def _assembled() -> tuple[bytes, tuple[int, ...]]:
    """The machine code, and where each of FUNCTIONS begins in it."""
    code, starts = bytearray(), []
    for line in _CODE.splitlines():
        if line.startswith("    "):
            code += bytes.fromhex(line.split()[0])
        elif line.split()[:1] and line.split()[0] in _STARTS:
            starts.append(len(code))
    return bytes(code), tuple(starts)


@dataclass(frozen=True)
class Skew:
    """How wrong a clock is. `mark` is eight bytes that tell whose doing it is."""

    mark: bytes
    ahead_ns: int
    drift: float
    since_ns: int

    def block(self) -> bytes:
        """The data and the code behind it, as it lies in the page."""
        data = _DATA.pack(_MAGIC, self.mark, self.ahead_ns, round(self.drift * 2**32), self.since_ns)
        return data + _assembled()[0]


NOTHING = bytes(_DATA.size)
"""What lies in the place of the data when there is no skew."""


def mark_in(data: bytes) -> bytes | None:
    """Whose skew this is, from the beginning of a block; None when there is none."""
    return data[WORD : 2 * WORD] if data[:WORD] == _MAGIC else None


class Unsuitable(Exception):
    """This machine's page has no room, or not these functions; the message says which."""


@dataclass(frozen=True)
class Page:
    """One machine's page. `entries` are where FUNCTIONS begin in it, `block` is where there is room for ours."""

    image: bytes
    entries: tuple[int, ...]
    block: int

    @classmethod
    def of(cls, image: bytes) -> Self:
        """Read an unchanged page. Raises Unsuitable."""
        headers = list(_headers(image))
        used = max((offset + size for kind, offset, size in headers if kind == _PT_LOAD), default=len(image))
        symbols = _symbols(image, next((offset for kind, offset, _ in headers if kind == _PT_DYNAMIC), 0))
        room = _DATA.size + len(_assembled()[0])
        block = (len(image) - room) // WORD * WORD
        if block < used:
            raise Unsuitable(f"the vDSO of this kernel has {len(image) - used} bytes to spare, {room} are needed")
        missing = [name for name in FUNCTIONS if symbols.get(name, 1) % WORD]
        if missing:
            raise Unsuitable(f"the vDSO of this kernel has no function {missing[0]} at a whole word")
        return cls(image, tuple(symbols[name] for name in FUNCTIONS), block)

    def right(self) -> Mapping[int, bytes]:
        """The first word of each function by its place, as it should be."""
        return {entry: self.image[entry : entry + WORD] for entry in self.entries}

    def wrong(self) -> Mapping[int, bytes]:
        """The same words with a jump to ours."""
        base = self.block + _DATA.size
        starts = dict(zip(self.entries, _assembled()[1], strict=True))
        return {
            entry: b"\xe9" + struct.pack("<i", base + starts[entry] - entry - 5) + word[5:]
            for entry, word in self.right().items()
        }

    def is_in_the_way(self, offset: int) -> bool:
        """Whether a thread that stands here would run into half a change."""
        return any(entry < offset < entry + WORD for entry in self.entries) or self.block <= offset < len(self.image)


def _headers(image: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind, offset and size of each segment (elf(5))."""
    (at,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    for number in range(count):
        kind, _, offset, _, _, length, _, _ = _PROGRAM_HEADER.unpack_from(image, at + number * size)
        yield kind, offset, length


def _symbols(image: bytes, dynamic: int) -> dict[str, int]:
    """Where each named function is."""
    places: dict[int, int] = {}
    for tag, value in struct.iter_unpack("<QQ", image[dynamic : dynamic + (len(image) - dynamic) // 16 * 16]):
        if tag == 0:
            break
        places[tag] = value
    if not {_DT_HASH, _DT_STRTAB, _DT_SYMTAB} <= places.keys():
        return {}
    _, count = struct.unpack_from("<II", image, places[_DT_HASH])
    found = {}
    for number in range(count):
        name, _, _, _, value, _ = _SYMBOL.unpack_from(image, places[_DT_SYMTAB] + number * _SYMBOL.size)
        start = places[_DT_STRTAB] + name
        found[image[start : image.index(b"\0", start)].decode()] = value
    return found


def place_in(pid: int | str) -> int | None:
    """Where a process has its page; None when it is gone or has none (a kernel thread). Raises PermissionError."""
    try:
        auxiliary = Path(f"/proc/{pid}/auxv").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next((value for key, value in struct.iter_unpack("<QQ", auxiliary) if key == _AT_SYSINFO_EHDR), None)


def our_page() -> Page:
    """This machine's, from our own memory. Raises Unsuitable."""
    start = place_in("self")
    if start is None:
        raise Unsuitable("this kernel gives programs no vDSO")
    line = next(line for line in Path("/proc/self/maps").read_text("utf-8").splitlines() if line.endswith("[vdso]"))
    size = int(line.split()[0].partition("-")[2], 16) - start
    with open("/proc/self/mem", "rb", buffering=0) as memory:  # noqa: PTH123  unbuffered
        memory.seek(start)
        page = Page.of(memory.read(size))
    if mark_in(page.image[page.block :]):
        raise Unsuitable("our own clock is skewed, so nobody here knows a right one")
    return page
