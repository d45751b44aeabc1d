#!/usr/bin/env python3
"""Checks that data flows one way: modules include only strictly lower modules, along edges that are listed.

  * docs/architecture.md has the table of layers: level, module, and what it may depend on. It is the only copy.
  * src/<module>/CMakeLists.txt says add_module(<module> DEPS ...): every one of DEPS is allowed by the table and of a lower level.
  * every #include "x/..." of a module's files names the module itself or one of its DEPS; tests may also use TEST_DEPS.
  * files of <module>/cpu/<isa> (but scalar) see nothing but <immintrin.h>, <cstddef>, <cstdint> and headers of their module, also through
    these headers, so no inline function of the standard library is compiled for an instruction set the CPU may lack.
"""

import os
import re

import source_tree

TABLE_ROW = re.compile(r"^\|\s*(\d+)\s*\|\s*`(\w+)`\s*\|[^|]*\|([^|]*)\|\s*$", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
ISA_FOLDER = re.compile(r"^src/(\w+/)cpu/(?!scalar/)\w+/")
ISA_SYSTEM_HEADERS = {"immintrin.h", "cstddef", "cstdint"}
ANYTHING = "anything"


def read_table(text):
    """{module: (level, set of modules or ANYTHING)} from the table in docs/architecture.md."""
    table = {}
    for level, module, edges in TABLE_ROW.findall(text):
        allowed = ANYTHING if ANYTHING in edges else set(re.findall(r"\w+", edges))
        table[module] = (int(level), allowed)
    return table


def read_module(text):
    """(name, {"DEPS": [...], "TEST_DEPS": [...]}) of the add_module call of a CMakeLists.txt, or (None, {})."""
    text = re.sub(r"#.*", "", text)
    call = re.search(r"\badd_module\s*\(([^)]*)\)", text)
    if call is None:
        return None, {}
    words = call.group(1).split()
    lists, current = {}, None
    for word in words[1:]:
        if word in ("DEPS", "LIBS", "TEST_DEPS", "TEST_LIBS", "ALONE"):
            current = lists.setdefault(word, [])
        elif current is not None:
            current.append(word)
    return words[0], lists


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.files = [name for name in source_tree.files(root) if name.startswith("src/")]
        self.table = read_table(source_tree.read(root, "docs/architecture.md"))
        self.modules = sorted({name.split("/")[1] for name in self.files if name.count("/") > 1})
        self.deps = {}
        self.num_includes = 0

    def fail(self, where, message):
        self.problems.append(f"{where}: {message}")

    def check_edges(self, module, where, key, names):
        level, allowed = self.table[module]
        for name in names:
            if name not in self.table:
                self.fail(where, f"{key}: expected modules of docs/architecture.md, found {name}")
            elif self.table[name][0] >= level:
                self.fail(where, f"{key}: expected modules below level {level}, found {name} of level {self.table[name][0]}")
            elif key == "DEPS" and allowed != ANYTHING and name not in allowed:
                self.fail(where, f"DEPS: {name} is not among what docs/architecture.md lets {module} depend on")

    def check_module(self, module):
        where = f"src/{module}/CMakeLists.txt"
        if module not in self.table:
            self.fail(f"src/{module}", "expected a row in the table of docs/architecture.md, found none")
            return
        if where not in self.files:
            self.fail(where, "expected this file, found none")
            return
        name, lists = read_module(source_tree.read(self.root, where))
        if name != module:
            self.fail(where, f"expected add_module({module} ...), found {name}")
            return
        for key in ("DEPS", "TEST_DEPS"):
            self.check_edges(module, where, key, lists.get(key, []))
        self.deps[module] = (set(lists.get("DEPS", [])), set(lists.get("TEST_DEPS", [])))

    def includes(self, name):
        text = source_tree.read(self.root, name)
        return [(text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)) for match in INCLUDE.finditer(text)]

    def check_includes(self, name):
        module = name.split("/")[1]
        if module not in self.deps:
            return
        deps, test_deps = self.deps[module]
        allowed = deps | {module} | (test_deps if re.search(r"_test\.(cc|h)$|_test_\w+\.h$", name) else set())
        for line, quoted, _ in self.includes(name):
            self.num_includes += 1
            if quoted is None:
                continue
            target = quoted.split("/")[0]
            if "/" not in quoted and f"{os.path.dirname(name)}/{quoted}" in self.files:
                self.fail(f"{name}:{line}", f'expected a path from src/, found "{quoted}"')
            elif "/" in quoted and target in self.table and target not in allowed:
                self.fail(f"{name}:{line}", f'"{quoted}": {target} is not among the DEPS of {module}')

    def check_quarantine(self, name):
        """Walks everything an ISA file includes; the chain is part of the message."""
        module = ISA_FOLDER.match(name).group(1)
        seen, stack = set(), [(name, name)]
        while stack:
            current, chain = stack.pop()
            if current in seen or current not in self.files:
                continue
            seen.add(current)
            for line, quoted, system in self.includes(current):
                if system is not None and system not in ISA_SYSTEM_HEADERS:
                    self.fail(f"{chain}:{line}", f"expected only {sorted(ISA_SYSTEM_HEADERS)} in an ISA folder, found <{system}>")
                elif quoted is not None and not quoted.startswith(module):
                    self.fail(f"{chain}:{line}", f'expected only headers of {module} in an ISA folder, found "{quoted}"')
                elif quoted is not None:
                    stack.append((f"src/{quoted}", f"{chain} > src/{quoted}"))

    def run(self):
        if not self.table:
            self.fail("docs/architecture.md", "expected the table of layers, found none")
        for module in self.modules:
            self.check_module(module)
        sources = [name for name in self.files if name.endswith((".h", ".cc", ".cu"))]
        for name in sources:
            self.check_includes(name)
            if ISA_FOLDER.match(name) and name.endswith(".cc"):
                self.check_quarantine(name)
        return f"{len(self.deps)} modules, {len(sources)} files, {self.num_includes} includes"


def main():
    arguments = source_tree.parser(__doc__.splitlines()[0]).parse_args()
    checker = Checker(arguments.root)
    summary = checker.run()
    source_tree.finish("layering", checker.problems, summary)


if __name__ == "__main__":
    main()
