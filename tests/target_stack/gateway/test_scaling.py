"""What autoscaling wants is told as an event and shown as a gauge; nothing is scaled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.system


async def test_a_loaded_pool_asks_for_more_and_an_idle_one_for_fewer(serve: Any, sse: Any) -> None:
    async with serve(autoscale={"window_s": 0.5, "cooldown_s": 1.0, "slots": 2}) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), *(0.2, sse.frame(" you")) * 4, sse.frame("", "stop"))
        busy = [asyncio.create_task(stack.chat()) for _ in range(4)]
        await stack.until(lambda: stack.events("scale_up_wanted"))
        asked = stack.events("scale_up_wanted")[0]
        assert (asked["dependency"], asked["replicas"], asked["wanted"]) == ("engine", 2, 4)
        assert 0.7 <= asked["utilisation"] <= 1.0
        assert "gateway_replicas_wanted 4" in (await stack.get("/metrics")).text
        await asyncio.gather(*busy)
        await stack.until(lambda: stack.events("scale_down_wanted"))
        assert stack.events("scale_down_wanted")[0]["wanted"] == 1
