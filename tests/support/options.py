"""Options of a test script that are numbers: `--count N` sets COUNT of the script."""
import sys


def take_numbers(settings, **options):
    """Takes each `--OPTION N` out of sys.argv into `settings[NAME]`, for OPTION=NAME of `options`; unittest reads the rest."""
    for option, name in options.items():
        if f"--{option}" in sys.argv:
            at = sys.argv.index(f"--{option}")
            settings[name] = int(sys.argv[at + 1])
            del sys.argv[at:at + 2]
