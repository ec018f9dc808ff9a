# SPDX-License-Identifier: BSD-2-Clause
"""In the guest: runs the commands that guest-exec.py sends over the virtio serial ports, one at a time on each port.

A command that is not waited for any more is killed.

A line of JSON each: {"id", "cmd", "timeout"} in; {"id", "o" | "e": output} and at last {"id", "rc"} out.
"""

import json
import os
import select
import signal
import subprocess
import time

PORTS = "/sys/class/virtio-ports"


def send(port, message):
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(port, data):]


def is_abandoned(port):
    """Whether the client has gone, or another one is there already: a client waits for the status of its one command."""
    poll = select.poll()
    poll.register(port, select.POLLIN)
    return bool(poll.poll(0))


def run(port, request):
    process = subprocess.Popen(["/bin/bash", "-c", request["cmd"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    end = time.monotonic() + request["timeout"]
    streams = {process.stdout.fileno(): "o", process.stderr.fileno(): "e"}
    status = None
    while streams:
        ready, _, _ = select.select(list(streams), [], [], 0.2)
        for stream in ready:
            data = os.read(stream, 16384)
            if data:
                send(port, {"id": request["id"], streams[stream]: data.decode("latin-1")})
            else:
                del streams[stream]
        if not ready and process.poll() is not None:
            break  # a background child may still hold the pipes
        if time.monotonic() > end or is_abandoned(port):
            os.killpg(process.pid, signal.SIGKILL)
            status = 124
            break
    process.wait()
    process.stdout.close()
    process.stderr.close()
    if status is None:
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    send(port, {"id": request["id"], "rc": status})


def serve(device):
    port = os.open(device, os.O_RDWR)
    buffered = b""
    while True:
        data = os.read(port, 65536)
        if not data:  # no connection on the host's side
            time.sleep(0.05)
            buffered = b""
            continue
        buffered += data
        while b"\n" in buffered:
            line, buffered = buffered.split(b"\n", 1)
            try:
                request = json.loads(line)
            except ValueError:
                continue
            run(port, request)


for name in sorted(os.listdir(PORTS)):
    with open(os.path.join(PORTS, name, "name")) as file:
        is_ours = file.read().startswith("sh")
    if is_ours and os.fork() == 0:
        serve("/dev/" + name)
