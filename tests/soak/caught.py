"""Which experiment catches which planted weakness, and by which claim."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from drill import ROOT

from chaos.spec.model import Experiment
from chaos.wiring import read_experiment

EXPERIMENTS = ROOT / "experiments"


@dataclass(frozen=True)
class Catch:
    """With `weakness` planted, `experiment` is refuted, and `hypothesis` is among the claims that fall."""

    weakness: str
    experiment: str
    hypothesis: str


CATCHES = (
    Catch("breaker_missing", "retrieval/vector_store_outage", "breaker opens"),
    Catch("breaker_never_closes", "retrieval/vector_store_outage", "breaker closes"),
    Catch("half_open_stampede", "retrieval/vector_store_stall", "only a trickle asks"),
    Catch("retries_without_budget", "load/retry_storm", "no pile-on in the spell"),
    Catch("retries_without_jitter", "engine/errors", "retries are spread in time"),
    Catch("retries_the_unretryable", "engine/refusals", "nobody asks again"),
    Catch("nested_retries", "engine/errors", "no pile-on"),
    Catch("disconnect_not_propagated", "load/leavers", "nobody computes for who has left"),
    Catch("trusts_done", "stream/error_frame", "half an answer is called half"),
    Catch("timeouts_contradict", "retrieval/vector_store_stall", "users are served"),
    Catch("health_by_status_only", "engine/stall", "frozen replica leaves"),
    Catch("stall_watched_by_running_only", "engine/stall", "frozen replica leaves"),
    Catch("stale_routing", "engine/unreachable", "nobody is sent there"),
    Catch("balances_blindly", "gpu/throttle", "users are served"),
    Catch("replica_never_returns", "gpu/node_loss", "replica returns"),
    Catch("cache_stampede", "cache/flush", "each question once"),
    Catch("queue_unbounded", "load/overload", "the line stays short"),
    Catch("shed_late", "load/capacity_loss", "at once"),
    Catch("no_priority", "load/batch_surge", "users do not notice"),
    Catch("batch_starved", "load/batch_surge", "batch work goes on"),
    Catch("no_drain", "deploy/gateway_restart", "nobody is cut off"),
    Catch("fallback_not_wired", "engine/all_replicas_lost", "the small model answers"),
    Catch("kv_wait_unbounded", "disaggregated/transfer_black_hole", "nobody waits without end"),
    Catch("prefill_without_detour", "disaggregated/prefill_loss", "by the main model"),
    Catch("kv_references_swapped", "disaggregated/swapped_reference", "nothing leaks before"),
    Catch("kv_references_unchecked", "disaggregated/swapped_reference", "nobody reads another's words"),
    Catch("tool_retried_twice", "tools/lost_reply", "each deed is done once"),
    Catch("tool_results_trusted", "tools/wrong_schema", "answers are right"),
    Catch("tool_session_kept", "tools/session_drop", "users are served"),
    Catch("tool_permission_missing", "tools/permissions", "nothing forbidden is done"),
    Catch("audit_gap", "tools/audit", "every call is on record"),
    Catch("recall_not_watched", "retrieval/silent_emptiness", "somebody notices"),
    Catch("recall_by_name_only", "retrieval/stale", "somebody notices"),
    Catch("canned_text_empty", "engine/no_model_left", "users get something to read"),
    Catch("canary_without_length_guard", "deploy/bad_canary", "taken back for its length"),
    Catch("kv_reference_reused", "control/no_fault", "answers are right"),
    Catch("rollback_splits_triple", "deploy/rollback", "the triple is whole"),
    Catch("ingest_acknowledged_early", "retrieval/durability", "nobody is told what is not so"),
    Catch("vector_store_async_commit", "retrieval/durability", "nobody is told what is not so"),
    Catch("agent_without_checkpoint", "agent/crash", "tasks go on"),
    Catch("agents_wait_forever", "agent/deadlock", "waits end"),
    Catch("agent_deadlines_by_date", "resource/clock_skew", "no task runs out"),
)


BEGIN, END = "<!-- weaknesses: begin; `make weaknesses` writes this -->", "<!-- weaknesses: end -->"


def table(summary: str) -> str:
    """What the README shows between its two markers: the pairs, and how the last run of all of them came out."""
    rows = [f"| `{catch.weakness}` | {catch.experiment} | {catch.hypothesis} |" for catch in CATCHES]
    head = ["| planted weakness | caught by | the claim that falls |", "| --- | --- | --- |"]
    return "\n".join([summary, "", *head, *rows])


def shown_in(page: str) -> str:
    """The text between the markers of a page. Raises ValueError where it has not just one pair."""
    (_, rest) = page.split(BEGIN)
    (inside, _) = rest.split(END)
    return inside.strip()


def with_table(page: str, text: str) -> str:
    """The page with this text between its markers, and every other byte as it was. Raises ValueError."""
    (before, rest) = page.split(BEGIN)
    (_, after) = rest.split(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def stale(weaknesses: Collection[str]) -> list[str]:
    """What is wrong with the table itself: a weakness that nothing catches, a name that has changed."""
    named = {catch.weakness for catch in CATCHES}
    missing = [f"no experiment is named to catch the weakness {name}" for name in weaknesses if name not in named]
    unknown = [f"there is no weakness {name}" for name in sorted(named - set(weaknesses))]
    return [*missing, *unknown, *(why for catch in CATCHES if (why := _stale_claim(catch)))]


def _stale_claim(catch: Catch) -> str | None:
    experiment = read_experiment(EXPERIMENTS / f"{catch.experiment}.yaml", ROOT)
    if not isinstance(experiment, Experiment):
        return f"{catch.experiment} is not a good file: {experiment[0].headline}"
    names = [hypothesis.name for hypothesis in experiment.hypotheses]
    if catch.hypothesis in names:
        return None
    return f"{catch.experiment} has no hypothesis `{catch.hypothesis}`; there are: {', '.join(names)}"
