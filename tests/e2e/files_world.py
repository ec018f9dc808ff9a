# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of albedo cp and albedo serve share: a server, its folder, copies that are slow, and waiting for a moment of theirs."""

import os
import random
import re
import tempfile
import time

from harness import Process, describe, free_port

SECONDS = 60  # for one copy, on a busy machine
ATTEMPTS = 5  # for what has to happen while a copy is under way, which may be over before this process gets its turn


class World:
    """A server with its folder, and files to be copied."""

    def __init__(self, build, count):
        self.program = os.path.join(os.path.abspath(build), "bin", "albedo")
        self.count, self.port = count, free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-files-")
        self.served, self.here = os.path.join(self.folder.name, "served"), os.path.join(self.folder.name, "here")
        os.mkdir(self.served)
        os.mkdir(self.here)
        self.server, self.draw = None, random.Random(1)

    def start_server(self, *options):
        self.server = Process([self.program, "serve", "-p", str(self.port), *options, self.served])
        wait_until(lambda: "serving" in self.server.output())

    def stop_server(self):
        if self.server:
            self.server.end()

    def source(self, name, size):
        path = os.path.join(self.here, name)
        with open(path, "wb") as file:
            file.write(self.draw.randbytes(size))
        return path

    def there(self, name):
        return os.path.join(self.served, name)

    def copy(self, from_path, to_path, *options):
        return Process([self.program, "cp", "-p", str(self.port), *options, from_path, to_path])

    def remote(self, name):
        return "127.0.0.1:" + name

    def finish(self, copy):
        return copy.wait(time.monotonic() + SECONDS)

    def result(self, name, ok, text="", *processes):
        self.count.result(name, ok, text, "" if ok else describe(*processes, self.server))


def digests(process):
    """What it has said of copies; warnings about a connection that was lost may stand between them."""
    return re.findall(r"^[0-9a-f]{32}(?=  )", process.output(), re.M)


def same(a, b):
    try:
        with open(a, "rb") as first, open(b, "rb") as second:
            return first.read() == second.read()
    except OSError:
        return False


SLOW = ("--faults", "delay=8ms..9ms", "-c", "64K")


def begin_slow(world, *paths):
    """A copy that is under way, or over."""
    copy = world.copy(*paths, *SLOW)
    time.sleep(world.draw.uniform(0.2, 0.6))
    return copy


def part_exists(world, name):
    return os.path.exists(world.there(name + ".albedo-part"))


def wait_until(is_so):
    deadline = time.monotonic() + SECONDS
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.001)


def wait_for_part(world, name, seconds):
    deadline = time.monotonic() + seconds
    while not part_exists(world, name) and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(world.draw.uniform(0.02, 0.15))


def wait_for_first_chunk(world, name, seconds):
    """The sender has read that much: before, it may not have looked at the file at all."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if part_exists(world, name):
            with open(world.there(name + ".albedo-part"), "rb") as part:
                if part.read(64).strip(b"\0"):
                    return
        time.sleep(0.002)


def first_that_counts(attempt):
    """What attempt(number) returns, tried until it is not None."""
    for number in range(ATTEMPTS):
        result = attempt(number)
        if result is not None:
            return result
    return False
