"""How a table of attacks ends."""

import sys


def finish(problems, count):
    """Prints what was not met as it should be, of so many attacks, and ends the program: with 0 where all were."""
    for problem in problems:
        print("FAILED", problem)
    print(f"{count - len(problems)} of {count} attacks were met as they should be")
    sys.exit(1 if problems or not count else 0)
