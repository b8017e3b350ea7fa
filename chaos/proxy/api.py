"""Toxiproxy's HTTP API: a request in, a response out, the collection changed in between.

Statuses, bodies and headers were read off a real server (2.12) and are held by a replay of its recorded exchanges.
Ours alone are GET /brownout/hits (what every toxic has really touched), `expires_ms` of a toxic, and the kinds that
know HTTP; a client that does not ask for them does not see them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import asdict
from typing import Any, TypeVar

from chaos.proxy import metrics
from chaos.proxy.address import AddressError
from chaos.proxy.collection import Collection, Wanted
from chaos.proxy.gojson import Decoded, GoError, Struct, decode, encode, kind_of, parse
from chaos.proxy.http import JSON, Request, Response, plain
from chaos.proxy.proxy import Proxy
from chaos.proxy.toxic import Toxic, values_of
from chaos.proxy.toxics import TOXICS
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.toxics.stub import Attributes

VERSION = "2.12.0+brownout"
"""The Toxiproxy release whose contract this is; clients that compare versions ignore what follows the plus."""

_T = TypeVar("_T")
_Handler = Callable[[Request, Mapping[str, str]], Response]
_KINDS = {toxic.kind: toxic for toxic in TOXICS}
_PROXY = Struct(
    "toxiproxy.Proxy", "Proxy", {"name": "string", "listen": "string", "upstream": "string", "enabled": "bool"}
)
_POPULATE_TYPE = r'[]struct { toxiproxy.Proxy; Enabled *bool "json:\"enabled\"" }'
_UPDATE_TYPE = r'struct { Attributes interface {} "json:\"attributes\""; Toxicity float32 "json:\"toxicity\"" }'
_TOXIC = Struct(
    "toxics.ToxicWrapper",
    "ToxicWrapper",
    {
        "attributes": Struct("toxics.NoopToxic", "NoopToxic", {}),
        "name": "string",
        "type": "string",
        "stream": "string",
        "toxicity": "float32",
        "expires_ms": "int64",
    },
)


class ApiError(Exception):
    """An answer that is an error, in Toxiproxy's words."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Api:
    """The routes over one collection."""

    def __init__(self, collection: Collection, counters: metrics.Metrics) -> None:
        self._collection = collection
        self._metrics = counters
        proxy, toxics = "/proxies/{proxy}", "/proxies/{proxy}/toxics"
        routes: dict[str, dict[str, _Handler]] = {
            "/version": {"GET": self._version},
            "/proxies": {"GET": self._list, "POST": self._create},
            "/populate": {"POST": self._populate},
            "/reset": {"POST": self._reset},
            proxy: {"GET": self._show, "PATCH": self._update, "POST": self._update, "DELETE": self._delete},
            toxics: {"GET": self._list_toxics, "POST": self._create_toxic},
            toxics + "/{toxic}": {
                "GET": self._show_toxic,
                "PATCH": self._update_toxic,
                "POST": self._update_toxic,
                "DELETE": self._delete_toxic,
            },
            "/brownout/hits": {"GET": self._hits},
        }
        if counters.proxy or counters.runtime:
            routes["/metrics"] = {"GET": self._show_metrics}
        self._routes = [(_pattern(path), methods) for path, methods in routes.items()]

    def handle(self, request: Request) -> Response:
        """The answer. Never raises for anything that a client sent."""
        clean = posixpath.normpath("/" + request.path.lstrip("/")) + (
            "/" if len(request.path) > 1 and request.path[-1] == "/" else ""
        )
        if clean != request.path:
            return Response(301, headers={"Location": clean})
        for pattern, methods in self._routes:
            if found := pattern.fullmatch(request.path):
                handler = methods.get(request.method)
                return self._answer(handler, request, found.groupdict()) if handler else Response(405)
        return plain(404, "404 page not found")

    def _answer(self, handler: _Handler, request: Request, names: Mapping[str, str]) -> Response:
        try:
            # Toxiproxy refuses browsers, so that a web page cannot drive a developer's proxy.
            browser = request.headers.get("user-agent", "").startswith("Mozilla/")
            response = plain(403, "User agent not allowed") if browser else handler(request, names)
        except ApiError as problem:
            text = f'{{"error":{encode(problem.text)},"status":{problem.status}}}'
            response = plain(problem.status, text)
        headers = {**response.headers, "X-Toxiproxy-Request-Id": os.urandom(10).hex()}
        return Response(response.status, response.body, response.content_type, headers)

    def _version(self, _request: Request, _names: Mapping[str, str]) -> Response:
        return Response(200, f'{{"version": "{VERSION}"}}\n', "application/json;charset=utf-8")

    def _list(self, _request: Request, _names: Mapping[str, str]) -> Response:
        members = ",".join(f"{encode(proxy.name)}:{proxy.to_json()}" for proxy in self._collection.all())
        return Response(200, f"{{{members}}}", JSON)

    def _create(self, request: Request, _names: Mapping[str, str]) -> Response:
        decoded = decode(_parsed(request.body), _PROXY)
        _refuse(decoded)
        wanted = _wanted(decoded.values, "")
        if self._collection.get(wanted.name):
            raise ApiError(409, "proxy already exists")
        return Response(201, _or_500(lambda: self._collection.create(wanted)).to_json(), JSON)

    def _populate(self, request: Request, _names: Mapping[str, str]) -> Response:
        done: list[Proxy] = []
        try:
            wanted = _all_wanted(_parsed(request.body))
            done, problem = self._collection.populate(wanted)
            failure = ApiError(500, str(problem)) if problem else None
        except ApiError as refusal:
            failure = refusal
        proxies = ",".join(proxy.to_json() for proxy in done)
        listed = f"[{proxies}]" if done else "null"
        if failure:
            error = f'"error":{encode(failure.text)},"status":{failure.status}'
            return Response(failure.status, f'{{{error},"proxies":{listed}}}', JSON)
        return Response(201, f'{{"proxies":{listed}}}', JSON)

    def _reset(self, _request: Request, _names: Mapping[str, str]) -> Response:
        _or_500(self._collection.reset)
        return Response(204)

    def _show(self, _request: Request, names: Mapping[str, str]) -> Response:
        return Response(200, self._proxy(names).to_json(), JSON)

    def _update(self, request: Request, names: Mapping[str, str]) -> Response:
        proxy = self._proxy(names)
        decoded = decode(_parsed(request.body), _PROXY)
        _refuse(decoded)
        wanted = decoded.values
        listen, upstream = wanted.get("listen", proxy.listen), wanted.get("upstream", proxy.upstream)
        enabled = wanted.get("enabled", proxy.enabled)
        _or_500(lambda: proxy.update(listen, upstream, enabled=enabled))
        return Response(200, proxy.to_json(), JSON)

    def _delete(self, _request: Request, names: Mapping[str, str]) -> Response:
        self._collection.remove(self._proxy(names))
        return Response(204)

    def _list_toxics(self, _request: Request, names: Mapping[str, str]) -> Response:
        toxics = ",".join(toxic.to_json() for toxic in self._proxy(names).all_toxics())
        return Response(200, f"[{toxics}]", JSON)

    def _create_toxic(self, request: Request, names: Mapping[str, str]) -> Response:
        proxy = self._proxy(names)
        parsed = _parsed(request.body)
        decoded = decode(parsed, _TOXIC)
        _refuse(decoded)
        toxic = _new_toxic(decoded.values)
        if proxy.find(toxic.name):
            raise ApiError(409, "toxic already exists")
        _refuse(_set_attributes(toxic.attributes, parsed))
        _refuse_problem(toxic)
        proxy.add(toxic)
        return Response(200, toxic.to_json(), JSON)

    def _show_toxic(self, _request: Request, names: Mapping[str, str]) -> Response:
        return Response(200, self._toxic(names)[1].to_json(), JSON)

    def _update_toxic(self, request: Request, names: Mapping[str, str]) -> Response:
        proxy, toxic = self._toxic(names)
        before = copy(toxic.attributes)
        decoded = _set_attributes(toxic.attributes, _parsed(request.body))
        _refuse(decoded)
        _refuse_problem(toxic, before)
        toxic.toxicity = decoded.values.get("toxicity", toxic.toxicity)
        if "expires_ms" in decoded.values:
            proxy.set_expiry(toxic, decoded.values["expires_ms"])
        proxy.changed(toxic)
        return Response(200, toxic.to_json(), JSON)

    def _delete_toxic(self, _request: Request, names: Mapping[str, str]) -> Response:
        proxy, toxic = self._toxic(names)
        proxy.remove(toxic)
        return Response(204)

    def _show_metrics(self, _request: Request, _names: Mapping[str, str]) -> Response:
        return Response(200, self._metrics.text(), metrics.CONTENT_TYPE)

    def _hits(self, _request: Request, _names: Mapping[str, str]) -> Response:
        proxies = {
            proxy.name: {
                "accepted": proxy.accepted,
                "open": len(proxy.connections),
                "toxics": {toxic.name: asdict(toxic.hits) for toxic in proxy.all_toxics()},
            }
            for proxy in self._collection.all()
        }
        return Response(200, encode(proxies), JSON)

    def _proxy(self, names: Mapping[str, str]) -> Proxy:
        proxy = self._collection.get(names["proxy"])
        if not proxy:
            raise ApiError(404, "proxy not found")
        return proxy

    def _toxic(self, names: Mapping[str, str]) -> tuple[Proxy, Toxic]:
        proxy = self._proxy(names)
        toxic = proxy.find(names["toxic"])
        if not toxic:
            raise ApiError(404, "toxic not found")
        return proxy, toxic


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))


def _parsed(body: bytes) -> Any:
    try:
        return parse(body)
    except GoError as problem:
        raise ApiError(400, f"bad request body: {problem}") from None


def _refuse(decoded: Decoded) -> None:
    if decoded.error:
        raise ApiError(400, f"bad request body: {decoded.error}")


def _refuse_problem(toxic: Toxic, before: Attributes | None = None) -> None:
    """Refuse values that our own kinds cannot use; an update is then undone."""
    problem = toxic.attributes.problem()
    if isinstance(toxic.attributes, PerRequest) and toxic.direction == "upstream":
        problem = f"{toxic.attributes.kind} harms answers, so its stream is downstream"
    if problem:
        for name, value in values_of(before).items() if before else ():
            setattr(toxic.attributes, name, value)
        raise ApiError(400, f"bad request body: {problem}")


def _or_500(act: Callable[[], _T]) -> _T:
    try:
        return act()
    except AddressError as problem:
        raise ApiError(500, str(problem)) from None


def _wanted(values: Mapping[str, Any], where: str) -> Wanted:
    """A proxy from decoded fields; `where` ends the message about one that is missing."""
    for name in ("name", "upstream"):
        if not values.get(name):
            raise ApiError(400, f"missing required field: {name}{where}")
    return Wanted(values["name"], values.get("listen", ""), values["upstream"], values.get("enabled", True))


def _all_wanted(parsed: Any) -> list[Wanted]:
    """The proxies of a populate, all checked before the first is made."""
    if parsed is None:
        return []
    if not isinstance(parsed, list):
        problem = f"json: cannot unmarshal {kind_of(parsed)} into Go value of type {_POPULATE_TYPE}"
        raise ApiError(400, f"bad request body: {problem}")
    decoded = [decode(item, _PROXY) for item in parsed]
    for each in decoded:
        _refuse(each)
    return [_wanted(each.values, f" at proxy {index}") for index, each in enumerate(decoded, 1)]


def _new_toxic(values: Mapping[str, Any]) -> Toxic:
    """A toxic with its attributes still zero. The checks come in Toxiproxy's order: stream, then type."""
    stream = values.get("stream", "downstream")
    if stream.lower() not in ("upstream", "downstream"):
        raise ApiError(400, "stream was invalid, can be either upstream or downstream")
    kind = values.get("type", "")
    name = values.get("name") or f"{kind}_{stream}"
    if kind not in _KINDS:
        raise ApiError(400, "invalid toxic type")
    return Toxic(name, stream, _KINDS[kind](), values.get("toxicity", 1.0), values.get("expires_ms", 0))


def _set_attributes(attributes: Attributes, parsed: Any) -> Decoded:
    """Set what can be set, even if something else is wrong: Toxiproxy applies a refused update in part."""
    fields: dict[str, str | Struct] = {
        name: "string" if isinstance(value, str) else attributes.go_int for name, value in values_of(attributes).items()
    }
    inner = Struct(f"toxics.{attributes.go_name}", attributes.go_name, fields)
    known: dict[str, str | Struct] = {"attributes": inner, "toxicity": "float32", "expires_ms": "int64"}
    decoded = decode(parsed, Struct(_UPDATE_TYPE, "", known))
    for name, value in decoded.values.get("attributes", {}).items():
        setattr(attributes, name, value)
    return decoded


def load(collection: Collection, text: bytes) -> str | None:
    """Create the proxies of a configuration file, the same array as a populate takes. What went wrong, or None."""
    try:
        _, problem = collection.populate(_all_wanted(parse(text)))
    except (ApiError, GoError) as failure:
        return str(failure)
    return str(problem) if problem else None
