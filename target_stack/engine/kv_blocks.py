"""The paged KV cache: blocks that requests share when their prompts begin alike.

A block that nobody holds keeps its content until something new needs the room; the one let go first goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b


def block_hashes(tokens: Sequence[str], block_size: int, kind: str = "content") -> tuple[bytes, ...]:
    """One hash per full block of a prompt; each covers everything before it, so equal hashes mean equal beginnings.

    The kind `position_only` hashes a block's number alone: whoever comes second reads what the first has written.
    """
    starts = range(0, len(tokens) - block_size + 1, block_size)
    if kind == "position_only":
        return tuple(start.to_bytes(8, "little") for start in starts)
    hashes = []
    before = b""
    for start in starts:
        content = "\0".join(tokens[start : start + block_size]).encode()
        before = blake2b(before + content, digest_size=8).digest()
        hashes.append(before)
    return tuple(hashes)


class BlockPool:
    """A fixed number of blocks, free or held by one or more requests."""

    def __init__(self, count: int, size: int) -> None:
        """`count` blocks of `size` tokens."""
        self.size = size
        self._references = [0] * count
        self._hash_of: dict[int, bytes] = {}
        self._block_of: dict[bytes, int] = {}
        self._words: dict[int, tuple[str, ...]] = {}
        self._withheld: list[int] = []
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(count))  # oldest first

    @property
    def usage(self) -> float:
        """Share of the blocks there are that some request holds, 0 to 1."""
        count = len(self._references) - len(self._withheld)
        return 1 - len(self._free) / count if count else 1.0

    @property
    def withheld(self) -> int:
        """How many blocks are out of use."""
        return len(self._withheld)

    def withhold(self, count: int) -> bool:
        """Take so many blocks out of use, or put some back; whether that many could be taken yet."""
        while len(self._withheld) > count:
            self._free[self._withheld.pop()] = None
        while len(self._withheld) < count and self._free:
            block = self._free.popitem(last=False)[0]
            self._forget(block)
            self._withheld.append(block)
        return len(self._withheld) == count

    def blocks_for(self, tokens: int) -> int:
        """How many blocks hold so many tokens."""
        return -(-tokens // self.size)

    def cached(self, hashes: Sequence[bytes]) -> list[int]:
        """The blocks of the longest known beginning."""
        found = []
        for each in hashes:
            block = self._block_of.get(each)
            if block is None:
                break
            found.append(block)
        return found

    def fits(self, new: int, shared: Sequence[int]) -> bool:
        """Whether `new` blocks can be had once the `shared` ones are held."""
        return new <= len(self._free) - sum(block in self._free for block in shared)

    def share(self, blocks: Sequence[int]) -> None:
        """Hold blocks that `cached` found."""
        for block in blocks:
            self._references[block] += 1
            self._free.pop(block, None)

    def allocate(self, count: int) -> list[int] | None:
        """Hold `count` fresh blocks; None, and nothing held, when there are not so many."""
        if count > len(self._free):
            return None
        blocks = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block in blocks:
            self._references[block] = 1
            self._forget(block)
        return blocks

    def publish(self, block: int, content: bytes, words: Sequence[str] = ()) -> None:
        """Make a fully computed block findable; `words` are what was computed into it."""
        if content not in self._block_of and block not in self._hash_of:
            self._block_of[content] = block
            self._hash_of[block] = content
            self._words[block] = tuple(words)

    def read(self, blocks: Sequence[int]) -> list[str]:
        """What lies in findable blocks, whoever wrote it."""
        return [word for block in blocks for word in self._words[block]]

    def release(self, blocks: Sequence[int]) -> None:
        """Let go of a request's blocks, its end first: beginnings are worth more, so they are evicted later."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free[block] = None

    def _forget(self, block: int) -> None:
        content = self._hash_of.pop(block, None)
        if content is not None:
            del self._block_of[content], self._words[block]
