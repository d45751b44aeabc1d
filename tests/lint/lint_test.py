"""Shows every lint script trees it must refuse, and one it must accept: a check that passes without looking is worse than none."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts")
sys.path.insert(0, SCRIPTS)

import check_sizes  # noqa: E402
import run_clang_tidy  # noqa: E402

TABLE = """
| L | module | owns | may depend on |
|---|---|---|---|
| 0 | `base` | things | - |
| 1 | `left` | things | base |
| 1 | `right` | things | base |
| 2 | `kernels` | things | base, left |
| 3 | `top` | things | anything |
"""


class Tree(unittest.TestCase):
    """A small tree in a temporary directory, and the scripts run on it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name

    def write(self, files):
        for name, text in files.items():
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def run_script(self, script, *arguments):
        command = [sys.executable, os.path.join(SCRIPTS, script), "--root", self.root, *arguments]
        result = subprocess.run(command, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def assert_accepts(self, script, *arguments):
        code, output = self.run_script(script, *arguments)
        self.assertEqual(code, 0, output)
        return output

    def assert_refuses(self, expected, script, *arguments):
        code, output = self.run_script(script, *arguments)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)


class TypesTest(Tree):
    def test_a_type_is_defined_once(self):
        self.write({"src/left/a.h": "struct Answer {\n};\n", "src/right/b.h": "struct Answer;\nclass Question final : public Base {\n};\n",
                    "src/kernels/cpu/avx2/c.h": "struct Answer {\n};\n", "src/right/test_d.h": "struct Answer {\n};\n"})
        self.assertIn("2 types in 2 headers", self.assert_accepts("check_types.py"))
        self.write({"src/right/e.h": "namespace pith {\nstruct Answer : Base {\n};\n}\n"})
        self.assert_refuses("src/right/e.h: type Answer: expected a name of its own, found it in src/left/a.h too", "check_types.py")


class Layering(Tree):
    def good(self):
        return {
            "docs/architecture.md": TABLE,
            "src/base/CMakeLists.txt": "add_module(base LIBS absl::status)\n",
            "src/base/a.h": '#include "absl/status/status.h"\n#include <string>\n',
            "src/left/CMakeLists.txt": "# the left one\nadd_module(left DEPS base)\n",
            "src/left/l.h": '#include "base/a.h"\n#include "left/m.h"\n',
            "src/left/m.h": "",
            "src/kernels/CMakeLists.txt": "add_module(kernels DEPS base left TEST_DEPS right)\n",
            "src/kernels/params.h": "#include <cstdint>\n",
            "src/kernels/params_test.cc": '#include "right/r.h"\n',
            "src/kernels/cpu/avx2/gemm.cc": '#include <immintrin.h>\n\n#include "kernels/params.h"\n',
            "src/right/CMakeLists.txt": "add_module(right DEPS base)\n",
            "src/right/r.h": "",
        }

    def refuses(self, expected, **changes):
        files = self.good()
        files.update(changes)
        self.write(files)
        self.assert_refuses(expected, "check_layering.py")

    def test_accepts_a_good_tree(self):
        self.write(self.good())
        self.assertIn("4 modules", self.assert_accepts("check_layering.py"))

    def test_include_of_a_module_that_is_not_listed(self):
        self.refuses("left is not among the DEPS of base", **{"src/base/a.h": '#include "left/m.h"\n'})

    def test_include_hidden_behind_spaces(self):
        self.refuses("src/base/a.h:2", **{"src/base/a.h": '\n  #  include   "left/m.h"\n'})

    def test_include_between_modules_of_one_level(self):
        self.refuses("right is not among the DEPS of left", **{"src/left/l.h": '#include "right/r.h"\n'})

    def test_dependency_on_the_same_level(self):
        self.refuses("found right of level 1", **{"src/left/CMakeLists.txt": "add_module(left DEPS base right)\n"})

    def test_dependency_on_a_higher_level(self):
        self.refuses("found kernels of level 2", **{"src/left/CMakeLists.txt": "add_module(left\n  DEPS base kernels)\n"})

    def test_dependency_that_the_table_does_not_allow(self):
        self.refuses("right is not among what", **{"src/kernels/CMakeLists.txt": "add_module(kernels DEPS base left right)\n"})

    def test_tests_do_not_open_the_way_for_sources(self):
        self.refuses("right is not among the DEPS of kernels", **{"src/kernels/params.cc": '#include "right/r.h"\n'})

    def test_higher_test_dependency(self):
        self.refuses("TEST_DEPS", **{"src/left/CMakeLists.txt": "add_module(left DEPS base TEST_DEPS kernels)\n"})

    def test_module_without_a_row(self):
        self.refuses("expected a row", **{"src/stray/s.h": "", "src/stray/CMakeLists.txt": "add_module(stray)\n"})

    def test_module_without_its_file(self):
        self.refuses("src/top/CMakeLists.txt: expected this file", **{"src/top/t.h": ""})

    def test_module_of_another_name(self):
        self.refuses("expected add_module(left ...)", **{"src/left/CMakeLists.txt": "add_module(lift DEPS base)\n"})

    def test_include_relative_to_the_folder(self):
        self.refuses("expected a path from src/", **{"src/left/l.h": '#include "m.h"\n'})

    def test_missing_table(self):
        self.refuses("found none", **{"docs/architecture.md": "# nothing\n"})

    def test_standard_library_in_an_isa_folder(self):
        self.refuses("found <vector>", **{"src/kernels/cpu/avx2/gemm.cc": "#include <vector>\n"})

    def test_standard_library_behind_a_header(self):
        self.refuses("src/kernels/cpu/avx2/gemm.cc > src/kernels/params.h", **{"src/kernels/params.h": "#include <cmath>\n"})

    def test_other_modules_in_an_isa_folder(self):
        self.refuses('found "base/a.h"', **{"src/kernels/cpu/avx2/gemm.cc": '#include "base/a.h"\n'})

    def test_isa_folders_of_any_module(self):
        self.refuses('found "base/a.h"', **{"src/right/cpu/avx2/loop.cc": '#include "right/r.h"\n#include "base/a.h"\n'})

    def test_the_scalar_folder_is_free(self):
        files = self.good()
        files["src/kernels/cpu/scalar/gemm.cc"] = '#include <cmath>\n#include "base/a.h"\n'
        self.write(files)
        self.assert_accepts("check_layering.py")


class IsaObjects(Tree):
    GOOD = "namespace { int Twice(int x) { return 2 * x; } }\n" \
           "namespace pith { int gemm_bf16_w4g_f32__avx2(int x) { return Twice(x); } extern const int kTable__avx2; " \
           "const int kTable__avx2 = 1; }\n"

    def compile(self, text, isa="avx2"):
        folder = os.path.join(self.root, "objects/kernels/cpu", isa)
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["g++", "-O2", "-x", "c++", "-c", "-", "-o", os.path.join(folder, "k.cc.o")], input=text, text=True, check=True)

    def refuses(self, expected, text, isa="avx2"):
        self.compile(text, isa)
        self.assert_refuses(expected, "check_isa_objects.py", "--build", self.root)

    def test_accepts_good_objects(self):
        self.compile(self.GOOD)
        self.assertIn("1 objects", self.assert_accepts("check_isa_objects.py", "--build", self.root))

    def test_an_inline_function(self):
        self.refuses("no weak symbols", self.GOOD + "__attribute__((noinline)) inline int Thrice(int x) { return 3 * x; }\n"
                     "namespace pith { int gemm_a_b_c__avx2(int x) { return Thrice(x); } }\n")

    def test_a_template(self):
        self.refuses("no weak symbols", "template <class T> __attribute__((noinline)) T Thrice(T x) { return 3 * x; }\n"
                     "namespace pith { int gemm_a_b_c__avx2(int x) { return Thrice(x); } }\n")

    def test_a_static_constructor(self):
        self.refuses(".init_array", "int f(); namespace { const int value = f(); }\n"
                     "namespace pith { int gemm_a_b_c__avx2() { return value; } }\n")

    def test_a_name_outside_the_grammar(self):
        self.refuses("Gemm", "namespace pith { int Gemm(int x) { return x; } }\n")

    def test_a_name_outside_the_namespace(self):
        self.refuses("expected an exported name", "int gemm_bf16_w4g_f32__avx2(int x) { return x; }\n")

    def test_the_name_of_another_instruction_set(self):
        self.refuses("__avx512", self.GOOD, "avx512")

    def test_an_avx512_encoding_below_avx512(self):
        dot = 'namespace pith { void gemm_a_b_c__%s() { asm("%s vpdpbusd %%ymm0, %%ymm1, %%ymm2"); } }\n'
        self.refuses("vpdpbusd: expected no instruction encoded for AVX-512", dot % ("avx2_vnni", "{evex}"), "avx2_vnni")
        for isa, encoding in (("avx2_vnni", "{vex}"), ("avx512_vnni", "{evex}")):
            self.compile("", "avx2_vnni")
            self.compile(dot % (isa, encoding), isa)
            self.assert_accepts("check_isa_objects.py", "--build", self.root)

    def test_a_tree_without_objects(self):
        self.assert_refuses("found none", "check_isa_objects.py", "--build", self.root)
        self.assertIn("skipped", self.assert_accepts("check_isa_objects.py", "--build", self.root, "--allow-none"))


def function(lines):
    """A function whose body has so many lines."""
    return "int f(int x) {\n" + "  x += 1;\n" * (lines - 3) + "  return x;\n}\n"


class Sizes(Tree):
    def lengths(self, text):
        return [last - first + 1 for first, last, _ in check_sizes.functions(text)]

    def test_limits_are_inclusive(self):
        self.write({"src/base/a.cc": function(70), "src/base/b.cc": "//\n" * 600})
        self.assertIn("longest 70", self.assert_accepts("check_sizes.py"))
        self.write({"src/base/a.cc": function(71)})
        self.assert_refuses("src/base/a.cc:1: expected a function of at most 70 lines, found 71", "check_sizes.py")

    def test_long_file(self):
        self.write({"src/base/b.cc": "//\n" * 601})
        self.assert_refuses("found 601", "check_sizes.py")

    def test_kernels_need_a_reason(self):
        reason = "// Longer than 70 lines: one loop keeps twelve accumulators in registers.\n// And more.\n"
        self.write({"src/kernels/cpu/avx2/a.cc": reason + function(150)})
        self.assert_accepts("check_sizes.py")
        self.write({"src/kernels/cpu/avx2/a.cc": reason + function(151)})
        self.assert_refuses("at most 150 lines, found 151", "check_sizes.py")
        self.write({"src/kernels/cpu/avx2/a.cc": "// Fast.\n" + function(71)})
        self.assert_refuses("at most 70 lines, found 71", "check_sizes.py")
        self.write({"src/kernels/cpu/avx2/a.cc": "", "src/base/a.cc": reason + function(71)})
        self.assert_refuses("src/base/a.cc", "check_sizes.py")

    def test_finds_every_kind_of_function(self):
        self.assertEqual(self.lengths("namespace a {\nclass B : C<int> {\n  int f() const override {\n  }\n  int x{3};\n};\n}\n"), [2])
        self.assertEqual(self.lengths("A::A(int x) : a_(x), b_{x}, c_(f({x})) {\n\n}\nint g() { return 1; }\n"), [3, 1])
        self.assertEqual(self.lengths("TEST(A, B) {\n  const auto f = [](int x) {\n    return x;\n  };\n}\n"), [5])
        self.assertEqual(self.lengths("template <typename T>\nauto f(T x) -> decltype(x) {\n}\n"), [2])
        self.assertEqual(self.lengths("const auto kF = [](int x) {\n};\n"), [2])

    def test_is_not_misled(self):
        self.assertEqual(self.lengths("const int kRows[] = {\n{1}, {2}};\nstruct A {\n  int x = 1;\n};\nenum class E { a, b };\n"), [])
        self.assertEqual(self.lengths('void f() {\n  g("}", \'}\', R"x(})")x"); /* } */ // }\n  int n = 1\'000\'000;\n}\nvoid h() {}\n'), [4, 1])
        self.assertEqual(self.lengths("#define M(x) \\\n  void x() {\nvoid f() {\n}\n"), [2])


class Text(Tree):
    def refuses(self, expected, name, text):
        self.write({name: text})
        self.assert_refuses(expected, "check_text.py")

    def test_accepts_good_text(self):
        self.write({"src/a.cc": "// ok: /tmp/x, a/work/b, ~/.cache\n", "Makefile": "all:\n\ttrue\n", "docs/a.md": "caf\u00e9\n",
                    "src/a_test.cc": "\"\u4e2d\"\n", "src/b.cc": "int x;  // \u03a3\n", "tests/fuzz/x/seed.json": "\t \n"})
        self.assert_accepts("check_text.py")

    def test_marks(self):
        for word in ("TO" "DO", "FIX" "ME", "XX" "X"):
            self.refuses("src/a.cc:2: expected none, found a mark of unfinished work", "src/a.cc", f"//\n// {word}: later\n")
        self.refuses("unfinished", "src/a.cc", "return Error(\"not " "implemented\");\n")

    def test_paths(self):
        for path in ("/wo" "rk/x", "/ho" "me/me/x", "sha" "red/design"):
            self.refuses("path", "docs/a.md", f"see {path}\n")

    def test_white_space(self):
        self.refuses("a tab", "src/a.cc", "\tint x;\n")
        self.refuses("no spaces at the end", "src/a.cc", "int x; \n")
        self.refuses("line break at the end", "src/a.cc", "int x;")
        self.refuses("no empty lines at the end", "src/a.cc", "int x;\n\n")

    def test_vague_names(self):
        self.refuses("src/a_utils.h: expected a name", "src/a_utils.h", "")
        self.refuses("src/misc.cc: expected a name", "src/misc.cc", "")

    def test_other_characters(self):
        self.refuses("found U+00E9", "src/a.cc", "const char* kName = \"caf\u00e9\";\n")


class Format(Tree):
    STYLE = "BasedOnStyle: Google\n"

    def test_accepts_formatted_code(self):
        self.write({".clang-format": self.STYLE, "src/a.cc": "int main() { return 0; }\n"})
        self.assertIn("1 files", self.assert_accepts("check_format.py"))

    def test_refuses_and_mends(self):
        self.write({".clang-format": self.STYLE, "src/a.cc": "int  main( ) { return 0; }\n"})
        self.assert_refuses("src/a.cc:1", "check_format.py")
        self.assert_accepts("check_format.py", "--fix")
        self.assert_accepts("check_format.py")


class Tidy(Tree):
    def build(self, text):
        self.write({
            ".clang-tidy": "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '/src/'\n",
            "src/base/a.cc": '#include "base/a.h"\nint* F() { return G(); }\n',
            "src/base/a.h": text,
            "build/compile_commands.json": '[{"file": "%s/src/base/a.cc", "command": "/usr/bin/ccache /usr/bin/c++ -I%s/src '
                                           '-include x.hxx -Winvalid-pch -std=c++20 -o a.o -c %s/src/base/a.cc"}]' % ((self.root,) * 3),
        })

    def test_refuses_then_accepts_then_remembers(self):
        build = os.path.join(self.root, "build")
        self.build("inline int* G() { return 0; }\n")
        self.assert_refuses("use nullptr", "run_clang_tidy.py", "--build", build)
        self.assert_refuses("use nullptr", "run_clang_tidy.py", "--build", build)
        self.build("inline int* G() { return nullptr; }\n")
        self.assertIn("1 of them new", self.assert_accepts("run_clang_tidy.py", "--build", build))
        self.assertIn("0 of them new", self.assert_accepts("run_clang_tidy.py", "--build", build))
        self.build("inline int* G() { return nullptr; }  // changed\n")
        self.assertIn("1 of them new", self.assert_accepts("run_clang_tidy.py", "--build", build))

    def test_flags(self):
        command = "/usr/bin/cmake -E env X=1 /usr/bin/ccache /usr/bin/c++ -DA=1 -Isrc -Wall -include p.hxx -MD -MT a.o -MF a.d -o a.o -c a.cc"
        self.assertEqual(run_clang_tidy.compiler_flags(command), ["-DA=1", "-Isrc"])


if __name__ == "__main__":
    unittest.main()
