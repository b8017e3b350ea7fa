"""Known mistakes that can be planted in the stack, to prove that an experiment catches them.

Each one is a pure change of one component's configuration, so the code that runs is the same as in the hardened stack.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]


class UnknownWeakness(ValueError):
    """There is no weakness of this name; the message offers the nearest."""


@dataclass(frozen=True)
class Weakness:
    """A mistake with a name: `apply` takes the configuration of `component` and gives it back with the mistake."""

    name: str
    summary: str
    component: str
    apply: Callable[[Config], dict[str, Any]]


def _with(**changes: Any) -> Callable[[Config], dict[str, Any]]:
    def apply(config: Config) -> dict[str, Any]:
        return _merged(config, changes)

    return apply


def _merged(config: Config, changes: Config) -> dict[str, Any]:
    """Changes inside a block leave the rest of the block alone, so that two weaknesses of one policy add up."""
    return {**config, **{key: _merged_value(config.get(key), value) for key, value in changes.items()}}


def _merged_value(old: Any, new: Any) -> Any:
    return _merged(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new


_NEVER_S = 3600.0
_NO_LIMIT = 1_000_000


WEAKNESSES = (
    Weakness(
        "breaker_missing",
        "The gateway has no circuit breakers: every request waits for a dependency that is known to be down.",
        "gateway",
        _with(policies={"breaker": {"kind": "none"}}),
    ),
    Weakness(
        "breaker_never_closes",
        "A breaker that has opened does not ask again: a dependency that is back for long stays unused.",
        "gateway",
        _with(policies={"breaker": {"open_s": _NEVER_S}}),
    ),
    Weakness(
        "half_open_stampede",
        "A half-open breaker lets everybody through, so that a dependency on its knees is hit by all at once.",
        "gateway",
        _with(policies={"breaker": {"half_open_permits": _NO_LIMIT}}),
    ),
    Weakness(
        "retries_without_budget",
        "The gateway tries four times without pause or budget, so that a slow dependency gets four times the load.",
        "gateway",
        _with(policies={"retry_budget": {"kind": "unlimited"}, "attempts": 4, "backoff": {"kind": "none"}}),
    ),
    Weakness(
        "retries_without_jitter",
        "Retries wait for a fixed time, so that all requests that failed in one moment come back in one moment.",
        "gateway",
        _with(policies={"backoff": {"kind": "exponential"}}),
    ),
    Weakness(
        "retries_the_unretryable",
        "Whatever failed is tried again, also a request that was refused as faulty and a tool call without a key.",
        "gateway",
        _with(policies={"retry": {"classes": "any"}}),
    ),
    Weakness(
        "nested_retries",
        "The client library of each hop sends three times more below the gateway's own retries, past every budget.",
        "gateway",
        _with(policies={"retry": {"hop_resends": 3}}),
    ),
    Weakness(
        "disconnect_not_propagated",
        "When a client leaves, its answer is made to the end all the same: engines compute for nobody.",
        "gateway",
        _with(policies={"answer": {"client_gone": "finish"}}),
    ),
    Weakness(
        "trusts_done",
        "A stream that ends with [DONE] is taken for a whole answer, although engines that died send that too.",
        "gateway",
        _with(policies={"answer": {"whole_by": "done"}}),
    ),
    Weakness(
        "timeouts_contradict",
        "The gateway waits longer for the vector store than clients wait: they leave first and no breaker ever opens.",
        "gateway",
        _with(
            policies={"deadline": {"retrieval_s": 8.0, "vector_store_s": 8.0, "connect_s": 5.0, "first_token_s": 5.0}}
        ),
    ),
    Weakness(
        "health_by_status_only",
        "Only a refusal or a failed liveness check takes a replica out: one that says 200 and computes nothing stays.",
        "gateway",
        _with(policies={"outlier": {"evidence": "status"}}),
    ),
    Weakness(
        "stall_watched_by_running_only",
        "A stall counts only when the engine's own gauges admit it, and a frozen engine repeats its last ones.",
        "gateway",
        _with(policies={"outlier": {"evidence": "running"}}),
    ),
    Weakness(
        "stale_routing",
        "Replicas that were taken out still get requests: the routing does not look at the list again.",
        "gateway",
        _with(policies={"outlier": {"routing": "everyone"}}),
    ),
    Weakness(
        "balances_blindly",
        "Replicas take turns whatever they have in hand: a slow one gets as many requests as its quick peer.",
        "gateway",
        _with(policies={"balancer": {"kind": "round_robin"}}),
    ),
    Weakness(
        "replica_never_returns",
        "A replica that was taken out is not asked again, so that every incident costs capacity until a restart.",
        "gateway",
        _with(policies={"outlier": {"probe_period_s": _NEVER_S}}),
    ),
    Weakness(
        "queue_unbounded",
        "The admission queue takes everybody and sends nobody away: the line grows as long as clients have patience.",
        "gateway",
        _with(policies={"queue": {"capacity": _NO_LIMIT, "wait_s": _NEVER_S, "backed_up_wait_s": _NEVER_S}}),
    ),
    Weakness(
        "shed_late",
        "Admission stands behind the first token: documents are looked up and engines are at work for who is refused.",
        "gateway",
        _with(policies={"admission_at": "first_token"}),
    ),
    Weakness(
        "no_priority",
        "The gateway knows one class of work: users stand in line behind batch jobs and find every slot taken.",
        "gateway",
        _with(policies={"queue": {"classes": "one"}, "slots": {"batch_most": 1.0}}),
    ),
    Weakness(
        "batch_starved",
        "Batch work never ages and has one slot: whatever users leave, a batch job hardly moves.",
        "gateway",
        _with(policies={"queue": {"batch_aging_s": _NEVER_S}, "slots": {"batch_most": 0.0}}),
    ),
    Weakness(
        "no_drain",
        "The gateway ends at once on SIGTERM: every stream that is open breaks off without a last word.",
        "gateway",
        _with(policies={"drain": {"kind": "none"}}),
    ),
    Weakness(
        "fallback_not_wired",
        "The fallback model runs, but the gateway does not know it: without main engines it has only the fixed text.",
        "gateway",
        _with(fallback=None),
    ),
    Weakness(
        "recall_not_watched",
        "Nobody examines the retrieval: a vector store that answers quickly and wrongly looks healthy everywhere.",
        "gateway",
        _with(policies={"recall": {"kind": "none"}}),
    ),
    Weakness(
        "recall_by_name_only",
        "Retrieval is examined by which document comes back, not by what it says: an old edition passes.",
        "gateway",
        _with(policies={"recall": {"look_at": "name"}}),
    ),
    Weakness(
        "cache_stampede",
        "Every request makes an answer of its own, and kept ones expire together: an empty cache sends all upstream.",
        "gateway",
        _with(policies={"single_flight": {"kind": "none"}, "cache": {"ttl_jitter": 0.0}}),
    ),
    Weakness(
        "canned_text_empty",
        "The last step of the fallback chain is an empty text: HTTP 200, a finish reason, and nothing to read.",
        "gateway",
        _with(canned_text=""),
    ),
    Weakness(
        "canary_without_length_guard",
        "A new release is judged by errors and first tokens alone: one that talks for ever goes to everybody.",
        "gateway",
        _with(policies={"canary": {"length_guard": "none"}}),
    ),
    Weakness(
        "rollback_splits_triple",
        "A rollback takes the model back and forgets the configuration: everybody gets a mixture that nobody tested.",
        "gateway",
        _with(policies={"release": {"rollback": "model"}}),
    ),
    Weakness(
        "kv_reference_reused",
        "The engine finds cached blocks by their position alone and serves another prompt's: the wrong person's words.",
        "engine",
        _with(prefix_hash="position_only"),
    ),
    Weakness(
        "kv_wait_unbounded",
        "The gateway sets no limit to a KV transfer: users wait as long as a decode engine waits for a frozen prefill.",
        "gateway",
        _with(policies={"disaggregation": {"transfer_s": _NEVER_S}}),
    ),
    Weakness(
        "prefill_without_detour",
        "Without a prefill engine no prompt is sent to a decode engine, although it could compute it alone.",
        "gateway",
        _with(policies={"disaggregation": {"without_prefill": "fail"}}),
    ),
    Weakness(
        "kv_references_swapped",
        "The gateway takes a KV reference that was made for a prompt with the same beginning: another person's words.",
        "gateway",
        _with(policies={"disaggregation": {"references": "by_beginning"}}),
    ),
    Weakness(
        "kv_references_unchecked",
        "The gateway does not look whose KV reference it was given: a mix-up on the way brings another person's words.",
        "gateway",
        _with(policies={"disaggregation": {"check": "none"}}),
    ),
    Weakness(
        "tool_retried_twice",
        "The gateway asks for a lost reply under a new idempotency key: what was done already is done a second time.",
        "gateway",
        _with(policies={"tool_key": "per_try"}),
    ),
    Weakness(
        "tool_results_trusted",
        "What a tool gives is passed on, also what its own output schema forbids: a lost field becomes an answer.",
        "gateway",
        _with(policies={"tool_rules": {"results": "trusted"}}),
    ),
    Weakness(
        "tool_session_kept",
        "The gateway speaks to the tools in one session and opens no other: once it is lost, every call fails.",
        "gateway",
        _with(policies={"tool_rules": {"session": "kept"}}),
    ),
    Weakness(
        "tool_permission_missing",
        "The tools only report what the rules say: any agent may call any tool.",
        "tools",
        _with(enforcement="report"),
    ),
    Weakness(
        "audit_gap",
        "The audit is written after the reply: a process that dies takes the lines of its last calls with it.",
        "tools",
        _with(audit="deferred"),
    ),
    Weakness(
        "ingest_acknowledged_early",
        "A document counts as added before it is written: what the store does not take is lost, and nobody is told.",
        "gateway",
        _with(policies={"ingest": {"acknowledge": "accepted"}}),
    ),
    Weakness(
        "vector_store_async_commit",
        "The database acknowledges commits before they are on disk: a crash loses the last of them.",
        "postgres",
        _with(synchronous_commit="off", wal_writer_delay="10s", wal_writer_flush_after="64MB"),
    ),
    Weakness(
        "agent_without_checkpoint",
        "The agents keep their tasks in memory only: a crash loses every task that was accepted and not yet done.",
        "agent",
        _with(checkpoint="memory"),
    ),
    Weakness(
        "agents_wait_forever",
        "An agent waits for the other without a bound: when one is silent, the tasks of both stand still for ever.",
        "agent",
        _with(waits={"agent_s": _NEVER_S, "dependency_s": _NEVER_S, "task_s": _NEVER_S}),
    ),
    Weakness(
        "agent_deadlines_by_date",
        "Deadlines and leases of tasks are measured by the date: a step of the clock ends every task that is open.",
        "agent",
        _with(clock="wall"),
    ),
)


def find_weaknesses(names: Sequence[str]) -> tuple[Weakness, ...]:
    """The weaknesses of these names, each once, in the given order. Raises UnknownWeakness."""
    known = {weakness.name: weakness for weakness in WEAKNESSES}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise UnknownWeakness(f"there is no weakness {name!r}; did you mean {near!r}?")
    return tuple(known[name] for name in dict.fromkeys(names))


def plant(weaknesses: Sequence[Weakness], component: str, config: Config) -> dict[str, Any]:
    """The configuration of a component with those weaknesses in it that concern it."""
    planted = dict(config)
    for weakness in weaknesses:
        if weakness.component == component:
            planted = weakness.apply(planted)
    return planted
