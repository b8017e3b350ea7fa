"""The fault proxy: stands between two parts of a stack and breaks their TCP connections on request.

Its API is Toxiproxy's, byte for byte, so every Toxiproxy client drives it. It is a process of its own, importing only
the standard library, and single-threaded: one epoll loop owns every socket and every timer.

    admin client ─► http ─► api ─► collection ─► proxy ─► connection ─┬─► link up   ─► chain ─► upstream
                    bytes   routes  by name        listener  two sockets └─► link down ─► chain ─► client

What decides is free of sockets and clocks: `gojson` (what is a valid body), `http` and `api` (request to response),
`chain` and `toxics` (which bytes leave when), `traffic` (requests and token streams among those bytes). `reactor`,
`connection`, `dial`, `address`, `admin` touch the kernel.
"""
