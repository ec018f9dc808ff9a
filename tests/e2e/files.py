#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""albedo cp and albedo serve: what arrives is what was sent, through loss, kill -9 of either side, changes and hostile paths."""

import argparse
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from files_memory import check_memory, check_memory_is_whole, check_memory_without_stderr  # noqa: E402
from files_together import check_two_servers, check_two_that_receive, check_two_to_one_name  # noqa: E402
from files_world import SECONDS, World, digests, first_that_counts, part_exists, same, wait_for_first_chunk, wait_for_part, wait_until  # noqa: E402
from harness import Count, Process, free_port  # noqa: E402

FAULTS = "loss=2%,duplicate=1%,reorder=2%,corrupt=0.5%"


def check_sizes(world):
    for name, size in (("empty", 0), ("byte", 1), ("chunk", 1 << 20), ("more", (3 << 20) + 17)):
        source = world.source(name, size)
        put = world.copy(source, world.remote("sizes/"))
        ok = world.finish(put) == 0 and same(source, world.there("sizes/" + name))
        world.result("put of %d bytes" % size, ok, put.output().strip(), put)
        back = os.path.join(world.here, name + ".back")
        get = world.copy(world.remote("sizes/" + name), back)
        ok = world.finish(get) == 0 and same(source, back)
        ok = ok and digests(put) == digests(get) == digests(world.server)[-1:]
        world.result("get of %d bytes, the same digest at both ends" % size, ok, get.output().strip(), get)
    folder = os.path.join(world.here, "folder", "")
    os.mkdir(folder)
    for name in (folder, folder[:-1]):
        get = world.copy(world.remote("sizes/chunk"), name)
        ok = world.finish(get) == 0 and folder + "chunk  " in get.output()
        ok = ok and same(os.path.join(world.here, "chunk"), folder + "chunk")
        world.result("get into a folder keeps the name", ok, get.output().strip(), get)
        if ok:
            os.unlink(folder + "chunk")
    put = world.copy(world.source("chunk", 1 << 20), world.remote("sizes"))
    ok = world.finish(put) == 1 and 'Is a directory; end its name with "/" to copy into it' in put.output()
    world.result("what to do with a folder of the server is said", ok, put.output().strip(), put)
    left = [name for _, _, names in os.walk(world.folder.name) for name in names if "albedo-part" in name]
    world.result("nothing is left beside the files", not left, " ".join(left))


def has_ipv6_loopback():
    try:
        with open("/proc/net/if_inet6") as table:
            return any(line.startswith("0" * 31 + "1 ") for line in table)
    except FileNotFoundError:
        return False


def check_names(world):
    """The server listens at all addresses of both families."""
    source = world.source("named", 10000)
    put = world.copy(source, "localhost:named")
    ok = world.finish(put) == 0 and same(source, world.there("named"))
    world.result("put to localhost", ok, put.output().strip(), put)
    if has_ipv6_loopback():
        put = world.copy(source, "[::1]:by-ipv6")
        ok = world.finish(put) == 0 and same(source, world.there("by-ipv6"))
        world.result("put to [::1]", ok, put.output().strip(), put)
    else:
        world.count.skip("put to [::1]", "the host has no such address")


def check_ports(world):
    """As other numbers are written, where the resolver knows only one way."""
    source, port = world.source("ported", 1000), free_port()
    server = Process([world.program, "serve", "-p", hex(port), world.served])
    wait_until(lambda: server.output() or server.poll() is not None)
    put = Process([world.program, "cp", "-p", hex(port), source, world.remote("ported")])
    ok = world.finish(put) == 0 and same(source, world.there("ported")) and "at port %d\n" % port in server.output()
    world.result("a port in hexadecimal", ok, put.output().strip(), put, server)
    server.end()


def check_long_way(world):
    """A round trip of 2.6 s: more than a receiver is bound for at first, and than a connection is first given to answer."""
    source, port, faults = world.source("far", 100000), free_port(), ("--faults", "delay=1300ms")
    back = os.path.join(world.here, "far.back")
    server = Process([world.program, "serve", "-p", str(port), *faults, world.served])
    wait_until(lambda: server.output() or server.poll() is not None)
    shutil.copy(source, world.there("near"))
    put = Process([world.program, "cp", "-p", str(port), *faults, source, world.remote("far")])
    get = Process([world.program, "cp", "-p", str(port), *faults, world.remote("near"), back])
    ok = world.finish(put) == 0 and same(source, world.there("far"))
    world.result("put over a long way", ok, put.output().strip(), put, server)
    ok = world.finish(get) == 0 and same(source, back)
    world.result("get over a long way", ok, get.output().strip(), get, server)
    server.end()


def check_replace(world):
    old, new = world.source("old", 100000), world.source("new", 90000)
    for path in (old, new):
        world.finish(world.copy(path, world.remote("name")))
    world.result("a file takes an older one's place", same(new, world.there("name")))


def check_paths(world):
    source = world.source("bad", 1000)
    outside = os.path.join(world.folder.name, "outside")
    os.mkdir(outside)
    os.symlink(outside, world.there("link"))
    os.symlink(os.path.join(outside, "file"), world.there("linked-file"))
    for path in ("../outside/x", "a/../../outside/x", "/tmp/albedo-x", "link/x", "./x", "a//x", "linked-file"):
        put = world.copy(source, world.remote(path), "-r", "1")
        ok = world.finish(put) == 1 and not os.listdir(outside) and not os.path.exists(world.there("a"))
        world.result("put to %s is refused" % path, ok, put.output().strip(), put)
        get = world.copy(world.remote(path), os.path.join(world.here, "got"), "-r", "1")
        ok = world.finish(get) == 1 and not os.path.exists(os.path.join(world.here, "got"))
        world.result("get of %s is refused" % path, ok, get.output().strip(), get)
    for path, why in (("../x", "it takes plain names"), ("a//x", "it takes plain names"), ("link/x", "a symbolic link, which is not followed")):
        put = world.copy(source, world.remote(path))
        world.result("why put to %s is refused" % path, world.finish(put) == 1 and why in put.output(), put.output().strip(), put)
    get = world.copy(world.remote("\x1b[31m/x"), os.path.join(world.here, "got"))
    ok = world.finish(get) == 1 and "?[31m/x: " in world.server.output() and "\x1b" not in world.server.output()
    world.result("what a client says does not reach the server's terminal as it is", ok, get.output().strip(), get)
    get = world.copy(world.remote("not/there"), os.path.join(world.here, "got"))
    world.result("get of what is not there", world.finish(get) == 1 and "No such file" in get.output(), get.output().strip(), get)
    os.mkdir(world.there("folder"))
    get = world.copy(world.remote("folder"), os.path.join(world.here, "got"))
    world.result("get of a folder", world.finish(get) == 1 and "Is a directory" in get.output(), get.output().strip(), get)


def check_reasons(world):
    """What stands in the way is named for what it is, at either end and in both directions."""
    source = world.source("reason", 1000)
    shutil.copy(source, world.there("plain-file"))
    os.mkfifo(world.there("pipe"))
    os.symlink("plain-file", world.there("a-link"))
    os.mkdir(world.there("closed"), 0o500)
    shutil.copy(source, world.there("secret"))
    os.chmod(world.there("secret"), 0)
    puts = [("plain-file/x", "a part of the path is not a folder"), ("pipe", "cannot replace pipe: it is a pipe, a socket or a device"),
            ("a-link", "cannot replace a-link: it is a symbolic link")]
    gets = [("plain-file/x", "a part of the path is not a folder"), ("pipe", "not a file: a pipe, a socket or a device"),
            ("a-link", "a symbolic link, which is not followed"), ("", "it takes plain names")]
    if os.geteuid() != 0:  # who may do everything
        puts.append(("closed/new/x", "the user that serves has no right to it: Permission denied"))
        gets.append(("secret", "the user that serves has no right to it: Permission denied"))
    for path, why in puts:
        put = world.copy(source, world.remote(path))
        world.result("put to %s says why not" % path, world.finish(put) == 1 and why in put.output(), put.output().strip(), put)
    for path, why in gets:
        get = world.copy(world.remote(path), os.path.join(world.here, "got"))
        world.result("get of \"%s\" says why not" % path, world.finish(get) == 1 and why in get.output(), get.output().strip(), get)
    os.mkfifo(os.path.join(world.here, "pipe"))
    get = world.copy(world.remote("plain-file"), os.path.join(world.here, "pipe"))
    ok = world.finish(get) == 1 and "cannot replace pipe: it is a pipe" in get.output()
    world.result("get to a pipe says why not", ok, get.output().strip(), get)


def check_part_names(world):
    """What is beside a file in the making is of that name only, and no other file's."""
    source = world.source("short", 1000)
    for name in ("x.albedo-part", "x.albedo-part.journal", "x.albedo-part.journal.new"):
        put = world.copy(source, world.remote(name))
        ok = world.finish(put) == 1 and not os.path.exists(world.there(name)) and "of a copy that is not finished" in put.output()
        world.result("put to %s is refused" % name, ok, put.output().strip(), put)
        shutil.copy(source, world.there("unfinished" + name))
        get = world.copy(world.remote("unfinished" + name), os.path.join(world.here, "got"))
        ok = world.finish(get) == 1 and "of a copy that is not finished" in get.output()
        world.result("get of unfinished%s is refused" % name, ok, get.output().strip(), get)
        os.remove(world.there("unfinished" + name))
    put = world.copy(source, world.remote("no/such/x.albedo-part"))
    ok = world.finish(put) == 1 and not os.path.exists(world.there("no"))
    world.result("put that is refused makes no folders", ok, put.output().strip(), put)
    longest = 231
    others = world.there("l" * 200 + ".albedo-part")
    shutil.copy(source, others)
    for length in (201, longest):
        put = world.copy(source, world.remote("l" * length))
        ok = world.finish(put) == 0 and same(source, world.there("l" * length)) and os.path.exists(others)
        world.result("put to a name of %d letters" % length, ok, put.output().strip(), put)
    put = world.copy(source, world.remote("l" * (longest + 1)))
    ok = world.finish(put) == 1 and "%d bytes" % longest in put.output()
    world.result("put to a name that is too long", ok, put.output().strip(), put)
    shutil.copy(source, world.there("l" * (longest + 1)))
    get = world.copy(world.remote("l" * (longest + 1)), os.path.join(world.here, "long"))
    ok = world.finish(get) == 0 and same(source, os.path.join(world.here, "long"))
    world.result("get of such a name", ok, get.output().strip(), get)


def check_parts_of_others(world):
    """What somebody else has made, or put there, as a part or its journal is neither written to nor believed."""
    source = world.source("guarded", 20000)
    elsewhere = os.path.join(world.here, "elsewhere")
    made = {
        "linked": lambda part: os.symlink(elsewhere, part),
        "hard": lambda part: os.link(world.source("mine", 10), part),
        "piped": lambda part: os.mkfifo(part + ".journal"),
    }
    if os.geteuid() == 0:
        made["theirs"] = lambda part: (open(part, "w").close(), os.chmod(part, 0o666), os.chown(part, 65534, -1))
        made["told"] = lambda part: (open(part + ".journal", "w").close(), os.chown(part + ".journal", 65534, -1))
    for name, make in made.items():
        make(world.there(name + ".albedo-part"))
        put = world.copy(source, world.remote(name))
        ok = world.finish(put) == 1 and "cannot" in put.output() + world.server.output() and not os.path.exists(elsewhere)
        world.result("part that is %s is left alone" % name, ok and not os.path.exists(world.there(name)),
                     put.output().strip(), put)
        for end in (".albedo-part", ".albedo-part.journal"):
            if os.path.lexists(world.there(name + end)):
                os.remove(world.there(name + end))


def check_no_room(world):
    """A limit on the size of files stands for a full disk."""
    shutil.copy(world.source("roomy", 6 << 20), world.there("roomy"))
    folder = os.path.join(world.here, "narrow")
    os.mkdir(folder)
    get = Process(["sh", "-c", "ulimit -f 8192; exec \"$0\" \"$@\"", world.program, "cp", "-p", str(world.port),
                   world.remote("roomy"), os.path.join(folder, "roomy")])
    ok = world.finish(get) == 1 and "cannot make room for roomy" in get.output() and not os.listdir(folder)
    world.result("get without room leaves nothing", ok, get.output().strip(), get)
    world.result("whose disk it is is said", "serve: roomy: the client: cannot make room" in world.server.output(), "", get)


def check_full_disk(world):
    """Room for the file, and not for its journal: a file system that only the copy sees, and that ends with it."""
    full = os.path.join(world.here, "full")
    os.mkdir(full)
    alone = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=6m albedo-full \"$0\" && exec \"$@\"", full]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        world.count.skip("a disk that fills during a copy", "a file system cannot be mounted here")
        return
    shutil.copy(world.source("filling", 5 << 20), world.there("filling"))
    get = Process([*alone, world.program, "cp", "-p", str(world.port), world.remote("filling"), os.path.join(full, "filling")])
    ok = world.finish(get) == 1 and "could not be written; is its disk full? Make room there" in get.output()
    ok = ok and "error: %s/filling.albedo-part.journal: No space left on device" % full in get.output()
    world.result("a disk that fills during a copy is named", ok, get.output().strip(), get)
    # The journal takes what the file leaves, and is full again and again.
    close = os.path.join(world.here, "close")
    os.mkdir(close)
    alone = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=100m albedo-close \"$0\" && exec \"$@\"", close]
    shutil.copy(world.source("fitting", 60 << 20), world.there("fitting"))
    get = Process([*alone, world.program, "cp", "-p", str(world.port), world.remote("fitting"), os.path.join(close, "fitting")])
    world.result("a copy that just fits", world.finish(get) == 0, get.output().strip(), get)
    for path in (world.there("fitting"), os.path.join(world.here, "fitting")):
        os.unlink(path)


def check_faults(world):
    source = world.source("lossy", 6 << 20)
    put = world.copy(source, world.remote("lossy"), "--faults", FAULTS, "-c", "64K")
    world.result("put through " + FAULTS, world.finish(put) == 0 and same(source, world.there("lossy")), put.output().strip(), put)
    put = world.copy(source, world.remote("forgetful"), "--faults", "source=5%", "-c", "64K")
    world.result("put from memory that changes", world.finish(put) == 0 and same(source, world.there("forgetful")), put.output().strip(), put)
    back = os.path.join(world.here, "staged")
    get = world.copy(world.remote("lossy"), back, "--faults", "stage=1%,copy=1%", "-c", "64K")
    world.result("get into memory that changes", world.finish(get) == 0 and same(source, back), get.output().strip(), get)


def check_kills(world, rounds):
    """A slow link, so that the kills come in the middle."""
    source = world.source("long", 24 << 20)
    slow = ("--faults", "delay=2ms..3ms", "-c", "64K")
    copies = []

    def is_in_the_middle(name):
        return part_exists(world, name) and not os.path.exists(world.there(name))

    def kill_server(number):
        name = "killed-server-%d-%d" % (round_number, number)
        copies[:] = [world.copy(source, world.remote(name), *slow)]
        wait_for_part(world, name, 20)
        world.server.signal(signal.SIGKILL)
        world.stop_server()
        was_early = is_in_the_middle(name)
        world.start_server()
        ok = world.finish(copies[0]) == 0 and same(source, world.there(name))
        return ok if was_early or not ok else None

    def kill_client(number):
        name = "killed-client-%d-%d" % (round_number, number)
        copies[:] = [world.copy(source, world.remote(name), *slow)]
        wait_for_part(world, name, 20)
        copies[0].end()
        was_early = is_in_the_middle(name)
        copies.append(world.copy(source, world.remote(name), "-c", "64K"))
        ok = world.finish(copies[1]) == 0 and same(source, world.there(name))
        return ok if was_early or not ok else None

    for round_number in range(rounds):
        for what, kill in (("the server dies, and the copy goes on", kill_server), ("the client dies, and another one goes on", kill_client)):
            ok = first_that_counts(kill)
            world.result("round %d: %s" % (round_number, what), ok, copies[-1].output().strip(), *copies)


def check_modes(world):
    """What is under way is nobody else's to read; what is complete has the source's mode."""
    source = world.source("private", 24 << 20)
    os.chmod(source, 0o640)
    copies, modes = [], []

    def attempt(number):
        name = "private-%d" % number
        copies[:] = [world.copy(source, world.remote(name), "--faults", "delay=2ms..3ms", "-c", "64K")]
        wait_for_first_chunk(world, name, 20)
        try:
            modes[:] = [os.stat(world.there(name + end)).st_mode & 0o777 for end in (".albedo-part", ".albedo-part.journal")]
        except FileNotFoundError:  # it was over
            modes[:] = []
        ok = world.finish(copies[0]) == 0 and os.stat(world.there(name)).st_mode & 0o777 == 0o640
        return modes == [0o600, 0o600] if ok and modes else None if ok else False

    ok = first_that_counts(attempt)
    world.result("a file in the making is its owner's", ok, " ".join("%o" % mode for mode in modes), *copies)


def change_while_copied(world, prefix, change):
    """A copy that was whole before the change, or that a lost connection let begin again after it, says nothing."""
    copies = []

    def attempt(number):
        name = "%s-%d" % (prefix, number)
        source, before = world.source(name, 24 << 20), os.path.join(world.here, "before")
        shutil.copyfile(source, before)
        copies[:] = [world.copy(source, world.remote(name), "--faults", "delay=2ms..3ms", "-c", "64K")]
        wait_for_first_chunk(world, name, 20)
        change(source)
        if world.finish(copies[0]) == 0 and any(same(one, world.there(name)) for one in (before, source)):
            return None
        world.changed = name
        wait_until(lambda: "serve: %s: " % name in world.server.output())
        why = ": it changed while it was copied"
        return why in copies[0].output() and "serve: " + name + ": the client" + why in world.server.output() and not os.path.exists(world.there(name))

    ok = first_that_counts(attempt)
    world.result("a file that is %s while it is copied" % prefix, ok, copies[0].output().strip(), copies[0])
    return ok


def check_change(world):
    def write(path):
        with open(path, "r+b") as file:
            file.write(b"something else")

    change_while_copied(world, "cut", lambda path: os.truncate(path, 100))
    if change_while_copied(world, "changed", write):
        source = os.path.join(world.here, world.changed)
        again = world.copy(source, world.remote(world.changed), "-c", "64K")
        world.result("and copied again when it is at rest", world.finish(again) == 0 and same(source, world.there(world.changed)),
                     again.output().strip(), again)


def check_size_that_is_none(world):
    """Files of /proc say that they have 0 bytes."""
    put = world.copy("/proc/version", world.remote("version"))
    ok = world.finish(put) == 1 and "it has more than the 0 bytes that its size says" in put.output()
    ok = ok and not os.path.exists(world.there("version")) and "version" not in world.server.output()
    world.result("a file with more than its size says", ok, put.output().strip(), put)


def check_limit(world):
    world.stop_server()
    world.start_server("--limit", "1")
    source = world.source("limit", 24 << 20)
    copies = []

    def ask_too_much(number):
        """Says nothing if the first one was through, or had lost its connection, when the second one came."""
        name = "first-%d" % number
        copies[:] = [world.copy(source, world.remote(name), "--faults", "delay=2ms..3ms", "-c", "64K")]
        wait_for_part(world, name, 20)
        copies.append(world.copy(source, world.remote("second"), "-r", "0"))
        status = world.finish(copies[1])
        world.first = name
        if status == 0 and (copies[0].poll() is not None or "the connection was lost" in world.server.output()):
            return None
        return status == 1 and "the server is full: it takes 1 connections at a time" in copies[1].output()

    ok = first_that_counts(ask_too_much)
    world.result("one too many is refused with a reason", ok, copies[1].output().strip(), copies[1])
    third = world.copy(source, world.remote("third"), "-r", str(SECONDS))
    ok = world.finish(third) == 0 and same(source, world.there("third"))
    world.result("a waiting copy gets its turn", ok, third.output().strip(), third)
    ok = world.finish(copies[0]) == 0 and same(source, world.there(world.first))
    world.result("and the first one was not disturbed", ok, copies[0].output().strip(), copies[0])


def check_misuse(world):
    for arguments in (["cp", "a", "b"], ["cp", "a"], ["cp", "-c", "1000", "a", "h:b"], ["serve"], ["serve", "-m", "x=1Q", "/"],
                      ["serve", "-l", "0", "/"]):
        process = Process([world.program, *arguments])
        world.result("albedo %s" % " ".join(arguments), world.finish(process) == 2, process.output().strip()[:100], process)
    world.stop_server()
    put = world.copy(world.source("nobody", 10), world.remote("x"), "-r", "1")
    world.result("no server", world.finish(put) == 1, put.output().strip(), put)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=2, help="kills of each side (default: 2)")
    arguments = parser.parse_args()
    count = Count()
    world = World(arguments.build, count)
    world.start_server("--memory", "block=2M", "--memory", "shared=24M")
    check_sizes(world)
    check_names(world)
    check_ports(world)
    check_long_way(world)
    check_replace(world)
    check_paths(world)
    check_reasons(world)
    check_part_names(world)
    check_parts_of_others(world)
    check_no_room(world)
    check_full_disk(world)
    check_memory(world)
    check_memory_without_stderr(world)
    check_memory_is_whole(world)
    check_faults(world)
    check_kills(world, arguments.rounds)
    check_modes(world)
    check_change(world)
    check_size_that_is_none(world)
    check_two_to_one_name(world)
    check_two_servers(world)
    check_two_that_receive(world)
    check_limit(world)
    check_misuse(world)
    world.stop_server()
    world.folder.cleanup()
    count.finish()


if __name__ == "__main__":
    main()
