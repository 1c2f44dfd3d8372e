"""Report and exit code of a table of attacks."""

import sys


def finish(problems, count):
    """Prints the problems among this number of attacks, and exits, with 0 if there are none."""
    for problem in problems:
        print("FAILED", problem)
    print(f"{count - len(problems)} of {count} attacks were handled")
    sys.exit(1 if problems or not count else 0)
