"""The gateway examines its own retrieval."""

from __future__ import annotations

from typing import Any

import pytest

from target_stack.fixtures import read_documents, read_questions

pytestmark = pytest.mark.system

RIGHT = [(document.id, document.body) for document in read_documents()]
OLD = [(name, "what it said a year ago") for name, _ in RIGHT]
PROBE = {"kind": "probe", "period_s": 1.0, "questions": 2, "window": 4}


async def test_a_store_that_answers_wrongly_is_noticed_without_any_user_and_so_is_its_return(serve: Any) -> None:
    async with serve(recall=PROBE) as stack:
        right = RIGHT
        stack.store.rows = right
        await stack.until(lambda: "gateway_recall_ratio 1" in stack.gateway.telemetry.metrics.text())
        stack.store.rows = [("some-other-document", "text")]
        await stack.until(lambda: stack.events("recall_dropped"), within_s=10)
        stack.store.rows = right
        await stack.until(lambda: stack.events("recall_restored"), within_s=10)
        dropped, restored = stack.events("recall_dropped")[0], stack.events("recall_restored")[0]
        assert (dropped["dependency"], dropped["ratio"] < 0.8, restored["ratio"]) == ("vector-store", True, 1.0)


async def test_the_right_document_in_an_old_edition_is_noticed(serve: Any) -> None:
    async with serve(recall=PROBE) as stack:
        stack.store.rows = OLD
        await stack.until(lambda: stack.events("recall_dropped"), within_s=10)


async def test_who_looks_at_names_alone_is_content_with_an_old_edition(serve: Any) -> None:
    """The weakness `recall_by_name_only`."""
    async with serve(recall={**PROBE, "look_at": "name"}) as stack:
        stack.store.rows = OLD
        await stack.until(lambda: "gateway_recall_ratio 1" in stack.gateway.telemetry.metrics.text())
        assert stack.events("recall_dropped") == []


def test_every_standard_question_is_answered_by_its_document_in_the_corpus() -> None:
    bodies = dict(RIGHT)
    assert [] == [question.text for question in read_questions() if not question.answered_by(bodies[question.document])]


@pytest.mark.parametrize("how", ["store_dead", "empty"])
async def test_a_question_without_an_answer_is_a_miss(serve: Any, how: str) -> None:
    async with serve(recall=PROBE) as stack:
        stack.store.rows = []
        if how == "store_dead":
            await stack.store.stop()
        await stack.until(lambda: stack.events("recall_dropped"), within_s=10)
        assert stack.events("recall_dropped")[0]["ratio"] == 0.0
        assert 'gateway_recall_probes_total{result="unanswered"}' in stack.gateway.telemetry.metrics.text()


async def test_without_the_probe_nobody_notices(serve: Any) -> None:
    """The weakness `recall_not_watched`: the same store, the same questions, no examination."""
    async with serve(recall={**PROBE, "kind": "none"}) as stack:
        stack.store.rows = [("some-other-document", "text")]
        for _ in range(20):
            assert "x-degraded" not in (await stack.chat(route="rag")).headers
        assert stack.events("recall_dropped") == []
        assert stack.embedder.calls == stack.embedder.calls[:20]
