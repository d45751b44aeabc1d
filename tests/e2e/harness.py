"""Running the binary and a server of it, for the end-to-end tests. Exit code 77 (skipped) when a Python package is missing."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

try:
    import numpy  # noqa: F401
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --python installs the tests' packages)")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
PITH = os.environ.get("PITH_BINARY") or str(ROOT / "build/release/pith")


def run(*arguments, **options):
    options.setdefault("timeout", 120)
    return subprocess.run([PITH, *map(str, arguments)], capture_output=True, text=True, **options)


def run_json(*arguments, **options):
    finished = run(*arguments, "--json", "-", **options)
    assert finished.returncode == 0, f"pith {' '.join(map(str, arguments))}: exit {finished.returncode}\n{finished.stderr}"
    return json.loads(finished.stdout)


def interrupted(sig, begun, out, *arguments, **options):
    """The exit code and stderr of a pith that got `sig` once begun() was true. One that was done before it came is started again, without `out`;
    so is one that was killed when nothing was left to do but exit, which begun() shows by being false again."""
    for _ in range(20):
        process = subprocess.Popen([PITH, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
        while not begun() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(sig)
        _, errors = process.communicate(timeout=60)
        if process.returncode != 0 and (sig != signal.SIGKILL or begun()):
            return process.returncode, errors
        shutil.rmtree(out, ignore_errors=True)
    raise AssertionError(f"pith {' '.join(map(str, arguments))} was done 20 times before signal {sig} reached it")


def real_models():
    """The .gguf files that scripts/get_models fetched."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return sorted(Path(os.environ.get("PITH_MODELS_DIR") or Path(cache) / "pith" / "models").glob("*/*.gguf"))


class Case(unittest.TestCase):
    """A test case with a scratch directory and one tiny model in it."""

    @classmethod
    def setUpClass(cls):
        import tiny_model
        cls._scratch = tempfile.TemporaryDirectory(prefix="pith-e2e-")
        cls.addClassCleanup(cls._scratch.cleanup)
        cls.scratch = Path(cls._scratch.name)
        cls.model = tiny_model.write(cls.scratch / "tiny")

    def assertExit(self, finished, code, *messages):
        self.assertEqual(finished.returncode, code, finished.stderr)
        for message in messages:
            self.assertIn(message, finished.stderr)


class Server:
    """`pith serve` on a free port, as a context manager."""

    def __init__(self, model, *arguments):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([PITH, "serve", str(model), "--port", str(self.port), "--quiet", *map(str, arguments)])

    def __enter__(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with exit code {self.process.returncode}")
            try:
                if self.request("GET", "/health")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server was not ready within 60 s")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(timeout=60)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, text); never raises for a 4xx or 5xx."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def post(self, path, body, **options):
        status, _, text = self.request("POST", path, body, **options)
        return status, json.loads(text)

    def metric(self, name):
        for line in self.request("GET", "/metrics")[2].splitlines():
            if line.startswith(name + "{") or line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def wait_for_metric(self, name, value, seconds=10):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.metric(name) == value:
                return True
            time.sleep(0.05)
        return False


def main():
    unittest.main(verbosity=1)
