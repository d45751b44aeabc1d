"""Which files the lint scripts look at, and their common command line."""

import argparse
import os
import subprocess
import sys

SKIPPED_DIRECTORIES = {".git", "build", "__pycache__", "demo-output"}


def files(root):
    """Paths below root, relative and sorted: those git tracks or would add, or all of them outside a repository."""
    try:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=True).stdout.decode().split("\0")
        inside = subprocess.run(["git", "-C", root, "rev-parse", "--show-prefix"], capture_output=True, check=True).stdout
        if inside.strip() == b"":
            return sorted({name for name in listed if name and os.path.isfile(os.path.join(root, name))})
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for folder, directories, names in os.walk(root):
        directories[:] = sorted(set(directories) - SKIPPED_DIRECTORIES)
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def parser(description):
    arguments = argparse.ArgumentParser(description=description)
    repository = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    arguments.add_argument("--root", default=repository, help="the tree to check (default: the repository of this script)")
    return arguments


def finish(check, problems, summary):
    """Prints the problems, one a line, and ends the program: 0 without problems, 1 with some."""
    for problem in problems:
        print(problem)
    print(f"{check}: {summary}, {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    sys.exit(1 if problems else 0)
