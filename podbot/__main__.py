"""``python -m podbot`` and the console script."""

import sys

# `python -m` puts the working directory before everything else, which may be a hostile repository's: a `typer.py` there
# would be run. What was loaded until here, this package included, only `python -P -m podbot` takes from elsewhere.
if __name__ == "__main__" and not sys.flags.safe_path and sys.path:
    del sys.path[0]


def main() -> None:
    """Run the CLI; ends the process."""
    try:
        _guard_streams()
        from podbot.cli.main import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # ctrl-c while Python still loads: no traceback
    run()


def _guard_streams() -> None:
    """For ``podbot host``, before anything is loaded that could print."""
    from podbot.cli import guard

    # A stream that is None was closed: `main` fills the descriptors and says what is wrong.
    if guard.is_hosting(sys.argv[1:]) and None not in (sys.stdin, sys.stdout, sys.stderr):
        guard.engage()


if __name__ == "__main__":
    main()
