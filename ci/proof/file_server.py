"""Serves files, or fails, as the files in DIR say: each has the state of the server of its name (up, overloaded, or a status).

    file_server.py DIR
"""

import http.server
import pathlib
import random
import sys

ADDRESS = ("127.0.0.1", 8000)
STATES = pathlib.Path(sys.argv[1])
# Share of the requests that fail while a server is overloaded. The others are the OVERLOADED of real_rehearsal.py.
OVERLOADED = 0.6


class Server(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        state = (STATES / self.headers["Host"].split(":")[0]).read_text().strip()
        if state == "overloaded":
            state = "503" if random.random() < OVERLOADED else "up"
        owner, *path = self.path.strip("/").split("/")
        is_lost = path[0] == "lost" and not (STATES / f"found-{owner}").exists()
        if state != "up" or is_lost:
            self.send_error(404 if state == "up" else int(state))
            return
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"ACGT\n")


http.server.ThreadingHTTPServer(ADDRESS, Server).serve_forever()
