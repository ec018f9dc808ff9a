# SPDX-License-Identifier: BSD-2-Clause
"""The table of unmodified programs that must complete over a device: program, options, what marks it."""

import re


class Case:
    """One line of the table.

    quick:     part of `make check`
    lossy:     may run with --faults (a reliable service; UC and UD lose what the network loses, and their programs wait for it)
    refused:   what both sides must say when they end, not by a signal, and soon; None: they succeed
    rows:      sizes that must appear in the client's result
    """

    def __init__(self, program, options="", quick=False, lossy=True, refused=None, rows=(), ipv6=False, seconds=60):
        self.program, self.options, self.quick, self.lossy = program, options.split(), quick, lossy
        self.refused, self.rows, self.ipv6, self.seconds = refused, rows, ipv6, seconds

    def name(self):
        return " ".join([self.program, *self.options] + (["(IPv6)"] if self.ipv6 else [])
                        + (["(refused)"] if self.refused else []))

    def kind(self):
        if self.program.endswith("_pingpong"):
            return "pingpong"
        return "perftest" if self.program.startswith("ib_") else "single"


ALL_SIZES = [2 ** n for n in range(1, 24)]
UD_SIZES = [2 ** n for n in range(1, 11)]  # up to the smallest MTU that a place has for certain


def unreliable(options):
    return bool(re.search(r"-c (UC|UD)", options))


def perftest(program, *options, quick=()):
    """Cases of one perftest program; quick lists those of its option strings that `make check` runs."""
    cases = []
    for text in options:
        rows = ()
        if "-a" in text.split():
            rows = UD_SIZES if "UD" in text else ALL_SIZES
        cases.append(Case(program, text, quick=text in quick, lossy=not unreliable(text), rows=rows,
                          seconds=240 if rows else 60))
    return cases


def table():
    cases = [
        Case("ibv_devices", quick=True),
        Case("ibv_devinfo", quick=True),
        Case("ibv_devinfo", "-v", quick=True),
        Case("ibv_devinfo", "-d {device} -i 1"),
        Case("ibv_asyncwatch", quick=True),
    ]

    # ibv_*_pingpong, from rdma-core's examples. Not -t with -e: ibv_rc_pingpong then fails when an event finds the queue already
    # empty, which happens on any device when a completion comes between arming and polling.
    for options in ("", "-e", "-c", "-t", "-N", "-N -e -c", "-N -t", "-s 1 -c", "-s 65536 -c", "-s 1048576 -c -n 50",
                    "-s 8388608 -c -n 5", "-r 8 -c", "-m 256 -c", "-m 512 -c", "-m 2048 -c", "-m 4096 -c"):
        cases.append(Case("ibv_rc_pingpong", options, quick=options in ("-c", "-e", "-t", "-N", "-s 1048576 -c -n 50")))
    for options in ("", "-e", "-c", "-e -c", "-s 1 -c", "-s 65536 -c -n 100", "-m 256 -c"):
        cases.append(Case("ibv_uc_pingpong", options, quick=options in ("-c", "-e"), lossy=False))
    for options in ("", "-e", "-c", "-e -c", "-s 1 -c", "-s 1024 -c"):
        cases.append(Case("ibv_ud_pingpong", options, quick=options in ("-c", "-e"), lossy=False))
    for options in ("", "-e", "-c", "-e -c", "-q 1 -c", "-q 64 -n 100 -c", "-r 64 -q 4 -c"):
        cases.append(Case("ibv_srq_pingpong", options, quick=options in ("-c", "-e")))
    # Not -c with more than one client: its clients answer through one domain, which processes cannot share here.
    for options in ("", "-e", "-n 500", "-n 200 -e", "-s 1", "-s 65536 -n 50", "-s 1048576 -n 20", "-m 256 -n 50"):
        cases.append(Case("ibv_xsrq_pingpong", options, quick=options in ("-n 500", "-n 200 -e")))
    for program in ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"):
        cases.append(Case(program, "-c", quick=program == "ibv_rc_pingpong", ipv6=True,
                          lossy=program in ("ibv_rc_pingpong", "ibv_srq_pingpong")))

    cases += perftest("ib_write_bw", "", "-a", "-b", "-a -b", "-q 8", "-b -q 8", "-s 1", "-s 8388608 -n 20", "-I 64 -s 64",
                      "-l 16 -s 512", "-t 1", "-Q 1", "-m 256", "-m 512", "-m 1024", "-m 2048", "-m 4096", "--use_old_post_send",
                      "--mr_per_qp -q 4", "-c UC", "-c UC -a", "-c UC -b", "-c UC -q 8", quick=("-a", "-b -q 8", "-c UC"))
    cases += perftest("ib_write_lat", "", "-a", "-s 1", "-I 32 -s 32", "-I 0 -s 8", "-s 65536", "--use_old_post_send", "-c UC",
                      "-c UC -s 65536", quick=("", "-I 32 -s 32"))
    cases += perftest("ib_read_bw", "", "-a", "-b", "-a -b", "-q 8", "-b -q 8", "-e", "-e -b", "-o 1", "-o 16", "-m 256",
                      "-l 4 -s 512", "--use_old_post_send", quick=("-a", "-e -b", "-q 8"))
    cases += perftest("ib_read_lat", "", "-a", "-e", "-o 1", quick=("", "-e"))
    cases += perftest("ib_send_bw", "", "-a", "-b", "-a -b", "-q 8", "-b -q 8", "-e", "-e -b", "-r 16", "-r 1", "--use-srq",
                      "--use-srq -q 8", "--use-srq -e", "-I 64 -s 64", "-l 16 -s 512", "-m 256", "-m 4096",
                      "--use_old_post_send", quick=("-a", "-b -q 8", "-e", "--use-srq -q 8"))
    # Where a program waits for what UC or UD carries, messages are so small that a default socket buffer holds them: what is lost
    # is not sent again.
    cases += perftest("ib_send_bw", *("-c UC -s 1024 -n 40" + more for more in ("", " -b", " -e", " -q 2", " --use-srq")),
                      *("-c UD -s 1024 -n 40" + more for more in ("", " -b", " -e", " -q 2", " --use-srq")),
                      quick=("-c UC -s 1024 -n 40", "-c UD -s 1024 -n 40"))
    # With events its completion queue of one entry overruns when an acknowledgement comes late.
    cases += [Case("ib_send_lat", options, quick=options == "-e", lossy=False) for options in ("-e", "--use-srq -e")]
    cases += perftest("ib_send_lat", "", "-a", "-I 16 -s 16", "-I 0 -s 16", "--use-srq", "--use_old_post_send",
                      "-c UC", "-c UC -e", "-c UC --use-srq", "-c UC -s 65536", "-c UD", "-c UD -e", "-c UD --use-srq", "-c UD -I 16 -s 16",
                      quick=("-a", "-c UC", "-c UD", "--use-srq"))
    cases += perftest("ib_atomic_bw", "", "-A CMP_AND_SWAP", "-b", "-q 8", "-b -q 8", "-e", "-o 1", "--use_old_post_send",
                      quick=("", "-A CMP_AND_SWAP"))
    cases += perftest("ib_atomic_lat", "", "-A CMP_AND_SWAP", "-e", quick=("",))
    for program, options in (("ib_write_bw", ""), ("ib_read_lat", ""), ("ib_send_bw", "-b"), ("ib_send_lat", "-c UD")):
        cases.append(Case(program, options, ipv6=True, lossy=not unreliable(options)))

    for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
        cases += perftest(program, "-c XRC", "-c XRC -a", "-c XRC -b", "-c XRC -b -q 8", "-c XRC -m 256", quick=("-c XRC -b -q 8",))
    for program in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_bw", "ib_atomic_lat"):
        cases += perftest(program, "-c XRC", quick=("-c XRC",) if program == "ib_atomic_bw" else ())

    # What the device does not do is refused by it, and said so by the program.
    cases += [
        Case("ibv_rc_pingpong", "-o", refused="ODP capable", quick=True),
        Case("ibv_rc_pingpong", "-O", refused="ODP capable"),
        Case("ibv_rc_pingpong", "-j", refused="support dm allocation"),
        Case("ibv_srq_pingpong", "-o", refused="ODP capable"),
        Case("ib_send_bw", "-c DC", refused="Failed to create QP"),
        Case("ib_write_bw", "--odp", refused="Failed to create MR"),
    ]
    return cases
