"""One thread inside a fit."""

import sys
import types

import numpy as np
from threadpoolctl import threadpool_info

from consilience._support import threads


def n_threads():
    return {found["filepath"]: found["num_threads"] for found in threadpool_info()}


def test_one_thread_inside_and_as_before_afterwards():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = n_threads()
    with threads.one_thread():
        assert set(n_threads().values()) == {1}
        with threads.one_thread("blas"):
            assert set(n_threads().values()) == {1}
    assert n_threads() == before


def test_libraries_are_looked_for_again_only_after_an_import(monkeypatch):
    threads.one_thread()
    kept = threads._kept
    threads.one_thread()
    assert threads._kept is kept
    monkeypatch.setitem(sys.modules, "a_module_with_a_library", types.ModuleType("a_module_with_a_library"))
    threads.one_thread()
    assert threads._kept is not kept
