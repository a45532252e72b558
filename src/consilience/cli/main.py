"""The entry point: runs a command, and turns whatever happens into one line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from consilience._support.errors import Hinted, UsageError
from consilience._support.optional import optional_import
from consilience.cli.signals import Interrupted, Terminated, ended_by_signals, signals_kept

FAILURE, USAGE, DRIFTED, SIGNALLED, INTERRUPTED = 1, 2, 3, 128, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    _fill_closed_streams()
    with ended_by_signals():
        code = run(list(sys.argv[1:] if arguments is None else arguments))
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    try:
        for module in ("typer", "rich", "pyarrow"):
            if find_spec(module) is None:
                optional_import(module, needed_for="the command line", extra="cli")  # which says so
        from consilience.cli.app import app

        with warnings.catch_warnings(), signals_kept():
            warnings.simplefilter("default")
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = app(arguments, prog_name="consilience", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        if code == INTERRUPTED:  # what newer versions of typer make of Ctrl-C
            raise KeyboardInterrupt
        return int(code or 0)
    except BrokenPipeError:
        # Whoever read our output has enough, as in `| head`. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written.", INTERRUPTED)
    except Terminated as error:
        return _fail("ended by a signal; nothing was written.", error.code)
    except Interrupted as error:
        return _fail(error, INTERRUPTED)
    except UsageError as error:
        return _fail(error, USAGE)
    except (Hinted, ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        return _fail(_said(error), FAILURE)
    except Exception as error:
        if type(error).__name__ == "Abort":  # and what older ones make of it
            return _fail("interrupted; nothing was written.", INTERRUPTED)
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # a page, not a sentence
            print(error.format_message(), file=sys.stderr)
            return USAGE
        return _fail(_with_hint(error), USAGE)


def _fill_closed_streams() -> None:
    """Where a standard stream is closed, the next file that is opened would take its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:  # and what is printed there would go to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


def _in_words(said: Any) -> str:
    """An error or a warning as those who write commands read it."""
    return " ".join(str(getattr(said, "in_shell", said)).split())


def _fail(error: Any, code: int) -> int:
    text = _in_words(error)
    hint = "" if "Hint: " in text or code > SIGNALLED else " Hint: see consilience --help."
    print(f"Error: {text}{hint}", file=sys.stderr)
    return code


def _said(error: BaseException) -> Any:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.strerror}: {error.filename}. Hint: check the path and its permissions."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error} Hint: try a linear method such as PCE, or --engine dask."
    return error if str(error) else type(error).__name__


def _with_hint(error: Any) -> str:
    """What typer says of a wrong option, in the form of all our errors."""
    command = getattr(getattr(error, "ctx", None), "command_path", "consilience")
    return f"{error.format_message().rstrip('.')}. Hint: see {command} --help."


def _show_warning(message: Any, category: type[Warning], *_: Any) -> None:
    if issubclass(category, UserWarning):  # ours, and those of scikit-learn about convergence
        print(f"Warning: {_in_words(message)}", file=sys.stderr)
