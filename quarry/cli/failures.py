"""How a command ends when it cannot do what was asked: one plain sentence and an exit code.

0     done (a refusal to answer is a done answer)
1     stopped: a store, a model, or a fault of ours
2     the caller can mend it: arguments, settings, paths, ports
3     done, but some documents failed
4     measured, but a gate does not let the result through
130   interrupted
141   the reader of our output went away
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import typer

from quarry.cli.output import close_quietly, one_line, print_note
from quarry.errors import QuarryError

INTERRUPTED = 130
BROKEN_PIPE = 141


def guarded(call: Callable[[], Any], *, debug: bool) -> int:
    """Runs `call`; gives its exit code, after a sentence on standard error if it failed."""
    try:
        return _exit_code(call())
    except QuarryError as error:
        if debug:
            traceback.print_exc()
        print_note(one_line(str(error)))
        return error.exit_code
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly()
        return BROKEN_PIPE
    except typer.TyperException as error:
        print_note(_usage_sentence(error))
        return 2
    except Exception as error:  # the last resort: anything else is a fault of ours
        if debug:
            traceback.print_exc()
        hint = "" if debug else "; put --debug after 'quarry' to see where"
        print_note(f"Something unexpected happened ({type(error).__name__}){hint}.")
        return 1


def _exit_code(result: Any) -> int:
    return result if isinstance(result, int) else 0


def _usage_sentence(error: typer.TyperException) -> str:
    """`No such option: --foo; see 'quarry ask --help'.`"""
    context: typer.Context | None = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "quarry"
    return f"{one_line(error.format_message()).rstrip('.')}; see '{path} --help'."
