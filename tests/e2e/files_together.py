# SPDX-License-Identifier: BSD-2-Clause
"""Two copies at a time to one name, by one server or two, or from one."""

import os
import shutil
import signal

from files_world import first_that_counts, same, wait_for_first_chunk, wait_until
from harness import Process, free_port


def check_two_to_one_name(world):
    """The first one ends with the reason, and does not come again."""
    first, second = world.source("one", 24 << 20), world.source("other", 24 << 20)
    copies = []

    def attempt(number):
        name = "twice-%d" % number
        slow = ("--faults", "delay=2ms..3ms", "-c", "64K")
        copies[:] = [world.copy(first, world.remote(name), *slow)]
        wait_for_first_chunk(world, name, 20)
        copies.append(world.copy(second, world.remote(name), *slow))
        ends = [world.finish(copy) for copy in copies]
        if ends[0] == 0:  # it was over, or had lost its connection
            return None
        why = "another copy to this name has begun"
        return ends == [1, 0] and why in copies[0].output() and name + ": " + why in world.server.output() and same(second, world.there(name))

    ok = first_that_counts(attempt)
    world.result("a second copy to a name ends the first one, which says so", ok, copies[0].output().strip(), *copies)


def check_two_servers(world):
    """That know nothing of each other: who has begun goes on, who comes second is told, also of a file of another size."""
    sources = [world.source("of-one", 24 << 20), world.source("of-two", 24 << 20), world.source("of-three", 20 << 20)]
    port, copies = free_port(), []
    other = Process([world.program, "serve", "-p", str(port), world.served])
    wait_until(lambda: "serving" in other.output())

    def attempt(number):
        name, statuses = "of-two-servers-%d" % number, []
        copies[:] = [world.copy(sources[0], world.remote(name), "--faults", "delay=2ms..3ms", "-c", "64K")]
        wait_for_first_chunk(world, name, 20)
        for source in sources[1:]:
            copies.append(Process([world.program, "cp", "-p", str(port), source, world.remote(name)]))
            statuses.append(world.finish(copies[-1]))
        status = world.finish(copies[0])
        if status == 0 and 0 in statuses and any(same(source, world.there(name)) for source in sources[1:]):
            return None  # it was over
        told = all("is another copy to it under way?" in copy.output() for copy in copies[1:])
        return status == 0 and statuses == [1, 1] and told and same(sources[0], world.there(name))

    ok = first_that_counts(attempt)
    world.result("two servers and one name", ok, copies[-1].output().strip(), *copies, other)
    other.end()


def has_mapped(process, name):
    try:
        with open("/proc/%d/maps" % process.pid) as maps:
            return name in maps.read()
    except OSError:  # it has ended
        return False


def check_two_that_receive(world):
    """Nobody takes a part whose copy is complete, and is being read back and named."""
    source, copies = world.source("contended", 24 << 20), []
    shutil.copy(source, world.there("contended"))

    def attempt(number):
        name = "contended-%d" % number
        paths = world.remote("contended"), os.path.join(world.here, name)
        part = paths[1] + ".albedo-part"
        copies[:] = [world.copy(*paths)]
        wait_until(lambda: has_mapped(copies[0], part) or copies[0].poll() is not None)
        wait_until(lambda: not has_mapped(copies[0], part))
        copies[0].signal(signal.SIGSTOP)
        was_early = os.path.exists(part)
        copies.append(world.copy(*paths))
        status = world.finish(copies[1])
        copies[0].signal(signal.SIGCONT)
        ok = world.finish(copies[0]) == 0 and same(source, paths[1])
        if not was_early:
            return None
        return ok and status == 1 and "is another copy to it under way?" in copies[1].output()

    ok = first_that_counts(attempt)
    world.result("two that get one file, the first of which names it", ok, copies[-1].output().strip(), *copies)
