"""A Hugging Face hub on a free port of 127.0.0.1, for tests: the three answers that `pith pull` asks for, and faults on demand."""
import hashlib
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "607a30d783dfa663caf39e06633721c8d4cfcd7e"


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    """files: name -> bytes. Weights and tokenizer are stored as by Git LFS; with `cdn`, another Hub, they are redirected there."""

    def __init__(self, repository, files, cdn=None):
        self.repository, self.files, self.cdn = repository, files, cdn
        self.requests = []           # (path, range, authorization)
        self.delay_s = 0             # before each 64 KiB of a body
        self.change = lambda path, body: body
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.requests.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def is_lfs(name):
        return name.endswith((".safetensors", ".gguf", "tokenizer.json"))

    def blob_name(self, name):
        return hashlib.sha256(self.files[name]).hexdigest() if self.is_lfs(name) else git_sha1(self.files[name])

    def listing(self):
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "onnx"}]
        for name, content in self.files.items():
            entry = {"type": "file", "oid": git_sha1(content), "size": len(content), "path": name}
            if self.is_lfs(name):
                entry["lfs"] = {"oid": self.blob_name(name), "size": len(content), "pointerSize": 134}
            entries.append(entry)
        return json.dumps(entries).encode()

    def answer(self, handler):
        path = handler.path
        api = f"/api/models/{self.repository}/"
        resolve = f"/{self.repository}/resolve/{COMMIT}/"
        if path.startswith(api + "revision/"):
            known = path == api + "revision/main"
            return self.send(handler, 200 if known else 404, json.dumps({"sha": COMMIT}).encode(),
                             {} if known else {"X-Error-Code": "RevisionNotFound"})
        if path.startswith(f"{api}tree/{COMMIT}?"):
            return self.send(handler, 200, self.listing())
        name = path.split("?")[0].removeprefix("/blob/" if path.startswith("/blob/") else resolve)
        if not path.startswith(("/blob/", resolve)) or name not in self.files:
            return self.send(handler, 404, b"{}", {"X-Error-Code": "RepoNotFound"})
        headers = {"ETag": f'"{self.blob_name(name)}"'}
        if self.is_lfs(name):
            headers = {"X-Linked-Etag": f'"{self.blob_name(name)}"', "X-Linked-Size": str(len(self.files[name]))}
            if self.cdn:
                return self.send(handler, 302, b"", {**headers, "Location": f"{self.cdn.endpoint}/blob/{name}?signature=secret"})
        return self.send_content(handler, self.change(path, self.files[name]), headers)

    def send_content(self, handler, content, headers):
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range", ""))
        if not span:
            return self.send(handler, 200, content, headers)
        first, last = int(span[1]), min(int(span[2] or len(content) - 1), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return self.send(handler, 206, content[first:last + 1], headers)

    def send(self, handler, status, body, headers=None):
        handler.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for begin in range(0, len(body), 1 << 16):
            time.sleep(self.delay_s)
            handler.wfile.write(body[begin:begin + (1 << 16)])
