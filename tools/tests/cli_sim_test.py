#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo sim`: variants, checks, limits, wrong use."""

import os
import re
import shutil
import signal
import subprocess
import unittest

from cli import ALBEDO, SCENARIO, SimTest, albedo


class Sim(SimTest):
    def test_runs_every_variant_and_checks(self):
        status, out, err = albedo("sim", "--check", self.file)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("scenario (slow), seed 1: done", out)
        self.assertIn("scenario (fast), seed 1: done", out)
        self.assertEqual(out.count("\nhosts 4, switches 1, transport csa, loss csa, "), 2)
        self.assertRegex(out, r"ok   slow/fast.fct_max = ")
        status, out, _ = albedo("sim", "--check", "--quiet", "--set", "workload.size=1000", self.file)
        self.assertEqual(status, 1)  # a small message hardly feels the rate
        self.assertIn("FAIL slow/fast.fct_max", out)
        self.assertEqual(albedo("sim", "--quiet", "--set", "workload.size=1000", self.file)[0], 0)

    def test_no_message_may_fail_unless_the_scenario_says_so(self):
        cut_off = ("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 100000\nunreliable = yes\n"
                   "[fault off]\ncables = h0-*\nkind = death\n")
        for expected, status, said in (("", 1, "FAIL flows.failed = 2, expected 0"), ("[expect]\nfailed = 2\n", 0, "ok   failed = 2")):
            with open(self.path("cut-off"), "w", encoding="utf-8") as file:
                file.write(cut_off + expected)
            result = albedo("sim", "--quiet", "--check", self.path("cut-off"))
            self.assertEqual(result[0], status, result)
            self.assertIn(said, result[1])

    def test_each_workload_and_variant_must_say_how_many_fail(self):
        cut_off = ("[network]\nhosts = 3\n[workload a]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nunreliable = yes\n"
                   "[workload b]\nkind = pairs\nhosts = 2\nto = 1\nsize = 1000\n[fault]\ncables = h0-*\nkind = death\n"
                   "[variant v]\n[variant w]\n[expect]\n")
        failed = ["FAIL %s: a.failed = 1, expected 0, since [expect] has no other number" % variant for variant in "vw"]
        for expected, fails in (("b.failed = 0\n", failed), ("v/w.a.failed = 1\n", failed), ("v:a.failed = 1\n", failed[1:]),
                                ("a.failed = 1\n", []), ("failed = 1\n", [])):
            with open(self.path("cut-off"), "w", encoding="utf-8") as file:
                file.write(cut_off + expected)
            status, out, _ = albedo("sim", "--quiet", "--check", self.path("cut-off"))
            self.assertEqual((status, [line for line in out.splitlines() if "FAIL" in line]), (len(fails) > 0, fails))

    def test_says_what_it_shows(self):
        shown = "[scenario]\ntitle = two rates\n" + SCENARIO
        with open(self.path("titled"), "w", encoding="utf-8") as file:
            file.write(shown)
        self.assertTrue(albedo("sim", self.path("titled"))[1].startswith("two rates\n== titled (slow)"))
        self.assertEqual(albedo("sim", "--quiet", self.path("titled"))[1], "")
        for option in (["--variant", "middle"], ["--variant", "slow", "--host", "9", "--trace", self.path("t")]):
            status, out, err = albedo("sim", *option, self.path("titled"))
            self.assertEqual((status, out), (2, ""), err)

    def test_the_example_of_the_documentation(self):
        with open("docs/SCENARIOS.md", encoding="utf-8") as page:
            example = re.search(r"```\n(\[scenario\]\n.*?)```", page.read(), re.S).group(1)
        with open(self.path("example"), "w", encoding="utf-8") as file:
            file.write(example)
        status, _, err = albedo("sim", "--quiet", "--check", self.path("example"))
        self.assertEqual((status, err), (0, ""))

    def test_same_seed_same_trace(self):
        traces = [[line for line in albedo("sim", self.file)[1].splitlines() if line.startswith("trace")] for _ in range(2)]
        self.assertEqual(len(traces[0]), 2)
        self.assertEqual(traces[0], traces[1])

    def test_nothing_runs_after_a_mistake_in_a_later_variant(self):
        with open(self.path("cycle"), "w", encoding="utf-8") as file:
            file.write("num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\nrank 1 {\n}\n")
        for wrong, said in (("workload.file = none\nworkload.kind = goal", "s:11: "), ("workload.file = cycle\nworkload.kind = goal", "cycle:4: "),
                            ("workload.size = 4G", "s:11: a message is larger"), ("workload.hosts = 3", "s:11: one host alone"),
                            ("network.hosts = 1", "s:11: one host alone"),
                            ("network.hosts = 4\nfault.cables = h9-*", "s:12: no cable matches"), ("host.paths = 0", "s:11: paths is")):
            with open(self.path("s"), "w", encoding="utf-8") as file:
                file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1000\n[fault]\ncables = h0-*\nkind = repair\n"
                           "[variant good]\n[variant bad]\n" + wrong + "\n")
            status, out, err = albedo("sim", self.path("s"))
            self.assertEqual((status, out), (1, ""), (wrong, err))
            self.assertIn(said, err)
            self.assertTrue(err.endswith(" (variant bad)\n"), err)

    def test_variants_are_counted_before_they_run(self):
        for count, status, said in ((64, 0, ""), (65, 1, "albedo sim: %s:70: expected 64 variants at most\n" % self.path("s"))):
            with open(self.path("s"), "w", encoding="utf-8") as file:
                file.write("[network]\nhosts = 2\n[workload]\nkind = permutation\nsize = 1\n" +
                           "".join("[variant v%d]\n" % number for number in range(count)))
            result, out, err = albedo("sim", self.path("s"))
            self.assertEqual((result, out.count("== s (v"), err), (status, count % 65, said))

    def test_limits(self):
        for limit in (["--max-time", "1us"], ["--max-events", "10"]):
            status, out, err = albedo("sim", "--check", *limit, self.file)
            self.assertEqual(status, 1)
            self.assertRegex(out, r"(?m): 0 of \d+ messages done, 0 failed$") # and no time that they took
            self.assertIn("tasks open or failed; the first: host", err)

    def test_a_run_that_was_cut_shows_nothing(self):
        with open(self.path("short"), "w", encoding="utf-8") as file:
            file.write("[scenario]\nend = 2us\n[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1M\n[expect]\ndone = 0\n")
        self.assertEqual(albedo("sim", "-qc", self.path("short"))[0], 0)
        for limit, end in ((["--max-time", "1us"], "time"), (["--max-events", "1"], "events")):
            status, out, _ = albedo("sim", "-qc", *limit, self.path("short"))
            self.assertEqual(status, 1)
            self.assertIn("FAIL end = %s, expected done or the scenario's own end\n" % end, out)
        self.assertEqual(albedo("sim", "-qc", "--max-time", "1ms", self.path("short"))[0], 0)

    def test_the_end_of_a_variant(self):
        with open(self.path("ends"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1M\n"
                       "[variant whole]\n[variant short]\nscenario.end = 2us\n")
        self.assertEqual(albedo("sim", "-qc", self.path("ends")), (0, "", ""))
        status, out, _ = albedo("sim", "-qc", "--max-time", "1us", self.path("ends"))
        self.assertEqual((status, out), (1, "FAIL whole: end = time, expected done, since [scenario] has no end\n"
                                            "FAIL short: end = time, expected done or the scenario's own end\n"))

    def test_stuck(self):
        with open(self.path("wild.goal"), "w", encoding="utf-8") as file:
            file.write("num_ranks 2\n" + "".join(
                "rank %d {\na: recv 8b from -1 tag -1\nb: send 8b to %d tag 0\nb requires a\n}\n" % (rank, 1 - rank) for rank in (0, 1)))
        with open(self.path("wild"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[workload]\nkind = goal\nfile = wild.goal\n")
        status, _, err = albedo("sim", "-q", self.path("wild"))
        self.assertEqual(status, 1)
        self.assertIn("%s:3: a receipt of host 0, flows, waits for a message from any host\n" % self.path("wild.goal"), err)
        self.assertIn("%s:8: a receipt of host 1, flows, waits for a message from any host\n" % self.path("wild.goal"), err)
        self.assertIn("%s:4: a send of host 0, flows, waits for what must be done before it\n" % self.path("wild.goal"), err)

    def test_variants_share_memory(self):
        with open(self.path("many"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 1000\n[host]\npool = 16M\nearly = 8M\n[workload]\nkind = pairs\nhosts = 0\nto = 1\n"
                       "size = 1M\n[variant a]\n[variant b]\n[variant c]\n")
        peaks = []
        for options in (["--variant", "a"], []):
            child = subprocess.Popen([ALBEDO, "sim", "-q"] + options + [self.path("many")],
                                     stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = status
            self.assertEqual(status, 0)
            peaks.append(usage.ru_maxrss)
        self.assertLess(peaks[1], 2 * peaks[0])  # without sharing 3

    def test_without_memory(self):
        done = subprocess.run(["bash", "-c", 'ulimit -v 400000 && exec "$0" sim --set network.hosts=4000 "$1"',
                               ALBEDO, self.file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "albedo sim: %s:1: no memory is left; expected a smaller cluster (variant slow)\n" % self.file))

    def test_wrong_use(self):
        for arguments, status, said in (
            (["sim"], 2, "one scenario file"),
            (["sim", "--search", "1", self.file], 2, "--search"),
            (["sim", "--search", "1", "--json", self.path("j")], 2, "--search draws its own"),
            (["sim", "--first-seed", "3", self.file], 2, "--first-seed"),
            (["sim", "--variant", "fast", "--host", "1", self.file], 2, "--host"),
            (["sim", "--pcap", self.path("p"), self.file], 2, "--pcap: the scenario has several variants"),
            (["sim", "--host", "-1", self.file], 2, "--host"),
            (["sim", "--variant", "fast", "--trace", self.path("t"), "--host", "4", self.file], 2, "hosts 0 to 3"),
            (["sim", "--variant", "fast", "--trace", "/dev/full", self.file], 1, "No space left"),
            (["sim", "--variant", "fast", "--pcap", "/dev/full", self.file], 1, "--pcap: /dev/full: No space left"),
            (["sim", "--variant", "fast", "--pcap", "/none/p", self.file], 1, "No such file"),
            (["sim", "--quiet", "--plot", self.file, self.file], 1, "Not a directory"),
            (["sim", "--quiet", "--html", "/dev/full", self.file], 1, "No space left"),
            (["sim", "--quiet", "--json", "/dev/full", self.file], 1, "albedo sim: /dev/full: No space left"),
            (["sim", "--max-time", "99999999999s", self.file], 2, "\"99999999999s\" is too large"),
            (["sim", "--frob", self.file], 2, "Try"),
            (["sim", "--max-time", "soon", self.file], 2, "soon"),
            (["sim", "--max-time", "0", self.file], 2, "albedo sim: --max-time: 0 would be no limit at all"),
            (["sim", "--max-events", "0", self.file], 2, "albedo sim: --max-events: "),
            (["sim", "compare", self.file, "--policies", "slow", "--max-time", "0s"], 2,
             "albedo sim compare: --max-time: 0 would be no limit at all"),
            (["sim", "compare", self.file, "--policies", "slow", "--max-events", "0"], 2, "albedo sim compare: --max-events: "),
            (["sim", self.path("none")], 1, "No such file"),
            (["sim", "--variant", "none", self.file], 2, "[variant none]"),
            (["sim", "--set", "network.size=3", self.file], 2, "--set: [network] has no key \"size\"; expected one of topology"),
            (["sim", "--set", "workload.hosts=7", self.file], 2, "\"7\" is no list of hosts"),
            (["sim", "compare", self.file], 2, "--policies"),
            (["sim", "compare", self.file, "--policies", "slow,none"], 2, "--policies: transport csa has no loss policy \"none\""),
            (["sim", "compare", self.file, "--policies", "none", "--vary", "workload.size=1,2"], 2, "no loss policy \"none\""),
            (["sim", "compare", self.file, "--policies", "slow,,fast"], 2, "--policies: expected one to 32"),
            (["sim", "compare", self.file, "--policies", "csa,irn,csa"], 2, "--policies: \"csa\" is there twice"),
            (["sim", "compare", self.file, "--policies", "csa", "--metrics", "done,done"], 2, "--metrics: \"done\" is there twice"),
            (["sim", "compare", self.file, "--policies", "csa", "--vary", "workload.size=1,2,1"], 2, "--vary: \"1\" is there twice"),
            (["sim", "compare", self.file, "--policies", "slow", "--set", "scenario.seed=7"], 2, "--set: scenario.seed: expected --seeds N"),
            (["sim", "compare", self.file, "--policies", "slow", "--set", "variant.slow.scenario.seed=7"], 2, "expected --seeds N"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "scenario.seed=7,8"], 2, "--vary: scenario.seed: expected"),
            (["sim", "compare", self.file, "--policies", "slow", "--metrics", "done,"], 2, "--metrics: expected one to 16"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size="], 2, "--vary: expected one to 32"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size=1,2", "--vary", "network.hosts=4", "--vary",
              "workload.size=3"], 2, "--vary: workload.size: expected once, with all its values"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size=" + 500 * "1"], 2, "--vary: the value of"),
            (["sim", "compare", self.file, "--policies", "slow", "--seeds", "10000", "--vary", "workload.size=" + ",".join(map(str, range(32))),
              "--vary", "host.paths=" + ",".join(map(str, range(32)))], 2, "10240000 runs; 1000000 are the most"),
        ):
            found, _, err = albedo(*arguments)
            self.assertEqual(found, status, arguments)
            self.assertEqual(err.count(said), 1, err)

    def test_variant_that_is_not_there(self):
        status, _, err = albedo("sim", "--variant", "middle", self.file)
        self.assertEqual(status, 2)
        self.assertIn("there are slow, fast", err)

    def test_waits_for_its_children_whatever_it_was_begun_with(self):
        program = [ALBEDO, "sim"]
        compare = program + ["compare", self.file, "--policies", "slow", "--seeds", "3", "--metrics", "done"]
        plot = program + ["--quiet", "--plot", self.path("p"), "--variant", "slow", self.file]
        cases = [(["sh", "-c", "sleep 0 & exec \"$@\"", "sh", *compare], signal.SIG_DFL), (compare, signal.SIG_IGN)]
        for command, disposition in cases + ([(plot, signal.SIG_IGN)] if shutil.which("gnuplot") else []):
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True, timeout=20,
                                  preexec_fn=lambda value=disposition: signal.signal(signal.SIGCHLD, value))
            self.assertEqual((done.returncode, "albedo sim" in done.stderr), (0, False), done.stderr)

    def test_keys(self):
        status, out, _ = albedo("sim", "--keys")
        self.assertEqual(status, 0)
        for word in ("[network]", "oversubscription", "fct_p99", "dcqcn_cnp", "packets sent again (rc: of requests)", "by PFC or by a fault",
                     "without the headroom of PFC"):
            self.assertIn(word, out)
        for beside in (["network"], ["--check"], [self.file]):
            status, out, err = albedo("sim", "--keys", *beside)
            self.assertEqual((status, out, err), (2, "", "albedo sim: --keys lists all of them, and takes nothing else\n"))


if __name__ == "__main__":
    unittest.main()
