# SPDX-License-Identifier: BSD-2-Clause
"""Programs on albedo0 that the peer talks to: ibv_rc_pingpong as it is, and two that obey commands: target.py, and
extended_target, which knows albedodv."""

import json
import os
import select
import socket
import tempfile
import time

from harness import TOP, Place, describe, free_port

PATIENCE_S = 60
GREETING = "0000:%06x:%06x:%s"
GREETING_BYTES = 53  # with the zero at its end


def gid_of(address):
    """32 hexadecimal digits; IPv4 addresses are mapped into IPv6."""
    return socket.inet_pton(socket.AF_INET6, address if ":" in address else "::ffff:" + address).hex()


def address_of(gid):
    text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(gid))
    return text[7:] if text.startswith("::ffff:") else text


class Partner:
    """A program that listens at a TCP port for the exchange of queue pairs, and its counters when it has ended."""

    def __init__(self, albedo, address, argv, options=()):
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-protocol-")
        self.stats_file = os.path.join(self.folder.name, "stats")
        self.port = free_port()
        self.deadline = time.monotonic() + PATIENCE_S
        place = Place("loopback", net=address)
        self.process = albedo.start(place, argv(self.port), ["--stats", self.stats_file, *options])

    def reach(self):
        if not self.process.wait_listening(self.port, self.deadline):
            raise RuntimeError("no program listens\n" + describe(self.process))
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def wait(self):
        return self.process.wait(self.deadline)

    def stats(self):
        with open(self.stats_file) as file:
            return json.load(file)

    def end(self):
        self.process.end()
        self.folder.cleanup()


class Pingpong(Partner):
    """ibv_rc_pingpong's server: it echoes each message, since it receives into and sends from one buffer."""

    def __init__(self, albedo, address, size, rounds):
        super().__init__(albedo, address, lambda port: ["ibv_rc_pingpong", "-d", "albedo0", "-g", "0", "-p", str(port), "-s", str(size),
                                                        "-n", str(rounds)])

    def greet(self, pair):
        """Tells it of our queue pair, and connects that to its own."""
        with self.reach() as stream:
            stream.sendall((GREETING % (pair.qpn, pair.psn, gid_of(pair.peer.address))).encode() + b"\0")
            said = stream.recv(GREETING_BYTES, socket.MSG_WAITALL).rstrip(b"\0").decode()
            _, qpn, psn, gid = said.split(":")
            pair.peer.meet(address_of(gid), int(qpn, 16))
            pair.connect(int(qpn, 16), int(psn, 16))
            stream.sendall(b"done\0")


class Target(Partner):
    """target.py: call() answers what its functions return."""

    def __init__(self, albedo, address, options=()):
        script = os.path.join(TOP, "tests", "protocol", "target.py")
        super().__init__(albedo, address, lambda port: ["/usr/bin/python3", script, "albedo0", str(port)], options)

    def meet(self):
        self.stream = self.reach()
        self.lines = self.stream.makefile("rw")

    def greet(self, pair):
        self.meet()
        self.join(pair)

    def join(self, pair, how="connect", **words):
        """Connects our queue pair to a new one of the program's; what it says of that."""
        said = self.call(how, qpn=pair.qpn, psn=pair.psn, gid=gid_of(pair.peer.address), **words)
        pair.peer.meet(address_of(said["gid"]), said["qpn"])
        pair.connect(said["qpn"], said["psn"])
        self.address, self.key = said["address"], said["key"]
        return said

    def call(self, what, **words):
        self.begin(what, **words)
        return self.answer()

    def begin(self, what, **words):
        self.lines.write(json.dumps(dict(words, do=what)) + "\n")
        self.lines.flush()

    def answer(self):
        line = self.lines.readline()
        if not line:
            raise RuntimeError("target.py went away\n" + describe(self.process))
        return json.loads(line)

    def has_answer(self):
        return bool(select.select([self.stream], [], [], 0)[0])

    def finish(self):
        """Ends it by closing the connection; its exit status."""
        self.lines.close()
        self.stream.close()
        return self.wait()


class Extended(Target):
    """extended_target: a command's words follow each other."""

    def __init__(self, albedo, address):
        program = os.path.join(albedo.build, "test", "extended_target")
        Partner.__init__(self, albedo, address, lambda port: [program, str(port)])

    def join(self, pair, kind):
        said = self.call("connect", kind, pair.qpn, pair.psn, gid_of(pair.peer.address))
        pair.peer.meet(address_of(said["gid"]), said["qpn"])
        pair.connect(said["qpn"], said["psn"])
        self.address, self.key = said["address"], said["key"]

    def call(self, *words):
        self.begin(*words)
        return self.answer()

    def begin(self, *words):
        self.lines.write(" ".join(str(word) for word in words) + "\n")
        self.lines.flush()
