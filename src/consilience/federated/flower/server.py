"""In the middle: the app that Flower's link runs. It collects labels, merges them and hands out the answers.

The config of the run says who takes part and how many clusters are wanted; see the guide.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from logging import getLogger
from typing import Any, Literal, NamedTuple, Self

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from consilience._support.errors import InputError
from consilience.federated.flower import records
from consilience.federated.merging import merge_parts
from consilience.federated.parts import Part, PartyError

_A_LOOK = 0.3  # seconds between two looks for answers

app = ServerApp()
log = getLogger("flwr")  # of which the lines go where Flower's own go


class Settings(NamedTuple):
    """What the config of a run says."""

    parties: tuple[str, ...]
    n_clusters: int | Literal["auto"]
    method: str
    seed: int
    timeout: float
    allow_absent: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read the config of a run."""
        parties = tuple(name.strip() for name in str(config.get("parties", "")).split(",") if name.strip())
        if len(set(parties)) < 2:
            raise InputError("the run names fewer than two parties.", hint='as in parties="bank_a,bank_b"')
        clusters = str(config.get("clusters", "auto"))
        if clusters != "auto" and not clusters.isdecimal():
            raise InputError(f"clusters is {clusters!r}.", hint='a number, or "auto".')
        return cls(
            parties,
            "auto" if clusters == "auto" else int(clusters),
            str(config.get("method", "auto")),
            int(config.get("seed", 0)),
            float(config.get("timeout", 600)),
            bool(config.get("allow-absent", False)),
        )


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Collect, merge, hand out."""
    settings = Settings.of(context.run_config)
    sent = collect(grid, settings.parties, settings.timeout)
    for _, part in sent:
        log.info("party %r sent %d rows of %d columns", part.party, len(part.ids), len(part.columns))
    merged = merge_parts(
        [part for _, part in sent],
        settings.n_clusters,
        parties=settings.parties,
        allow_absent=settings.allow_absent,
        method=settings.method,
        random_state=settings.seed,
    )
    for party in merged.absent:
        log.warning("party %r gave no answer in time and is left out", party)
    fusion = merged.fusion
    log.info("%d instances in %d clusters by %s", len(fusion.labels), fusion.n_clusters, fusion.method)
    hand_out = [
        Message(records.record_of_answer(merged.answers[part.party], part), node, "evaluate")
        for node, part in sent
    ]
    written = set()
    for reply in grid.send_and_receive(hand_out, timeout=settings.timeout):
        if not reply.has_error():
            records.raise_refusal(reply.content)
            written.add(str(reply.content["written"]["party"]))
    for _, part in sent:
        if part.party not in written:
            raise PartyError(
                f"party {part.party!r} has not written its answer.", hint="its own log says why."
            )
    log.info("all of %s have their answers", ", ".join(sorted(written)))


def collect(grid: Grid, parties: tuple[str, ...], timeout: float) -> list[tuple[int, Part]]:
    """What the nodes sent, with their numbers: of all that are there before the time is over."""
    end = time.monotonic() + timeout
    asked: set[int] = set()
    waiting: set[str] = set()
    sent: list[tuple[int, Part]] = []
    while True:
        if new := [node for node in grid.get_node_ids() if node not in asked]:
            ask = [Message(RecordDict({"ask": ConfigRecord()}), node, "query", ttl=timeout) for node in new]
            waiting.update(grid.push_messages(ask))
            asked.update(new)
        for reply in grid.pull_messages(waiting):
            waiting.discard(reply.metadata.reply_to_message_id)
            if reply.has_error():
                log.warning("node %d gave an error: %s", reply.metadata.src_node_id, reply.error.code)
                continue
            records.raise_refusal(reply.content)
            node = reply.metadata.src_node_id
            sent.append((node, records.read_part(reply.content, node)))
        # A node that was asked and is of no known name may be a second one of a party: it is waited for.
        if (set(parties) <= {part.party for _, part in sent} and not waiting) or time.monotonic() > end:
            return sent
        time.sleep(_A_LOOK)
