"""The GPU as the engine core meets it: a page of registers that says how fast it may go, how much memory it has, and
whether its work still exists.

What goes wrong here ends the core as a CUDA error ends vLLM's, and the API server sees the same dead engine.
"""

from __future__ import annotations

from target_stack.device.registers import Registers
from target_stack.engine.config import EngineConfig

_GIB = 1 << 30


class GpuFailed(Exception):
    """The device cannot be used, or what ran on it is destroyed; the message is the one in vLLM's log."""


class Gpu:
    """The device of one core. Without a device process behind the registers it is healthy and roomy for ever."""

    def __init__(self, config: EngineConfig, registers: Registers) -> None:
        """Nothing is allocated yet."""
        self._config = config
        self._registers = registers
        self._faults = registers["faults"]
        self.blocks = config.num_gpu_blocks

    def claim(self, pid: int) -> int:
        """Make a context, load the weights, and take what is left for KV blocks; their number. Raises GpuFailed."""
        registers, config = self._registers, self._config
        if registers["lost"] or registers["unusable"]:
            raise GpuFailed("RuntimeError: CUDA unknown error - the device is lost or must be reset before it is used")
        if registers["total_bytes"]:
            free = registers["total_bytes"] - registers["reserved_bytes"] - config.weights_bytes
            self.blocks = min(config.num_gpu_blocks, max(0, int(free // config.kv_block_bytes)))
            self._check_room()
        registers["memory_bytes"] = config.weights_bytes + self.blocks * config.kv_block_bytes
        registers["pid"] = pid
        return self.blocks

    @property
    def withheld(self) -> int:
        """KV blocks that the core must do without, because somebody else has taken the memory behind them."""
        registers, config = self._registers, self._config
        if not registers["reserved_bytes"]:
            return 0
        needed = config.weights_bytes + self.blocks * config.kv_block_bytes
        short = needed + registers["reserved_bytes"] - registers["total_bytes"]
        return min(self.blocks, max(0, int(-(-short // config.kv_block_bytes))))

    @property
    def speed(self) -> float:
        """Share of the full speed."""
        return self._registers["speed"] or 1.0

    def worked(self, seconds: float) -> None:
        """A step is done that took so many seconds of a healthy device."""
        self._registers["busy_s"] += seconds / self.speed
        self._registers["steps"] += 1

    def hangs(self, waited_s: float) -> bool:
        """Whether the step's result is still outstanding after such a wait. Raises GpuFailed."""
        registers = self._registers
        if registers["lost"] or registers["unusable"] or registers["faults"] != self._faults:
            raise GpuFailed("torch.AcceleratorError: CUDA error: an unrecoverable device error was encountered")
        if registers["hung"] and waited_s > self._config.execute_model_timeout_s:
            raise GpuFailed("TimeoutError: RPC call to execute_model timed out.")
        return bool(registers["hung"])

    def _check_room(self) -> None:
        config = self._config
        needed = -(-config.max_model_len // config.block_size)
        if self.blocks < needed:
            wanted, had = (n * config.kv_block_bytes / _GIB for n in (needed, self.blocks))
            raise GpuFailed(
                f"ValueError: To serve at least one request with the model's max seq len ({config.max_model_len}), "
                f"{wanted:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
                f"({had:.2f} GiB)."
            )
