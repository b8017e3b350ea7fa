"""What a run that goes on can still become: records, samples and readings in, what is refuted for certain out. Pure.

Nothing is asked of it before all faults are seen gone; until then it only gathers. Rows become columns a thousand at a
time, so that no question of a long run has to make them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Record, Sample
from chaos.journal.samples import SAMPLES_SCHEMA, Dictionaries, batch_of
from chaos.journal.tables import ReadingTable, SampleTable
from chaos.spec.model import Experiment
from chaos.verdict.events import HEARTBEAT, MISSED
from chaos.verdict.foregone import Known
from chaos.verdict.judge import refuted_already

EVERY_S = 1.0
_ROWS = 1000


class Outlook:
    """Sees everything that a run writes down, in the same order, and looks ahead once a second."""

    def __init__(self, experiment: Experiment, at_s: Mapping[str, Sequence[float]]) -> None:
        """`at_s` is when the planned requests of each load are due, in seconds from the start of the load."""
        self._experiment = experiment
        self._at_s = {name: np.array(times, dtype=np.float64) for name, times in at_s.items()}
        self._standing = {fault.name for fault in experiment.faults}
        self.began_s: float | None = None  # the load, once it has
        self._next_s = 0.0
        self._records: list[Record] = []
        self._readings: list[ReadingRow] = []
        self._batches: list[pa.RecordBatch] = []
        self._rows: list[Sample] = []
        self._words = Dictionaries()

    def hear(self, record: Record) -> None:
        """Take a journal record."""
        self._records.append(record)
        if record.kind == "load_started":
            self.began_s = float(record.fields["at"])
        elif record.kind == "fault_gone":
            self._standing.discard(str(record.fields["fault"]))

    def read(self, reading: ReadingRow) -> None:
        """Take a reading; only those that tell who listened matter here."""
        if reading.series.partition("{")[0] in (HEARTBEAT, MISSED):
            self._readings.append(reading)

    def feed(self, sample: Sample) -> None:
        """Take an attempt."""
        self._rows.append(sample)
        if len(self._rows) >= _ROWS:
            self._to_columns()

    @property
    def samples(self) -> int:
        """Attempts so far."""
        return sum(len(batch) for batch in self._batches) + len(self._rows)

    def refuted(self, now_s: float) -> tuple[str, ...]:
        """The hypotheses that nothing can save any more, by name."""
        if self.began_s is None or self._standing or now_s < self._next_s:
            return ()
        self._next_s = now_s + EVERY_S
        self._to_columns()
        return refuted_already(self._experiment, Known(self._evidence(now_s), self._due(self.began_s), now_s))

    def _evidence(self, now_s: float) -> Evidence:
        """What the run would leave behind if it were ended now."""
        ended = Record(len(self._records), now_s, "decided", {"samples": self.samples})
        samples = SampleTable.from_arrow(pa.Table.from_batches(self._batches, SAMPLES_SCHEMA))
        return Evidence((*self._records, ended), samples, ReadingTable.build(self._readings))

    def _due(self, start_s: float) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        return {name: start_s + times for name, times in self._at_s.items()}

    def _to_columns(self) -> None:
        if self._rows:
            self._batches.append(batch_of(self._rows, SAMPLES_SCHEMA, self._words))
            self._rows = []
