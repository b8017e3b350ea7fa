"""A whole life of a proxy through chaostoolkit-toxiproxy: python drive_chaostoolkit.py ADMIN UPSTREAM."""

import json
import sys

from chaostoxi.proxy.actions import create_proxy, delete_proxy, disable_proxy, enable_proxy, reset
from chaostoxi.proxy.probes import get_proxy_attribute, proxy_exist
from chaostoxi.toxic.actions import create_latency_toxic, create_toxic, delete_toxic

admin, upstream = sys.argv[1:]
host, port = upstream.split(":")
where = {"toxiproxy_url": f"http://{admin}"}
seen = {}
seen["made"] = create_proxy("ctk", host, int(port), "127.0.0.1", 0, configuration=where)
seen["exists"] = proxy_exist("ctk", configuration=where)
seen["slow"] = create_latency_toxic("ctk", "slow", 50, configuration=where)
seen["hole"] = create_toxic("ctk", "hole", "timeout", attributes={"timeout": 0}, configuration=where)
seen["less"] = delete_toxic("ctk", "hole", configuration=where)
disable_proxy("ctk", configuration=where)
seen["off"] = get_proxy_attribute("ctk", "enabled", configuration=where)
enable_proxy("ctk", configuration=where)
seen["on"] = get_proxy_attribute("ctk", "enabled", configuration=where)
reset(configuration=where)
seen["toxics"] = get_proxy_attribute("ctk", "toxics", configuration=where)
delete_proxy("ctk", configuration=where)
seen["gone"] = not proxy_exist("ctk", configuration=where)
print(json.dumps(seen))  # noqa: T201  what the test reads
