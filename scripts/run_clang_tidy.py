#!/usr/bin/env python3
"""Runs clang-tidy (checks in .clang-tidy) over the sources of a build tree, and remembers clean files by content under BUILD/tidy.

By default the non-test sources of src/: tests are three times the time for little. --all adds them. --seconds (or PITH_TIDY_SECONDS, which
the CI sets: a fresh machine remembers nothing, and its time is limited) begins no further file after that long; files of the latest commits
come first, and the closing line says how many were not reached.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

import source_tree

VERSION = "14"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
WITH_VALUE = {"-o", "-MT", "-MF", "-MQ", "-include", "-c"}


def find_program():
    for program in (f"clang-tidy-{VERSION}", "clang-tidy"):
        try:
            text = subprocess.run([program, "--version"], capture_output=True, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if re.search(rf"version {VERSION}\.", text):
            return program
    sys.exit(f"tidy: expected clang-tidy {VERSION}, found none; run scripts/setup")


def compiler_flags(command):
    """What of a compile command clang-tidy needs: no launcher, outputs, warnings or precompiled headers of the other compiler."""
    words = shlex.split(command)
    flags, skip = [], False
    for word in words[next(i for i, word in enumerate(words) if re.search(r"(\+\+|clang|gcc|cc)[-\d.]*$", word) and "ccache" not in word) + 1:]:
        if skip:
            skip = False
        elif word in WITH_VALUE:
            skip = True
        elif not word.startswith(("-W", "-MD", "-MMD", "-fsanitize")) and not word.endswith(".cc"):
            flags.append(word)
    return flags


class Hasher:
    """Content hash of a source file and of every project header it includes, directly or not."""

    def __init__(self, root):
        self.root = root
        self.known = {}

    def file(self, path):
        """(hash of the bytes, project headers it includes)"""
        if path not in self.known:
            with open(path, "rb") as file:
                data = file.read()
            headers = [os.path.join(self.root, "src", name) for name in INCLUDE.findall(data.decode("utf-8", "replace"))]
            self.known[path] = hashlib.sha256(data).hexdigest(), [name for name in headers if os.path.isfile(name)]
        return self.known[path]

    def closure(self, path):
        seen, stack = {}, [path]
        while stack:
            current = stack.pop()
            if current not in seen:
                seen[current], headers = self.file(current)
                stack += headers
        return "\n".join(f"{name} {seen[name]}" for name in sorted(seen))


def by_latest_commit(root, sources):
    """The sources, those of the latest commits first."""
    log = subprocess.run(["git", "-C", root, "log", "--format=", "--name-only", "--", "src"], capture_output=True, text=True)
    rank = {}
    for line in log.stdout.splitlines():
        rank.setdefault(os.path.join(root, line), len(rank))
    return sorted(sources, key=lambda source: (rank.get(source, len(rank)), source))


def check(program, source, flags, deadline):
    """Lines of problems, or None when time is up."""
    if time.monotonic() > deadline:
        return None
    result = subprocess.run([program, "--quiet", source, "--", *flags], capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if re.search(r"(warning|error): ", line)]
    if result.returncode != 0 and not lines:
        lines = [f"{source}: clang-tidy ended with {result.returncode}: {result.stderr.strip()[-500:]}"]
    return lines


def main():
    arguments = source_tree.parser(__doc__.splitlines()[0])
    arguments.add_argument("--build", required=True, help="a configured build tree with compile_commands.json")
    arguments.add_argument("--all", action="store_true", help="tests as well")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments.add_argument("--seconds", type=float, default=float(os.environ.get("PITH_TIDY_SECONDS") or "inf"))
    options = arguments.parse_args()
    deadline = time.monotonic() + options.seconds
    program = find_program()
    with open(os.path.join(options.build, "compile_commands.json"), encoding="utf-8") as file:
        entries = {entry["file"]: entry["command"] for entry in json.load(file)}
    source_folder = os.path.join(options.root, "src") + os.sep
    sources = by_latest_commit(options.root, [name for name in entries if name.startswith(source_folder) and
                                              (options.all or not name.endswith(("_test.cc", "_fuzz.cc")))])

    cache = os.path.join(options.build, "tidy")
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(options.root, ".clang-tidy"), encoding="utf-8") as file:
        config = file.read()
    hasher = Hasher(options.root)
    work = []
    for source in sources:
        flags = compiler_flags(entries[source])
        key = hashlib.sha256("\0".join([VERSION, config, *flags, hasher.closure(source)]).encode()).hexdigest()
        if not os.path.exists(os.path.join(cache, key)):
            work.append((source, flags, os.path.join(cache, key)))

    problems, unreached = set(), 0  # one header is seen from many sources
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (_, _, mark), lines in zip(work, pool.map(lambda item: check(program, item[0], item[1], deadline), work)):
            if lines is None:
                unreached += 1
                continue
            problems.update(lines)
            if not lines:
                open(mark, "w", encoding="utf-8").close()
    source_tree.finish("tidy", sorted(problems), f"{len(sources)} files, {len(work)} of them new or changed"
                       + (f", {unreached} of those not reached in {options.seconds:.0f} s" if unreached else ""))


if __name__ == "__main__":
    main()
