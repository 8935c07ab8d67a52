"""``python -m podbot`` and the console script."""

import gc
import sys

# Loading 200 modules makes no garbage: without looking for it, `podbot ps` takes 0.9 of the time (measured).
gc.set_threshold(100_000)

# `python -m` searches the working directory first, which may be a hostile repository: a `typer.py` there would be run.
# Modules loaded before this line, including this package, are protected only by `python -P -m podbot`.
if __name__ == "__main__" and not sys.flags.safe_path and sys.path:
    del sys.path[0]


def main() -> None:
    """Run the CLI; ends the process."""
    try:
        _guard_streams()
        from podbot.cli.entry import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # Ctrl-C while Python is still loading: no traceback
    run()


def _guard_streams() -> None:
    """Guard the streams for ``podbot host`` before anything is loaded that could print."""
    from podbot.cli import stdio_guard

    # A stream that is None was closed: `main` then opens the descriptors and reports the error.
    if stdio_guard.is_hosting(sys.argv[1:]) and None not in (sys.stdin, sys.stdout, sys.stderr):
        stdio_guard.engage()


if __name__ == "__main__":
    main()
