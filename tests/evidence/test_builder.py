"""One builder for every engine: the same table, errors and warnings however rows are cut into pieces."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from consilience._support.errors import InputError
from consilience.core.grouping import find_rows
from consilience.evidence.builder import Builder, Frozen
from consilience.io.frames import code_column, memory_of
from consilience.io.labels import labels_as_numbers, look_alike, plain
from consilience.io.pieces import Coded, Piece

CELLS = {
    "typed": st.one_of(
        st.none(), st.integers(-2, 3), st.sampled_from(["a", "b", "", "  ", "A", "1", "-1"]), st.booleans()
    ),
    "text": st.sampled_from(["", "1", "2.0", "2", "-1", "1_2", "12", "1e1", "a", "007", "7", " "]),
    "features": st.sampled_from([0.5, 1.0, 2.0, float("nan"), float("inf"), 2.0**60]),
}


@st.composite
def tables(draw):
    """Columns of cells, and where they are cut into pieces."""
    kind = draw(st.sampled_from(sorted(CELLS)))
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    columns = [draw(st.lists(CELLS[kind], min_size=n, max_size=n)) for _ in range(m)]
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
    return kind == "text", columns, [0, *cuts, n]


def piece_of(columns, first, last):
    coded = {}
    for j, column in enumerate(columns):
        values = np.empty(last - first, dtype=object)
        values[:] = column[first:last]
        coded[f"b{j}"] = code_column(values, f"b{j}")
    return Piece(coded, None, last - first, first)


def pieces_of(columns, cuts):
    return [piece_of(columns, a, b) for a, b in pairwise(cuts)]


def outcome(builder, negative):
    """What comes out: the table and what was said, or the error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            built = builder.finish(negative=negative)
        except (ValueError, TypeError) as error:
            return str(error), None
    return [str(one.message) for one in said], built


def in_rows(built):
    """The labels of every instance, in the user's terms."""
    rows = np.arange(built.n_instances) if built.row_of is None else built.row_of.instances()
    return [
        [built.categories[i][code] if code >= 0 else None for code in built.codes[rows, i]]
        for i in range(len(built.kept))
    ]


@settings(deadline=None)
@given(table=tables(), negative=st.sampled_from(["missing", "noise"]))
def test_pieces_counts_and_merges_are_one_table(table, negative):
    text, columns, cuts = table
    whole = Builder(text=text)
    whole.add(piece_of(columns, 0, len(columns[0])))
    said, expected = outcome(whole, negative)

    by_pieces = Builder(text=text)
    counted = Builder(text=text, keep="counts", number=True)
    merged = Builder(text=text, keep="counts")
    for piece in pieces_of(columns, cuts):
        by_pieces.add(piece)
        counted.add(piece)
        one = Builder(text=text, keep="counts")
        one.add(piece)
        merged.merge(pickle.loads(pickle.dumps(one.settled())))
    for builder in (by_pieces, counted, merged):
        told, built = outcome(builder, negative)
        assert told == said
        if expected is None:
            continue
        assert built.names == expected.names
        assert built.kept == expected.kept
        for own, other in zip(built.categories, expected.categories, strict=True):
            assert own.dtype == other.dtype
            assert_array_equal(own, other)
        assert builder.first_unseen(built) == whole.first_unseen(expected)
        if builder is not merged:
            assert in_rows(built) == in_rows(expected)
        if built.counts is not None:
            assert built.counts.sum() == len(columns[0])
            assert len(np.unique(built.codes, axis=0)) == len(built.codes)


@settings(deadline=None)
@given(table=tables())
def test_two_instances_share_a_code_if_they_share_an_exact_value(table):
    """The oracle: a dict of exact values, in the order of Python's rules for them."""
    text, columns, cuts = table
    builder = Builder(text=text)
    for piece in pieces_of(columns, cuts):
        builder.add(piece)
    _, built = outcome(builder, "missing")
    if built is None:
        return
    for i, j in enumerate(built.kept):
        values = [None if plain(cell) is None else cell for cell in columns[j]]
        if text:
            known = [value for value in values if value is not None]
            says = dict(zip(known, labels_as_numbers(known), strict=True))
            values = [None if value is None else says[value] for value in values]
        values = [
            None if value is None or (not isinstance(value, str) and value < 0) else value for value in values
        ]
        for p, value in enumerate(values):
            code = built.codes[p, i]
            assert (code < 0) == (value is None)
            for q in range(p):
                same = value == values[q] and isinstance(value, str) == isinstance(values[q], str)
                assert (code == built.codes[q, i]) == (same or (value is None and values[q] is None))


@settings(deadline=None)
@given(table=tables())
def test_rows_that_were_fitted_are_found_again(table):
    text, columns, cuts = table
    builder = Builder(text=text, keep="counts", number=True)
    for piece in pieces_of(columns, cuts):
        builder.add(piece)
    _, built = outcome(builder, "missing")
    if built is None:
        return
    names = [built.names[j] for j in built.kept]
    frozen = Frozen(names, built.categories)
    place = 0
    for piece in pieces_of(columns, cuts):
        codes, unknown = frozen.codes(piece, text=text)
        assert not unknown
        rows = built.row_of.instances()[place : place + piece.n_rows]
        assert_array_equal(codes, built.codes[rows])
        number = find_rows(builder.index(), builder.find(piece))
        assert_array_equal(number, builder.numbers()[place : place + piece.n_rows])
        place += piece.n_rows


def built_of(values, *, text=False, **how):
    builder = Builder(text=text)
    builder.add(Piece({"a": code_column(np.array(values, dtype=object), "a")}, None, len(values)))
    return builder.finish(**how)


@pytest.mark.parametrize(
    "labels", [["1_12", "11_2"], ["1e2", "100"], ["1E5", "10E4"], ["\uff11", "1"], ["007", "7"]]
)
def test_only_plain_digits_of_text_are_numbers(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of them look alike, which is said
        assert built_of(labels, text=True).categories[0].tolist() == sorted(labels)


def test_plain_numbers_of_text_are_numbers():
    assert built_of(["10", "9.0", "-1", "9"], text=True).categories[0].tolist() == [9, 10]


@pytest.mark.parametrize("blank", [" " * 9, "\N{NO-BREAK SPACE}", "\t", "", None, float("nan")])
def test_blanks_of_any_kind_are_missing(blank):
    assert built_of([blank, "x"]).codes.ravel().tolist() == [-1, 0]


def test_a_number_beside_its_text_is_refused():
    with pytest.raises(InputError, match=r"'a' has the label 1 both as a number and as text\. Hint: "):
        built_of([1, "1", "x"])


def test_minus_one_among_names_is_said():
    with pytest.warns(UserWarning, match=r"'-1' in column 'a' \(2 rows\) counts as a cluster"):
        built_of(["x", "-1", "-1", "y"], text=True)


def test_labels_that_look_alike_are_said_and_stay_apart():
    with pytest.warns(
        UserWarning, match=r"'STANDARD', 'Standard', 'Standard ' in column 'a' differ only in spaces"
    ):
        found = built_of(["Standard", "STANDARD", "Standard ", "x"])
    assert len(found.categories[0]) == 4


def test_what_looks_alike():
    assert look_alike(["e\u0301", "\u00e9", "f"]) == [["e\u0301", "\u00e9"]]
    assert look_alike(["1", "10", "100"]) == []


def test_uint64_beyond_int64_is_exact():
    big = 2**63 + np.arange(3, dtype=np.uint64)
    builder = Builder()
    builder.add(next(memory_of([big], ["a"], 3).pieces()))
    assert builder.finish().categories[0].tolist() == [2**63, 2**63 + 1, 2**63 + 2]


def test_too_many_distinct_rows_leave_the_labels():
    builder = Builder(keep="counts", most=3)
    codes = np.arange(8)
    for _ in range(2):
        builder.add(
            Piece({"a": Coded(codes, list("stuvwxyz")), "b": Coded(codes // 2, [1, 2, 3, 4])}, None, 8)
        )
    built = builder.settled().finish()
    assert not builder.fits
    assert built.codes.shape == (0, 2)
    assert [members.tolist() for members in built.members] == [[2] * 8, [4] * 4]


def test_noise_is_a_cluster_for_each_instance_also_in_counts():
    columns = [[-1, -1, 0, 0, 1], [5, 5, 5, 5, 5]]
    builder = Builder(keep="counts", number=True)
    builder.add(piece_of(columns, 0, 5))
    built = builder.finish(negative="noise")
    rows = built.codes[built.row_of.instances()]
    assert len({int(code) for code in rows[:2, 0]}) == 2
    assert rows[2, 0] == rows[3, 0] != rows[4, 0]
    assert sorted(built.counts.tolist()) == [1, 1, 1, 2]
