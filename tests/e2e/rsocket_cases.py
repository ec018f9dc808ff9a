# SPDX-License-Identifier: BSD-2-Clause
"""Programs that speak through rsockets: rdma-core's rstream, riostream, udpong and rcopy in all their ways, and iperf3 and
netcat, whose sockets librspreload replaces."""

import filecmp
import glob
import os
import tempfile

from cm_cases import CmCase


class RsocketCase(CmCase):
    """The server takes the same options as the client, and ends with it."""

    def commands(self, here, port):
        address = here.ipv6 if self.ipv6 else here.ipv4
        common = [self.program, "-p", str(port), *self.options]
        return [*common, "-b", address], [*common, "-s", address]


class DatagramCase(RsocketCase):
    """udpong: its server never ends. With echoes it waits for each of them, and a second for one that was lost."""

    def __init__(self, options, **more):
        super().__init__("udpong", options, stays=True, said=r"custom .*", lossy="-T e" not in options, **more)

    def wait_ready(self, claims, server, port, deadline):
        return server.wait_listening(port, deadline, "udp")


class FileCase(CmCase):
    """A file travels: the copy must be what the original is."""

    def __init__(self, program, size, **more):
        super().__init__(program, **more)
        self.size = size

    def make_original(self):
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-file-")
        self.original, self.copy = (os.path.join(self.folder.name, name) for name in ("original", "copy"))
        with open(self.original, "wb") as file:
            file.write(os.urandom(self.size))

    def spoke(self, output):
        same = filecmp.cmp(self.original, self.copy, shallow=False)
        self.folder.cleanup()
        return super().spoke(output) if same else ""


class CopyCase(FileCase):
    """rcopy: its server never ends."""

    def __init__(self, size, **more):
        super().__init__("rcopy", size, stays=True, said=r"\d+ bytes in .*", **more)

    def name(self):
        return "rcopy (%d bytes)" % self.size

    def commands(self, here, port):
        self.make_original()
        common = [self.program, "-p", str(port)]
        return common, [self.program, self.original, "%s:%s" % (here.ipv4, self.copy), *common[1:]]


def under_librspreload():
    return ["env", "LD_PRELOAD=" + glob.glob("/usr/lib/*/rsocket/librspreload.so")[0]]


class PreloadCase(CmCase):
    """iperf3 over librspreload, at both ends."""

    def __init__(self, options="", **more):
        super().__init__("iperf3", options, said=r"[\d.]+ \w+/sec +receiver", **more)

    def name(self):
        return super().name() + " under librspreload"

    def commands(self, here, port):
        common = [*under_librspreload(), self.program, "-p", str(port)]
        address = here.ipv6 if self.ipv6 else here.ipv4
        return [*common, "-s", "-1", "-B", address], [*common, "-c", address, "-t", "1", *self.options]


class NetcatCase(FileCase):
    """The traditional netcat, which wants small descriptors."""

    def __init__(self, size, **more):
        super().__init__("nc.traditional", size, **more)

    def name(self):
        return "nc.traditional (%d bytes) under librspreload" % self.size

    def commands(self, here, port):
        self.make_original()
        common = [*under_librspreload(), self.program]
        return (["sh", "-c", "exec %s > %s" % (" ".join([*common, "-l", "-p", str(port)]), self.copy)],
                ["sh", "-c", "exec %s < %s" % (" ".join([*common, "-q", "1", here.ipv4, str(port)]), self.original)])


def rsocket_table():
    result = r"custom .*"
    short = "-S 4096 -C 200"
    cases = [RsocketCase("rstream", short, said=result, quick=True),
             RsocketCase("rstream", short, said=result, ipv6=True),
             RsocketCase("rstream", "-S 1048576 -C 20 -T v", said=result, quick=True),
             RsocketCase("rstream", "-S 64 -C 1 -I 500 -T b", said=result)]
    cases += [RsocketCase("rstream", "%s -T %s" % (short, way), said=result, quick=way == "a") for way in "abnrv"]
    cases += [RsocketCase("riostream", "-S 4096 -C 20 -T %s" % way, said=result, quick=way == "v") for way in "abnv"]
    few = "-S 1000 -C 200"
    cases += [DatagramCase(few, quick=True), DatagramCase(few, ipv6=True)]
    cases += [DatagramCase("%s -T %s" % (few, way)) for way in "abne"]
    cases += [CopyCase(100000, quick=True), CopyCase(8 << 20), CopyCase(1)]
    cases += [PreloadCase(quick=True), PreloadCase("-R"), PreloadCase("-P 2"), PreloadCase("-l 64"), PreloadCase(ipv6=True)]
    cases.append(NetcatCase(300000))
    return cases
