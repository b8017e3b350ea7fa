"""Policies are read strictly: a typing mistake in a configuration never becomes a silent default."""

from __future__ import annotations

import pytest

from target_stack.gateway.policies.settings import PolicySettings


def test_an_empty_mapping_gives_the_defaults() -> None:
    assert PolicySettings.from_config({}) == PolicySettings()


def test_given_keys_replace_defaults_and_nothing_else() -> None:
    read = PolicySettings.from_config(
        {"attempts": 4, "retry_budget": {"kind": "unlimited"}, "backoff": {"kind": "none"}}
    )
    assert (read.attempts, read.retry_budget.kind, read.backoff.kind) == (4, "unlimited", "none")
    assert read.breaker == PolicySettings().breaker


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"retires": 3}, "policies: unknown key 'retires'"),
        ({"breaker": {"kind": "non"}}, "policies.breaker.kind"),
        ({"breaker": {"open_s": "5s"}}, "policies.breaker.open_s"),
        ({"breaker": {"open_s": True}}, "policies.breaker.open_s"),
        ({"attempts": 1.5}, "policies.attempts"),
        ({"outlier": {"routing": "all"}}, "policies.outlier.routing: 'all' is none of admitted, everyone"),
        ({"queue": 5}, "policies.queue: expected an object"),
        ({"limiter": {"minimum": -1}}, "policies.limiter.minimum"),
        ({"breaker": {"permit_lease_s": 1}}, "policies.breaker.permit_lease_s is shorter"),
        ({"breaker": {"kind": "count", "window_calls": 5}}, "never judges"),
        ({"hedge": {"quantile": 2}}, "policies.hedge.quantile"),
        ({"retry": {"classes": "all"}}, "policies.retry.classes"),
        ({"deadline": {"first_token_s": 99}}, "first_token_s is longer than per_try_s"),
    ],
)
def test_what_is_wrong_is_named(config: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named.replace("(", r"\(")):
        PolicySettings.from_config(config)
