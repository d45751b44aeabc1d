"""pith eval beyond its table: gates, evidence in the artifact, the report, questions put to the models."""
import json
import os
import shutil
from html.parser import HTMLParser

import harness
import tiny_model
from harness import run, run_json


class Page(HTMLParser):
    """Checks that every element is closed in order; keeps the text."""
    VOID = {"meta", "br", "line", "path", "rect", "circle"}

    def __init__(self):
        super().__init__()
        self.open, self.text, self.faults = [], "", []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        self.text += data


class EvidenceTest(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good = cls.scratch / "w8"
        assert run("quantize", cls.model, "-o", cls.good, "--scheme", "W8A16").returncode == 0
        cls.bad = cls.scratch / "w4"
        assert run("quantize", cls.model, "-o", cls.bad, "--scheme", "W4A16", "--group-size", 64, "--no-clip-search").returncode == 0
        cls.text = cls.scratch / "prose.jsonl"
        lines = [f"Document {i} says that the sum of {i} and {3 * i} is {4 * i}, and then it goes on about other things for a while." for i in range(24)]
        cls.text.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines), encoding="utf-8")
        cls.items = cls.scratch / "items.jsonl"
        cls.items.write_text("".join(json.dumps({"id": f"i{i}", "prompt": f"Say {i}.", "answer": f"[{chr(97 + i)}-z]", "match": "regex",
                                                 "slice": "letters", "max_tokens": 8}) + "\n" for i in range(16)), encoding="utf-8")
        os.environ["XDG_CACHE_HOME"] = str(cls.scratch / "cache")

    def gate(self, text):
        path = self.scratch / "gate.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def eval(self, *arguments):
        return run("eval", *arguments, "--reference", self.model, "--context", 64)

    def test_a_gate_passes_fails_or_cannot_say(self):
        passed = self.eval(self.good, "--data", self.text, "--gate", self.gate("[default]\nmax_kl_mean = 0.5\nmin_same_top = 0.2\n"))
        self.assertExit(passed, 0)
        failed = self.eval(self.good, self.bad, "--data", self.text, "--gate", self.gate("[all]\nmax_kl_mean = 0.001\nconfidence = 0.9\n"))
        self.assertExit(failed, 3, "[all] failed (line 2)", "w4: gate: 1 of 1 not passed")
        self.assertIn("mean KL", failed.stdout, "the figures are printed all the same")
        undecided = self.eval(self.good, "--data", self.text, "--gate", self.gate("[code]\ntemperature = 0.1\nmax_drop = 0.02\n"))
        self.assertExit(undecided, 3, "undecided (line 3): accuracy_delta was not measured for code, temperature 0.1")
        self.assertExit(self.eval(self.good, "--data", self.text, "--gate", self.gate("[code]\nmax_dorp = 0.02\n")), 65, "line 2", "max_dorp")
        self.assertExit(self.eval(self.good, "--data", self.text, "--gate", self.scratch / "absent.toml"), 66, "absent.toml")

    def test_evidence_lies_in_the_artifact_bound_to_it(self):
        artifact = shutil.copytree(self.good, self.scratch / "attached")
        self.assertExit(self.eval(artifact, "--data", self.text, "--attach", "--gate", self.gate("[default]\nmax_kl_mean = 1\n")), 0)
        self.assertIn("\n| kl_mean | all | - | 64 | bf16 |", (artifact / "README.md").read_text(encoding="utf-8"))
        evidence = json.loads((artifact / "evidence.json").read_text(encoding="utf-8"))
        self.assertEqual(evidence["version"], 1)
        records = {(r["metric"], r["slice"]): r for r in evidence["records"]}
        record = records["kl_mean", "all"]
        self.assertEqual((record["verdict"], record["context"], record["kv_cache"], record["temperature"]), ("ok", 64, "bf16", None))
        self.assertIn("pith eval", record["command"])
        self.assertLessEqual(record["ci95"][0], record["value"])
        self.assertEqual(records["ppl_ratio", "all"]["verdict"], "unknown", "no limit was about it")
        # The same again replaces, a temperature more adds.
        self.assertExit(self.eval(artifact, "--data", self.text, "--attach", "--temperature", "0.5"), 0)
        again = json.loads((artifact / "evidence.json").read_text(encoding="utf-8"))
        self.assertEqual(len(again["records"]), len(evidence["records"]) + 2)
        self.assertEqual((again["artifact_sha256"], again["reference_sha256"]), (evidence["artifact_sha256"], evidence["reference_sha256"]))
        # Another artifact under the same name: what was there is void.
        (artifact / "model.safetensors").write_bytes((self.bad / "model.safetensors").read_bytes())
        (artifact / "config.json").write_bytes((self.bad / "config.json").read_bytes())
        changed = self.eval(artifact, "--data", self.text, "--attach")
        self.assertExit(changed, 0, "records of another artifact or reference dropped")
        fresh = json.loads((artifact / "evidence.json").read_text(encoding="utf-8"))
        self.assertNotEqual(fresh["artifact_sha256"], evidence["artifact_sha256"])
        self.assertEqual(len(fresh["records"]), len(evidence["records"]))

    def test_the_report_is_one_page_that_needs_nothing(self):
        page = self.scratch / "report.html"
        self.assertExit(self.eval(self.good, self.bad, "--data", self.text, "--html", page, "--temperature", "0,0.7", "--gate",
                                  self.gate("[default]\nmax_kl_mean = 0.001\n")), 3)
        text = page.read_text(encoding="utf-8")
        for outside in ("http:", "https:", "src=", "<link", "<script", "url("):
            self.assertNotIn(outside, text)
        parsed = Page()
        parsed.feed(text)
        self.assertEqual((parsed.faults, parsed.open), ([], []))
        for part in ("failed", "Size and quality", "Slices", "As served", "How KL is spread", "Worst tokens", "pith eval"):
            self.assertIn(part, parsed.text)
        self.assertExit(self.eval(self.good, "--data", self.text, "--html", self.scratch / "no" / "folder.html"), 73, "--html")

    def test_questions_are_asked_of_both_and_resumed(self):
        flags = ["--data", self.items, "--tasks", "--temperature", "0.8", "--samples", 2]
        first = run_json("eval", self.good, "--reference", self.model, "--context", 64, *flags)
        rows = {row["slice"]: row for row in first["models"][0]["tasks"]}
        self.assertEqual((rows["letters"]["items"], rows["letters"]["samples"], rows["letters"]["temperature"]), (16, 32, rows["all"]["temperature"]))
        self.assertGreater(rows["all"]["reference_rate"]["value"], 0)
        self.assertLess(rows["all"]["reference_rate"]["value"], 1)
        self.assertLess(rows["all"]["difference"]["ci95"][0], rows["all"]["difference"]["ci95"][1])
        again = run_json("eval", self.good, "--reference", self.model, "--context", 64, *flags, "--resume")
        self.assertEqual(again["models"][0]["tasks"], first["models"][0]["tasks"])
        itself = run_json("eval", self.model, "--reference", self.model, "--context", 64, *flags)
        self.assertEqual({row["difference"]["value"] for row in itself["models"][0]["tasks"]}, {0})
        self.assertExit(self.eval(self.good, "--data", self.text, "--tasks"), 65, "prose.jsonl")
        folder = self.scratch / "folder"
        folder.mkdir()
        for file in (self.items, self.text):
            shutil.copy(file, folder)
        mixed = run_json("eval", self.good, "--reference", self.model, "--context", 64, "--data", folder, "--tasks", "--limit", 4)
        self.assertEqual({row["slice"]: row["items"] for row in mixed["models"][0]["tasks"]}, {"all": 4, "letters": 4})

    def test_a_harmed_slice_is_named(self):
        harmed = tiny_model.write(self.scratch / "harmed", spoil=lambda tensors: tensors.update(
            {"model.layers.1.mlp.down_proj.weight": -tensors["model.layers.1.mlp.down_proj.weight"]}))
        caught = self.eval(harmed, "--data", self.text, "--gate", self.gate("[all]\nmax_ppl_ratio = 1.05\nmax_kl_mean = 0.1\n"))
        self.assertExit(caught, 3, "[all] failed (line 3): kl_mean of all is")


if __name__ == "__main__":
    harness.main()
