"""A server that accepts and stores the data of W&B's clients, for ci/proof/tracking: wandb_server.py PORT_FILE [PORT]

/state returns the stored data; /requests returns all requests, without the keys. /control accepts buttons of W&B's pages, and
outages. Agents receive the points of their sweep's grid. The server does not reproduce the checks of wandb.ai itself.
"""
import base64
import itertools
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITY = "tester"
LINES = {"wandb-history.jsonl": "history", "wandb-events.jsonl": "system"}

lock = threading.Lock()
runs = {}
sweeps = {}
requests = []
said = []
# Runs for which a user has pressed Stop.
stopped = set()
# Sweeps of agents, by agent id.
agents = {}
# Runs that were assigned but not started: their sweeps and configurations.
pending = {}
# The server is down for "seconds" from request number "after" on; or it hangs for that time with this request.
outage = {"after": None, "seconds": 0, "hangs": False, "is_on": False}


class Refusal(Exception):
    """An error that is answered with status 400."""


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
    pending.pop(wish["name"], None)
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


def sweep_node(wish):
    name = wish["sweep"]
    node = sweeps.get(name) and {"id": opaque("Sweep", name), "name": name, **sweeps[name]}
    return {"project": {"sweep": node}}


def create_agent(wish):
    sweep = sweeps.get(wish["sweep"])
    if not sweep or sweep["state"] not in ("RUNNING", "PAUSED"):
        raise Refusal(f"Sweep {wish['sweep']} is not running")
    agent = opaque("Agent", len(agents) + 1)
    agents[agent] = wish["sweep"]
    return {"createAgent": {"agent": {"id": agent}}}


def grid_points(config):
    """Returns the points of a sweep's grid, in the format for agents. The configuration is JSON, a subset of YAML."""
    parameters = json.loads(config)["parameters"]
    lists = [parameter.get("values", [parameter.get("value")]) for parameter in parameters.values()]
    return [{name: {"value": value} for name, value in zip(parameters, point)} for point in itertools.product(*lists)]


def hear_agent(wish):
    """Answers an agent's heartbeat: an agent without a run gets the next point, if its sweep is not paused."""
    name = agents[wish["id"]]
    sweep, commands = sweeps[name], []
    if json.loads(wish["runState"]) == {} and sweep["state"] != "PAUSED":
        points, given = grid_points(sweep["config"]), sweep.setdefault("given", 0)
        if given == len(points) or sweep["state"] != "RUNNING":
            commands.append({"type": "exit"})
        else:
            sweep["given"] += 1
            run_id = f"{name}run{given + 1}"
            pending[run_id] = (name, points[given])
            commands.append({"type": "run", "run_id": run_id, "program": "train", "args": points[given]})
    return {"agentHeartbeat": {"agent": {"id": wish["id"]}, "commands": json.dumps(commands)}}


def list_pending(wish):
    wanted = json.loads(wish["filters"])["$and"][0]["sweep"]
    nodes = [(run, config) for run, (sweep, config) in pending.items() if sweep == wanted]
    edges = [{"node": {"name": run, "state": "pending", "config": json.dumps(config)}} for run, config in nodes]
    return {"project": {"runs": {"edges": edges}}}


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
    if "createAgent" in query:
        return create_agent(wish)
    if "agentHeartbeat" in query:
        return hear_agent(wish)
    if "sweep(sweepName" in query:
        return sweep_node(wish)
    if "runs(filters" in query:
        return list_pending(wish)
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
    return {"stopped": name in stopped}


def take_control(wish):
    """Executes a test's command: `stop` a run, set the `sweep_state` of all sweeps, or start an `outage`."""
    if "stop" in wish:
        stopped.add(wish["stop"])
    for sweep in sweeps.values():
        sweep["state"] = wish.get("sweep_state", sweep["state"])
    outage.update(wish.get("outage", {}))
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: otherwise the body would wait for the acknowledgement of the head.
    wbufsize = -1

    def log_message(self, *_):
        pass

    def reply(self, document, status=200):
        body = json.dumps(document).encode()
        self.send_response(status)
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
            silence_s = self.silence_s()
        if silence_s is not None:
            self.close_connection = True
            return time.sleep(silence_s)
        with lock:
            if self.path == "/state":
                return self.reply({"runs": runs, "sweeps": sweeps, "requests": len(requests)})
            if self.path == "/requests":
                return self.reply(said)
            if self.path == "/control":
                return self.reply(take_control(json.loads(body)))
            requests.append(self.path)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "authorization"}
            has_key = "Authorization" in self.headers
            said.append({"path": self.path, "headers": headers, "has_key": has_key, "body": body.decode(errors="replace")})
            try:
                return self.reply(self.answer_client(body))
            except Refusal as refusal:
                return self.reply({"errors": [{"message": str(refusal)}]}, 400)

    def silence_s(self):
        """Returns the seconds until the connection is closed without an answer; `None` to answer."""
        if self.path in ("/state", "/requests", "/control"):
            return None
        if outage["is_on"]:
            return 0
        if len(requests) != outage["after"]:
            return None
        outage["after"] = None
        if outage["hangs"]:
            return outage["seconds"]
        outage["is_on"] = True
        threading.Thread(target=self.server.shutdown).start()
        return 0

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


port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
while True:
    with Server(("127.0.0.1", port), Handler) as server:
        port = server.server_port
        outage["is_on"] = False
        with open(sys.argv[1], "w") as file:
            print(port, file=file)
        server.serve_forever(poll_interval=0.05)
    # Nothing listens now, so connections are refused.
    time.sleep(outage["seconds"])
