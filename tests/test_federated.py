"""What leaves a party, how it is merged and what comes back: arrays and files, without Flower."""

import itertools
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from consilience import Partitions, fuse
from consilience.cli.main import run
from consilience.federated import join_parts, key_fingerprint, keyed_ids, merge_parts, prepare, read_key
from consilience.federated.local import APP
from consilience.federated.parts import PartyError
from consilience.federated.table import Settings, read_own, sayable

KEY = b"what only the parties know, all of them"
BANKS = {  # those of the README
    "a": {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"},
    "b": {"ann": "spender", "bob": "saver", "eve": "saver"},
    "c": {"cleo": "high", "dan": "low", "eve": "low", "fay": "high"},
}


def part_of(party, people, key=KEY, smallest=1):
    """What a party with one column would send, and its ids in that order."""
    found = prepare(Partitions.of({"segment": list(people.values())}), people, party, key, smallest)
    return found.part, np.array(list(people))[found.order]


@pytest.fixture(scope="module")
def parties():
    """Four parties of some of 300 people each: parts, ids, and the joined table."""
    rng = np.random.default_rng(7)
    people = np.array([f"person {i}" for i in rng.permutation(300)])
    kind = rng.integers(0, 4, len(people))
    parts, ids, joined = {}, {}, {}
    for party, n_columns in {"north": 2, "east": 1, "south": 3, "west": 1}.items():
        seen = np.flatnonzero(rng.random(len(people)) < 0.6)
        columns = {}
        for j in range(n_columns):
            said = np.where(rng.random(len(seen)) < 0.8, kind[seen], rng.integers(0, 4, len(seen)))
            columns[f"column {j}"] = np.array(["delta", "alpha", "charlie", "bravo"])[said]
            joined[f"{party}/column {j}"] = dict(zip(people[seen], columns[f"column {j}"], strict=True))
        found = prepare(Partitions.of(columns), people[seen], party, KEY, smallest=1)
        parts[party], ids[party] = found.part, people[seen][found.order]
    return parts, ids, joined


def assert_answers_are_those_of(fusion, answers, ids):
    place = {person: row for row, person in enumerate(fusion.index)}
    for party, answer in answers.items():
        rows = [place[person] for person in ids[party]]
        np.testing.assert_array_equal(answer.labels, fusion.labels[rows])
        for name in ("confidence", "margin", "coverage", "alternative"):
            np.testing.assert_array_equal(getattr(answer, name), getattr(fusion.diagnostics, name)[rows])


def test_the_answer_is_that_of_fuse_on_the_joined_table(parties):
    parts, ids, joined = parties
    merged = merge_parts(list(parts.values()), 4)
    assert_answers_are_those_of(fuse(joined, 4, random_state=0), merged.answers, ids)
    assert merged.fusion.partitions.names[0] == "east/column 0"


def test_the_order_of_the_parties_changes_nothing(parties):
    parts, _, _ = parties
    first = join_parts(list(parts.values()))
    for order in itertools.permutations(parts.values()):
        again = join_parts(order)
        assert again.table.names == first.table.names
        np.testing.assert_array_equal(again.table.codes, first.table.codes)
        assert all(np.array_equal(again.rows[party], rows) for party, rows in first.rows.items())


def test_three_banks_in_any_order():
    sent = {bank: part_of(bank, people) for bank, people in BANKS.items()}
    joined = fuse({f"{bank}/segment": people for bank, people in BANKS.items()}, 2, random_state=0)
    for order in itertools.permutations(sent):
        merged = merge_parts([sent[bank][0] for bank in order], 2)
        assert_answers_are_those_of(joined, merged.answers, {bank: sent[bank][1] for bank in sent})


def test_clusters_that_cannot_be_told_apart_are_numbered_as_in_the_joined_table():
    people = {f"p{i}": "zebra" if i % 2 else "ape" for i in range(8)}
    sent = {party: part_of(party, people) for party in "ab"}
    joined = fuse({f"{party}/segment": people for party in "ab"}, 2, random_state=0)
    merged = merge_parts([part for part, _ in sent.values()], 2)
    assert_answers_are_those_of(joined, merged.answers, {party: ids for party, (_, ids) in sent.items()})


def test_what_leaves_has_no_id_no_label_and_no_order_of_rows():
    people = BANKS["a"]
    part, _ = part_of("a", people)
    again, _ = part_of("a", dict(reversed(people.items())))
    np.testing.assert_array_equal(part.ids, again.ids)
    np.testing.assert_array_equal(part.codes, again.codes)
    shown = part.ids.tobytes() + part.codes.tobytes() + repr((part.party, part.columns)).encode()
    assert not any(word.encode() in shown for item in people.items() for word in item)
    assert part.ids.dtype == np.uint8
    assert part.ids.shape == (4, 32)
    assert part.n_bytes == 4 * 33


def test_labels_of_few_members_become_missing_and_the_others_are_numbered_by_size():
    labels = ["rare"] * 2 + ["some"] * 3 + ["many"] * 5
    found = prepare(Partitions.of({"x": labels, "y": ["all"] * 10}), range(10), "p", KEY, smallest=3)
    codes = found.part.codes[np.argsort(found.order)]
    assert codes[:, 0].tolist() == [-1] * 2 + [1] * 3 + [0] * 5
    assert found.columns[0] == ("x", 3, 1, 8, 2)
    assert found.columns[1] == ("y", 1, 0, 10, 0)


def test_a_row_without_any_label_left_is_known_through_others_or_unassigned():
    parts = [
        part_of("a", {**dict.fromkeys("uvw", "one"), **dict.fromkeys("xyz", "two"), "q": "rare"}, smallest=2),
        part_of(
            "b", {**dict.fromkeys("uvw", "l"), **dict.fromkeys("xyz", "r"), "s": "r", "t": "rare"}, smallest=2
        ),
    ]
    merged = merge_parts([part for part, _ in parts], 2)
    ids = {part.party: ids for part, ids in parts}
    known = {party: dict(zip(ids[party], merged.answers[party].labels, strict=True)) for party in ids}
    assert known["a"]["q"] == known["b"]["t"] == -1
    assert known["b"]["s"] == known["b"]["x"] >= 0


def test_keyed_ids_are_hmac_of_the_text():
    import hashlib
    import hmac

    expected = hmac.new(KEY, "Zoë 7".encode(), hashlib.sha256).digest()
    assert keyed_ids(["Zoë 7"], KEY).tobytes() == expected
    assert keyed_ids([7, "7"], KEY)[0].tolist() == keyed_ids([7, "7"], KEY)[1].tolist()
    assert keyed_ids([], KEY).shape == (0, 32)


# --- bad cases: one sentence that names the party -----------------------------------------------------------


def some(*parties, key=KEY):
    return [part_of(party, BANKS[party], key)[0] for party in parties]


def test_a_party_that_does_not_answer_stops_it_unless_that_is_allowed():
    with pytest.raises(PartyError, match=r"^no answer in time from party 'c'\. Hint: is its node running\?"):
        merge_parts(some("a", "b"), 2, parties="abc")
    merged = merge_parts(some("a", "b"), 2, parties="abc", allow_absent=True)
    assert merged.absent == ("c",)
    assert set(merged.answers) == {"a", "b"}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (lambda: some("a", "b", "a"), r"^party 'a' answered 2 times\. Hint: "),
        (
            lambda: [*some("a", "b", "c"), part_of("d", BANKS["a"])[0]],
            r"^party 'd' answered and is none of this",
        ),
        (lambda: some("a"), r"^only party 'a' has sent labels\. Hint: "),
        (
            lambda: [*some("a", "b"), *some("c", key=b"another key, for the third")],
            r"^party 'c' shares no instance with the others\. Hint: the keys may differ",
        ),
        (
            lambda: [*some("a"), *some("b", key=b"another key, for the second")],
            r"^party 'a' and party 'b' share no instance\. Hint: the keys may differ",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(ids=np.zeros((3, 16), np.uint8))],
            r"^party 'b' sent another schema: ids of shape \(3, 16\)",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(codes=np.zeros((3, 1)))],
            r"^party 'b' sent another schema: codes of shape \(3, 1\) and type float64",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(codes=np.full((3, 1), 99, np.int8))],
            r"^party 'b' sent another schema: codes below -1 or above",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(columns=("x", "y"))],
            r"^party 'b' sent another schema: codes of shape \(3, 1\)",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(codes=np.full((3, 1), -1, np.int8))],
            r"^party 'b' sent an empty table\. Hint: ",
        ),
        (
            lambda: [*some("a", "c"), some("b")[0]._replace(ids=np.zeros((3, 32), np.uint8))],
            r"^party 'b' sent an id twice\. Hint: ",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(parts, said):
    with pytest.raises(ValueError, match=said):
        merge_parts(parts(), 2, parties="abc" if len(parts()) > 2 else None)


def test_a_column_that_holds_ids_is_refused_at_the_server_too():
    ids = [f"customer {i}" for i in range(40)]
    own, _ = part_of("b", dict(zip(ids, ["u", "v"] * 20, strict=True)))
    forged = own._replace(party="a", columns=("account",), codes=np.arange(40, dtype=np.int8)[:, None])
    with pytest.raises(
        PartyError, match=r"^column 'account' of party 'a' has a different label in every row"
    ):
        merge_parts([forged, own], 2)


def test_a_party_of_which_nothing_may_leave_is_refused():
    with pytest.raises(PartyError, match=r"^every label of party 'a' has fewer than 5 members"):
        part_of("a", BANKS["a"], smallest=5)


# --- a party's own files ------------------------------------------------------------------------------------


@pytest.fixture
def party(tmp_path):
    """The node config of a party with a table of 40 rows, and a function that changes it."""
    (tmp_path / "shared.key").write_bytes(KEY + b"\n")
    rows = [f"id-{i},{'gold' if i % 3 else 'basic'},{'x' if i < 25 else ''}\n" for i in range(40)]
    (tmp_path / "labels.csv").write_text("customer,segment,region\n" + "".join(rows))
    return {
        "party": "bank_a",
        "table": str(tmp_path / "labels.csv"),
        "id": "customer",
        "key-file": str(tmp_path / "shared.key"),
        "output": str(tmp_path / "answer.parquet"),
    }


def test_a_party_sends_its_columns_and_gets_a_file_in_the_order_of_its_table(party):
    settings = Settings.of(party)
    found = settings.prepare()
    assert found.part.columns == ("segment", "region")
    other, _ = part_of("bank_b", {f"id-{i}": "s" if i % 3 else "t" for i in range(40)})
    merged = merge_parts([found.part, other], 2)
    settings.write(merged.answers["bank_a"], found.order)
    written = pq.read_table(party["output"]).to_pydict()
    assert written["customer"] == [f"id-{i}" for i in range(40)]
    assert list(written) == ["customer", "label", "confidence", "margin", "coverage", "alternative"]
    assert len({(label, i % 3 == 0) for i, label in enumerate(written["label"])}) == 2
    assert written["confidence"] == merged.answers["bank_a"].confidence[np.argsort(found.order)].tolist()


def test_ids_of_numbers_and_of_text_are_the_same(party, tmp_path):
    import pyarrow as pa

    (tmp_path / "numbers.csv").write_text("n,s\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    pq.write_table(pa.table({"n": range(30), "s": [i % 2 for i in range(30)]}), tmp_path / "numbers.parquet")
    text, numbers = (
        Settings.of({**party, "id": "n", "table": str(tmp_path / f"numbers.{kind}")}).prepare().part
        for kind in ("csv", "parquet")
    )
    np.testing.assert_array_equal(text.ids, numbers.ids)
    np.testing.assert_array_equal(text.codes, numbers.codes)


def test_the_key_may_be_in_the_environment(party, monkeypatch):
    by_file = Settings.of(party).prepare().part
    monkeypatch.setenv("BANK_KEY", KEY.decode())
    config = {name: value for name, value in party.items() if name != "key-file"}
    by_variable = Settings.of({**config, "key-variable": "BANK_KEY"}).prepare().part
    np.testing.assert_array_equal(by_file.ids, by_variable.ids)
    assert key_fingerprint(KEY) != key_fingerprint(KEY + b"!")


def test_a_key_that_is_not_there_or_too_short_is_refused(tmp_path):
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(ValueError, match="has 6 bytes, fewer than 16"):
        read_key(file=tmp_path / "short")
    for wrong in ({"file": tmp_path / "none"}, {"variable": "NOT_SET_ANYWHERE"}, {}):
        with pytest.raises(ValueError, match="key"):
            read_key(**wrong)


@pytest.mark.parametrize(
    ("change", "table", "said"),
    [
        ({"party": "a/b"}, None, "a node has no party, or one with a comma or slash"),
        ({"smalest-cluster": 9}, None, "party 'bank_a' has a setting 'smalest-cluster', which is not known"),
        ({"smallest-cluster": 0}, None, "the smallest-cluster of party 'bank_a' is no number from 1"),
        ({"id": 5}, None, "the node of party 'bank_a' has no setting 'id'"),
        ({"id": "custmer"}, None, "party 'bank_a': its table has no column 'custmer'"),
        ({"columns": "segment,customer"}, None, "column 'customer' of party 'bank_a' is its id column"),
        ({"columns": "segmnt"}, None, "party 'bank_a': its table has no column 'segmnt'"),
        ({"key-file": "nowhere.key"}, None, "party 'bank_a' has no key of 16 bytes or more in its key-file"),
        ({"smallest-cluster": 99}, None, "every label of party 'bank_a' has fewer than 99 members"),
        ({"table": "elsewhere.csv"}, None, "party 'bank_a': there is no file 'its table'"),
        ({"output": "nowhere/answer.csv"}, None, "party 'bank_a': there is no folder 'nowhere'"),
        ({}, "", "party 'bank_a' has an empty table"),
        ({}, "customer,segment\n", "party 'bank_a' has an empty table"),
        ({}, "customer\nsecret-1\nsecret-2\n", "party 'bank_a' has no column of labels"),
        ({}, "customer,x\nsecret-1,u\n,u\n", "row 1 of party 'bank_a' has no id"),
        ({}, "customer,x\nsecret-1,u\ns,u\nsecret-1,u\n", "rows 0 and 2 of party 'bank_a' have the same id"),
        (
            {},
            "customer,account\n" + "".join(f"secret-{i},acc-{i}\n" for i in range(40)),
            "party 'bank_a': base clustering 'account' has a different label in every row",
        ),
        # What a reader of files says may quote a line.
        ({}, "customer,x\nsecret-1,u\nsecret-2,u,v\n", r"the table of party 'bank_a' cannot be used \(Inp"),
        ({}, "customer,x\nsecret-1,0.37\nsecret-2,0.5\n", r"the table of party 'bank_a' cannot be used \("),
    ],
)  # fmt: skip
def test_what_a_party_says_is_one_sentence_with_its_name_and_without_its_data(
    party, change, table, said, tmp_path
):
    if table is not None:
        (tmp_path / "labels.csv").write_text(table)
    config = {**party, **change}
    with pytest.raises(ValueError) as caught:
        Settings.of(config).prepare()
    refusal = sayable(caught.value, "bank_a", config["table"])
    assert isinstance(refusal, PartyError)
    with pytest.raises(PartyError, match=f"^(the node of )?{said}.* Hint: "):
        raise refusal
    for private in ("secret-", "acc-", "id-1", str(tmp_path), "0.37", "u,v"):
        assert private not in str(refusal)


def test_the_answer_does_not_take_the_place_of_the_table(party):
    with pytest.raises(PartyError, match="the output of party 'bank_a' is its table"):
        Settings.of({**party, "output": os.path.relpath(party["table"])}).prepare()


def test_labels_are_read_without_their_ids(party):
    own = read_own(party["table"], "customer", (), "bank_a")
    assert own.labels.index is None
    assert own.ids[:2] == ["id-0", "id-1"]


# --- the command --------------------------------------------------------------------------------------------


def test_check_shows_what_would_leave_and_no_id(party, capfd):
    command = ["federated", "check", party["table"], "--id", "customer", "--smallest", "14"]
    assert run([*command, "--key-file", party["key-file"]]) == 0
    shown = capfd.readouterr()
    assert shown.out.splitlines() == [
        "column\tlabels\tlabels held back\trows\trows held back",
        "segment\t2\t0\t40\t0",
        "region\t1\t0\t25\t0",
    ]
    assert (
        f"40 rows of 2 columns would leave, {40 * 34} bytes, under the key {key_fingerprint(KEY)}."
        in shown.err
    )
    assert "id-1" not in shown.out + shown.err
    assert run([*command, "--columns", "segment", "--smallest", "20", "--json"]) == 0
    about = json.loads(capfd.readouterr().out)
    assert about["columns"] == [
        {"name": "segment", "n_labels": 2, "n_held_back": 1, "n_rows": 26, "n_rows_held_back": 14}
    ]
    assert about["bytes"] == 40 * 33
    assert about["key"] is None


def test_a_command_that_needs_flower_says_so(monkeypatch, capfd):
    monkeypatch.setattr("consilience.cli.commands.federated.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "flwr", None)
    assert run(["federated", "demo"]) == 1
    assert "needs flwr. Hint: pip install 'consilience[federated]'" in capfd.readouterr().err


# --- the guide ----------------------------------------------------------------------------------------------


def test_the_guide_has_the_app_and_the_settings_that_are_known():
    page = (Path(__file__).parent.parent / "docs" / "guide" / "federated.md").read_text()
    blocks = dict(re.findall(r"```toml\n# (\S+)\n(.*?)```", page, flags=re.DOTALL))
    assert tomllib.loads(blocks["app/pyproject.toml"]) == tomllib.loads(APP)
    settings = tomllib.loads(blocks["bank_a.toml"])
    assert Settings.of(settings).columns == ("segment", "region")
    documented = re.search(r"\| setting of a node \|(.*?)\n\n", page, flags=re.DOTALL).group(1)
    known = {"party", "table", "id", "columns", "smallest-cluster", "key-file", "key-variable", "output"}
    assert set(re.findall(r"`([\w-]+)`", documented.replace("`fuse`", ""))) == known
    documented = re.search(r"\| setting of a run \|(.*?)\n\n", page, flags=re.DOTALL).group(1)
    named = set(re.findall(r"`([\w-]+)`", documented)) - {"fuse"}
    assert named == set(tomllib.loads(APP)["tool"]["flwr"]["app"]["config"])
