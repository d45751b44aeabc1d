"""--prepack-cache: the second start takes the weights from the file, and nothing that is wrong with the file is ever wrong with the model."""
import os
import resource
import shutil
import signal
import subprocess
import time

import harness
import tiny_model
from harness import PITH, run, run_json


class PrepackCacheTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.quantized = cls.scratch / "quantized"
        run_json("quantize", cls.model, "-o", cls.quantized, "--scheme", "W4A16")

    def setUp(self):
        self.cache = self.scratch / self.id()

    def inspect(self, *flags, model=None):
        """(result without the cache, what it says of the cache, stderr)."""
        finished = run("inspect", model or self.quantized, "--json", "-", *flags)
        self.assertExit(finished, 0)
        result = harness.json.loads(finished.stdout)
        result["memory"].pop("process_bytes")
        return result, result.pop("prepack_cache", None), finished.stderr

    def cached(self, *flags, model=None):
        return self.inspect("--prepack-cache", self.cache, *flags, model=model)

    def tokens(self, *flags, model=None):
        return run_json("run", model or self.quantized, "The loom", "-n", "24", *flags)["tokens"]

    def file(self):
        files = list(self.cache.iterdir())
        self.assertEqual(len(files), 1, files)
        return files[0]

    def test_the_second_start_uses_it(self):
        plain, none, _ = self.inspect()
        self.assertIsNone(none)
        first, written, note = self.cached()
        self.assertFalse(written["used"])
        self.assertEqual(written["bytes_written"], self.file().stat().st_size)
        self.assertIn(f"prepack cache: wrote {self.file()}", note)
        second, read, note = self.cached("--log-level", "info")
        self.assertTrue(read["used"])
        self.assertEqual(read["bytes_written"], 0)
        self.assertEqual(read["path"], str(self.file()))
        self.assertIn(f"weights taken from {self.file()}", note)
        self.assertEqual(first, plain)
        self.assertEqual(second, plain)
        self.assertNotIn("prepack", self.cached()[2], "nothing is said of a cache that is used")
        self.assertEqual(self.tokens("--prepack-cache", self.cache), self.tokens())

    def test_every_command_takes_it(self):
        text = self.scratch / "text.txt"
        text.write_text("The loom stood by the window, and she wove all day long. " * 12, encoding="utf-8")
        for command in (["run", self.quantized, "a", "-n", "2"], ["bench", self.quantized, "-p", "8", "-n", "2", "-r", "1"],
                        ["profile", self.quantized, "-p", "8", "-n", "2", "-r", "1"],
                        ["eval", self.quantized, "--reference", self.model, "--data", text, "--context", "32", "--limit", "2"]):
            for said in ("wrote", "taken from"):
                finished = run(*command, "--prepack-cache", self.cache / command[0], "--log-level", "info")
                self.assertExit(finished, 0, f"prepack cache: {'weights ' if said == 'taken from' else ''}{said}")
        self.assertEqual(len(list((self.cache / "eval").iterdir())), 2, "the reference and the model")
        chat = subprocess.run([PITH, "chat", str(self.quantized), "--prepack-cache", str(self.cache / "chat")], input="", text=True,
                              capture_output=True, timeout=120)
        self.assertExit(chat, 0, "prepack cache: wrote")
        for _ in range(2):
            with harness.Server(self.quantized, "--prepack-cache", self.cache / "serve") as server:
                self.assertEqual(server.request("GET", "/v1/models")[0], 200)
        self.assertEqual(len(list((self.cache / "serve").iterdir())), 1)

    def test_damage_is_found_and_mended(self):
        expected = self.tokens()
        self.cached()
        good = self.file().read_bytes()
        middle = len(good) * 2 // 3
        damages = {"a flipped bit": good[:middle] + bytes([good[middle] ^ 4]) + good[middle + 1:], "truncated": good[:middle],
                   "empty": b"", "foreign": b"PK\3\4" * 100, "another header": good[8:]}
        for name, bad in damages.items():
            with self.subTest(name):
                self.file().write_bytes(bad)
                finished = run("run", self.quantized, "The loom", "-n", "24", "--json", "-", "--prepack-cache", self.cache)
                self.assertExit(finished, 0, "prepack cache: ignored: ", "prepack cache: wrote")
                self.assertEqual(harness.json.loads(finished.stdout)["tokens"], expected)
                self.assertEqual(self.file().read_bytes(), good)
                self.assertTrue(self.cached()[1]["used"])

    def test_another_model_of_the_same_name(self):
        model, other = self.scratch / "swapped", self.scratch / "other"
        tiny_model.write(model, seed=3)
        tiny_model.write(other, seed=4)
        self.cached(model=model)
        expected = self.tokens(model=other)
        self.assertNotEqual(self.tokens(model=model), expected)
        shutil.copyfile(other / "model.safetensors", self.scratch / "new")
        before = (model / "model.safetensors").stat()
        os.utime(self.scratch / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(self.scratch / "new", model / "model.safetensors")  # the same name, size and time
        self.assertEqual(self.tokens("--prepack-cache", self.cache, model=model), expected)
        self.assertEqual(self.tokens("--prepack-cache", self.cache, model=model), expected)
        self.file()

    def test_the_same_file_written_over(self):
        model, other = self.scratch / "rewritten", self.scratch / "source"
        tiny_model.write(model, seed=5)
        tiny_model.write(other, seed=6)
        self.cached(model=model)
        before = (model / "model.safetensors").stat()
        time.sleep(0.05)
        shutil.copyfile(other / "model.safetensors", model / "model.safetensors")
        os.utime(model / "model.safetensors", ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual((model / "model.safetensors").stat().st_ino, before.st_ino)
        self.assertEqual(self.tokens("--prepack-cache", self.cache, model=model), self.tokens(model=model))

    def test_activations_and_instruction_sets_have_files_of_their_own(self):
        environment = {**os.environ, "PITH_FORCE_ISA": "scalar"}
        for used in (False, True):
            for flags, options in (([], {}), (["--activations", "int8"], {}), (["--activations", "bf16"], {}), ([], {"env": environment})):
                result = run_json("inspect", self.quantized, "--prepack-cache", self.cache, *flags, **options)
                self.assertEqual(result["prepack_cache"]["used"], used, flags)
        self.assertEqual(len(list(self.cache.iterdir())), 4)

    def test_two_at_once(self):
        command = [PITH, "run", str(self.quantized), "The loom", "-n", "8", "--json", "-", "--prepack-cache", str(self.cache)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        outputs = [process.communicate(timeout=120) for process in running]
        self.assertEqual([process.returncode for process in running], [0] * 4, outputs)
        self.assertEqual(len({str(harness.json.loads(out)["tokens"]) for out, _ in outputs}), 1)
        self.assertTrue(self.cached()[1]["used"])
        self.file()

    def test_nowhere_to_write(self):
        self.cache.write_text("a file", encoding="utf-8")
        finished = run("run", self.quantized, "a", "-n", "2", "--prepack-cache", self.cache)
        self.assertExit(finished, 0, "prepack cache: not written: ")
        self.assertEqual(finished.stderr.count("prepack cache"), 1)

    def test_a_write_that_fails(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        finished = run("run", self.quantized, "a", "-n", "2", "--prepack-cache", self.cache, preexec_fn=limit)
        self.assertExit(finished, 0, "prepack cache: not written: ")
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_a_killed_writer_leaves_nothing_that_counts(self):
        self.cached()
        path = self.file()
        path.unlink()
        for delay in (0.0, 0.005, 0.01, 0.02, 0.04):
            process = subprocess.Popen([PITH, "inspect", str(self.quantized), "--quiet", "--prepack-cache", str(self.cache)],
                                       stdout=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assertEqual(self.tokens("--prepack-cache", self.cache), self.tokens())
        self.assertEqual(self.file(), path)


if __name__ == "__main__":
    harness.main()
