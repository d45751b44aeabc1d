"""The subcommands under hostile conditions: closed streams, odd flags, killed runs, no memory, contradictions. Every failure has its exit code,
is one line, and leaves nothing half-written."""
import json
import os
import pty
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import harness
import tiny_model
from harness import PITH, interrupted, run, run_json


def shell(command, **options):
    return subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, timeout=120, check=False, **options)


class StandardStreamTest(harness.Case):
    def test_a_closed_stream_never_becomes_an_output_file(self):
        whole = run_json("quantize", self.model, "-o", self.scratch / "whole")["report"]
        expected = (self.scratch / "whole/model.safetensors").read_bytes()
        for i, closed in enumerate(("2>&-", "<&- 2>&-")):
            out = self.scratch / f"closed-{i}"
            self.assertEqual(shell(f"'{PITH}' quantize '{self.model}' -o '{out}' {closed}").returncode, 0)
            self.assertTrue((out / "model.safetensors").read_bytes() == expected, closed)
        self.assertEqual(len(whole["layers"]), 14)
        self.assertExit(shell(f"'{PITH}' convert '{self.model}' -o '{self.scratch}/no-stdout' >&-"), 74, "stdout")

    def test_help_that_could_not_be_printed_is_no_success(self):
        for arguments in ("--help", "run --help", "--version"):
            self.assertExit(shell(f"'{PITH}' {arguments} >/dev/full"), 74, "stdout")

    def test_standard_input_that_cannot_be_read_is_an_io_error(self):
        self.assertExit(shell(f"'{PITH}' run '{self.model}' -n 2 </tmp"), 74, "standard input")


class FlagTest(harness.Case):
    def test_seeds_outside_64_bits_are_refused(self):
        text = self.scratch / "seed.txt"
        text.write_text("It rained on the roof of the mill. " * 20, encoding="utf-8")
        for seed in ("-1", "18446744073709551616", "1e3", ""):
            for command in (["run", self.model, "x", "-n", 1], ["quantize", self.model, "-o", self.scratch / "seed", "--dry-run"],
                            ["eval", self.model, "--reference", self.model, "--data", text, "--context", 64]):
                self.assertExit(run(*command, f"--seed={seed}"), 2, "--seed")
        self.assertExit(run("run", self.model, "x", "-n", 1, "--seed", "18446744073709551615"), 0)

    def test_an_error_of_usage_is_one_line_that_names_what_was_found(self):
        cases = {("qantize", self.model): ("command: expected one of pull, convert,", "found qantize", "pith --help"), (): ("found none",),
                 ("bogus", "run", self.model): ("found bogus",),
                 ("run", self.model, "x", "y", "z"): ("expected no more arguments, found y z", "pith run --help"),
                 ("run",): ("model is required",), ("run", self.model, "x", "-n", "many"): ("--max-tokens", "many")}
        for arguments, messages in cases.items():
            finished = run(*arguments)
            self.assertExit(finished, 2, *messages)
            self.assertTrue(finished.stderr.startswith("error: ") and finished.stderr.count("\n") == 1, finished.stderr)

    def test_an_empty_prompt_does_not_wait_for_standard_input(self):
        read_end, write_end = os.pipe()
        try:
            self.assertExit(run("run", self.model, "", stdin=read_end, timeout=30), 2, "prompt")
        finally:
            os.close(read_end)
            os.close(write_end)

    def test_flags_that_would_be_ignored_are_refused(self):
        self.assertExit(run("run", self.model, "x", "--system", "be brief"), 2, "--system", "--chat")
        self.assertExit(run("run", self.model, "x", "--json", ""), 2, "--json")
        self.assertExit(run("run", "", "x"), 66, "path")

    def test_what_needs_no_weights_is_refused_before_they_are_read(self):
        model = tiny_model.write(self.scratch / "no-norm", chat=False, spoil=lambda tensors: tensors.pop("model.norm.weight") is None or {})
        self.assertExit(run("run", model, "x"), 65, f"error: {model}: model.norm: expected a weight")
        for command in (["run", model, "x"], ["chat", model]):
            for flag in (["--top-p", 0], ["--min-p", 2], ["--top-k", -2], ["--repetition-penalty", 0], ["--presence-penalty", 3]):
                self.assertExit(run(*command, *flag), 2, flag[0][2:].replace("-", "_"))
        self.assertExit(run("run", model, "x", "--chat"), 4, "chat template")
        self.assertExit(run("chat", model), 4, "chat template")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.assertExit(run("serve", model, "--port", taken.getsockname()[1]), 69, "cannot listen", "--port")
        self.assertExit(run("eval", self.model, "--reference", model, "--data", self.scratch / "absent.txt"), 66, "absent.txt")
        for command in (["bench", model, "-p", 512, "-d", 64], ["profile", model, "-p", 512, "-n", 1]):
            self.assertExit(run(*command), 2, "max_position_embeddings")
        self.assertExit(run("eval", self.scratch / "absent", "--reference", model, "--data", "data/slices", "--context", 64, cwd=harness.ROOT), 66, "absent")

    def test_a_context_that_cannot_be_is_refused_before_weights_are_read_and_before_anything_is_printed(self):
        model = tiny_model.write(self.scratch / "context", spoil=lambda tensors: tensors.pop("model.norm.weight") is None or {})
        for flags, message in ((["-c", 1], "--ctx-size: expected at least 5, the tokens of the prompt, found 1"),
                               (["-c", 4, "--json", "-"], "--ctx-size: expected at least 5, the tokens of the prompt, found 4")):
            finished = run("run", model, "hello", *flags)
            self.assertExit(finished, 2, message)
            self.assertEqual(finished.stdout, "")
        long = run("run", model, "x" * 513)
        self.assertExit(long, 2, "prompt: expected at most 512 tokens (max_position_embeddings), found 513")
        self.assertEqual(long.stdout, "")
        for command in ("chat", "serve"):
            self.assertExit(run(command, model, "-c", 513, stdin=subprocess.DEVNULL), 2, "--ctx-size: expected at most 512 tokens", "found 513")
        self.assertEqual(run("run", self.model, "hello", "-c", 5).stdout, "hello\n")

    def test_a_template_that_always_fails_is_a_bad_file_and_one_that_refuses_these_messages_is_not(self):
        model = tiny_model.write(self.scratch / "templates")
        for template, flags, code in (("{{ raise_exception('never') }}", [], 65), ("{{ messages[9].content }}", [], 65),
                                      ("{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}a", ["--system", "x"], 2)):
            config = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
            (model / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": template}), encoding="utf-8")
            self.assertExit(run("run", model, "Hi", "--chat", *flags), code, "never" if "never" in template else "")

    def test_ignore_patterns_must_be_valid_and_match(self):
        out = self.scratch / "ignore"
        for pattern in ("", "re:(", "model.layers.0.mlp.up_prj", "re:.*nothing"):
            self.assertExit(run("quantize", self.model, "-o", out, "--ignore", pattern), 2, "--ignore")
        self.assertFalse(out.exists())
        plan = run_json("quantize", self.model, "-o", out, "--dry-run", "--ignore", "re:.*down_proj", "--ignore", "lm_head")["plan"]
        self.assertEqual(len([t for t in plan["tensors"] if t["name"].endswith("weight_packed")]), 12)

    def test_a_context_beyond_the_model_is_refused_before_the_text_is_read(self):
        self.assertExit(run("eval", self.model, "--reference", self.model, "--data", self.scratch / "absent.txt", "--context", 513), 2, "--context", "512")

    def test_a_json_file_that_cannot_be_written_is_refused_before_the_work(self):
        out = self.scratch / "early"
        for path in ("/nowhere/result.json", self.scratch):
            self.assertExit(run("quantize", self.model, "-o", out, "--json", path), 73, str(path))
            self.assertFalse(out.exists())


    def test_a_trace_that_cannot_be_written_is_refused_before_the_work(self):
        model = tiny_model.write(self.scratch / "traced", spoil=lambda tensors: tensors.pop("model.norm.weight") is None or {})
        for path, code in (("", 2), ("/nowhere/trace.json", 73), (self.scratch, 73), ("/dev/full", 73)):
            self.assertExit(run("profile", model, "--trace", path), code, "--trace", str(path))
        both = self.scratch / "both.json"
        (self.scratch / "link").symlink_to(self.scratch)
        for same in (both, self.scratch / "link" / "both.json"):
            self.assertExit(run("profile", model, "--trace", same, "--json", both), 2, "--trace: expected another file than --json")
        self.assertExit(run("eval", model, "--reference", model, "--html", both, "--json", both), 2, "--html: expected another file than --json")
        self.assertFalse(both.exists())

    def test_flags_of_bench_that_contradict_each_other_are_refused(self):
        for flags in (["--curve", "--verify"], ["--curve", "-b", 4], ["--curve", "-p", 8], ["--verify", "-p", 16], ["--verify", "-n", 2],
                      ["--verify", "-b", 2], ["--rows", 4], ["-o", "csv", "--json", "-"]):
            finished = run("bench", self.scratch / "absent", *flags)
            self.assertExit(finished, 2, str(max(flag for flag in map(str, flags) if flag.startswith("--"))))
            self.assertEqual(finished.stdout, "")


class ModelTest(harness.Case):
    def test_quantize_checks_names_and_shapes_against_the_config(self):
        cases = {
            "missing": lambda t: t.pop("model.layers.1.mlp.up_proj.weight") is None or {},
            "transposed": lambda t: t.update({"model.layers.1.mlp.up_proj.weight": t["model.layers.1.mlp.down_proj.weight"]}) or {},
            "layers": lambda t: {"num_hidden_layers": 3},
            "too few": lambda t: {"num_hidden_layers": 1},
            "stray": lambda t: t.update({"model.layers.9.mlp.up_proj.weight": t["model.norm.weight"]}) or {},
        }
        for name, spoil in cases.items():
            model = tiny_model.write(self.scratch / f"spoilt-{name}", spoil=spoil)
            for arguments in (["--dry-run"], []):
                self.assertExit(run("quantize", model, "-o", self.scratch / "spoilt-out", *arguments), 65, "model.layers.")
            for target in ("bf16", "gguf"):
                self.assertExit(run("convert", model, "-o", self.scratch / "spoilt-out", "--format", target), 65, "model.layers.")
            self.assertFalse((self.scratch / "spoilt-out").exists())

    def every_command(self, model):
        """Every command that loads the model."""
        out = self.scratch / "every-out"
        return (["run", model, "x"], ["chat", model], ["serve", model, "--port", 0], ["inspect", model], ["bench", model], ["profile", model],
                ["eval", self.model, "--reference", model], ["eval", model, "--reference", self.model], ["quantize", model, "-o", out],
                ["convert", model, "-o", out], ["convert", model, "-o", out, "--format", "gguf"])

    def test_weights_that_the_config_does_not_explain_are_refused_by_every_command(self):
        model = tiny_model.write(self.scratch / "half", spoil=lambda t: {"num_hidden_layers": 1})
        for command in self.every_command(model):
            finished = run(*command, stdin=subprocess.DEVNULL)
            self.assertExit(finished, 65, f"error: {model}: model.layers.1.input_layernorm.weight: expected 1 layer as config.json says, "
                                          "found a weight of layer 2 (and 8 more)")
            self.assertEqual(finished.stdout, "", command)

    def test_a_tensor_of_which_nothing_is_known_is_named(self):
        model = tiny_model.write(self.scratch / "score", spoil=lambda t: t.update({"score.weight": t["model.norm.weight"]}) or {})
        finished = run("run", model, "x", "-n", 1)
        self.assertExit(finished, 0, f"{model}: score.weight: not a part of the architecture")
        self.assertEqual(finished.stdout, run("run", self.model, "x", "-n", 1).stdout)
        harmless = tiny_model.write(self.scratch / "harmless", spoil=lambda t: t.update(
            {"model.layers.0.self_attn.rotary_emb.inv_freq": t["model.norm.weight"], "lm_head.weight": t["model.embed_tokens.weight"]}) or {})
        finished = run("run", harmless, "x", "-n", 1, "--quiet")
        self.assertExit(finished, 0)
        self.assertEqual(finished.stderr, "")

    def test_every_command_names_the_model_whose_config_it_refuses(self):
        for key, value, code in (("hidden_act", "swish9", 4), ("num_attention_heads", 5, 65)):
            model = tiny_model.write(self.scratch / key, spoil=lambda t, entry={key: value}: entry)
            for command in self.every_command(model):
                if code == 65 or command[0] != "convert":  # which needs no activation
                    self.assertExit(run(*command, stdin=subprocess.DEVNULL), code, f"error: {model}: config.json: ")
        model = tiny_model.write(self.scratch / "mamba", spoil=lambda t: {"model_type": "mamba"})
        self.assertExit(run("convert", model, "-o", self.scratch / "mamba.gguf", "--format", "gguf"), 4, f"error: {model}: model_type")
        model = tiny_model.write(self.scratch / "list", spoil=lambda t: {"quantization_config": []})
        for command in self.every_command(model):
            self.assertIn(f"error: {model}/config.json: quantization_config: expected an object, found []\n",
                          run(*command, stdin=subprocess.DEVNULL).stderr)

    def test_a_cache_beyond_the_free_memory_is_refused(self):
        memory = dict(re.findall(r"(?m)^(Mem\w+): +(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8")))
        total, free = int(memory["MemTotal"]) * 1024, int(memory["MemAvailable"]) * 1024
        model = tiny_model.write(self.scratch / "wide", hidden=256, kv_heads=4, context=1 << 20)
        tokens = (total + free) // 2 // (64 * 2048)
        if total - free < 1 << 30 or tokens > 1_000_000:
            self.skipTest("needs less memory than 64 million tokens take, and 1 GiB of it in use")
        for command in (["bench", model, "-p", 0, "-n", 1, "-d", tokens], ["profile", model, "-p", tokens, "-n", 0]):
            finished = run(*command, "-b", 64, "-r", 1)
            self.assertExit(finished, 71, "KV cache of 64 sequences", "of free memory, found")
            self.assertEqual(finished.stdout, "")

    def test_control_characters_of_files_never_reach_the_terminal(self):
        model = self.scratch / "evil\x1b[31m\nname"
        tiny_model.write(model, spoil=lambda t: t.pop("model.norm.weight") is None or {})
        finished = run("run", model, "x", "--quiet")
        self.assertEqual(finished.returncode, 65)
        self.assertEqual(finished.stderr.count("\n"), 1, finished.stderr)
        self.assertNotIn("\x1b", finished.stderr)

    def test_names_break_no_table_and_no_terminal(self):
        model = os.fsencode(self.scratch) + b"/a|b\x1b[31m\xff"
        os.rename(tiny_model.write(self.scratch / "odd"), model)
        for form, name in (("md", b"| llama a\\|b\\x1B[31m\\xFF |"), ("csv", b'"llama a|b\\x1B[31m\\xFF"'), ("jsonl", b"a|b\\u001b[31m")):
            finished = subprocess.run([PITH, "bench", model, "-p", "0", "-n", "1", "-r", "1", "-o", form], capture_output=True, timeout=120, check=True)
            self.assertIn(name, finished.stdout)
            self.assertNotIn(b"\x1b", finished.stdout + finished.stderr)
            (finished.stdout + finished.stderr).decode("utf-8")


class LifeTest(harness.Case):
    def start(self, *arguments, **options):
        return subprocess.Popen([PITH, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

    def partials(self):
        return [path for path in self.scratch.iterdir() if ".partial-" in path.name]

    def test_the_next_run_clears_what_a_killed_one_left_but_not_what_a_live_one_writes(self):
        big = tiny_model.write(self.scratch / "big", hidden=512, inter=2048, layers=3, heads=8, kv_heads=4)
        out = self.scratch / "out"
        code, _ = interrupted(signal.SIGKILL, self.partials, out, "quantize", big, "-o", out)
        self.assertEqual(code, -signal.SIGKILL)
        left = self.partials()
        self.assertEqual(len(left), 1)
        live = self.start("quantize", big, "-o", out)
        while self.partials() in ([], left) and live.poll() is None:
            time.sleep(0.005)
        second = run("quantize", self.model, "-o", out, "--threads", 1)
        self.assertFalse(left[0].exists())
        # Whoever is first to lock the unfinished run, or to finish, wins; the other is refused and changes nothing.
        self.assertEqual(sorted([second.returncode, live.wait(60)]), [0, 73], second.stderr)
        self.assertEqual(self.partials(), [])
        self.assertExit(run("inspect", out, "--json", "-"), 0)

    def test_a_hangup_cleans_up(self):
        big = tiny_model.write(self.scratch / "hangup", hidden=512, inter=2048, layers=3, heads=8, kv_heads=4)
        out = self.scratch / "hangup-out"
        code, errors = interrupted(signal.SIGHUP, self.partials, out, "quantize", big, "-o", out, "--threads", 1)
        self.assertEqual(code, 129, errors)
        self.assertEqual(self.partials(), [])

    def test_under_nohup_a_hangup_changes_nothing(self):
        process = self.start("quantize", self.model, "-o", self.scratch / "nohup", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(60), 0)

    def test_no_memory_and_no_threads_are_exit_71(self):
        big = tiny_model.write(self.scratch / "memory", hidden=512, inter=2048, layers=3, heads=8, kv_heads=4)

        text = self.scratch / "text.txt"
        text.write_text("It rained on the roof of the mill. " * 20, encoding="utf-8")

        def limited(mib):
            return lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

        def starts(mib):
            try:
                return run("--version", preexec_fn=limited(mib), timeout=5).returncode == 0
            except subprocess.TimeoutExpired:
                return False
        least = next((mib for mib in range(24, 64, 4) if starts(mib)), None)  # for the shared libraries alone
        self.assertIsNotNone(least, "pith does not start in 60 MiB of address space")
        for command in (["run", big, "x", "-n", 2], ["quantize", big, "-o", self.scratch / "memory-out"], ["convert", big, "-o", self.scratch / "memory-out"],
                        ["eval", big, "--reference", big, "--data", text, "--context", 64]):
            for mib in (least, least + 16, least + 40):
                finished = run(*command, preexec_fn=limited(mib))
                expected = (71,) if mib == least else (0, 71)
                self.assertIn(finished.returncode, expected, f"{command[0]} in {mib} MiB: {finished.stderr}")
            subprocess.run(["rm", "-rf", self.scratch / "memory-out"], check=True)
        self.assertExit(run("serve", self.model, "--port", 0, preexec_fn=limited(least)), 71)
        self.assertEqual(self.partials(), [])

    def test_a_chat_survives_a_conversation_that_is_too_long(self):
        leader, follower = pty.openpty()
        with subprocess.Popen([PITH, "chat", str(self.model), "-n", "2"], stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            os.close(follower)
            for line in ("x" * 900, "/clear", "hi", "/exit"):
                os.write(leader, line.encode() + b"\n")
            output, errors = process.communicate(timeout=60)
            os.close(leader)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("/clear starts afresh", errors)
        self.assertTrue(output.strip() or output, "the question after /clear is answered")


if __name__ == "__main__":
    harness.main()
