#!/usr/bin/env python3
"""Checks that every C++ file is as clang-format 14 writes it (`make format` makes it so), or with --fix makes it so."""

import re
import subprocess
import sys

import source_tree

VERSION = "14"
FOLDERS = ("src/", "tests/", "bench/", "cmake/")


def installed_version(program):
    try:
        text = subprocess.run([program, "--version"], capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"version (\d+)", text)
    return match.group(1) if match else None


def find_program():
    for program in (f"clang-format-{VERSION}", "clang-format"):
        if installed_version(program) == VERSION:
            return program
    sys.exit(f"format: expected clang-format {VERSION}, found {installed_version('clang-format') or 'none'}; run scripts/setup")


def main():
    arguments = source_tree.parser(__doc__.splitlines()[0])
    arguments.add_argument("--fix", action="store_true", help="rewrite the files instead of complaining")
    options = arguments.parse_args()
    program = find_program()
    names = [name for name in source_tree.files(options.root) if name.startswith(FOLDERS) and name.endswith((".h", ".cc", ".cu"))]
    mode = ["-i"] if options.fix else ["--dry-run", "-Werror", "--ferror-limit=1"]
    result = subprocess.run([program, *mode, *names], cwd=options.root, capture_output=True, text=True)
    problems = [line for line in result.stderr.splitlines() if ": error:" in line]
    if result.returncode != 0 and not problems:
        problems = [result.stderr.strip()]
    source_tree.finish("format", problems, f"{len(names)} files")


if __name__ == "__main__":
    main()
