"""`pith pull` from a hub on this machine, and the name of a repository wherever a command takes a model."""
import os
import signal
import subprocess
import time

import harness
from harness import PITH, run, run_json
from loopback_hub import COMMIT, Hub

REPO = "org/tiny"


class PullTest(harness.Case):
    def setUp(self):
        self.files = {path.name: path.read_bytes() for path in sorted(self.model.iterdir())}
        self.files |= {"README.md": b"about", "pytorch_model.bin": b"pickle"}
        self.cache = self.scratch / self._testMethodName
        self.root = self.cache / "models--org--tiny"

    def environment(self, hub=None, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING", "TRANSFORMERS_"))}
        return {**kept, "HF_HUB_CACHE": str(self.cache), "HF_HOME": str(self.scratch / "no-home"), "NO_PROXY": "127.0.0.1",
                "no_proxy": "127.0.0.1", "HF_ENDPOINT": hub.endpoint if hub else "http://127.0.0.1:1", **more}

    def incomplete(self):
        return list((self.root / "blobs").glob("*.incomplete")) if self.root.exists() else []

    def wait_for_bytes(self, count):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if sum(path.stat().st_size for path in self.incomplete()) >= count:
                return
            time.sleep(0.01)
        self.fail(f"{count} bytes did not come within 60 s")

    def big_hub(self):
        """Its weights take about ten seconds."""
        files = dict(self.files)
        files["model.safetensors"] = os.urandom(1 << 20) * 24
        hub = Hub(REPO, files)
        hub.delay_s = 0.1
        return hub

    def test_a_pulled_model_runs_by_its_name(self):
        with Hub(REPO, self.files) as hub:
            environment = self.environment(hub)
            finished = run("pull", REPO, env=environment)
            self.assertExit(finished, 0, f"{REPO} at {COMMIT[:12]}")
            snapshot = self.root / "snapshots" / COMMIT
            self.assertEqual(finished.stdout, f"{snapshot}\n")
            report = run_json("pull", REPO, env=environment)
            self.assertEqual(run("pull", REPO, "--quiet", env=environment).stderr, "")
        self.assertEqual((report["schema_version"], report["commit"], report["model"]), (1, COMMIT, str(snapshot)))
        self.assertEqual({file["outcome"] for file in report["files"]}, {"cached"})
        self.assertEqual((report["downloaded_bytes"], report["cached_bytes"]),
                         (0, sum(len(self.files[file["name"]]) for file in report["files"])))
        offline = self.environment()
        for name in (REPO, f"{REPO}@{COMMIT}"):
            self.assertEqual(run_json("run", name, "abc", "-n", 8, env=offline)["tokens"],
                             run_json("run", self.model, "abc", "-n", 8)["tokens"])
        self.assertEqual(len(run_json("inspect", REPO, env=offline)["tensors"]), len(run_json("inspect", self.model)["tensors"]))
        self.assertExit(run("quantize", REPO, "-o", self.scratch / "pulled-w4a16", env=offline), 0)
        self.assertExit(run("convert", REPO, "-o", self.scratch / "pulled-bf16", env=offline), 0)

    def test_the_layout_is_that_of_huggingface_hub(self):
        with Hub(REPO, self.files) as hub:
            self.assertExit(run("pull", REPO, env=self.environment(hub)), 0)
            snapshot = self.root / "snapshots" / COMMIT
            names = sorted(path.name for path in snapshot.iterdir())
            self.assertEqual(names, sorted(set(self.files) - {"README.md", "pytorch_model.bin"}))
            for name in names:
                self.assertEqual(os.readlink(snapshot / name), f"../../blobs/{hub.blob_name(name)}")
                self.assertEqual((snapshot / name).read_bytes(), self.files[name])
        self.assertEqual((self.root / "refs" / "main").read_text(), COMMIT)
        self.assertEqual((self.root / ".no_exist" / COMMIT / "added_tokens.json").read_bytes(), b"")
        self.assertEqual(sorted(path.name for path in self.cache.iterdir()), [".locks", "CACHEDIR.TAG", "models--org--tiny"])
        self.assertEqual(sorted(path.name for path in self.root.iterdir()), [".no_exist", "blobs", "refs", "snapshots"])

    def test_what_is_not_in_the_cache_is_exit_66_and_names_the_command(self):
        output = ["-o", self.scratch / "x"]
        for command in (["run", REPO, "x"], ["inspect", REPO], ["quantize", REPO, *output], ["convert", REPO, *output]):
            self.assertExit(run(*command, env=self.environment()), 66, f"`pith pull {REPO}`")
        self.assertExit(run("pull", REPO, env=self.environment(HF_HUB_OFFLINE="1")), 66, "HF_HUB_OFFLINE")
        self.assertFalse(self.cache.exists())

    def test_refusals(self):
        with Hub(REPO, self.files) as hub:
            environment = self.environment(hub)
            self.assertExit(run("pull", "tiny", env=environment), 2, "ORG/NAME")
            self.assertExit(run("pull", "org/none", env=environment), 66, "no such repository")
            self.assertExit(run("pull", REPO + "@v9", env=environment), 66, "v9")
            self.assertExit(run("pull", REPO, "--include", "*.gguf", env=environment), 66, "*.gguf")
            self.assertExit(run("pull", "--include", "*.bin", REPO, env=environment), 4, "pickled")
            hub.change = lambda path, body: body[:-1] + b"!" if path.endswith("model.safetensors") else body
            self.assertExit(run("pull", REPO, env=environment), 65, "model.safetensors", "SHA-256")
        self.assertEqual(self.incomplete(), [])
        self.assertFalse((self.root / "refs" / "main").exists())
        self.assertExit(run("run", REPO, "x", env=environment), 66, "pith pull")

    def test_the_token_goes_to_the_hub_alone(self):
        with Hub(REPO, self.files) as cdn, Hub(REPO, self.files, cdn) as hub:
            finished = run("pull", REPO, "--log-level", "trace", env=self.environment(hub, HF_TOKEN="hf_secret"))
            self.assertExit(finished, 0)
            self.assertNotIn("secret", finished.stderr)
            self.assertEqual({authorization for _, _, authorization in hub.requests}, {"Bearer hf_secret"})
            self.assertEqual({authorization for _, _, authorization in cdn.requests}, {""})
            self.assertGreater(len(cdn.requests), 0)

    def test_ctrl_c_keeps_what_came_and_says_how_to_go_on(self):
        with self.big_hub() as hub:
            process = subprocess.Popen([PITH, "pull", REPO], env=self.environment(hub), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            self.wait_for_bytes(1 << 20)
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, messages)
            self.assertIn(f"`pith pull {REPO}` goes on from there", messages)
            kept = self.incomplete()[0].stat().st_size
            hub.delay_s = 0
            report = run_json("pull", REPO, env=self.environment(hub))
        weights = report["files"][-1]
        self.assertEqual((weights["name"], weights["outcome"]), ("model.safetensors", "resumed"))
        self.assertEqual(report["downloaded_bytes"], weights["bytes"] - kept)

    def test_a_killed_pull_goes_on_and_two_at_once_share_the_work(self):
        with self.big_hub() as hub:
            environment = self.environment(hub)
            process = subprocess.Popen([PITH, "pull", REPO, "--quiet"], env=environment, stdout=subprocess.DEVNULL)
            self.wait_for_bytes(1 << 20)
            process.kill()
            process.wait()
            kept = self.incomplete()[0].stat().st_size
            self.assertExit(run("run", REPO, "x", env=environment), 66)
            hub.delay_s, before = 0.02, len(hub.requests)
            both = [subprocess.Popen([PITH, "pull", REPO, "--quiet"], env=environment, stdout=subprocess.DEVNULL) for _ in range(2)]
            self.assertEqual([process.wait(timeout=60) for process in both], [0, 0])
            ranges = [span for path, span, _ in hub.requests[before:] if path.endswith("model.safetensors")]
            self.assertEqual(len(ranges), len(set(ranges)))
            self.assertEqual(min(int(span[6:].split("-")[0]) for span in ranges), kept)
            blob = self.root / "blobs" / hub.blob_name("model.safetensors")
            self.assertEqual(blob.read_bytes(), hub.files["model.safetensors"])
        self.assertEqual(self.incomplete(), [])


if __name__ == "__main__":
    harness.main()
