"""Tables as people have them: encodings, delimiters, Excel, a row per opinion, other names in every file; and
engines that give the same bytes."""

from __future__ import annotations

import gzip
import zipfile
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from consilience.cli.main import run
from consilience.evidence.reading import read_labels
from consilience.io import ids, scan, text
from tests.planted import planted

SHOPS = "kunde,a,b,c\nJürgen,gold,größer,\nbob,basic,kleiner,\ncleo,gold,,1\ndan,basic,NA,2\neve,,kleiner,2\n"
QUICK = ["-k", "2", "-m", "DAL"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shops.csv").write_text(SHOPS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def told(capfd):
    """What a command writes to standard output and says, and its exit code."""

    def call(*arguments):
        code = run(list(arguments))
        out = capfd.readouterr()
        return code, out.out, out.err

    return call


def test_names_are_not_labels(here, told):
    code, _, err = told("fuse", "shops.csv", *QUICK)
    assert code == 2
    assert err.startswith(
        "Error: base clustering 'kunde' has a different label in every row. Hint: if it holds the ids, say"
    )


# --- text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "mark", "line"),
    [
        ("utf-8-sig", ",", ""),
        ("utf-8", ";", "other.csv: separated by ;\n"),
        ("utf-16", "\t", "other.csv: read as UTF-16, separated by tabs\n"),
        ("utf-16-le", ",", "other.csv: read as UTF-16\n"),
        ("latin-1", "|", "other.csv: read as Windows-1252, separated by |\n"),
        ("cp1252", ";", "other.csv: read as Windows-1252, separated by ;\n"),
    ],
)
def test_encoding_and_delimiter_are_found_and_said(here, told, encoding, mark, line):
    expected = told("fuse", "shops.csv", "--id", "kunde", *QUICK)
    (here / "other.csv").write_bytes(SHOPS.replace(",", mark).encode(encoding))
    found = told("fuse", "other.csv", "--id", "kunde", *QUICK)
    assert found == (0, expected[1], line + expected[2])
    assert "Jürgen" in found[1]
    quiet = told("fuse", "other.csv", "--id", "kunde", *QUICK, "--quiet", "--delimiter", mark)
    assert quiet == (0, expected[1], "")


def test_text_that_is_utf8_is_never_read_as_anything_else(here, told):
    # Every byte of these letters is a letter of Windows-1252, too; the first of them comes late.
    lines = [f"p{p},{p % 2},{p % 2}" for p in range(20_000)]
    (here / "late.csv").write_text("id,a,b\n" + "\n".join(lines) + "\nŽ,0,0\n", encoding="utf-8")
    code, out, err = told("fuse", "late.csv", "--id", "id", *QUICK)
    assert code == 0
    assert "read as" not in err
    assert "\nŽ," in out


def test_the_encoding_can_be_given(here, told):
    (here / "dos.csv").write_bytes(SHOPS.replace("1\n", "\u2592\n").encode("cp437"))
    code, out, err = told("fuse", "dos.csv", "--id", "kunde", *QUICK, "--encoding", "cp437")
    assert code == 0
    assert "Jürgen" in out
    assert "read as" not in err
    code, _, err = told("fuse", "dos.csv", "--id", "kunde", *QUICK, "--encoding", "utf8")
    assert code == 1
    assert "line 2 of dos.csv is not text in UTF-8. Hint: name its encoding" in err
    code, _, err = told("fuse", "dos.csv", "--encoding", "klingon")
    assert code == 2
    assert "there is no encoding 'klingon'. Hint: as in --encoding utf-8" in err


def test_a_delimiter_has_to_cut_all_lines_alike():
    assert text.find_delimiter(["id,a\n", "x,p|q\n", "y,r\n"], ",") == ","
    assert text.find_delimiter(['"a,b";c\n', '"1;2";3\n'], ",") == ";"
    assert text.find_delimiter(["a|b|c\n", "1|2\n"], ",") == ","
    assert text.find_delimiter([], "\t") == "\t"


def test_decimal_commas_of_a_view_are_read(here, told):
    rng = np.random.default_rng(0)
    rows = [(f"p{p}", *(rng.normal(8 * (p % 2), 1, 2).round(3))) for p in range(30)]
    point = "id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in rows)
    (here / "point.csv").write_text(point)
    (here / "comma.csv").write_text(point.replace(",", ";").replace(".", ","))
    expected = told("cluster", "point.csv", "--id", "id", "-k", "2")
    found = told("cluster", "comma.csv", "--id", "id", "-k", "2")
    assert expected[0] == found[0] == 0
    assert found[1] == expected[1]
    assert found[2].startswith("comma.csv: separated by ;, with decimal commas\n")


# --- several files ------------------------------------------------------------------------------------------


@pytest.fixture
def banks(here):
    (here / "a.csv").write_text("who,gold,age\nann,1,50\nbob,0,40\ncleo,1,30\ndan,0,20\n")
    (here / "b.csv").write_text("customer,club,town\nbob,x,Bonn\ncleo,y,Rome\ndan,x,Bonn\neve,x,Rome\n")
    (here / "same.csv").write_text("who,club\nbob,x\ncleo,y\ndan,x\neve,x\n")
    return here


def test_each_file_has_its_own_ids_and_columns(banks, told):
    options = ["--columns", "a.csv=gold", *QUICK, "-q"]
    expected = told("fuse", "a.csv", "same.csv", "--id", "who", *options)
    own = ["--id", "who", "--id", "b=customer", "--columns", "b.csv=club"]
    assert told("fuse", "a.csv", "b.csv", *own, *options) == expected
    both = ["--id", "a.csv=who", "--id", "./b.csv=customer", "--columns", "b.csv=club"]
    assert told("fuse", "a.csv", "./b.csv", *both, *options) == expected
    assert expected[1].startswith("who,label,")
    assert told("fuse", "a.csv", "b.csv", *own, *options, "--save", "m.result")[0] == 0
    placed = told("predict", "m.result", "b.csv", "--id", "b.csv=customer", "--columns", "club", "-q")
    assert placed[0] == 0
    assert placed[1].startswith("customer,label,")
    facts = ["--profile", "b.csv", "--id", "a=who", "--id", "b=customer", "--columns", "a=gold"]
    assert told("fuse", "a.csv", *facts, *QUICK, "--json", "-q")[0] == 0


def test_views_may_call_their_ids_differently(here, told):
    for name, key in (("u", "id"), ("v", "key"), ("w", "id")):
        rows = "".join(f"p{p},{10 * (p % 2) + p / 50}\n" for p in range(20))
        (here / f"{name}.csv").write_text(f"{key},x\n{rows}")
    expected = told("cluster", "u.csv", "w.csv", "--id", "id", "-k", "2", "-q")
    assert expected[0] == 0
    assert told("cluster", "u.csv", "v.csv", "--id", "id", "--id", "v.csv=key", "-k", "2", "-q") == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--id", "c.csv=who"], "--id names 'c.csv', which is not one of the files: a.csv, b.csv. Hint"),
        (
            ["--columns", "gold=1"],
            "--columns names 'gold', which is not one of the files: a.csv, b.csv. Hint",
        ),
        (["--id", "who", "--id", "customer"], "--id is given twice, who and customer. Hint"),
        (["--id", "a.csv=who"], "to join 2 files, every one needs an id column, and 'b' has none. Hint"),
        (["--id", "who", "--id", "b.csv=custmer"], "b.csv has no column 'custmer'. Hint: did you mean"),
        (["--long", "who,gold"], "--long needs three columns. Got 'who,gold'. Hint"),
        (["--long", "a,b,c", "--id", "who"], "there is no --id and no --columns. Hint"),
    ],
)
def test_what_names_no_file_is_said(banks, told, options, message):
    code, out, err = told("fuse", "a.csv", "b.csv", *options, *QUICK)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


# --- Excel --------------------------------------------------------------------------------------------------


def write_xlsx(path, sheets):
    """A file as Excel writes it: numbers as floats, dates as numbers with a style, text in place."""

    def cell(value):
        if value is None:
            return "<c/>"
        if isinstance(value, str) and value.startswith("date:"):
            return f'<c s="1"><v>{value[5:]}</v></c>'
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as file:
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/></Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        names = "".join(
            f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1)
        )
        file.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{names}</sheets></workbook>',
        )
        targets = "".join(
            f'<Relationship Id="r{i}" Type="{relations}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        file.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{targets}'
            f'<Relationship Id="s" Type="{relations}/styles" Target="styles.xml"/></Relationships>',
        )
        file.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
        )
        for i, rows in enumerate(sheets.values(), 1):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            file.writestr(
                f"xl/worksheets/s{i}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
            )


@pytest.mark.skipif(find_spec("python_calamine") is None, reason="needs the extra excel")
class TestExcel:
    ROWS = (
        ["id", "a", "since", "c"],
        [101.0, "x", "date:45000", 1.0],
        [102.0, "y", "date:45001", 2.0],
        [103.0, "x", None, 1.0],
        [104.0, "NA", "date:45001", 2.0],
    )
    CSV = "id,a,since,c\n101,x,2023-03-15,1\n102,y,2023-03-16,2\n103,x,,1\n104,NA,2023-03-16,2\n"

    def test_a_sheet_is_the_table_that_csv_is(self, here, told):
        (here / "labels.csv").write_text(self.CSV)
        write_xlsx("one.xlsx", {"only": self.ROWS})
        write_xlsx("two.xlsx", {"notes": [["nothing"]], "Q1 labels": self.ROWS})
        for path in ("one.xlsx", "one.xlsx#only", "two.xlsx#Q1 labels"):
            for output in ([], ["--imputed", "-"]):
                expected = told("fuse", "labels.csv", "--id", "id", *QUICK, *output)
                assert expected[0] == 0
                assert told("fuse", path, "--id", "id", *QUICK, *output) == expected

    def test_sheets_of_features_are_views_by_their_names(self, here, told):
        for j, name in enumerate(("blood", "genes")):
            rows = [(f"p{p}", 10 * (p % 2) + p / 50 + j) for p in range(20)]
            (here / f"{name}.csv").write_text("id,x\n" + "".join(f"{i},{x}\n" for i, x in rows))
        sheets = {
            name: [["id", "x"], *([f"p{p}", 10 * (p % 2) + p / 50 + j] for p in range(20))]
            for j, name in enumerate(("blood", "genes"))
        }
        write_xlsx("all.xlsx", sheets)
        expected = told("cluster", "blood.csv", "genes.csv", "--id", "id", "-k", "2")
        assert told("cluster", "all.xlsx#blood", "all.xlsx#genes", "--id", "id", "-k", "2") == expected

    @pytest.mark.parametrize(
        ("path", "code", "message"),
        [
            ("two.xlsx", 2, "two.xlsx has 2 sheets: notes, labels. Hint: name one, as in 'two.xlsx#notes'"),
            ("two.xlsx#lables", 2, "two.xlsx has no sheet 'lables'. Hint: did you mean 'labels'"),
            ("none.xlsx#a", 2, "there is no file 'none.xlsx#a'. Hint"),
            ("fake.xlsx", 1, "fake.xlsx cannot be read: "),
            ("blank.xlsx", 1, "blank.xlsx is empty. Hint"),
        ],
    )
    def test_what_is_wrong_with_it_is_one_sentence(self, here, told, path, code, message):
        write_xlsx("two.xlsx", {"notes": [["nothing"]], "labels": self.ROWS})
        write_xlsx("blank.xlsx", {"only": []})
        (here / "fake.xlsx").write_text("no zip at all")
        found, out, err = told("fuse", path, "--id", "id", *QUICK)
        assert (found, out) == (code, "")
        assert message in err
        assert err.count("\n") == 1


# --- a row per opinion --------------------------------------------------------------------------------------


def test_a_row_per_opinion_is_the_table_with_a_column_per_source(here, told):
    rows = [line.split(",") for line in SHOPS.splitlines()]
    opinions = [
        f"{row[0]},{source},{label}"
        for row in rows[1:]
        for source, label in zip(rows[0][1:], row[1:], strict=True)
    ]
    (here / "long.csv").write_text("who,by,said\n" + "\n".join(opinions) + "\n", encoding="utf-8")
    wide = told("fuse", "shops.csv", "--id", "kunde", *QUICK, "--imputed", "-")
    long = told("fuse", "long.csv", "--long", "who,by,said", *QUICK, "--imputed", "-")
    assert long[0] == 0
    assert long[1].replace("who,", "kunde,", 1) == wide[1]
    assert long[2] == wide[2]
    assert told("fuse", "long.csv", "--long", "who,by,said", *QUICK, "--save", "m", "-q")[0] == 0
    placed = told("predict", "m", "long.csv", "--long", "who,by,said", "-q")
    assert placed[1].startswith("who,label,confidence")
    assert placed[1].count("\n") == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "i,s,l\np,a,x\np,a,y\nq,a,x\n",
            "source 'a' gives instance 'p' two labels: 'x' and 'y' (row 0). Hint",
        ),
        ("i,s,l\np,,x\nq,a,x\n", "line 2 of long.csv has no 's'. Hint"),
        ("i,s\np,a\n", "long.csv has no column 'l'. Hint"),
    ],
)
def test_opinions_that_contradict_each_other_are_named(here, told, text, message):
    (here / "long.csv").write_text(text)
    code, _, err = told("fuse", "long.csv", "--long", "i,s,l", *QUICK)
    assert code in (1, 2)
    assert message in err
    assert err.count("\n") == 1


OPINIONS = "who,by,said\n" + "".join(
    f"{who},{by},{label}\n"
    for who, labels in {"ann": "xy", "bob": "zu", "cleo": "xu", "dan": "z"}.items()
    for by, label in zip(["bank", "shop"], labels, strict=False)
)


@pytest.mark.parametrize("engine", ["memory", "blocks"])
def test_opinions_that_were_not_said_to_be_such_are_refused_with_the_option(here, told, engine):
    (here / "long.csv").write_text(OPINIONS)
    say = "say --long who,by,said (instance, source, label)"
    for options, code, message in [
        (
            [],
            2,
            f"long.csv looks like a row per opinion: 'who' and 'by' repeat, but never together. Hint: {say}",
        ),
        (
            ["--id", "who"],
            1,
            "'ann' occurs 2 times: lines 2 and 3 of long.csv. Hint: give a row per instance; if this is a "
            f"row per opinion, {say}.",
        ),
        (["--id", "who", "--columns", "said"], 1, "for a row per opinion, give --long."),
    ]:
        found, out, err = told("fuse", "long.csv", *QUICK, *options, "--engine", engine)
        assert (found, out) == (code, "")
        assert message in err
        assert err.count("\n") == 1
    assert told("fuse", "long.csv", *QUICK, "--long", "who,by,said")[0] == 0
    meant = told("fuse", "long.csv", *QUICK, "--columns", "who,by,said", "--engine", engine)
    assert meant[0] == 0


def test_three_clusterings_are_no_opinions(here, told):
    rows = "".join(f"{p // 4},{'xy'[p // 4]},{'uv'[p % 2]}\n" for p in range(8))
    (here / "three.csv").write_text(f"a,b,c\n{rows}")
    assert told("fuse", "three.csv", *QUICK)[0] == 0


# --- engines ------------------------------------------------------------------------------------------------

KINDS = ("csv", "csv.gz", "parquet", "arrow")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One table of 400 instances in files of every kind, some of which nobody saw."""
    _, base = planted(400, 5, 3, noise=0.15, missing=0.3, seed=0)
    names = np.array(["red", "green", "blue", None], dtype=object)
    columns = {f"b{j}": pa.array(names[base[:, j]] if j % 2 else [*map(str, base[:, j])]) for j in range(5)}
    table = pa.table({"id": [f"=i{p}" for p in range(400)], **columns})
    folder = tmp_path_factory.mktemp("tables")
    pa_csv.write_csv(table, folder / "t.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    # In text "-1" is a number, which says missing; here it has to be one.
    for j in range(0, 5, 2):
        table = table.set_column(j + 1, f"b{j}", pa.array(base[:, j]))
    pq.write_table(table, folder / "t.parquet", row_group_size=90)
    feather.write_feather(table, folder / "t.arrow", chunksize=70)
    return folder


OPTIONS = ["--id", "id", "-k", "3", "-m", "DAL", "--unobserved", "noise"]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_give_the_bytes_that_memory_gives(tables, tmp_path, monkeypatch, told, kind):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("consilience.io.write.ROWS_A_PIECE", 150)
    monkeypatch.setattr("consilience.evidence.reading.ROWS_A_BATCH", 150)
    monkeypatch.setattr("consilience.io.csv.BLOCK", 1 << 11)
    said = {}
    for engine in ("memory", "blocks"):
        outputs = ["-o", f"{engine}.parquet", "--imputed", f"{engine}.csv", "--name-after", "b1"]
        said[engine] = told("fuse", str(tables / f"t.{kind}"), *OPTIONS, *outputs, "--engine", engine)
    assert said["memory"][0] == 0
    assert said["blocks"] == said["memory"]
    for suffix in ("parquet", "csv"):
        assert Path(f"blocks.{suffix}").read_bytes() == Path(f"memory.{suffix}").read_bytes()
    assert pq.ParquetFile("blocks.parquet").num_row_groups == 3


def test_dask_gives_the_bytes_that_memory_gives(tables, tmp_path, monkeypatch, told):
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    expected = told("fuse", str(tables / "t.csv"), *OPTIONS, "-q")
    here = {"n_workers": 1, "processes": False, "dashboard_address": None}
    quiet = {"scheduler_kwargs": {"dashboard_address": "localhost:0"}, "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(**here, **quiet) as cluster:
        scheduler = ["--engine", "dask", "--scheduler", cluster.scheduler_address, "-q"]
        for kind in ("csv", "parquet"):
            assert told("fuse", str(tables / f"t.{kind}"), *OPTIONS, *scheduler) == expected
        to_folder = ["-o", "merged", *scheduler]
        assert told("fuse", str(tables / "t.csv"), *OPTIONS, *to_folder)[0] == 0
    rows = [line.split(",")[:2] for line in expected[1].splitlines()[1:]]
    found = pq.read_table("merged")
    assert [f"'{i}" for i in found["id"].to_pylist()] == [row[0] for row in rows]
    assert found["label"].to_pylist() == [int(row[1]) for row in rows]


def test_what_does_not_fit_in_memory_is_read_in_blocks(tables, monkeypatch, told):
    path = str(tables / "t.csv")
    expected = told("fuse", path, *OPTIONS)
    monkeypatch.setenv("CONSILIENCE_MEMORY", "10K")
    code, out, err = told("fuse", path, *OPTIONS)
    assert (code, out) == (0, expected[1])
    first, _, rest = err.partition("\n")
    assert first.endswith("GB are free: reading in blocks, twice (--engine blocks).")
    assert rest == expected[2]
    for options, why in (
        (["--profile", path], "--profile joins every instance by its id; leave it out"),
        ([str(tables / "t.parquet")], "several files are joined by their ids, all of which are held"),
        (["--engine", "memory"], "leave out --engine memory"),
    ):
        code, out, err = told("fuse", path, *OPTIONS, *options)
        assert (code, out) == (2, "")
        assert why in err
    code, out, err = told("fuse", path, *OPTIONS, "--report", "-")
    assert code == 0
    assert "--report without the ids of instances." in err
    assert out.startswith("<!DOCTYPE html>")


def test_many_rows_are_said_to_be_in_memory(tables, monkeypatch, told):
    monkeypatch.setattr("consilience.cli.job._MANY", 300)
    err = told("fuse", str(tables / "t.parquet"), *OPTIONS)[2]
    assert err.startswith("4e+02 rows of 6 columns take some")
    assert "GB are free: working in memory.\n" in err


@pytest.mark.parametrize("engine", ["memory", "blocks"])
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("i,0,0\nj,1,1\ni,0,0\n", [], "the id 'i' occurs 2 times: lines 2 and 4 of bad.csv. Hint"),
        ("i,0,0\n,1,1\n", [], "line 3 of bad.csv has no id. Hint"),
        ("i,0,0\nj,,-1\nk,1,1\n", [], "no base clustering saw"),
        ("i,0,0\nj,0.5,1\n", [], "'a' has the value 0.5"),
        ("i,0,0\nj,1,1\n", ["--columns", "nope"], "bad.csv has no column 'nope'"),
        (
            "".join(f"i{p},{p},{p % 2}\n" for p in range(40)),
            [],
            "base clustering 'a' has a different label in every row",
        ),
    ],
)
def test_all_engines_refuse_the_same(here, told, engine, rows, options, message):
    (here / "bad.csv").write_text(f"id,a,b\n{rows}")
    code, out, err = told("fuse", "bad.csv", "--id", "id", *options, *QUICK, "--engine", engine)
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_ids_with_the_same_key_are_looked_at(tables, monkeypatch):
    some = pa.array(["a", "bb", "", "a", "ccc"])
    keys = ids.keys_of(some[1:])
    assert len(set(keys.tolist())) == 4
    assert ids.keys_of(some)[0] == keys[2]
    numbers = pa.array([3, -1, 3])
    assert ids.keys_of(numbers)[0] == ids.keys_of(numbers)[2] != ids.keys_of(numbers)[1]
    # Different ids may have one key: that is no repetition.
    monkeypatch.setattr(ids, "_FEW", 300)
    monkeypatch.setattr(ids, "keys_of", lambda values: np.zeros(len(values), dtype=np.uint64))
    read = read_labels(scan(tables / "t.csv", id="id").sources).instances
    assert read.n_instances == 400


def test_cells_of_blanks_are_missing(here, told):
    expected = told("fuse", "shops.csv", "--id", "kunde", *QUICK)
    (here / "blank.csv").write_text(SHOPS.replace(",,", ",  ,").replace(",\n", ", \n"), encoding="utf-8")
    assert told("fuse", "blank.csv", "--id", "kunde", *QUICK) == expected


def test_a_category_that_no_row_has_is_no_cluster(here, told):
    table = pa_csv.read_csv("shops.csv", convert_options=pa_csv.ConvertOptions(strings_can_be_null=True))
    feather.write_feather(table, "plain.arrow")
    coded = table.column("a").combine_chunks().dictionary_encode()
    more = pa.DictionaryArray.from_arrays(
        coded.indices, pa.concat_arrays([coded.dictionary, pa.array(["x"])])
    )
    feather.write_feather(table.set_column(1, "a", more), "coded.arrow")
    plain, coded = (told("fuse", f"{name}.arrow", "--id", "kunde", *QUICK) for name in ("plain", "coded"))
    assert coded == plain
    assert plain[0] == 0


MARKED = SHOPS.replace("basic,kleiner", "basic,?").replace("gold,größer", "-,größer")


@pytest.fixture
def marked(here):
    (here / "marked.csv").write_text(MARKED, encoding="utf-8")
    options = pa_csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    table = pa_csv.read_csv("marked.csv", convert_options=options)
    pq.write_table(table, "marked.parquet")
    feather.write_feather(table.set_column(1, "a", table.column("a").dictionary_encode()), "marked.arrow")
    return table


@pytest.mark.parametrize("engine", ["memory", "blocks"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_marks_that_rather_say_missing_are_named_and_can_be_declared(marked, told, kind, engine):
    call = ["fuse", f"marked.{kind}", "--id", "kunde", *QUICK, "--engine", engine]
    code, _, err = told(*call)
    assert code == 0
    line = (
        "Warning: '-' in column 'a' (1 row) and '?' in column 'b' (1 row) count as clusters. "
        "Hint: if this means that there is no label, name every such mark: "
        "--missing - --missing '?' --missing ''\n"
    )
    assert err.startswith(line)
    assert "count as clusters" not in err[len(line) :]
    blank = pa.table({"kunde": marked["kunde"], "a": marked["a"], "b": marked["b"], "c": marked["c"]})
    for name in ("a", "b"):
        at = blank.schema.get_field_index(name)
        texts = [None if label in ("-", "?") else label for label in blank[name].to_pylist()]
        blank = blank.set_column(at, name, pa.array(texts))
    pq.write_table(blank, "blank.parquet")
    missing = ["--missing", "-", "--missing", "?", "--missing", "", "--missing", "NA"]
    declared = told(*call, *missing, "--unobserved", "noise")
    assert declared == told("fuse", "blank.parquet", *call[2:], "--unobserved", "noise")
    assert declared[0] == 0


def test_marks_in_parquet_are_missing_on_dask_too(marked, told):
    call = ["fuse", "marked.parquet", "--id", "kunde", *QUICK, "--missing", "-", "--missing", "?"]
    expected = told(*call, "--unobserved", "noise")
    assert expected[0] == 0
    assert told(*call, "--unobserved", "noise", "--engine", "dask")[1] == expected[1]


class TestScan:
    """What `consilience.scan` reads, the commands read."""

    def test_ids_that_differ_in_form_match_where_that_was_asked_for(self, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.csv").write_text("who,a\nAnn ,0\nbob,1\n007,0\n")
        (tmp_path / "b.csv").write_text("who,b\nann,x\nBob,y\n7,x\n")
        command = ["fuse", "a.csv", "b.csv", "--id", "who", "-k", "2", "-q"]
        assert run([*command, "--match-ids", "trim,case,zeros"]) == 0
        assert len(capfd.readouterr().out.splitlines()) == 1 + 3
        assert run([*command, "--match-ids", "colour"]) != 0
        assert "Hint" in capfd.readouterr().err

    def test_column_names_below_a_title(self, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.csv").write_text("Segments,of,March\nwho,a,b\nann,0,x\nbob,1,y\n")
        (tmp_path / "plain.csv").write_text("who,c\nann,0\nbob,1\n")
        assert run(["fuse", "a.csv", "--header", "2", "--id", "who", "-k", "2", "-q"]) == 0
        assert capfd.readouterr().out.splitlines()[0].startswith("who,label,")
        files = ["fuse", "a.csv", "plain.csv", "--id", "who", "-k", "2", "-q"]
        assert run([*files, "--header", "a.csv=2"]) == 0
        capfd.readouterr()
        assert run([*files, "--header", "two"]) == 2
        assert "--header must be the number of a line, from 1. Got 'two'." in capfd.readouterr().err

    def test_files_of_a_pattern_are_one_table(self, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "exports").mkdir()
        for number, rows in enumerate(["ann,0,x\nbob,1,y\n", "cleo,0,x\ndan,1,y\n"]):
            (tmp_path / "exports" / f"{number}.csv").write_text(f"who,a,b\n{rows}")
        for path in ("exports/*.csv", "exports"):
            assert run(["fuse", path, "--id", "who", "-k", "2", "-q"]) == 0
            out = capfd.readouterr().out.splitlines()
            assert [line.partition(",")[0] for line in out] == ["who", "ann", "bob", "cleo", "dan"]


def test_long_and_wide_files_are_read_in_one_call(here, told):
    (here / "wide.csv").write_text("kunde,gold\nann,x\nbob,y\ncleo,x\n")
    (here / "long.csv").write_text("who,by,said\nann,a,1\nbob,a,2\nbob,b,2\ncleo,b,1\nann,b,1\n")
    (here / "both.csv").write_text("kunde,gold,a,b\nann,x,1,1\nbob,y,2,2\ncleo,x,,1\n")
    whole = told("fuse", "both.csv", "--id", "kunde", *QUICK, "--imputed", "-")
    assert whole[0] == 0
    long = ["--long", "long.csv=who,by,said"]
    assert told("fuse", "wide.csv", "long.csv", "--id", "kunde", *long, *QUICK, "--imputed", "-") == whole
    swapped = told("fuse", "long.csv", "wide.csv", "--id", "kunde", *long, *QUICK, "--imputed", "-")
    assert swapped[0] == 0
    assert sorted(swapped[1].splitlines()[0].split(",")) == ["a", "b", "gold", "who"]
    for arguments, message in [
        (["--id", "kunde", "--long", "other.csv=a,b,c"], "--long names 'other.csv', which is not one of the"),
        (["--id", "kunde", "--long", "long.csv=who,by"], "--long needs three columns. Got 'who,by'. Hint"),
        (["--id", "kunde", "--id", "long.csv=who", *long], "there is no --id and no --columns. Hint"),
        (["--id", "kunde", "--long", "who,by,said"], "there is no --id and no --columns. Hint"),
    ]:
        code, _, err = told("fuse", "wide.csv", "long.csv", *arguments, *QUICK)
        assert code == 2
        assert message in err


def test_csv_that_excel_opens_right_where_decimals_have_commas(here, told):
    (here / "t.csv").write_text("who,a,b\nä,x,1\nb;c,y,2\ncleo,x,1\n", encoding="utf-8")
    call = ["fuse", "t.csv", "--id", "who", *QUICK]
    assert told(*call, "-o", "plain.csv")[0] == 0
    assert told(*call, "-o", "excel.csv", "--excel-csv", "--imputed", "full.csv", "--save", "m")[0] == 0
    assert Path("excel.csv").read_bytes().startswith(b"\xef\xbb\xbfwho;label;confidence;")
    opened = pd.read_csv("excel.csv", sep=";", decimal=",", encoding="utf-8-sig")
    pd.testing.assert_frame_equal(opened, pd.read_csv("plain.csv"))
    assert opened["confidence"].dtype == float
    assert Path("full.csv").read_text(encoding="utf-8-sig").startswith("who;a;b\n")
    assert told("predict", "m", "t.csv", "--id", "who", "--excel-csv", "-o", "placed.csv")[0] == 0
    assert Path("placed.csv").read_text(encoding="utf-8-sig").startswith("who;label;confidence;")
    assert told(*call, "--excel-csv")[1].startswith("\ufeffwho;label;")
    for arguments, message in [
        (["-o", "out.xlsx"], "--excel-csv is about CSV files, and 'out.xlsx' is none."),
        (["-o", "out.tsv"], "--excel-csv is about CSV files, and 'out.tsv' is none."),
        (["-o", "merged", "--engine", "blocks"], "--excel-csv is about CSV files, and 'merged' is none."),
        (["-o", "out.csv", "--imputed", "f.parquet"], "--excel-csv is about CSV files, and 'f.parquet' is"),
        (["--json"], "--excel-csv is about CSV files, and none is written."),
    ]:
        code, _, err = told(*call, "--excel-csv", *arguments)
        assert code == 2
        assert message in err
    code, _, err = told("predict", "m", "t.csv", "--id", "who", "--excel-csv", "-o", "placed.xlsx")
    assert code == 2
    assert "'placed.xlsx' is none" in err


def test_views_have_headers_and_ids_as_people_write_them(here, told):
    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    frames = [
        pd.DataFrame(rng.normal(6 * kind[:, None], size=(40, 3)), columns=list(name))
        for name in ("abc", "xyz")
    ]
    for name, frame in zip(("one", "two"), frames, strict=True):
        frame.insert(0, "who", [f"p{row}" for row in range(40)])
        frame.to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"who": frames[0]["who"], "cluster": kind + 3}).to_csv("earlier.csv", index=False)
    cluster = ["cluster", "one.csv", "two.csv", "--id", "who", "-k", "2", "--like", "earlier.csv"]
    clean = told(*cluster)
    assert clean[0] == 0
    assert {line.split(",")[1] for line in clean[1].splitlines()[1:]} == {"3", "4"}
    frames[1]["who"] = frames[1]["who"].str.upper() + " "
    Path("two.csv").write_text("Export of March,,,\n" + frames[1].to_csv(index=False))
    Path("earlier.csv").write_text(Path("earlier.csv").read_text().replace("p", "P"))
    code, _, err = told(*cluster)
    assert code == 1
    assert "two.csv" in err
    code, out, _ = told(*cluster, "--header", "two.csv=2", "--match-ids", "trim,case")
    assert (code, out) == clean[:2]
    code, _, err = told("cluster", "one.csv", "./one.csv", "--id", "who", "-k", "2")
    assert (code, err) == (2, "Error: './one.csv' is named twice. Hint: name every table once.\n")
