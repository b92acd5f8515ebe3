"""What the studies share: a block, steps of training and their times, resumable runs."""

import argparse
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
from torch import nn

from measure.harness import interleaved, wall_clock


class Block(nn.Module):
    """Attention and two linear layers, each added to what came in."""

    def __init__(self, attention: nn.Module, width: int, hidden: int) -> None:
        super().__init__()
        self.attention, self.norm1, self.norm2 = attention, nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pass tokens through, (batch, n, width)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Training(ABC):
    """A model in training; a study says what the loss of the next batch is."""

    def __init__(self, optimizer: torch.optim.Optimizer, warm_up: int, steps: int | None) -> None:
        """Raise the rate linearly over ``warm_up`` steps, and then let it fall.

        It falls to a twentieth after ``steps``, if given.
        """

        def rate(step: int) -> float:
            return min(
                (step + 1) / warm_up, 1.0 if steps is None else max(0.05, 1 - step / max(1, steps))
            )

        self.optimizer, self.schedule = (
            optimizer,
            torch.optim.lr_scheduler.LambdaLR(optimizer, rate),
        )

    @abstractmethod
    def loss(self) -> torch.Tensor:
        """Draw a batch, and return its loss."""

    def go_on(self, steps: int = 1) -> list[torch.Tensor]:
        """Train for some steps more; return their losses."""
        losses = []
        for _ in range(steps):
            loss = self.loss()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.detach())
        if losses[0].is_cuda:
            torch.cuda.synchronize()
        return losses


def seconds_of_a_step(
    trainings: Mapping[str, Training],
    steps: int,
    blocks: int,
    clock: Callable[[Callable[[int], Any], int], tuple[float, Any]] = wall_clock,
) -> dict[str, list[float]]:
    """Time blocks of training steps, all kinds in turn.

    The result is the seconds of a step in each block.
    """
    calls = {
        kind: lambda _run, training=training: training.go_on(steps)
        for kind, training in trainings.items()
    }
    timings = interleaved(calls, blocks, lambda _: None, clock=clock)
    return {
        kind: [round(seconds / steps, 5) for seconds in timing.seconds]
        for kind, timing in timings.items()
    }


class Runs:
    """The runs of a study by job, a named tuple.

    Those that the file of ``--resume`` holds are not repeated. Each line of that file is a run with
    the fields of its job, or a value that was found once, under its name.
    """

    def __init__(self, path: Path | None, kind_of_job: type[Any]) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self.lines = [json.loads(line) for line in lines]
        self.done = {
            kind_of_job(*(line[name] for name in kind_of_job._fields)): line
            for line in self.lines
            if kind_of_job._fields[0] in line
        }

    def _add(self, line: Mapping[str, Any]) -> None:
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                print(json.dumps(line), file=file)

    def once(self, name: str, find: Callable[[], Any]) -> Any:
        """Return a value of the file, or find it and add it there."""
        for line in self.lines:
            if name in line:
                return line[name]
        self._add({name: (value := find())})
        return value

    def carry_out(
        self, jobs: Sequence[Any], *shared: Any, say: Callable[[Any], str], processes: int
    ) -> list[Any]:
        """Run ``job.run(*shared)`` for all not done, say how they ended, and return all."""
        with ProcessPoolExecutor(processes) as pool:
            runs = {pool.submit(job.run, *shared): job for job in jobs if job not in self.done}
            for ended in as_completed(runs):
                self.done[runs[ended]] = line = ended.result()
                self._add(line)
                print(say(line), flush=True)
        return [self.done[job] for job in jobs]


def parser_of(study: str | None, short: str) -> argparse.ArgumentParser:
    """Make the options that all studies have, from a docstring and what its short form is."""
    parser = argparse.ArgumentParser(description=(study or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help=f"{short}, nothing written")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2, help="runs at a time")
    parser.add_argument(
        "--resume", type=Path, help="a file of runs, a line each: to go on with, and to add to"
    )
    return parser
