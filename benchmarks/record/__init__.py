"""The benchmark of record for partial evidence: what runs, in which order, and what comes out.

    python -m benchmarks.record run FOLDER                  20 draws; every finished fit is kept at once
    python -m benchmarks.record run FOLDER --minutes 60     stops after an hour; the same command goes on
    python -m benchmarks.record scale FOLDER                sizes that users of other tools reported
    python -m benchmarks.record page FOLDER RECORD.html     tables and pictures of what is there so far
    python -m benchmarks.record docs FOLDER PAGE.md         the same tables, between the marks of that page
    python -m benchmarks.record summary FOLDER FILE         the means alone, as Parquet: no data in it
    python -m benchmarks.record fits FOLDER FILE            every fit in one file, from which a run can go on

Needs the benchmark files (see `consilience.datasets.load`). Draws come outermost, so whatever is there when a
run ends is about the same tables for all methods.
"""
