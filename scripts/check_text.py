#!/usr/bin/env python3
"""Checks the text of all files of the project: no unfinished-work marks, no paths of somebody's machine, no tabs, no spaces at the end
of a line, and nothing but ASCII in code (comments, tests and documents may hold any text)."""

import re

import source_tree

# Written with a bracket in each, so that this file and searches for the plain words do not find themselves.
WORDS = [
    (re.compile(r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b"), "a mark of unfinished work"),
    (re.compile(r"\bn[o]t implemented( yet)?\b|\bun[i]mplemented\b"), "a mark of unfinished work"),
    (re.compile(r"(?<![\w.~$}/])/(w[o]rk|h[o]me|r[o]ot|Us[e]rs|m[n]t|s[r]v)/\w"), "a path of one machine"),
    (re.compile(r"\bsh[a]red/design\b"), "a path outside the project"),
]
TEXT = (".h", ".cc", ".cu", ".py", ".cmake", ".md", ".txt", ".json", ".yaml", ".yml", ".toml", ".sh", ".html", ".js", ".css",
        ".clang-format", ".clang-tidy", ".gitignore", "Makefile")
SOURCES = ("src/", "cmake/", "scripts/", "bench/")
VAGUE_NAME = re.compile(r"(^|_)(utils|helpers?|misc|stuff)(_|\.|$)")
MAY_HOLD_ANY_TEXT = re.compile(r"_test\.(cc|h|py)$|_test_\w+\.h$|^src/server/web/")
TABS_ALLOWED = ("Makefile",)


def is_text(name):
    base = name.rsplit("/", 1)[-1]
    if name.startswith("tests/") and not base.endswith((".cc", ".h", ".py", ".txt", ".md")):
        return False  # corpora and expected values hold whatever a parser must meet
    return base.endswith(TEXT) or "." not in base


def check_line(name, line):
    """The complaints about one line."""
    found = [f"expected none, found {what}: {match.group(0)}" for pattern, what in WORDS if (match := pattern.search(line))]
    if "\t" in line and not name.endswith(TABS_ALLOWED):
        found.append("expected spaces, found a tab")
    if line != line.rstrip():
        found.append("expected no spaces at the end of the line")
    code = line.split("//")[0]  # comments may quote what the code is about
    if name.startswith(SOURCES) and not code.isascii() and not MAY_HOLD_ANY_TEXT.search(name):
        character = next(c for c in code if not c.isascii())
        found.append(f"expected ASCII, found U+{ord(character):04X}")
    return found


def check_file(name, text):
    problems = []
    if VAGUE_NAME.search(name.rsplit("/", 1)[-1]):
        problems.append(f"{name}: expected a name that says what is inside")
    for number, line in enumerate(text.split("\n"), 1):
        problems += [f"{name}:{number}: {complaint}" for complaint in check_line(name, line)]
    if text and not text.endswith("\n"):
        problems.append(f"{name}: expected a line break at the end")
    if text.endswith("\n\n"):
        problems.append(f"{name}: expected no empty lines at the end")
    return problems


def main():
    options = source_tree.parser(__doc__.splitlines()[0]).parse_args()
    names = [name for name in source_tree.files(options.root) if is_text(name)]
    problems = []
    for name in names:
        problems += check_file(name, source_tree.read(options.root, name))
    source_tree.finish("text", problems, f"{len(names)} files")


if __name__ == "__main__":
    main()
