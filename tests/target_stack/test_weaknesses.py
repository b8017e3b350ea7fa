"""The catalogue of mistakes."""

from __future__ import annotations

import pytest

from target_stack.agent.settings import AgentSettings
from target_stack.gateway.policies.settings import PolicySettings, build
from target_stack.weaknesses import WEAKNESSES, UnknownWeakness, find_weaknesses, plant


def test_names_are_unique_and_every_one_says_what_it_does():
    assert len({w.name for w in WEAKNESSES}) == len(WEAKNESSES)
    assert all(w.summary.endswith(".") for w in WEAKNESSES)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownWeakness, match="'braker_mising'; did you mean 'breaker_missing'"):
        find_weaknesses(["braker_mising"])


def test_breaker_missing_takes_the_breakers_and_leaves_the_rest():
    planted = plant(find_weaknesses(["breaker_missing"]), "gateway", {"listen": "x", "policies": {"attempts": 2}})
    assert planted == {"listen": "x", "policies": {"attempts": 2, "breaker": {"kind": "none"}}}


def test_retries_without_budget_means_four_tries_without_pause_or_budget():
    planted = plant(find_weaknesses(["retries_without_budget"]), "gateway", {})
    assert planted["policies"] == {
        "retry_budget": {"kind": "unlimited"},
        "attempts": 4,
        "backoff": {"kind": "none"},
    }


@pytest.mark.parametrize(
    ("name", "policy", "changes"),
    [
        ("breaker_never_closes", "breaker", {"open_s": 3600.0}),
        ("half_open_stampede", "breaker", {"half_open_permits": 1_000_000}),
        ("health_by_status_only", "outlier", {"evidence": "status"}),
        ("stall_watched_by_running_only", "outlier", {"evidence": "running"}),
        ("stale_routing", "outlier", {"routing": "everyone"}),
        ("retries_without_jitter", "backoff", {"kind": "exponential"}),
        ("retries_the_unretryable", "retry", {"classes": "any"}),
        ("nested_retries", "retry", {"hop_resends": 3}),
        ("disconnect_not_propagated", "answer", {"client_gone": "finish"}),
        ("trusts_done", "answer", {"whole_by": "done"}),
        ("replica_never_returns", "outlier", {"probe_period_s": 3600.0}),
        ("canary_without_length_guard", "canary", {"length_guard": "none"}),
        ("rollback_splits_triple", "release", {"rollback": "model"}),
        ("recall_not_watched", "recall", {"kind": "none"}),
        ("recall_by_name_only", "recall", {"look_at": "name"}),
        ("queue_unbounded", "queue", {"capacity": 1_000_000, "wait_s": 3600.0, "backed_up_wait_s": 3600.0}),
    ],
)
def test_a_weakness_of_one_policy_changes_that_policy_and_keeps_its_other_settings(name, policy, changes):
    original = {"policies": {"attempts": 2, policy: {"kept": 1}}}
    planted = plant(find_weaknesses([name]), "gateway", original)
    assert planted == {"policies": {"attempts": 2, policy: {"kept": 1, **changes}}}


def test_the_weaknesses_of_overload_are_other_settings_of_honest_policies():
    def planted(name):
        return PolicySettings.from_config(plant(find_weaknesses([name]), "gateway", {})["policies"])

    assert planted("shed_late").admission_at == "first_token"
    assert (planted("no_priority").queue.classes, planted("no_priority").slots.batch_most) == ("one", 1.0)
    assert (planted("batch_starved").queue.batch_aging_s, planted("batch_starved").slots.batch_most) == (3600.0, 0.0)
    assert planted("no_drain").drain.kind == "none"


def test_timeouts_contradict_outlives_the_patience_of_clients_but_not_the_gateways_own_total():
    limits = PolicySettings.from_config(plant(find_weaknesses(["timeouts_contradict"]), "gateway", {})["policies"])
    impatient_s = 3.0
    assert impatient_s < limits.deadline.connect_s
    assert impatient_s < limits.deadline.vector_store_s <= limits.deadline.retrieval_s < limits.deadline.total_s


def test_fallback_not_wired_and_canned_text_empty_take_one_step_of_the_chain_each():
    original = {"fallback": {"name": "engine-small"}, "policies": {}}
    assert plant(find_weaknesses(["fallback_not_wired"]), "gateway", original) == {"fallback": None, "policies": {}}
    assert plant(find_weaknesses(["canned_text_empty"]), "gateway", original) == {**original, "canned_text": ""}


def test_cache_stampede_takes_the_shared_flight_and_the_jitter_of_lifetimes():
    planted = plant(find_weaknesses(["cache_stampede"]), "gateway", {"policies": {"cache": {"ttl_s": 60.0}}})
    policies = PolicySettings.from_config(planted["policies"])
    assert (policies.single_flight.kind, policies.cache.ttl_jitter, policies.cache.ttl_s) == ("none", 0.0, 60.0)


def test_the_weaknesses_of_the_agents_are_settings_of_theirs():
    lost = build(AgentSettings, plant(find_weaknesses(["agent_without_checkpoint"]), "agent", {}), "agent")
    stuck = build(AgentSettings, plant(find_weaknesses(["agents_wait_forever"]), "agent", {}), "agent")
    dated = build(AgentSettings, plant(find_weaknesses(["agent_deadlines_by_date"]), "agent", {}), "agent")
    assert ("memory", "disk") == (lost.checkpoint, stuck.checkpoint)
    assert ("steady", "wall") == (lost.clock, dated.clock)
    assert lost.waits == AgentSettings().waits
    assert min(stuck.waits.agent_s, stuck.waits.dependency_s, stuck.waits.task_s) > 1000


def test_two_weaknesses_of_one_policy_add_up():
    both = find_weaknesses(["breaker_never_closes", "half_open_stampede"])
    assert plant(both, "gateway", {})["policies"] == {"breaker": {"open_s": 3600.0, "half_open_permits": 1_000_000}}


def test_two_weaknesses_add_up_and_a_repeated_one_counts_once():
    both = find_weaknesses(["breaker_missing", "retries_without_budget", "breaker_missing"])
    assert [w.name for w in both] == ["breaker_missing", "retries_without_budget"]
    assert set(plant(both, "gateway", {})["policies"]) == {"breaker", "retry_budget", "attempts", "backoff"}


@pytest.mark.parametrize("weakness", WEAKNESSES, ids=lambda w: w.name)
def test_planting_leaves_the_original_and_other_components_alone(weakness):
    original = {"policies": {}}
    plant([weakness], weakness.component, original)
    assert original == {"policies": {}}
    assert plant([weakness], "embedder", original) == original


def test_the_weaknesses_of_the_tools_are_one_setting_each():
    for name, component, changed in (
        ("tool_retried_twice", "gateway", {"policies": {"tool_key": "per_try"}}),
        ("tool_results_trusted", "gateway", {"policies": {"tool_rules": {"results": "trusted"}}}),
        ("tool_session_kept", "gateway", {"policies": {"tool_rules": {"session": "kept"}}}),
        ("tool_permission_missing", "tools", {"enforcement": "report"}),
        ("audit_gap", "tools", {"audit": "deferred"}),
    ):
        assert plant(find_weaknesses([name]), component, {}) == changed


def test_the_weaknesses_of_writing_are_settings_of_who_acknowledges():
    late = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "64MB"}
    for name, component, changed in (
        ("ingest_acknowledged_early", "gateway", {"policies": {"ingest": {"acknowledge": "accepted"}}}),
        ("vector_store_async_commit", "postgres", late),
    ):
        assert plant(find_weaknesses([name]), component, {}) == changed
