"""One engine of a fleet runs with another configuration than its peers, as after a rollout that reached all but one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.other_settings import OtherSettings, Told
from chaos.inventory import Target
from chaos.settings import setting


@dataclass(frozen=True)
class ConfigDrift(OtherSettings):
    """Restarts an engine with other settings."""

    kind: ClassVar[str] = "config_drift"
    summary: ClassVar[str] = "One engine is restarted with settings that its peers do not have."

    model: str | None = setting("model that it serves; default unchanged", default=None)
    max_model_len: int | None = setting("tokens of its context; default unchanged", default=None, least=1, most=1 << 20)
    num_gpu_blocks: int | None = setting(
        "KV blocks that it has; too few for one context end it at its start; default unchanged",
        default=None,
        least=1,
        most=1 << 20,
    )
    prefix_caching: bool | None = setting("whether it keeps prompts' KV blocks; default unchanged", default=None)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Something must change, beside what a target must be."""
        idle = "nothing drifts; set model, max_model_len, num_gpu_blocks or prefix_caching"
        return (*(() if self._set() else (idle,)), *super().problems(targets))

    def changes(self, told: Told) -> Mapping[str, Any]:
        """What is set, whatever the engine has now."""
        del told
        return self._set()

    def _set(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}
