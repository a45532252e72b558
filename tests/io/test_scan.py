"""Files as people have them, through `consilience.scan`: read exactly, or refused with the place."""

from __future__ import annotations

import datetime
import math
import threading
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import consilience
from consilience._support.errors import InputError, UsageError
from consilience._support.files import Outputs
from consilience.cli.job import refuse_overwriting
from consilience.io import csv as io_csv
from consilience.io import ids, scan
from consilience.io.write import check_output, write_table

xlsxwriter = pytest.importorskip("xlsxwriter")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(source):
    """A source as a plain oracle has it: the ids, and a list of values a column."""
    columns = {name: [] for name in source.columns}
    known = []
    for piece in source.pieces():
        known += [] if piece.ids is None else ids.as_text(piece.ids).to_pylist()
        for name, coded in piece.columns.items():
            columns[name] += [None if code < 0 else coded.values[code] for code in coded.codes]
    return known, columns


def of(path, **options):
    [source] = scan(path, **options).sources
    return values(source)


def write(path, columns, **options):
    with Outputs() as outputs:
        write_table(
            outputs, str(path), len(next(iter(columns.values()))), [columns], lambda *_: None, **options
        )


# --- CSV ----------------------------------------------------------------------------------------------------


def test_empty_lines_are_rows_where_rows_go_by_position(here):
    (here / "a.csv").write_text('a,b\n\n1,"x\n\ny"\n\r\n2,z\n\n')
    assert of("a.csv") == ([], {"a": [None, "1", None, "2", None], "b": [None, "x\n\ny", None, "z", None]})
    assert of("a.csv", id="a") == (["1", "2"], {"b": ["x\n\ny", "z"]})
    (here / "one.csv").write_text("a\nx\n\ny\n")
    assert of("one.csv") == ([], {"a": ["x", None, "y"]})


def test_a_quote_that_is_never_closed_is_refused_where_it_opened(here):
    (here / "a.csv").write_text('id,note\n1,x\n2,"fine\nso far"\n3,"open\n' + "4,y\n" * 600)
    with pytest.raises(InputError, match=r"line 5 of a\.csv opens a quote that is never closed"):
        of("a.csv")


def test_a_quote_within_a_cell_is_a_letter(here):
    (here / "a.csv").write_text('id,size\n1,5" pipe\n2,"a ""b"""\n3,"x\ny"\n4,6"\n')
    assert of("a.csv", id="id") == (["1", "2", "3", "4"], {"size": ['5" pipe', 'a "b"', "x\ny", '6"']})
    (here / "b.csv").write_text('id,size\n1,5" pipe\n2,"open\n3,z\n')
    with pytest.raises(InputError, match=r"line 3 of b\.csv opens a quote"):
        of("b.csv")


def test_lines_are_counted_as_an_editor_does(here, monkeypatch):
    monkeypatch.setattr(io_csv, "BLOCK", 16)
    (here / "a.csv").write_text('id,a\nann,"x\ny"\n\nbob,z\n,w\ndan,v\n')
    source = scan("a.csv", id="id").sources[0]
    assert source.where(1) == "line 5 of a.csv"
    with pytest.raises(InputError, match=r"line 6 of a\.csv has no id"):
        list(source.pieces())
    (here / "b.csv").write_text('id,a\nann,"x\ny"\n\nbob,z,1\n')
    with pytest.raises(InputError, match=r"line 5 of b\.csv has 3 cells, the header has 2") as error:
        of("b.csv", id="id")
    assert (error.value.file, error.value.line) == ("b.csv", 5)


def test_white_space_of_any_kind_and_length_is_blank(here):
    (here / "a.csv").write_text(f"a,b\n{' ' * 9},x\n\N{NO-BREAK SPACE},y\n{' ' * 99},z\n1,w\n")
    assert of("a.csv")[1]["a"] == [None, None, None, "1"]
    (here / "ids.csv").write_text(f"id,b\n{' ' * 90},x\n")
    with pytest.raises(InputError, match=r"line 2 of ids\.csv has no id"):
        of("ids.csv", id="id")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(here, monkeypatch, encoding, end):
    monkeypatch.setattr(io_csv, "BLOCK", 9)
    (here / "a.csv").write_bytes(end.join(["id,a", "Jürgen,größer", "bob,x", ""]).encode(encoding))
    if end == "\r":  # seen in the first block, which holds the first of them
        monkeypatch.setattr(io_csv, "BLOCK", 1 << 10)
    assert of("a.csv", id="id") == (["Jürgen", "bob"], {"a": ["größer", "x"]})


def test_a_byte_order_mark_within_the_file_is_a_letter(here):
    (here / "a.csv").write_text("id,a\n\ufeffann,x\n", encoding="utf-8-sig")
    assert of("a.csv", id="id") == (["\ufeffann"], {"a": ["x"]})


def test_the_header_can_be_named(here):
    (here / "a.csv").write_text("made by hand\n\nid,a\nann,x\n")
    assert of("a.csv", id="id", header=3, delimiter=",") == (["ann"], {"a": ["x"]})
    with pytest.raises(UsageError, match="has no line 9"):
        scan("a.csv", header=9)


def test_lines_above_the_header_do_not_hide_what_separates_cells(here):
    (here / "a.csv").write_text("Export of March, 2026\n\nid;a\nann;x\nbob;y\n")
    assert of("a.csv", id="id", header=3) == (["ann", "bob"], {"a": ["x", "y"]})


def test_reading_stops_cleanly_when_the_reader_is_left(here, monkeypatch):
    monkeypatch.setattr(io_csv, "BLOCK", 1 << 10)
    (here / "a.csv").write_bytes(b"id,a\n" + "".join(f"ü{p},x\n" for p in range(5000)).encode("cp1252"))
    before = threading.active_count()
    pieces = scan("a.csv", id="id").sources[0].pieces()
    next(pieces)
    pieces.close()
    assert threading.active_count() == before


# --- several files ------------------------------------------------------------------------------------------


def test_files_of_a_folder_are_one_table_with_the_columns_of_all(here):
    (here / "parts").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "a": ["x", "y"]}), "parts/1.parquet")
    pq.write_table(pa.table({"id": [3], "b": ["u"], "a": ["z"]}), "parts/2.pq")
    for hidden in (".3.parquet", "_4.parquet"):
        (here / "parts" / hidden).write_text("no table")
    said = []
    found = of("parts", id="id", say=said.append)
    assert found == (["1", "2", "3"], {"a": ["x", "y", "z"], "b": [None, None, "u"]})
    assert said == ["parts: 1 of 2 files lack some of the columns ('b'), which are missing there"]


def test_labels_of_a_folder_have_one_type(here):
    (here / "parts").mkdir()
    pq.write_table(pa.table({"a": [1, 2], "b": [1, 2]}), "parts/1.parquet")
    pq.write_table(pa.table({"a": ["1", "x"], "b": [1.0, 3.0]}), "parts/2.parquet")
    assert of("parts")[1] == {"a": ["1", "2", "1", "x"], "b": [1.0, 2.0, 1.0, 3.0]}


def test_files_of_a_pattern_are_parts_or_joined(here):
    (here / "e").mkdir()
    for name, text in {"1": "id,a\nann,x\n", "2": "a,id\ny,bob\n", "3": "id,b\nann,u\n"}.items():
        (here / "e" / f"{name}.csv").write_text(text)
    found = scan("e/*.csv", id="id")
    assert [values(source) for source in found.sources] == [
        (["ann", "bob"], {"a": ["x", "y"]}),
        (["ann"], {"b": ["u"]}),
    ]
    assert found.sources[0].where(1) == "line 2 of e/2.csv"
    with pytest.raises(UsageError, match="no file matches"):
        scan("e/*.parquet")


def test_a_folder_of_two_kinds_is_refused(here):
    (here / "e").mkdir()
    (here / "e/1.csv").write_text("a\n1\n")
    pq.write_table(pa.table({"a": [1]}), "e/2.parquet")
    with pytest.raises(UsageError, match="has CSV and Parquet files"):
        scan("e")


def test_one_file_named_twice_is_refused(here):
    (here / "a.csv").write_text("id,a\nann,x\n")
    (here / "b.csv").symlink_to("a.csv")
    for other in ("a.csv", "./a.csv", "b.csv"):
        with pytest.raises(UsageError, match="is named twice"):
            scan(["a.csv", other], id="id")


def test_long_and_wide_files_in_one_call(here):
    (here / "wide.csv").write_text("id,a\nann,x\nbob,y\n")
    (here / "said.csv").write_text("who,source,label\nann,s,1\nbob,t,2\n\nann,t,2\n")
    found = scan(
        ["wide.csv", "said.csv"], id={"wide.csv": "id"}, long={"said.csv": ("who", "source", "label")}
    )
    assert found.columns == ("a", "s", "t")
    assert values(found.sources[1]) == (["ann", "bob"], {"s": ["1", None], "t": ["2", "2"]})
    with pytest.raises(UsageError, match=r"id names 'no\.csv', which is not one of the files"):
        scan(["wide.csv", "said.csv"], id={"no.csv": "id"})


def test_tables_in_memory_are_sources_too(here):
    assert of({"a": ["x", "y"]}) == ([], {"a": ["x", "y"]})
    assert consilience.scan is scan


# --- ids ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (pa.array([12345678913.0, 1.0]), ["12345678913", "1"]),
        (pa.array([0.1234567, 0.1234568, 3.0]), ["0.1234567", "0.1234568", "3"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([2**64 - 1, 1], pa.uint64()), [str(2**64 - 1), "1"]),
        (pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (
            pa.array([datetime.datetime(2024, 5, 1), datetime.datetime(2024, 5, 1, 7, 30)]),
            ["2024-05-01", "2024-05-01 07:30:00"],
        ),
        (pa.array([datetime.date(2024, 5, 1)]), ["2024-05-01"]),
        (pa.array([Decimal("1.50"), Decimal("20.00")]), ["1.5", "20"]),
        (pa.array([math.nan, 1.0], from_pandas=False), [None, "1"]),
        (pa.array([b"ann"]), ["ann"]),
    ],
)
def test_ids_have_one_form(given, text):
    assert ids.as_text(ids.canonical(given)).to_pylist() == text


def test_floats_that_are_not_exact_are_no_ids():
    with pytest.raises(InputError, match="too large to be exact"):
        ids.canonical(pa.array([2.0**53]))


def test_ids_that_cannot_be_compared_are_refused(here):
    pq.write_table(pa.table({"id": [1], "a": ["x"]}), "a.parquet")
    pq.write_table(pa.table({"id": [datetime.date(2024, 1, 1)], "b": ["x"]}), "b.parquet")
    with pytest.raises(
        InputError, match=r"ids of a\.parquet are numbers, those of b\.parquet are dates or times"
    ):
        scan(["a.parquet", "b.parquet"], id="id")


@pytest.mark.parametrize(
    ("a", "b", "ignored"),
    [
        ("ann ", "ann", "trim"),
        ("Ann", "ann", "case"),
        ("001", "1", "zeros"),
        ("1.0", "1", "zeros"),
        ("\N{LATIN SMALL LETTER U WITH DIAERESIS}", "u\N{COMBINING DIAERESIS}", "unicode"),
        (" 01", "1", "trim,zeros"),
    ],
)
def test_near_matches_are_said_and_never_merged(here, a, b, ignored):
    left, right = pa.chunked_array([[a, "bob"]]), pa.chunked_array([[b, "bob"]])
    with pytest.warns(UserWarning, match="1 id would match if") as said:
        joined, _ = ids.join_ids(["a.csv", "b.csv"], [left, right])
    assert joined.to_pylist() == [a, "bob", b]
    assert f"match_ids={ignored!r}" in str(said[0].message)
    assert ids.near_matches(left, right).n == 1
    folded = ids.folded(pa.array([a, b]), ids.check_matches(ignored))
    assert folded[0].as_py() == folded[1].as_py()


def test_match_ids_canonicalises(here):
    (here / "a.csv").write_text("id,a\n Ann,x\n007,y\n")
    assert of("a.csv", id="id", match_ids="trim,case,zeros")[0] == ["ann", "7"]
    with pytest.raises(UsageError, match="match_ids does not know 'spelling'"):
        scan("a.csv", match_ids="spelling")


# --- Excel --------------------------------------------------------------------------------------------------


@pytest.fixture
def book(here):
    def make(name, cells, merged=(), errors=(), dates=()):
        with xlsxwriter.Workbook(name) as out:
            for title, rows in cells.items():
                sheet = out.add_worksheet(title)
                for p, row in enumerate(rows):
                    sheet.write_row(p, 0, row)
                for area, text in merged:
                    sheet.merge_range(area, text)
                for at in errors:
                    sheet.write_formula(at, "=NA()", None, "#N/A")
                for at, day in dates:
                    sheet.write_datetime(at, day, out.add_format({"num_format": "yyyy-mm-dd"}))

    return make


def test_rows_above_the_header_are_skipped_and_said(book):
    rows = [["Report"], ["made by hand"], [], ["id", "a"], ["ann", "x"], [], ["bob", "y"]]
    book("a.xlsx", {"S": rows})
    said = []
    assert of("a.xlsx", id="id", say=said.append) == (["ann", "bob"], {"a": ["x", "y"]})
    assert said == ["a.xlsx: 2 rows above the header skipped"]
    assert of("a.xlsx")[1] == {"id": ["ann", None, "bob"], "a": ["x", None, "y"]}
    source = scan("a.xlsx", id="id", header=4).sources[0]
    assert source.where(1) == "row 7 of sheet S of a.xlsx"


def test_merged_names_are_those_of_all_their_columns(book):
    rows = [["", "", ""], ["id", "", ""], ["", "north", "south"], ["ann", "x", "y"]]
    book("a.xlsx", {"S": rows}, merged=[("A1:C1", "Report"), ("B2:C2", "segment")])
    assert of("a.xlsx", id="id") == (["ann"], {"segment north": ["x"], "segment south": ["y"]})


def test_sheets_are_named_in_options(book):
    book("w.xlsx", {"S": [["id", "a"], ["ann", "x"]], "T": [["who", "b", "c"], ["ann", "y", "z"]]})
    found = scan(
        ["w.xlsx#S", "w.xlsx#T"], id={"w.xlsx#S": "id", "w.xlsx#T": "who"}, columns={"w.xlsx#T": ["c"]}
    )
    assert [values(source)[1] for source in found.sources] == [{"a": ["x"]}, {"c": ["z"]}]
    [only] = scan("w.xlsx#T", id={"w.xlsx": "who"}).sources
    assert only.id_name == "who"


def test_cells_with_errors_are_missing_and_said(book):
    book("a.xlsx", {"S": [["id", "a"], ["ann", "x"], ["bob", ""]]}, errors=["B3"])
    said = []
    assert of("a.xlsx", id="id", say=said.append) == (["ann", "bob"], {"a": ["x", None]})
    assert said == ["a.xlsx: 1 cell holds an error and counts as missing (#N/A in B3)"]


def test_dates_are_text_as_people_write_them(book):
    book("a.xlsx", {"S": [["id", "a"], ["ann", ""]]}, dates=[("B2", datetime.datetime(2024, 5, 1))])
    assert of("a.xlsx", id="id")[1] == {"a": ["2024-05-01"]}


# --- writing ------------------------------------------------------------------------------------------------


def test_a_csv_that_excel_opens_where_decimals_have_commas(here):
    write("a.csv", {"id": ["a;b", "ü"], "sure": [0.5, 1.0]}, excel_csv=True)
    assert (here / "a.csv").read_bytes() == '\ufeff"id";"sure"\n"a;b";"0,5"\n"ü";"1"\n'.replace(
        '"id";"sure"', "id;sure"
    ).encode()


def test_what_a_spreadsheet_would_run_stays_apart_from_what_looks_like_it(here):
    write("a.csv", {"id": ["@ann", "'@ann", "''@ann", "-1", "=1+1"]})
    assert (here / "a.csv").read_text().split() == ["id", "'@ann", "''@ann", "'''@ann", "-1", "'=1+1"]


def test_an_output_that_is_an_input_is_refused(book, here):
    book("w.xlsx", {"S": [["a"], [1]]})
    (here / "link.xlsx").symlink_to("w.xlsx")
    for written in ("w.xlsx", "./w.xlsx", "link.xlsx"):
        with pytest.raises(UsageError, match="would be overwritten"):
            refuse_overwriting(["w.xlsx#S"], [written])
    refuse_overwriting(["w.xlsx#S", "-"], ["v.xlsx", "-"])


def test_a_name_that_is_too_long_is_refused_before_the_work(here):
    with pytest.raises(UsageError, match="is too long"):
        check_output("x" * 300 + ".csv")
    write("x" * 240 + ".csv", {"a": [1]})  # and one that is not is written


def test_a_sheet_is_not_written_into(here):
    with pytest.raises(UsageError, match="only whole files can be written"):
        check_output("w.xlsx#S")


# --- laws ---------------------------------------------------------------------------------------------------

# No control characters, which Excel cannot hold; no formulas, which CSV changes on purpose.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]), min_size=1, max_size=6
)
LABEL = TEXT.filter(lambda text: not text.isspace() and io_csv.harmless(pa.array([text]))[0].as_py() == text)
ROWS = st.lists(
    st.tuples(LABEL, st.none() | LABEL, st.none() | LABEL),
    min_size=1,
    max_size=8,
    unique_by=lambda row: row[0],
)
SUFFIXES = ["csv", "tsv", "csv.gz", "xlsx", "parquet", "arrow"]
LAW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def table(rows):
    who, a, b = (list(column) for column in zip(*rows, strict=True))
    return {"id": pa.array(who, pa.string()), "a": pa.array(a, pa.string()), "b": pa.array(b, pa.string())}


@pytest.mark.parametrize("suffix", SUFFIXES)
@LAW
@given(rows=ROWS, block=st.integers(1, 40))
def test_what_is_written_is_what_is_read(tmp_path, monkeypatch, suffix, rows, block):
    path = tmp_path / f"t.{suffix}"
    columns = table(rows)
    write(path, columns)
    delimiter = {"csv": ",", "csv.gz": ",", "tsv": "\t"}.get(suffix)
    with monkeypatch.context() as patch:
        patch.setattr(io_csv, "BLOCK", block)
        found = of(path, id="id", missing=[""], delimiter=delimiter, encoding="utf-8")
    assert found == ([row[0] for row in rows], {"a": [row[1] for row in rows], "b": [row[2] for row in rows]})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@LAW
@given(rows=ROWS, cuts=st.lists(st.integers(0, 8), max_size=3))
def test_any_split_into_files_of_a_folder_gives_the_same(tmp_path_factory, suffix, rows, cuts):
    folder = tmp_path_factory.mktemp("parts")
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (start, end) in enumerate(pairwise(edges)):
        columns = {name: column[start:end] for name, column in table(rows).items()}
        write(folder / f"{number}.{suffix}", columns)
    options = {"delimiter": ",", "encoding": "utf-8"} if suffix == "csv" else {}
    found = of(folder, id="id", missing=[""], **options)
    assert found == ([row[0] for row in rows], {"a": [row[1] for row in rows], "b": [row[2] for row in rows]})


@LAW
@given(numbers=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6, unique=True))
def test_numbers_are_read_exactly(tmp_path, numbers):
    columns = {"id": pa.array(numbers, pa.uint64()), "a": pa.array(numbers, pa.uint64())}
    for suffix in ("csv", "parquet", "arrow", "xlsx"):
        write(tmp_path / f"n.{suffix}", columns)
        known, found = of(tmp_path / f"n.{suffix}", id="id")
        assert known == [str(number) for number in numbers]
        assert [int(value) for value in found["a"]] == numbers


def test_dictionaries_of_arrow_files_are_read(here):
    feather.write_feather(pa.table({"a": pa.array(["x", None, "x"]).dictionary_encode()}), "a.arrow")
    assert of("a.arrow") == ([], {"a": ["x", None, "x"]})
    assert np.array_equal(next(scan("a.arrow").sources[0].pieces()).columns["a"].codes, [0, -1, 0])
