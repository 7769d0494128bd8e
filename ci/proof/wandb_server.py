"""A server that takes what W&B's clients send and keeps it, for ci/proof/tracking: wandb_server.py PORT_FILE [PORT]

It says what it keeps at /state, and at /requests all that it was sent but for the keys. What wandb.ai itself would refuse, it
does not know.
"""
import base64
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITY = "tester"
LINES = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "system"}

lock = threading.Lock()
runs = {}
sweeps = {}
requests = []
said = []


def opaque(kind, name):
    """An id as the server's own, which clients hand back as they got it."""
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
    sweeps[name] = {"config": wish["config"], "description": wish.get("description")}
    sweep = {"id": opaque("Sweep", name), "name": name, "project": project_node(wish["projectName"])}
    return {"upsertSweep": {"sweep": sweep, "configValidationWarnings": []}}


def list_sweeps():
    edges = [{"node": {"id": opaque("Sweep", name), "name": name, **sweep}} for name, sweep in sweeps.items()]
    return {"project": {"sweeps": {"edges": edges, "pageInfo": {"endCursor": None, "hasNextPage": False}}}}


def answer_graphql(document, port):
    query, wish = document["query"], document.get("variables") or {}
    if "upsertBucket" in query:
        return upsert_run(wish)
    if "upsertSweep" in query:
        return upsert_sweep(wish)
    if "createRunFiles" in query:
        address = f"http://127.0.0.1:{port}/upload/{wish['run']}/"
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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: the second would wait for the first one's receipt.
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
            stream = re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", self.path)
            if self.path == "/graphql":
                return self.reply({"data": answer_graphql(json.loads(body), self.server.server_port)})
            if stream:
                take_stream(stream[1], json.loads(body))
            return self.reply({"stopped": False})

    do_GET = do_POST = do_PUT = answer


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        # A client that has got its answer may close as it likes.
        pass


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
with open(sys.argv[1], "w") as file:
    print(server.server_port, file=file)
server.serve_forever()
