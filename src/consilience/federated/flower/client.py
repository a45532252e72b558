"""At each party: the app that Flower's node runs. It sends labels under keyed ids and writes the answer.

The config of the node says which table, id column, columns, key and output; see the guide.
"""

from __future__ import annotations

from collections.abc import Callable
from logging import getLogger

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from consilience.federated.flower import records
from consilience.federated.table import Settings, sayable

app = ClientApp()
log = getLogger("flwr")  # of which the lines go where Flower's own go


@app.query()
def send(message: Message, context: Context) -> Message:
    """Send what may leave."""

    def part(settings: Settings) -> RecordDict:
        found = settings.prepare()
        log.info("party %r sends %d rows, %d bytes", settings.party, len(found.order), found.part.n_bytes)
        for column in found.columns:
            log.info("column %r: %d of %d labels held back", column.name, column.n_held_back, column.n_labels)
        return records.record_of_part(found.part)

    return _reply(message, context, part)


@app.evaluate()
def receive(message: Message, context: Context) -> Message:
    """Write the answer."""

    def written(settings: Settings) -> RecordDict:
        found = settings.prepare()
        settings.write(records.read_answer(message.content, found.part), found.order)
        log.info("party %r has its answer", settings.party)
        return RecordDict({"written": ConfigRecord({"party": settings.party})})

    return _reply(message, context, written)


def _reply(message: Message, context: Context, work: Callable[[Settings], RecordDict]) -> Message:
    """The reply, or a refusal: an exception would be logged and sent with all that it quotes."""
    config = context.node_config
    try:
        content = work(Settings.of(config))
    except Exception as error:
        refusal = sayable(error, str(config.get("party")), str(config.get("table")))
        log.error("%s", refusal)
        content = records.record_of_refusal(refusal)
    return Message(content, reply_to=message)
