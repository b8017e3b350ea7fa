"""Parts of the kernel that may be left out of it or wait to be loaded, asked for in ways that change nothing."""

from __future__ import annotations

import socket
import struct

_NETFILTER = 12
_QUEUE_CONFIG = 3 << 8 | 2
_REQUEST_ACK = 1 | 4
_PF_UNBIND = 4
_ERROR = 2
_ANSWER_S = 1.0


def packet_queues() -> bool:
    """Whether it has nfnetlink_queue, by a request that has no meaning since Linux 3.8 and is answered with yes.

    Loads the module where it is one. Without the right to ask the answer is no.
    """
    command = struct.pack("=HH", 8, 1) + struct.pack("!BBH", _PF_UNBIND, 0, socket.AF_INET)
    body = struct.pack("!BBH", socket.AF_UNSPEC, 0, 0) + command
    request = struct.pack("=IHHII", 16 + len(body), _QUEUE_CONFIG, _REQUEST_ACK, 0, 0) + body
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER) as kernel:
            kernel.settimeout(_ANSWER_S)
            kernel.send(request)
            answer = kernel.recv(4096)
    except OSError:
        return False
    _, kind, _, _, _, error = struct.unpack_from("=IHHIIi", answer)
    return bool(kind == _ERROR and error == 0)
