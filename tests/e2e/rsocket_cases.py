# SPDX-License-Identifier: BSD-2-Clause
"""Programs that speak through rsockets: rdma-core's rstream and riostream, in all their ways to wait."""

from cm_cases import CmCase


class RsocketCase(CmCase):
    """The server takes the same options as the client, and ends with it."""

    def commands(self, here, port):
        address = here.ipv6 if self.ipv6 else here.ipv4
        common = [self.program, "-p", str(port), *self.options]
        return [*common, "-b", address], [*common, "-s", address]


def rsocket_table():
    result = r"custom .*"
    short = "-S 4096 -C 200"
    cases = [RsocketCase("rstream", short, said=result, quick=True),
             RsocketCase("rstream", short, said=result, ipv6=True),
             RsocketCase("rstream", "-S 1048576 -C 20 -T v", said=result, quick=True),
             RsocketCase("rstream", "-S 64 -C 1 -I 500 -T b", said=result)]
    cases += [RsocketCase("rstream", "%s -T %s" % (short, way), said=result, quick=way == "a") for way in "abnrv"]
    cases += [RsocketCase("riostream", "-S 4096 -C 20 -T %s" % way, said=result, quick=way == "v") for way in "abnv"]
    return cases
