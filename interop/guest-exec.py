# SPDX-License-Identifier: BSD-2-Clause
"""guest-exec.py RUN-FOLDER GUEST SECONDS COMMAND: runs a shell command in a guest (see guest/agent.py); for rxe-peer.sh exec."""

import fcntl
import json
import os
import socket
import sys
import time

CHANNELS = 4


def connect(run, guest, seconds):
    """A channel that is not in use; the lock on it is held until this process ends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for channel in range(CHANNELS):
            lock = open("%s/g%s.lock%d" % (run, guest, channel), "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(seconds + 10)
            link.connect("%s/g%s.sh%d" % (run, guest, channel))
            return link, lock
        time.sleep(0.1)
    sys.exit("no free channel to guest " + guest)


def write(stream, text):
    stream.buffer.write(text.encode("latin-1"))
    stream.flush()


def main():
    run, guest, seconds, command = sys.argv[1:]
    seconds = float(seconds)
    link, _lock = connect(run, guest, seconds)
    request = "%d.%f" % (os.getpid(), time.time())
    link.sendall((json.dumps({"id": request, "cmd": command, "timeout": seconds}) + "\n").encode())
    buffered = b""
    while True:
        data = link.recv(65536)
        if not data:
            sys.exit("the guest ended")
        buffered += data
        while b"\n" in buffered:
            line, buffered = buffered.split(b"\n", 1)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if message.get("id") != request:
                continue  # of a command that an earlier client gave up
            write(sys.stdout, message.get("o", ""))
            write(sys.stderr, message.get("e", ""))
            if "rc" in message:
                sys.exit(message["rc"])


main()
