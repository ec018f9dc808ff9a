# SPDX-License-Identifier: BSD-2-Clause
"""albedo serve --memory: what is copied there and back is of one copy, whatever else is under way."""

import os

from files_world import begin_slow, first_that_counts, same
from harness import Process, free_port


def check_memory(world):
    source = world.source("weights", (2 << 20) - 100)
    back = os.path.join(world.here, "weights.back")
    for number in range(2):
        put = world.copy(source, world.remote("block"), "-c", "64K")
        world.result("put to memory, time %d" % (number + 1), world.finish(put) == 0, put.output().strip(), put)
    get = world.copy(world.remote("block"), back)
    ok = world.finish(get) == 0
    if ok:
        with open(source, "rb") as first, open(back, "rb") as second:
            ok = first.read() + bytes(100) == second.read() and os.stat(back).st_mode & 0o777 == 0o644
    world.result("get of memory", ok and not os.path.exists(world.there("block")), get.output().strip(), get)
    put = world.copy(world.source("large", (2 << 20) + 1), world.remote("block"))
    world.result("put of too much", world.finish(put) == 1 and "less than the file" in put.output(), put.output().strip(), put)


def check_memory_without_stderr(world):
    """What a server whose stderr is closed says of copies comes into no file that it has open."""
    source, too_much, port = world.source("quiet", 65536), world.source("loud", 65537), free_port()
    back = os.path.join(world.here, "quiet.back")
    server = Process(["sh", "-c", "exec \"$0\" \"$@\" 2>&-", world.program, "serve", "-p", str(port), "-m", "quiet=64K", world.served])
    put = Process([world.program, "cp", "-p", str(port), source, world.remote("quiet")])
    ok = world.finish(put) == 0
    put = Process([world.program, "cp", "-p", str(port), too_much, world.remote("quiet")])
    ok = world.finish(put) == 1 and ok
    get = Process([world.program, "cp", "-p", str(port), world.remote("quiet"), back])
    ok = world.finish(get) == 0 and ok and same(source, back)
    world.result("memory of a server whose stderr is closed", ok, get.output().strip(), put, get, server)
    server.end()


def check_memory_is_whole(world):
    """What is copied from memory is of one copy to it, whatever else is under way, or was interrupted."""
    size = 24 << 20  # of all of it
    sources = [world.source("shared-%d" % number, size) for number in range(2)]
    back, copies = os.path.join(world.here, "shared.back"), []
    why = "a copy to this memory is under way, or has not been finished"

    def copy_whole(*paths):
        copies[:] = [world.copy(*paths)]
        return world.finish(copies[0]) == 0

    def get_during_put(number):
        if not copy_whole(sources[1], world.remote("shared")):
            return False
        copies[:] = [begin_slow(world, sources[0], world.remote("shared"))]
        copies.append(world.copy(world.remote("shared"), back))
        status = world.finish(copies[1])
        if world.finish(copies[0]) != 0:
            return False
        if status == 0:
            return None if any(same(source, back) for source in sources) else False
        return why in copies[1].output() and "serve: shared: " + why in world.server.output()

    ok = first_that_counts(get_during_put)
    world.result("get of memory during a put to it", ok, copies[-1].output().strip(), *copies)
    ok = copy_whole(world.remote("shared"), back) and same(sources[0], back)
    world.result("and after it", ok, copies[0].output().strip(), *copies)

    def put_during_get(number):
        copies[:] = [begin_slow(world, world.remote("shared"), back + str(number))]
        copies.append(world.copy(sources[1], world.remote("shared")))
        status = world.finish(copies[0])
        if world.finish(copies[1]) != 0:
            return False
        if status == 0:
            return None if any(same(source, back + str(number)) for source in sources) else False
        return "the server: another copy to this name has begun" in copies[0].output()

    ok = first_that_counts(put_during_get)
    world.result("put to memory ends a get of it, which says so", ok, copies[0].output().strip(), *copies)

    get = begin_slow(world, world.remote("shared"), back)
    put = world.copy(world.source("vast", size + 1), world.remote("shared"))
    ok = world.finish(put) == 1 and world.finish(get) == 0 and same(sources[1], back)
    world.result("a put to memory that is refused ends no get", ok, get.output().strip(), get, put)

    def get_after_part(number):
        copies[:] = [begin_slow(world, sources[0], world.remote("shared"))]
        copies[0].end()
        copies.append(world.copy(world.remote("shared"), back))
        status = world.finish(copies[1])
        if status == 0 and same(sources[0], back):
            return None
        return status == 1 and why in copies[1].output()

    ok = first_that_counts(get_after_part)
    world.result("get of memory after a part of a put to it", ok, copies[-1].output().strip(), *copies)
    ok = copy_whole(world.source("short", 5), world.remote("shared")) and not copy_whole(world.remote("shared"), back)
    world.result("and after a shorter one was put there whole", ok and why in copies[0].output(), copies[0].output().strip(), *copies)
    put = world.copy(world.source("vast", size + 1), world.remote("shared"))
    ok = world.finish(put) == 1 and copy_whole(sources[1], world.remote("shared"))
    ok = ok and copy_whole(world.remote("shared"), back) and same(sources[1], back)
    world.result("and after it was put there whole", ok, copies[0].output().strip(), *copies)
    put = world.copy(world.source("vast", size + 1), world.remote("shared"))
    ok = world.finish(put) == 1 and copy_whole(world.remote("shared"), back) and same(sources[1], back)
    world.result("and after a put that was refused", ok, copies[0].output().strip(), *copies)
