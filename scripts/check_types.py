#!/usr/bin/env python3
"""Checks that no two headers define a type of the same name: two of one name in one program break each other without a word.

Left out are headers of src/<module>/cpu, whose types lie in anonymous namespaces of instruction sets, and those for tests.
"""

import collections
import os
import re

import source_tree

DEFINITION = re.compile(r"^(?:struct|class|union|enum class|enum) (\w+)(?: final)?(?: : [^;{]*)? \{", re.MULTILINE)


def is_checked(name):
    return name.startswith("src/") and name.endswith(".h") and "/cpu/" not in name and "test_" not in os.path.basename(name)


def main():
    options = source_tree.parser(__doc__.splitlines()[0]).parse_args()
    headers = [name for name in source_tree.files(options.root) if is_checked(name)]
    defined = collections.defaultdict(list)
    for name in headers:
        for kind in sorted(set(DEFINITION.findall(source_tree.read(options.root, name)))):
            defined[kind].append(name)
    problems = [f"{names[1]}: type {kind}: expected a name of its own, found it in {names[0]} too"
                for kind, names in sorted(defined.items()) if len(names) > 1]
    source_tree.finish("types", problems, f"{len(defined)} types in {len(headers)} headers")


if __name__ == "__main__":
    main()
