"""What a fault cannot do without on the machine, in the words that the catalog prints."""

from __future__ import annotations

from chaos.ports import Need

ROOT = Need("root", "root", "run brownout as root: sudo -E brownout ...")
TRACE = Need("trace", "trace", "run brownout as root, or allow it with sysctl kernel.yama.ptrace_scope=0")
X86_64 = Need("machine", "x86_64", "run it on a machine of this kind: the fault knows its system calls only")


def tool(name: str, package: str | None = None) -> Need:
    """A program on the PATH, from the Debian package of that name."""
    return Need("tool", name, f"apt install {package or name}")


def module(name: str, extra: str) -> Need:
    """A Python module that an extra of ours brings."""
    return Need("module", name, f"pip install 'brownout[{extra}]'")


PACKET_QUEUES = Need("kernel", "nfnetlink_queue", "use a kernel built with CONFIG_NETFILTER_NETLINK_QUEUE")
