#!/usr/bin/env python3
"""Checks the object files of src/<module>/cpu/<isa>: nothing in them may run on a CPU without that instruction set.

  * no weak or unique symbols: the linker might take this object's copy of an inline function for the whole program;
  * no .init_array, .ctors or .fini_array: a static constructor would run on every CPU at start-up;
  * no instruction in an encoding of AVX-512 (EVEX) below AVX-512: an assembler that knows two forms of one instruction may choose that one,
    and machines with AVX-512 would run it without complaint;
  * exported names end in __<isa> and follow <op>_<act>_<weight>_<out>__<isa>, or are tables k<Name>__<isa>.
"""

import os
import re
import subprocess
import sys

import source_tree

NAME = re.compile(r"^pith::(k[A-Z]\w*?|[a-z][a-z0-9]*(?:_[a-z0-9]+)+)__(\w+)$")
FORBIDDEN_SECTIONS = (".init_array", ".ctors", ".fini_array", ".preinit_array")
EXPORTED = set("TDRBGSCi")
WEAK = set("WVu")
BEFORE_AVX512 = {"scalar", "avx2", "avx2_vnni"}
EVEX = re.compile(r"^\s*[0-9a-f]+:\s+62 (?:[0-9a-f]{2} )+\s*(\S+)")


def objects(build):
    """(isa, path) of every object below a cpu/<isa>/ folder of the build tree."""
    found = []
    for folder, _, names in os.walk(build):
        isa = re.search(r"/cpu/(\w+)$", folder.replace(os.sep, "/"))
        if isa is not None:
            found += [(isa.group(1), os.path.join(folder, name)) for name in names if name.endswith((".o", ".obj"))]
    return sorted(found)


def run(*command):
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def check_object(isa, path):
    problems = []
    for line in run("nm", "-C", "--defined-only", path).splitlines():
        match = re.match(r"^[0-9a-f]*\s+(\S)\s+(.*)$", line)
        if match is None:
            continue
        kind, symbol = match.groups()
        if kind in WEAK:
            problems.append(f"{path}: {symbol}: expected no weak symbols (an inline or template function compiled for {isa}), found one")
        elif kind in EXPORTED:
            name = NAME.match(re.sub(r"\(.*\)( const)?$", "", symbol))
            if name is None or name.group(2) != isa:
                problems.append(f"{path}: {symbol}: expected an exported name of the form <op>_<act>_<weight>_<out>__{isa}")
    if isa in BEFORE_AVX512:
        listing = run("objdump", "-d", "--insn-width=15", path).splitlines()
        problems += [f"{path}: {match.group(1)}: expected no instruction encoded for AVX-512 in {isa}, found one"
                     for match in map(EVEX.match, listing) if match is not None]
    for line in run("readelf", "-SW", path).splitlines():
        section = re.match(r"^\s*\[\s*\d+\]\s+(\S+)", line)
        if section is not None and section.group(1).startswith(FORBIDDEN_SECTIONS):
            problems.append(f"{path}: expected no static constructors, found the section {section.group(1)}")
    return problems


def main():
    arguments = source_tree.parser(__doc__.splitlines()[0])
    arguments.add_argument("--build", required=True, help="a build tree, already built")
    arguments.add_argument("--allow-none", action="store_true", help="no objects at all is fine (a tree without kernels)")
    options = arguments.parse_args()
    found = objects(options.build)
    if not found and options.allow_none:
        print("isa_objects: skipped, no objects of cpu/<isa> in this build tree")
        sys.exit(0)
    problems = [] if found else [f"{options.build}: expected objects below cpu/<isa>/, found none (is it built?)"]
    for isa, path in found:
        problems += check_object(isa, path)
    source_tree.finish("isa_objects", problems, f"{len(found)} objects of {len({isa for isa, _ in found})} instruction sets")


if __name__ == "__main__":
    main()
