"""On Flower itself, in an environment of its own: the two apps, and real processes on this machine."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower has an environment of its own: make test-federated")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from consilience import fuse
from consilience.federated.flower import client, records, server
from consilience.federated.local import BANKS, LocalFederation, three_banks
from consilience.federated.parts import PartyError

# --- the apps, with a grid that calls them in this process --------------------------------------------------


class Grid:
    """Nodes by number, each with its config; messages are answered when they are pulled."""

    def __init__(self, *configs, silent=(), reply=None):
        self.configs = dict(enumerate(configs, start=100))
        self.silent = silent
        self.reply = reply or {}
        self.pushed = {}

    def get_node_ids(self):
        return list(self.configs)

    def push_messages(self, messages):
        self.pushed.update({f"message {m.metadata.dst_node_id}": m for m in messages})
        return [f"message {m.metadata.dst_node_id}" for m in messages]

    def pull_messages(self, ids):
        return [self._answer(name, self.pushed[name]) for name in sorted(ids) if self._hears(name)]

    def send_and_receive(self, messages, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def _hears(self, name):
        return self.configs[int(name.split()[1])]["party"] not in self.silent

    def _answer(self, name, message):
        node = int(name.split()[1])
        message.metadata.__dict__["_message_id"] = name
        if made := self.reply.get(self.configs[node]["party"]):
            return made(message)
        context = SimpleNamespace(node_config=self.configs[node])
        answer = client.app(message, context)
        answer.metadata.__dict__["_src_node_id"] = node
        return answer


@pytest.fixture
def banks(tmp_path, monkeypatch):
    for name in ("_run_id", "_task_id", "_node_id"):  # what Flower sets before it calls an app
        monkeypatch.setattr(TaskIdentity, name, 1, raising=False)
    return {bank: {"party": bank, **config} for bank, config in three_banks(tmp_path).items()}


def run(grid, **config):
    given = {"parties": "bank_a,bank_b,bank_c", "clusters": 2, "timeout": 0.2, **config}
    server.app(grid, SimpleNamespace(run_config=given))


def joined(banks=BANKS):
    fusion = fuse({f"{bank}/segment": people for bank, people in banks.items()}, 2, random_state=0)
    columns = {"label": fusion.labels, "confidence": fusion.confidence, "margin": fusion.margin}
    return pd.DataFrame(columns, index=fusion.index)


def assert_written(configs, expected):
    """Every party has its customers, in its order, with the answers of `fuse` (rounded, in CSV files)."""
    for bank, config in configs.items():
        read = pd.read_parquet if config["output"].endswith("parquet") else pd.read_csv
        found = read(config["output"]).set_index("customer")
        assert list(found.index) == list(BANKS[bank])
        own = expected.loc[found.index]
        own = own.round(6) if read is pd.read_csv else own
        for name in own:
            np.testing.assert_array_equal(found[name], own[name])


def test_the_apps_give_the_answers_of_fuse_in_any_order_of_the_nodes(banks):
    expected = joined()
    for config in banks.values():
        config["output"] = config["output"].replace(".csv", ".parquet")
    for order in itertools.islice(itertools.permutations(banks.values()), 0, 6, 2):
        run(Grid(*order))
        assert_written(banks, expected)


def test_a_party_that_is_silent_is_left_out_by_name_if_that_is_allowed(banks, caplog):
    grid = Grid(*banks.values(), silent=["bank_c"])
    with pytest.raises(PartyError, match=r"^no answer in time from party 'bank_c'\. Hint: "):
        run(grid)
    caplog.set_level("INFO", logger="flwr")
    run(Grid(*banks.values(), silent=["bank_c"]), **{"allow-absent": True})
    del banks["bank_c"]
    assert_written(banks, joined({bank: BANKS[bank] for bank in banks}))


def test_two_nodes_of_one_party_are_refused_by_name(banks):
    with pytest.raises(PartyError, match=r"^party 'bank_b' answered 2 times\. Hint: "):
        run(Grid(*banks.values(), banks["bank_b"]))


def test_another_key_is_refused_by_name(banks, tmp_path):
    (tmp_path / "other.key").write_text("another key, made by mistake")
    banks["bank_c"]["key-file"] = str(tmp_path / "other.key")
    with pytest.raises(
        PartyError, match=r"^party 'bank_c' shares no instance with the others\. Hint: the keys may differ"
    ):
        run(Grid(*banks.values()))


@pytest.mark.parametrize(
    "content",
    [
        RecordDict({"about": ConfigRecord({"party": "bank_b"})}),
        RecordDict({"about": ConfigRecord({"party": "bank_b", "columns": ["x"]}), "labels": ArrayRecord()}),
        RecordDict(
            {
                "about": ConfigRecord({"party": "bank_b", "columns": ["x"]}),
                "labels": ArrayRecord({"ids": Array(np.zeros((2, 3))), "codes": Array(np.zeros((2, 1)))}),
            }
        ),
    ],
)
def test_another_schema_is_refused_by_name(banks, content):
    reply = {"bank_b": lambda message: Message(content, reply_to=message)}
    with pytest.raises(PartyError, match=r"^party 'bank_b' sent another schema"):
        run(Grid(*banks.values(), reply=reply))


def test_what_a_party_refuses_is_said_by_the_server(banks, caplog):
    with open(banks["bank_b"]["table"], "w") as file:
        file.write("customer,segment\nann,x,one cell too many\n")
    with pytest.raises(
        PartyError, match=r"^the table of party 'bank_b' cannot be used \(InputError\)\. Hint: "
    ):
        run(Grid(*banks.values()))
    assert not NAMES.search(caplog.text)


def test_a_node_that_fails_is_no_answer(banks):
    failed = {"bank_b": lambda message: Message(Error(2, "an exception"), reply_to=message)}
    with pytest.raises(PartyError, match=r"^no answer in time from party 'bank_b'\."):
        run(Grid(*banks.values(), reply=failed))


def test_a_table_that_changes_meanwhile_is_not_answered(banks):
    def change(message):
        with open(banks["bank_b"]["table"], "a") as file:
            file.write("gil,saver\n" if message.metadata.message_type == "evaluate" else "")
        return client.app(message, SimpleNamespace(node_config=banks["bank_b"]))

    with pytest.raises(
        PartyError, match=r"^the table of party 'bank_b' changed while the others were waited for"
    ):
        run(Grid(*banks.values(), reply={"bank_b": change}))


def test_a_run_needs_parties_and_a_number_of_clusters(banks):
    for wrong in ({"parties": "bank_a"}, {"clusters": "many"}):
        with pytest.raises(ValueError, match="Hint: "):
            run(Grid(*banks.values()), **wrong)


def test_records_hold_what_is_sent_and_nothing_else(banks):
    found = client.Settings.of(banks["bank_a"]).prepare()
    record = records.record_of_part(found.part)
    assert set(record) == {"about", "labels"}
    assert dict(record["about"]) == {"party": "bank_a", "columns": ["segment"]}
    assert set(record["labels"]) == {"ids", "codes"}
    n_bytes = sum(len(array.data) for array in record["labels"].values())
    assert 0 <= n_bytes - found.part.n_bytes < 500


# --- real processes -----------------------------------------------------------------------------------------

NAMES = re.compile(
    "|".join(rf"\b{name}\b" for name in sorted({n for people in BANKS.values() for n in people}))
)


def assert_no_id_was_logged(folder):
    logs = {path.name: path.read_text(errors="replace") for path in (folder / "logs").iterdir()}
    assert set(logs) == {"superlink.log", "flwr-run.log", *(f"{bank}.log" for bank in BANKS)}
    assert all("party '" in logs[f"{bank}.log"] for bank in BANKS)  # the logs are those of the apps
    labels = {label for people in BANKS.values() for label in people.values()}
    for name, text in logs.items():
        assert not NAMES.search(text), name
        assert not any(re.search(rf"\b{label}\b", text) for label in labels), name


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS and node authentication"])
def test_a_link_and_three_nodes_give_the_answers_of_fuse(secure, tmp_path):
    configs = three_banks(tmp_path)
    if not secure:
        configs["bank_b"]["output"] = configs["bank_b"]["output"].replace(".csv", ".parquet")
    with LocalFederation(tmp_path, configs, secure=secure) as federation:
        federation.run(2)
        assert_written(configs, joined())
        assert_no_id_was_logged(tmp_path)
        if not secure:  # errors are where ids leak
            table = tmp_path / "banks" / "bank_c.csv"
            table.write_text(table.read_text() + "cleo,high,one cell too many\n")
            with pytest.raises(
                ValueError, match=r"^the table of party 'bank_c' cannot be used \(InputError\)\."
            ):
                federation.run(2)
    assert_no_id_was_logged(tmp_path)
