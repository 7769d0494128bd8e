"""A server that accepts and stores the data of W&B's clients, for ci/proof/tracking: wandb_server.py PORT_FILE [PORT]

/state returns the stored data; /requests returns all requests, without the keys. The server does not reproduce the checks of wandb.ai
itself. It has neither buttons nor agents: `cargo test` has a server with these, in tests/cmd/wandb_server.rs.
"""
import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITY = "tester"
KEY = "canary" + "0" * 34
LINES = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "system"}

lock = threading.Lock()
runs = {}
sweeps = {}
requests = []
said = []


def opaque(kind, name):
    """Returns an opaque id of the server, which clients send back unchanged."""
    return base64.b64encode(f"{kind}:{name}".encode()).decode()


def project_node(name):
    return {"id": opaque("Project", name), "name": name, "entity": {"id": opaque("Entity", ENTITY), "name": ENTITY}}


def run_state(name):
    empty = {"config": {}, "tags": [], "history": {}, "system": {}, "summary": None, "exit_code": None}
    return runs.setdefault(name, empty)


def upsert_run(wish):
    is_new = wish["name"] not in runs
    run = run_state(wish["name"])
    run["config"].update(json.loads(wish.get("config") or "{}"))
    for field in ("displayName", "groupName", "sweep", "tags"):
        if wish.get(field) is not None:
            run[field] = wish[field]
    project = run["project"] = wish.get("project") or "uncategorized"
    bucket = {
        "id": opaque("Run", wish["name"]), "name": wish["name"], "displayName": run.get("displayName") or wish["name"],
        "description": None, "config": json.dumps(run["config"]), "sweepName": run.get("sweep"),
        "historyLineCount": len(run["history"]), "project": project_node(project),
    }
    return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}


def upsert_sweep(wish):
    name = f"sweep{len(sweeps) + 1}"
    sweeps[name] = {"config": wish["config"], "description": wish.get("description"), "state": "RUNNING"}
    sweep = {"id": opaque("Sweep", name), "name": name, "project": project_node(wish["projectName"])}
    return {"upsertSweep": {"sweep": sweep, "configValidationWarnings": []}}


def list_sweeps():
    edges = [{"node": {"id": opaque("Sweep", name), "name": name, **sweep}} for name, sweep in sweeps.items()]
    return {"project": {"sweeps": {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}}}


def answer_graphql(document, host):
    query, wish = document["query"], document.get("variables") or {}
    if "upsertBucket" in query:
        return upsert_run(wish)
    if "upsertSweep" in query:
        return upsert_sweep(wish)
    if "createRunFiles" in query:
        address = f"http://{host}/upload/{wish['run']}/"
        files = [{"name": name, "uploadUrl": address + name} for name in wish["files"]]
        return {"createRunFiles": {"runID": opaque("Run", wish["run"]), "uploadHeaders": [], "files": files}}
    if "sweeps" in query:
        return list_sweeps()
    if "stopped" in query:
        return {"project": {"run": {"stopped": False}}}
    viewer = {"id": opaque("User", "1"), "entity": ENTITY, "username": ENTITY, "flags": "{}", "teams": {"edges": []}}
    return {"viewer": viewer, "serverInfo": {"features": [], "cliVersionInfo": {}, "latestLocalVersionInfo": None}}


def take_stream(name, document):
    run = run_state(name)
    for file, part in (document.get("files") or {}).items():
        for number, line in enumerate(part["content"], part["offset"]):
            if file in LINES:
                run[LINES[file]][number] = json.loads(line)
            elif file == "wandb-summary.json":
                run["summary"] = json.loads(line)
    if document.get("complete"):
        run["exit_code"] = document["exitcode"]
    return {"stopped": False}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: otherwise the body would wait for the acknowledgement of the head.
    wbufsize = -1

    def log_message(self, *_):
        pass

    def reply(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self):
        body = self.read_body()
        with lock:
            if self.path == "/state":
                return self.reply({"runs": runs, "sweeps": sweeps, "requests": len(requests)})
            if self.path == "/requests":
                return self.reply(said)
            requests.append(self.path)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "authorization"}
            has_key = "Authorization" in self.headers
            said.append({"path": self.path, "headers": headers, "has_key": has_key, "body": body.decode(errors="replace")})
            return self.reply(self.answer_client(body))

    def answer_client(self, body):
        if self.path == "/graphql":
            return {"data": answer_graphql(json.loads(body), self.headers["Host"])}
        if stream := re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path):
            return take_stream(stream[1], json.loads(body))
        return {}

    do_GET = do_POST = do_PUT = answer


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        # A client may close the connection after its answer.
        pass


def leave_own_trackers(home):
    """Changes the environment of this process, so that the caller's own trackers are not contacted."""
    os.makedirs(home)
    for name in [name for name in os.environ if name.startswith(("WANDB_", "MLFLOW_"))]:
        del os.environ[name]
    home = os.path.abspath(home)
    os.environ |= {"HOME": home, "WANDB_DIR": home, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    os.environ |= {"WANDB_ERROR_REPORTING": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}


class WandbServer:
    """The server as a process, for the length of a block; `place` is the prefix of its files."""

    def __init__(self, place):
        self.port_file = f"{place}.port"

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, __file__, self.port_file])
        while not (os.path.exists(self.port_file) and open(self.port_file).read().endswith("\n")):
            time.sleep(0.05)
        self.address = f"http://127.0.0.1:{open(self.port_file).read().strip()}"
        self.environment = os.environ | {"WANDB_BASE_URL": self.address, "WANDB_API_KEY": KEY}
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def state(self):
        with urllib.request.urlopen(f"{self.address}/state") as answer:
            return json.load(answer)


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler) as server:
        with open(sys.argv[1], "w") as file:
            print(server.server_port, file=file)
        server.serve_forever()
