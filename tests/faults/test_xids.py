"""What the catalog says of the driver's error numbers is what the simulated device does with them."""

from __future__ import annotations

import pytest

from chaos.faults.grips import xids
from target_stack.device.xid import XIDS

CONSEQUENCES = {
    "nothing": "work goes on",
    "process": "the process that caused it loses its context",
    "reset": "every process on the GPU loses its context, and none can begin until the action is taken",
    "lost": "all work on it is gone and no call reaches it",
    "hang": "work stands still and no error comes",
}


def test_the_catalog_and_the_device_know_the_same_numbers() -> None:
    assert list(xids.XIDS) == list(XIDS)


@pytest.mark.parametrize("code", XIDS)
def test_a_number_has_the_consequence_that_is_told(code: int) -> None:
    assert CONSEQUENCES[XIDS[code].effect] == xids.XIDS[code].consequence


@pytest.mark.parametrize(
    ("code", "action"),
    [
        *((31, "restart the program"), (63, "none"), (74, "check the links"), (79, "restart the machine")),
        *((94, "restart the program"), (95, "reset the GPU"), (109, "reset the GPU"), (119, "reset the GPU")),
    ],
)
def test_the_vendors_action_depends_on_the_number_alone(code: int, action: str) -> None:
    assert action == xids.XIDS[code].action
    assert xids.advice(code).endswith(f"action: {action}")
