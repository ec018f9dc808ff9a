# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: places to run in, processes that never outlive the test, and counting.

A place is a network: the host's loopback, or one of two network namespaces joined by a veth pair. Programs run in a place
through `albedo run`; they are found again by process id only.
"""

import atexit
import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Place:
    """Where one side runs: the command that enters it, and its addresses there."""

    def __init__(self, name, enter=(), ipv4="127.0.0.1", ipv6="::1", net=None):
        self.name, self.enter, self.ipv4, self.ipv6, self.net = name, list(enter), ipv4, ipv6, net


def own_loopback():
    """The loopback under an address of its own, drawn at random: what processes of other tests send, perhaps late, does not come here."""
    draw = random.SystemRandom()
    address = "127.%d.%d.%d" % (draw.randrange(200, 255), draw.randrange(256), draw.randrange(1, 255))
    return Place("loopback", ipv4=address, net=address)


class Process:
    """A program running in a place, its output in a file, itself in a process group of its own."""

    everyone = set()
    is_starting, signalled = False, None  # a signal meanwhile waits until the process is among everyone

    def __init__(self, argv, environment=None):
        self.argv = argv
        self.output_file = tempfile.TemporaryFile()
        self.started = time.monotonic()
        Process.is_starting = True
        try:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.output_file, stderr=subprocess.STDOUT,
                                          start_new_session=True, env=environment)
            self.pid = self.popen.pid
            Process.everyone.add(self)
        finally:
            Process.is_starting = False
            if Process.signalled:
                on_signal(Process.signalled, None)

    def poll(self):
        return self.popen.poll()

    def wait(self, deadline):
        """Exit status (negative: signal), or None when the deadline passes first."""
        try:
            return self.popen.wait(max(0.01, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def signal(self, number):
        """To this one process."""
        if self.popen.poll() is None:
            os.kill(self.pid, number)

    def end(self):
        """Kills whatever is left of the process group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.popen.wait()
        Process.everyone.discard(self)

    def output(self):
        # The process writes by the same open file: to seek would move where its next line goes.
        fd = self.output_file.fileno()
        return os.pread(fd, os.fstat(fd).st_size, 0).decode(errors="replace")

    def is_listening(self, port, protocol="tcp"):
        """Whether a TCP socket listens on that port, or a UDP socket has it, in the network the process lives in."""
        wanted, state = ":%04X" % port, {"tcp": "0A", "udp": "07"}[protocol]
        for table in (protocol, protocol + "6"):
            try:
                with open("/proc/%d/net/%s" % (self.pid, table)) as file:
                    for line in file:
                        fields = line.split()
                        if fields[3] == state and fields[1].endswith(wanted):
                            return True
            except OSError:
                return False
        return False

    def wait_listening(self, port, deadline, protocol="tcp"):
        while time.monotonic() < deadline:
            if self.is_listening(port, protocol):
                return True
            if self.poll() is not None:
                return False
            time.sleep(0.005)
        return False


@atexit.register
def end_everyone():
    for process in list(Process.everyone):
        process.end()


def on_signal(number, frame):
    """What was started is in sessions of its own: no signal to this process ends it but by end_everyone()."""
    if Process.is_starting:
        Process.signalled = number
        return
    for other in ENDING:
        signal.signal(other, lambda number, frame: None)
    sys.exit(128 + number)


ENDING = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
for ending in ENDING:
    signal.signal(ending, on_signal)

ports_given = set()


def free_port():
    """A TCP port that nothing on this host listens on, drawn at random, since other tests may run beside this one."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        if port in ports_given:
            continue
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("::", port))
            except OSError:
                continue
        ports_given.add(port)
        return port


DEVICES = ["roce0", "albedo0"]


def devices_of(name):
    """What --device asks for: a name, or all."""
    return DEVICES if name == "all" else [name]


class Albedo:
    """The build under test, with one device: makes command lines of `albedo run`."""

    def __init__(self, build, options=(), device="roce0"):
        self.build, self.device = os.path.abspath(build), device
        self.program = os.path.join(self.build, "bin", "albedo")
        self.options = list(options)
        if not os.path.exists(self.program):
            sys.exit("%s is not there: run make first, or give --build" % self.program)

    def command(self, place, argv, options=()):
        net = ["--net", place.net] if place.net else []
        return place.enter + [self.program, "run", "--device", self.device, *net, *self.options, *options, "--", *argv]

    def start(self, place, argv, options=(), environment=None):
        return Process(self.command(place, argv, options), environment)


class Claims:
    """A host directory of a test's own: its processes see each other's listeners, and no others."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-e2e-")
        self.environment = dict(os.environ, ALBEDO_DIRECTORY=self.folder.name)

    def wait(self, service_id, process, deadline):
        """Until some process listens for a service: byte 10 of its claim says so (device/cm_claim.c)."""
        pattern = os.path.join(self.folder.name, "*", ".cm-*-%016x-*" % service_id)
        while time.monotonic() < deadline and process.poll() is None:
            if any(self.is_listening(path) for path in glob.glob(pattern)):
                return True
            time.sleep(0.01)
        return False

    @staticmethod
    def is_listening(path):
        try:
            with open(path, "rb") as file:
                return file.read(11)[10:] == b"\1"
        except OSError:
            return False

    def end(self):
        self.folder.cleanup()


def namespaces():
    """Two places joined by a veth pair, or (None, reason). They end with the two processes that hold them."""
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            return None, "%s is missing (scripts/setup.sh check)" % tool
    rootless = os.geteuid() != 0
    first = Process(["unshare", *(["-Ur"] if rootless else []), "-n", "sleep", "infinity"])
    enter = ["nsenter", "-t", str(first.pid), *(["-U", "--preserve-credentials"] if rootless else []), "-n", "--"]
    own = os.readlink("/proc/self/ns/net")
    if not wait_for(lambda: in_other_network(first, own), 30):
        return None, "unshare: " + (first.output().strip() or "no namespace after 30 s")
    second = Process(enter + ["unshare", "-n", "sleep", "infinity"])
    between = os.readlink("/proc/%d/ns/net" % first.pid)
    if not wait_for(lambda: in_other_network(second, own) and in_other_network(second, between), 30):
        return None, "unshare: " + (second.output().strip() or "no namespace after 30 s")
    enter2 = ["nsenter", "-t", str(second.pid), *(["-U", "--preserve-credentials"] if rootless else []), "-n", "--"]
    commands = [enter + ["ip", "link", "add", "alb0", "type", "veth", "peer", "name", "alb0", "netns", str(second.pid)]]
    for way, number in ((enter, 1), (enter2, 2)):
        commands += [
            way + ["ip", "address", "add", "10.77.0.%d/24" % number, "dev", "alb0"],
            way + ["ip", "-6", "address", "add", "fd77::%d/64" % number, "dev", "alb0", "nodad"],
            way + ["ip", "link", "set", "alb0", "mtu", "9000", "up"],
            way + ["ip", "link", "set", "lo", "up"],
        ]
    for command in commands:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            return None, "%s: %s" % (" ".join(command), done.stdout.decode().strip())
    places = [Place("veth", way, "10.77.0.%d" % n, "fd77::%d" % n, "10.77.0.%d,fd77::%d" % (n, n))
              for way, n in ((enter, 1), (enter2, 2))]
    return places, None


def in_other_network(process, link):
    try:
        return process.poll() is None and os.readlink("/proc/%d/ns/net" % process.pid) != link
    except OSError:
        return False


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


SKIPPED = 77  # exit status of what has not found what it needs (scripts/parts.sh)


def need(*programs):
    """Ends the test as skipped where one of them is not installed."""
    for program in programs:
        if not shutil.which(program):
            print("skip: %s is not installed (scripts/setup.sh check)" % program)
            sys.exit(SKIPPED)


class Count:
    """Counts results; finish() prints the line that scripts/check.sh reads and ends the program."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.failures = []

    def result(self, name, ok, detail="", text=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)
        print("%-4s  %-66s %s" % ("ok" if ok else "FAIL", name, detail), flush=True)
        if not ok and text:
            print("".join("      | %s\n" % line for line in text.rstrip().splitlines()[-120:]), end="", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print("%-4s  %-66s %s" % ("skip", name, reason), flush=True)

    def finish(self):
        for name in self.failures:
            print("failed: %s" % name)
        if self.skipped:
            print("%d skipped" % self.skipped)
        print("%d passed, %d failed" % (self.passed, self.failed), flush=True)
        sys.exit(1 if self.failed else 0 if self.passed else SKIPPED if self.skipped else 1)


SILENCE = "a peer was silent for longer than the program's timeouts"
NOT_LISTENING = "the server did not listen in time"
NO_CLOCK = "Correlation coefficient"  # perftest, of the processor's clock: what it measures then is infinite
TRIES = 3


def gave_up(*processes):
    """Whether a queue pair has failed because its peer answered none of the retries."""
    return any(re.search(r"queue pair \w+ failed: .*: (no acknowledgement|no sign of life);", process.output()) for process in processes)


def reason(detail, *processes):
    """Why processes have failed, with SILENCE in front if that was the cause."""
    return "%s (%s)" % (SILENCE, detail) if gave_up(*processes) else detail


def wait_pair(client, server, deadline):
    """Their statuses, None: not in time. Once one has ended, the other has 30 s left; once one has given up, both have 10."""
    ended = (None, None)
    while None in ended and time.monotonic() < deadline:
        if any(status is not None for status in ended):
            deadline = min(deadline, time.monotonic() + 30)
        elif gave_up(client, server):
            deadline = min(deadline, time.monotonic() + 10)
        time.sleep(0.01)
        ended = client.poll(), server.poll()
    return ended


def with_retries(run):
    """The outcome (ok, detail, text) of run(), which is repeated where it fails because the machine is busy: the timeouts of most programs
    are over in two seconds, and a process may not run for as long. The detail counts the tries."""
    for tries in range(1, TRIES + 1):
        ok, detail, text = run()
        if ok or not any(cause in detail for cause in (SILENCE, NOT_LISTENING, NO_CLOCK)):
            break
    return ok, detail + (" (try %d)" % tries if tries > 1 else ""), text


def describe(*processes):
    """Command lines, ends and output of processes, for the report of a failure."""
    lines = []
    for process in processes:
        status = process.poll()
        end = "still running" if status is None else "exit %d" % status if status >= 0 else "signal %d" % -status
        lines += ["$ " + " ".join(process.argv), "  (%s)" % end]
        output = ["  " + line for line in process.output().splitlines()]
        lines += output if len(output) <= 40 else output[:12] + ["  ..."] + output[-25:]
    return "\n".join(lines)
