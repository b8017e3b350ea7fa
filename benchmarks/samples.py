"""What writing evidence costs: CPU of 5,000 samples a second, flushed every 200 ms as in a run.

    python benchmarks/samples.py [--seconds 20] [--rate 5000]

Each answer has 30 to 100 pauses between its tokens. The samples are made beforehand; counted is what the writer takes
of them from there: sketches, columns, bytes, digest, one write a flush. Time is of CPU, so a busy machine does not
lengthen it, and nothing sleeps: a second of writing is what a second's samples cost.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.journal.record import Sample
from chaos.journal.samples import sample_writer

FLUSH_S = 0.2


def made(count: int) -> list[Sample]:
    """Answers of a load, no two alike."""
    dice = random.Random(7)
    return [_sample(number, dice) for number in range(count)]


def _sample(number: int, dice: random.Random) -> Sample:
    due, tokens = number / 5000, dice.randint(30, 100)
    return Sample(
        load="chat",
        request=number,
        attempt=1,
        final=True,
        intended_s=due,
        sent_s=due + 0.0003,
        first_token_s=due + 0.05,
        end_s=due + 2.0,
        outcome="good",
        why="",
        status=200,
        served_by=f"engine-{'ab'[number % 2]}",
        degraded="",
        tokens=tokens,
        gaps_s=tuple(dice.lognormvariate(-4.0, 0.15) for _ in range(tokens - 1)),
        answer_ok=True,
        trace_id=f"{dice.getrandbits(128):032x}",
        leaked="",
    )


def main() -> None:
    """Print the share of one core."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rate", type=int, default=5000)
    options = parser.parse_args()
    batch, second = int(options.rate * FLUSH_S), made(options.rate)
    with tempfile.TemporaryDirectory() as folder:
        writer = sample_writer(Path(folder), most_rows=10 * batch)
        spent = []
        for _ in range(options.seconds):
            began = time.process_time()
            for start in range(0, options.rate, batch):
                for sample in second[start : start + batch]:
                    writer.append(sample)
                writer.flush()
            spent.append(time.process_time() - began)
        writer.close()
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / writer.count
    middle = sorted(spent)[len(spent) // 2]
    share = f"{100 * middle:.1f} % of one core (worst second {100 * max(spent):.1f} %)"
    print(f"{options.rate} samples a second: {share}, {1e6 * middle / options.rate:.1f} us and {size:.0f} bytes each")


if __name__ == "__main__":
    main()
