"""The settings of an engine."""

from __future__ import annotations

import pytest

from target_stack.engine.config import EngineConfig

LEAST = {"name": "engine-a", "listen": "127.0.0.1:20001"}


def test_name_and_address_are_enough():
    config = EngineConfig.from_json(LEAST)
    assert (config.address, config.max_num_queued_reqs, config.shutdown_timeout) == (("127.0.0.1", 20001), None, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"modle": "x"}, "unknown key 'modle'"),
        ({"max_num_seqs": 0}, "max_num_seqs must be at least 1"),
        ({"scheduling_policy": "lifo"}, "fcfs or priority"),
        ({"num_gpu_blocks": 8}, "must hold max_model_len"),
    ],
)
def test_what_cannot_work_is_refused_by_name(change, said):
    with pytest.raises(ValueError, match=said):
        EngineConfig.from_json({**LEAST, **change})


def test_a_missing_address_is_named():
    with pytest.raises(ValueError, match="'listen' is missing"):
        EngineConfig.from_json({"name": "engine-a"})
