"""The paged KV cache."""

from __future__ import annotations

from target_stack.engine.kv_blocks import BlockPool, block_hashes


def test_only_full_blocks_have_a_hash():
    assert len(block_hashes(["a"] * 9, 4)) == 2


def test_a_hash_covers_everything_before_its_block():
    assert block_hashes(list("abcdefgh"), 4)[1] != block_hashes(list("xbcdefgh"), 4)[1]


def test_usage_is_the_share_of_blocks_held():
    pool = BlockPool(4, 16)
    pool.allocate(1)
    assert pool.usage == 0.25


def test_nothing_is_held_when_not_everything_can_be():
    pool = BlockPool(4, 16)
    assert pool.allocate(5) is None
    assert pool.usage == 0.0


def test_a_released_block_is_found_again_until_it_is_needed():
    pool = BlockPool(2, 4)
    (block,) = pool.allocate(1) or []
    pool.publish(block, b"beginning")
    pool.release([block])
    assert pool.cached([b"beginning"]) == [block]
    pool.allocate(2)
    assert pool.cached([b"beginning"]) == []


def test_a_shared_block_stays_held_until_the_last_holder_lets_go():
    pool = BlockPool(2, 4)
    blocks = pool.allocate(1) or []
    pool.share(blocks)
    pool.release(blocks)
    assert pool.usage == 0.5
    pool.release(blocks)
    assert pool.usage == 0.0


def test_the_end_of_a_prompt_is_evicted_before_its_beginning():
    pool = BlockPool(2, 4)
    blocks = pool.allocate(2) or []
    for block, content in zip(blocks, (b"one", b"two"), strict=True):
        pool.publish(block, content)
    pool.release(blocks)
    pool.allocate(1)
    assert pool.cached([b"one", b"two"]) == blocks[:1]


def test_free_blocks_that_would_be_shared_do_not_count_as_room():
    pool = BlockPool(2, 4)
    (block,) = pool.allocate(1) or []
    pool.publish(block, b"one")
    pool.release([block])
    assert pool.fits(1, [block])
    assert not pool.fits(2, [block])


def test_withheld_blocks_are_in_nobodys_count_and_come_back():
    pool = BlockPool(4, 16)
    held = pool.allocate(1) or []
    assert pool.withhold(3)
    assert (pool.usage, pool.allocate(1)) == (1.0, None)
    assert not pool.withhold(4)
    pool.release(held)
    assert pool.withhold(0)
    assert (pool.usage, pool.withheld) == (0.0, 0)
