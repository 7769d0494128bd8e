"""Compares the trackers' data of a sweep with the sweep's files: tracking.py PROGRAM PLACE, see ci/proof/tracking."""
import glob
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from served_wandb import WandbServer

PROGRAM, PLACE = sys.argv[1:]
SWEEP = f"{PLACE}/sweep"
TOOLS = os.path.dirname(sys.executable)


def check(is_right, message):
    if not is_right:
        sys.exit(f"error: ci/proof/tracking.py: {message}")


def histories():
    """Returns the histories of network trials, by trial name: an epoch is a dictionary with flat names."""
    found = {}
    for path in sorted(glob.glob(f"{SWEEP}/trials/trial-*/history.jsonl")):
        epochs = []
        for line in open(path):
            epoch = json.loads(line)
            values = {"train_loss": epoch["train_loss"], "validation_loss": epoch["validation_loss"]}
            scores = epoch["validation"].items()
            values |= {f"validation_{name}": value for name, value in scores if value is not None}
            epochs.append((epoch["epoch"], values))
        found[path.split("/")[-2]] = epochs
    check(found, "no trial has a history")
    return found


def numbers(line):
    return {name: value for name, value in line.items() if not name.startswith("_")}


def comparable(state):
    """Returns a server's runs without data about the client. An offline file has no sweep of the server."""
    runs = {}
    for run_id, run in state["runs"].items():
        run = {key: value for key, value in run.items() if key != "sweep"}
        run["config"] = {key: value for key, value in run["config"].items() if key != "_wandb"}
        run["summary"] = {key: value for key, value in run["summary"].items() if key != "_wandb"}
        # A file has times in whole nanoseconds, from which the time since the start follows.
        run["system"] = {number: line | {"_runtime": None} for number, line in run["system"].items()}
        # NaN is not equal to itself, and a number may be sent as 1 or as 1.0.
        runs[run_id] = json.loads(json.dumps(run, sort_keys=True), parse_int=float, parse_constant=str)
    return runs


def check_wandb():
    expected = histories()
    files = sorted(glob.glob(f"{PLACE}/offline/offline-run-*/run-*.wandb"))
    trials = {}
    for file in files:
        command = [f"{TOOLS}/wandb", "leet", "inspect", "--summary", "--json", file]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        check(told["state"] == "finished" and told["exit_code"] == 0, f"{file}: {told}")
        check(told["project"] == "held-jobs", told)
        trials[told["name"]] = told
    check(len(trials) == 4, f"{len(trials)} trials have a file")

    with WandbServer(f"{PLACE}/sync") as server:
        command = [f"{TOOLS}/wandb", "sync", "--yes", *map(os.path.dirname, files)]
        subprocess.run(command, check=True, env=server.environment, capture_output=True)
        synced = server.state()
    for run in synced["runs"].values():
        lines = [(line["_step"], numbers(line)) for line in run["history"].values()]
        check(lines == expected.get(run["displayName"], lines), f"another history: {run}")

    with WandbServer(f"{PLACE}/sent") as server:
        command = [PROGRAM, "track", SWEEP, "--to", "wandb"]
        subprocess.run(command, check=True, env=server.environment)
        sent = server.state()
        subprocess.run(command, check=True, env=server.environment)
        check(server.state()["runs"] == sent["runs"], "what is sent twice is there twice")
    ours, theirs = comparable(sent), comparable(synced)
    for run_id in ours.keys() | theirs.keys():
        check(ours.get(run_id) == theirs.get(run_id), f"{run_id}\n{ours.get(run_id)}\n{theirs.get(run_id)}")
    for run_id, run in sent["runs"].items():
        for number, line in run["system"].items():
            apart_s = abs(line["_runtime"] - synced["runs"][run_id]["system"][number]["_runtime"])
            check(apart_s < 2e-6, f"{run_id}: line {number} of the system is {apart_s} s apart")
    check_wandb_kills(sent)
    print(f"W&B: {len(ours)} runs, by {sent['requests']} requests of poolcast and {synced['requests']} of wandb sync")


def check_tensorboard():
    import numpy
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    expected = histories()
    for trial, epochs in expected.items():
        reader = EventAccumulator(f"{PLACE}/events/{trial}")
        reader.Reload()
        measured = {name.replace("_", "/", 1): name for _, values in epochs for name in values}
        for tag, name in measured.items():
            found = [(event.step, event.value) for event in reader.Scalars(tag)]
            values = [(step, float(numpy.float32(values[name]))) for step, values in epochs if name in values]
            check(found == values, f"{trial}, {name}: {found}")
        others = set(reader.Tags()["scalars"]) - set(measured)
        check(others and all(tag.startswith("judged/") for tag in others), f"{trial}: {reader.Tags()}")
        text = reader.Tensors("config")[0].tensor_proto.string_val[0].decode()
        check("| hidden_size | 8 |" in text and "log_digest" in text, text)
    check_hyper_parameters(set(expected))
    print(f"TensorBoard: {len(expected)} histories")


def check_hyper_parameters(trials):
    """Asks TensorBoard's own plugin for the sweep, as its page HPARAMS does."""
    from tensorboard import context
    from tensorboard.backend.event_processing.data_ingester import LocalDataIngester
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups

    multiplexer = EventMultiplexer(tensor_size_guidance={"hparams": 0})
    multiplexer.AddRunsFromDirectory(f"{PLACE}/events")
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, f"{PLACE}/events")
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = context.RequestContext()
    metadata = backend.hparams_metadata(request, "")
    experiment = backend.experiment_from_metadata(request, "", True, metadata, backend.hparams_from_data_provider(request, "", 100))
    names = {info.name for info in experiment.hparam_infos}
    check({"hidden_size", "learning_rate", "model", "trial"} <= names, names)
    tags = {f"{info.name.group}/{info.name.tag}".strip("/") for info in experiment.metric_infos}
    check("judged/roc_auc" in tags, tags)


class Gate(ThreadingHTTPServer):
    """A proxy that forwards requests to a server, and kills the sender instead of returning one of the answers."""

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), GateHandler)
        self.to_port = port
        self.sender = None
        self.answers_left = None
        self.requests = 0
        self.keys = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        # The sender was killed, so it cannot receive the answer.
        pass


class GateHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def hand_on(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests += 1
        self.server.keys.add(self.headers["Authorization"])
        way = http.client.HTTPConnection("127.0.0.1", self.server.to_port)
        # A server builds file addresses from the host name in the request.
        kept = ("Content-Type", "Content-Encoding", "Host")
        way.request(self.command, self.path, body, {name: self.headers[name] for name in kept if self.headers[name]})
        answer = way.getresponse()
        document = answer.read()
        if self.server.answers_left == 0:
            self.server.sender.kill()
            self.close_connection = True
            return
        if self.server.answers_left is not None:
            self.server.answers_left -= 1
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    do_POST = do_PUT = hand_on


def send(gate, tracker, environment, answers):
    """Sends the sweep; the gate kills the sender after `answers` answers. Returns true if the sender finished."""
    gate.answers_left = answers
    command = [PROGRAM, "-q", "track", SWEEP, "--to", tracker]
    gate.sender = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    return gate.sender.wait() == 0


def send_to_mlflow(gate, experiment, answers=None, **key):
    address = f"http://127.0.0.1:{gate.server_port}"
    environment = os.environ | {"MLFLOW_TRACKING_URI": address, "MLFLOW_EXPERIMENT_NAME": experiment} | key
    return send(gate, "mlflow", environment, answers)


def check_wandb_kills(whole):
    """Checks a W&B sender that is killed after each request in turn and restarted: the state must equal an undisturbed one."""
    for answers in range(whole["requests"]):
        # The notes belong to another server.
        os.remove(f"{SWEEP}/tracked-wandb.json")
        with WandbServer(f"{PLACE}/killed-{answers}") as server:
            gate = Gate(int(server.address.rsplit(":", 1)[1]))
            environment = server.environment | {"WANDB_BASE_URL": f"http://127.0.0.1:{gate.server_port}"}
            check(not send(gate, "wandb", environment, answers), "it was not killed")
            check(send(gate, "wandb", environment, None), f"killed after {answers} answers, it ends ill")
            state = server.state()
        check(comparable(state) == comparable(whole), f"killed after {answers} answers, it leaves\n{state}")
        check(len(state["sweeps"]) == 1, state["sweeps"])
    print(f"W&B: the same after {whole['requests']} kills")


def mlflow_runs(client, experiment):
    """Returns everything that the server has about an experiment, without its own ids."""
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    runs = []
    for run in found:
        metrics = {}
        for name in run.data.metrics:
            points = client.get_metric_history(run.info.run_id, name)
            metrics[name] = sorted((point.step, point.timestamp, point.value) for point in points)
        tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
        info = run.info
        moments = (info.start_time, info.end_time)
        files = sorted((file.path, file.file_size) for file in client.list_artifacts(info.run_id))
        runs.append((info.run_name, info.status, moments, run.data.params, tags, files, metrics))
    return sorted(runs, key=lambda run: run[0])


def check_mlflow():
    log = open(f"{PLACE}/mlflow.log", "w")
    port = 20000 + os.getpid() % 20000
    command = [f"{TOOLS}/mlflow", "server", "--backend-store-uri", f"sqlite:///{PLACE}/mlflow.db", "--host", "127.0.0.1"]
    command += ["--artifacts-destination", f"{PLACE}/artifacts", "--port", str(port), "--workers", "1"]
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for_mlflow(port)
        compare_mlflow(port)
    finally:
        # The server has child processes.
        os.killpg(server.pid, 15)
        server.wait()


def wait_for_mlflow(port):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
            return
        except OSError:
            time.sleep(0.2)
    check(False, f"MLflow does not answer: {PLACE}/mlflow.log")


def check_sweep_on_mlflow(client):
    """The trials are below their sweep, which names the best one, and each says what it learned from."""
    experiment = client.get_experiment_by_name("whole").experiment_id
    runs = client.search_runs([experiment])
    (sweep,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    trials = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == sweep.info.run_id]
    check(len(trials) == len(runs) - 1, [run.data.tags for run in runs])
    values = {run.info.run_name: run.data.metrics["judged_roc_auc"] for run in trials}
    best = sweep.data.tags["best_run"]
    check(sweep.data.metrics["judged_roc_auc"] == values[best] == max(values.values()), f"{best} of {values}")
    datasets = {(one.dataset.name, one.dataset.digest) for run in runs for one in run.inputs.dataset_inputs}
    check(len(datasets) == 1, datasets)
    params = trials[0].data.params
    check(params["data.log_digest"] and int(params["data.samples_train"]) > 100, params)


def compare_mlflow(port):
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"http://127.0.0.1:{port}")
    gate = Gate(port)
    check(send_to_mlflow(gate, "whole", MLFLOW_TRACKING_USERNAME="me", MLFLOW_TRACKING_PASSWORD="canary"), "it ends ill")
    check(gate.keys == {"Basic bWU6Y2FuYXJ5"}, gate.keys)
    of_whole = gate.requests
    whole = mlflow_runs(client, "whole")
    check(len(whole) == 5, f"{len(whole)} runs: four trials and their sweep")
    check_sweep_on_mlflow(client)
    with_files = [run[-2] for run in whole if run[-2]]
    check(len(with_files) == 1 and with_files[0][-1][0] == "report.html", with_files)
    for trial, epochs in histories().items():
        (metrics,) = [run[-1] for run in whole if run[0] == trial]
        for name in {name for _, values in epochs for name in values}:
            points = [(step, value) for step, _, value in metrics[name]]
            measured = [(step, values[name]) for step, values in epochs if name in values]
            check(points[: len(measured)] == measured, f"{trial}, {name}")
            # Where the kept epoch is not the last one, its value comes last.
            check(len(points) <= len(measured) + 1, f"{trial}, {name}: {points}")
        check(metrics["judged_roc_auc"], f"{trial} is not judged")
        check(not any(name.startswith("summary") for name in metrics), f"{trial}: {metrics.keys()}")
    check({run[1] for run in whole} == {"FINISHED"}, [run[:2] for run in whole])

    gate.keys.clear()
    # Otherwise the notes would mark everything as sent.
    os.remove(f"{SWEEP}/tracked-mlflow.json")
    check(send_to_mlflow(gate, "whole", MLFLOW_TRACKING_TOKEN="canary"), "it ends ill")
    check(gate.keys == {"Bearer canary"}, gate.keys)
    check(mlflow_runs(client, "whole") == whole, "what is sent twice is there twice")
    for answers in range(0, of_whole, 3):
        experiment = f"killed after {answers}"
        check(not send_to_mlflow(gate, experiment, answers), "it was not killed")
        check(send_to_mlflow(gate, experiment), "it ends ill")
        check(mlflow_runs(client, experiment) == whole, experiment)
    print(f"MLflow: {len(whole)} runs by {of_whole} requests, and the same after {len(range(0, of_whole, 3))} kills")


check_tensorboard()
check_wandb()
check_mlflow()
