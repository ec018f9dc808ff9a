#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo sim compare`: the grid, its mistakes, its children."""

import json
import os
import re
import signal
import subprocess
import time
import unittest

from cli import ALBEDO, SimTest, albedo


def is_running(process):
    """Its status file is there, and says that it is no zombie, which waits for a parent to hear of its end."""
    try:
        with open("/proc/%s/stat" % process, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Compare(SimTest):
    def test_compare_says_a_mistake_once_and_with_which_value(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "fast", "--seeds", "3", "--vary", "network.hosts=4,1")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "albedo sim: --vary: one host alone; expected two at least\n"
                              "albedo sim compare: that is with network.hosts = 1\n")

    def test_compare_does_not_read_a_pipe(self):
        os.mkfifo(self.path("pipe"))
        self.assertEqual(albedo("sim", "compare", self.path("pipe"), "--policies", "plain"),
                         (2, "", "albedo sim compare: %s: expected a plain file, since each run reads it\n" % self.path("pipe")))

    def test_compare_takes_the_policy_for_wrong_where_it_is(self):
        for option, said in ((["--vary", "network.hosts=1"], "--vary: one host alone"), (["--set", "network.hosts=1"], "--set: one host alone")):
            status, _, err = albedo("sim", "compare", self.file, "--policies", "irn", *option)
            self.assertEqual(status, 2)
            self.assertIn(said, err)
            self.assertNotIn("no variant", err)

    def test_compare_refuses_what_another_option_would_win_over(self):
        run = ["sim", "compare", self.file, "--seeds", "1", "--policies"]
        for option in ("--vary", "--set"):
            status, out, err = albedo(*run, "plain,irn", option, "host.loss=csa")
            self.assertEqual((status, out), (2, ""))
            self.assertIn("%s: host.loss: \"irn\" of --policies, which is a loss policy, would win over it" % option, err)
            self.assertEqual(albedo(*run, "plain,slow", option, "host.loss=csa")[::2], (0, ""))
            status, out, err = albedo(*run, "plain,slow", "--vary", "network.rate=1Gb/s", option, "variant.slow.network.rate=2Gb/s")
            self.assertEqual((status, out), (2, ""))
            self.assertIn("--vary: network.rate: %s variant.slow.network.rate would win over it" % option, err)
            self.assertEqual(albedo(*run, "plain,fast", "--vary", "network.rate=1Gb/s", option, "variant.slow.network.rate=2Gb/s")[::2], (0, ""))

    def test_compare_with_its_result_on_stdout(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "2", "--json", "-")
        self.assertEqual((status, [json.loads(line)["seed"] for line in out.splitlines()]), (0, [1, 2]))
        self.assertIn("slow: 2 of 2 runs done", err)

    def test_compare(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow,irn", "--seeds", "2", "--vary",
                                  "workload.size=10000,50000", "--metrics", "fct_max,done", "--json", self.path("j"))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.count("2 of 2 runs done"), 4)
        self.assertEqual(out.count("fct_max"), 4)
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual(len(cells), 8)
        self.assertEqual({cell["done"] for cell in cells}, {4})

    def test_compare_of_each_workload(self):
        with open(self.path("two"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload a]\nkind = permutation\nsize = 1000\n[workload b]\nkind = permutation\n"
                       "size = 100000\n[variant more]\nworkload.c.kind = incast\nworkload.c.to = 0\nworkload.c.size = 1\n")
        status, out, err = albedo("sim", "compare", self.path("two"), "--policies", "more,irn", "--seeds", "1", "--metrics",
                                  "a.done,b.done,c.done,done", "--json", self.path("j"))
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"more: .*\n +a.done +4 .*\n +b.done +4 .*\n +c.done +3 .*\n +done +11 .*\nirn: .*\n.*\n.*\n +c.done +none\n")
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual([(cell["a.done"], cell["b.done"], cell.get("c.done"), cell["done"]) for cell in cells], [(4, 4, 3, 11), (4, 4, None, 8)])
        self.assertGreater(cells[0]["b.fct_p50"], cells[0]["a.fct_p50"])
        self.assertNotIn("a.packets", cells[0])
        for metric in ("d.done", "a.packets", "fct"):
            status, _, err = albedo("sim", "compare", self.path("two"), "--policies", "irn", "--metrics", metric)
            self.assertEqual(status, 2)
            self.assertIn("there is no metric \"%s\"; " % metric, err)

    def test_compare_says_that_messages_are_not_done(self):
        with open(self.path("cut-off"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 100000\nunreliable = yes\n"
                       "[variant lost]\nfault.cables = h0-*\nfault.kind = death\n"
                       "[variant open]\nscenario.end = 2us\n")
        result = albedo("sim", "compare", self.path("cut-off"), "--policies", "plain,lost,open", "--seeds", "2", "--metrics", "done")
        self.assertEqual(result[0], 0, result)
        self.assertEqual(re.findall(r"\w+: .* runs .*", result[1]), [
            "plain: 2 of 2 runs done", "lost: 2 of 2 runs done, in 2 runs messages failed or were open",
            "open: 0 of 2 runs done, in 2 runs messages failed or were open"])

    def test_compare_of_policies_with_parameters(self):
        for option in (["--policies", "irn:low=50us,high=160us,csa"], ["--policies", "plain", "--vary", "host.loss=irn:low=50us,high=160us,csa"]):
            status, out, err = albedo("sim", "compare", self.file, "--seeds", "1", "--metrics", "done", *option)
            self.assertEqual((status, err), (0, ""))
            self.assertRegex(out, "irn:low=50us,high=160us: 1 of 1 runs done\n  done .*\n.*csa: 1 of 1 runs done\n")

    def test_compare_of_runs_that_were_cut(self):
        status, out, _ = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "2", "--max-time", "5us", "--metrics",
                                "fct_p50,slowdown_p99,done", "--json", self.path("j"))
        self.assertEqual(status, 0)
        self.assertRegex(out, r"fct_p50 +none\n +slowdown_p99 +none\n +done +0  \(0 .. 0\)\n")
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual([("fct_p50" in cell, cell["done"], cell["end"]) for cell in cells], 2 * [(False, 0, "time")])

    def compare_for_long(self, *options):
        """The process, and those of its first two runs."""
        compare = subprocess.Popen([ALBEDO, "sim", "compare", self.file, "--policies", "slow,fast",
                                    "--jobs", "2", "--set", "workload.size=1G", "--set", "workload.messages=1000", *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
        children = []
        while len(children) < 2 and compare.poll() is None:
            with open("/proc/%d/task/%d/children" % (compare.pid, compare.pid), encoding="utf-8") as file:
                children = file.read().split()
        self.assertEqual(len(children), 2)
        return compare, children

    def test_compare_names_a_run_that_is_killed(self):
        compare, children = self.compare_for_long("--seeds", "1", "--vary", "network.hosts=4")
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        _, err = compare.communicate(timeout=60)
        self.assertEqual(compare.returncode, 1)
        self.assertEqual(sorted(err.splitlines()), [
            "albedo sim compare: %s, network.hosts = 4, seed 1: the run was ended by signal 9 (Killed)" % policy for policy in ("fast", "slow")])

    def test_compare_ends_with_its_runs(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            compare, children = self.compare_for_long()
            compare.send_signal(number)
            compare.communicate(timeout=60)
            self.assertEqual(compare.returncode, -number)
            until = time.monotonic() + 20
            while any(map(is_running, children)) and time.monotonic() < until:
                time.sleep(0.01)
            self.assertFalse(any(map(is_running, children)))

    def test_compare_fails_where_runs_are_stuck(self):
        with open(self.path("dead"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[host]\ntransport = rc\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100\ntimeout = 0\n"
                       "[variant whole]\n[variant cut]\nfault.kind = death\nfault.cables = h1-*\n")
        status, out, err = albedo("sim", "compare", self.path("dead"), "--policies", "whole,cut", "--seeds", "2", "--metrics", "done")
        self.assertEqual((status, re.findall(r"\d of 2 runs done", out)), (1, ["2 of 2 runs done", "0 of 2 runs done"]))
        self.assertTrue(err.endswith("albedo sim compare: 2 of 4 runs were stuck: nothing happened any more before all was done\n"), err)

    def test_compare_ends_after_events(self):
        status, out, _ = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "1", "--max-events", "10")
        self.assertEqual(status, 0)
        self.assertIn("0 of 1 runs done", out)

    def test_compare_names_itself(self):
        status, _, err = albedo("sim", "compare", "--frob", self.file)
        self.assertEqual(status, 2)
        self.assertTrue(err.startswith("albedo sim compare: "), err)


if __name__ == "__main__":
    unittest.main()
