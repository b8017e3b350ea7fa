"""The admin API may be had for those alone who can read the token file."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.proxy.http import Request, Response
from chaos.proxy.token import TokenTrouble, guarded, token_in
from tests.proxy.conftest import Start


def asked(said: str | None) -> Request:
    headers = {} if said is None else {"authorization": said}
    return Request("GET", "/proxies", headers, b"", keep_alive=True)


def test_a_missing_file_is_made_for_its_owner_and_then_kept(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = token_in(path)
    assert 64 == len(made)
    assert made == token_in(path)
    assert 0o600 == path.stat().st_mode & 0o777


def test_what_others_can_read_is_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("known\n")
    path.chmod(0o640)
    with pytest.raises(TokenTrouble, match=f"{path} is open to others; chmod 600 {path}"):
        token_in(path)
    with pytest.raises(TokenTrouble, match="cannot be used as a token file"):
        token_in(tmp_path)


@pytest.mark.parametrize("said", [None, "", "t0ken", "Bearer t0ke", "Bearer t0kens", "Basic t0ken", "Bearer t\xf6ken"])
def test_whoever_does_not_know_it_changes_nothing(said: str | None) -> None:
    served: list[Request] = []

    def handle(request: Request) -> Response:
        served.append(request)
        return Response(200)

    refused = guarded(handle, "t0ken")(asked(said))
    assert (401, '{"error":"missing or wrong token","status":401}\n') == (refused.status, refused.body)
    assert "Bearer" == refused.headers["WWW-Authenticate"]
    assert not served


def test_whoever_knows_it_is_served() -> None:
    assert 200 == guarded(lambda _: Response(200), "t0ken")(asked("Bearer t0ken")).status


def status(port: int, path: str, headers: Mapping[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path, headers=headers)
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.system
def test_a_proxy_alone_is_open_unless_it_is_given_a_token_file(start_proxy: Start, tmp_path: Path) -> None:
    path = tmp_path / "token"
    open_, closed = start_proxy(), start_proxy("--token-file", str(path))
    known = {"Authorization": f"Bearer {path.read_text().strip()}"}
    for route in ("/version", "/proxies", "/brownout/hits", "/nothing"):
        assert 401 == status(closed.port, route, {})
        assert status(open_.port, route, {}) == status(closed.port, route, known) != 401


@pytest.mark.system
def test_a_token_file_that_is_open_to_others_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("known\n")
    path.chmod(0o644)
    command = [sys.executable, "-m", "chaos.proxy", "-host", "127.0.0.1", "-port", "0", "--token-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert 1 == done.returncode
    assert f"chmod 600 {path}" in done.stderr
    assert 1 == len(done.stderr.splitlines())
