"""Callers that ask until they have an answer, while the tools are killed under them; and whether all was done once."""

from __future__ import annotations

import asyncio
import signal

from target_stack.tools.audit import broken_at
from target_stack.tools.client import open_tools
from target_stack.tools.outcomes import MaybeDone, NotStarted

TICKET = {"order": "B-1003", "subject": "It leaks."}


async def one_intent(tools, key):
    """Ask under one key until there is an answer."""
    while True:
        try:
            return await tools.call("open_ticket", TICKET, within_s=2.0, key=key)
        except (NotStarted, MaybeDone):
            await asyncio.sleep(0.02)


async def killed_while_used(server, kills, callers, rng):
    """Results of all calls, each repeated until it was answered, while the server is SIGKILLed at random instants."""
    results, stop = {}, asyncio.Event()

    async def caller(tools, name):
        number = 0
        while not stop.is_set():
            number += 1
            twins = await asyncio.gather(*(one_intent(tools, f"{name}-{number}") for _ in range(2)))
            assert twins[0].value == twins[1].value
            results[f"{name}-{number}"] = twins[0].value

    async with open_tools(server.url, "support-token") as tools, asyncio.TaskGroup() as group:
        for name in range(callers):
            group.create_task(caller(tools, name))
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0.05, 0.3))
            server.end(signal.SIGKILL)
            await asyncio.to_thread(server.start)
        await asyncio.sleep(0.2)
        stop.set()
    return results


def everything(server, page):
    """All entries of a page, however many answers it takes."""
    entries = []
    while more := server.get(f"/{page}?after={entries[-1]['seq'] if entries else 0}")["entries"]:
        entries += more
    return entries


def wrong_after(server, results):
    """What is wrong with the ledger and the audit after these results were given; None when nothing is."""
    ledger, audit = everything(server, "ledger"), everything(server, "audit")
    done = {entry["key"]: entry["result"] for entry in ledger}
    tickets = [entry["result"]["ticket"] for entry in ledger]
    if len(done) != len(ledger) or len(set(tickets)) != len(tickets):
        return "something was done twice"
    if done != results:
        return f"{len(done)} side effects for {len(results)} intents"
    if {entry["key"] for entry in audit if entry["outcome"] == "ok"} != set(done):
        return "a side effect has no audit line"
    broken = broken_at(audit)
    return None if broken is None else f"line {broken} of the audit does not follow from the one before it"
