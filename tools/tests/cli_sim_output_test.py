#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `albedo sim` writes: results, pages, plots, captures; and what it must not write over."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from cli import ALBEDO, SCENARIO, SimTest, albedo


class Output(SimTest):
    def test_what_it_writes(self):
        status, _, err = albedo("sim", "--quiet", "--json", self.path("j"), "--html", self.path("h"), "--variant", "slow", self.file)
        self.assertEqual((status, err.count("FAIL")), (0, 0))
        with open(self.path("j"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        kinds = [record["record"] for record in records]
        self.assertEqual((kinds.count("run"), kinds.count("flow"), kinds.count("link"), kinds.count("host")), (1, 4, 8, 4))
        flow = next(record for record in records if record["record"] == "flow")
        self.assertEqual((flow["bytes"], flow["state"]), (100000, "done"))
        self.assertGreater(flow["done_ns"], flow["ideal_ns"])
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<canvas", page)
        self.assertNotRegex(page, r"(src|href)\s*=")  # nothing from outside
        self.assertNotIn("toPrecision", page)  # which writes 1.024e+4
        self.assertRegex(page, r"from left to right: 0 to [\d.]+ us")

    def test_leaves_nothing_empty_when_it_is_interrupted(self):
        with open(self.path("old"), "w", encoding="utf-8") as file:
            file.write("what was there\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            for name in ("new", "old"):
                run = subprocess.Popen([ALBEDO, "sim", "--json", self.path(name), "--html", self.path("page"),
                                        "--set", "workload.size=1G", "--set", "workload.messages=1000", self.file],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                until = time.monotonic() + 20
                while not os.path.exists(self.path("page")) and time.monotonic() < until:
                    time.sleep(0.01)
                self.assertEqual(sorted(os.listdir(self.folder.name)), sorted({name, "old", "page", "scenario"}))
                time.sleep(0.1)
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=60), -number)
                self.assertEqual(sorted(os.listdir(self.folder.name)), ["old", "scenario"])
        with open(self.path("old"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "what was there\n")

    def test_leaves_nothing_empty_when_it_is_interrupted_twice(self):
        for attempt in range(10):
            run = subprocess.Popen([ALBEDO, "sim", "--html", self.path("page"), "--set", "workload.size=1G", "--set",
                                    "workload.messages=1000", self.file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until = time.monotonic() + 20
            while not os.path.exists(self.path("page")) and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(timeout=60), -signal.SIGINT)
            self.assertEqual(os.listdir(self.folder.name), ["scenario"])

    def test_result_on_stdout_is_alone_there(self):
        status, out, err = albedo("sim", "--json", "-", "--variant", "slow", self.file)
        self.assertEqual(status, 0)
        self.assertTrue([json.loads(line) for line in out.splitlines()])
        self.assertIn("scenario (slow), seed 1: done", err)

    def test_places_are_checked_before_the_run(self):
        for option in ("--json", "--html", "--plot"):
            status, out, err = albedo("sim", option, "/none/such/place", self.file)
            self.assertEqual((status, out), (1, ""))
            self.assertEqual(err, "albedo sim: /none/such/place: No such file or directory\n")
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow", "--json", "/none/j")
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, "albedo sim compare: /none/j: No such file or directory\n")

    def test_a_run_that_cannot_begin_leaves_files_alone(self):
        with open(self.path("bad"), "w", encoding="utf-8") as file:
            file.write("[network]\ntopology = star\nhosts = 4\n[workload w]\nkind = permutation\nsizes = none\n")
        for command in ("sim", "sim --html", "sim compare"):
            words = ["sim", "compare", "--policies", "csa,irn", "--seeds", "1"] if command == "sim compare" else ["sim"]
            option = "--html" if command == "sim --html" else "--json"
            for name in ("old", "new"):
                with open(self.path("old"), "w", encoding="utf-8") as file:
                    file.write("what was there\n")
                status, _, err = albedo(*words, option, self.path(name), self.path("bad"))
                self.assertEqual(status, 1, command)
                self.assertIn("bad:6: ", err)
                with open(self.path("old"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "what was there\n", command)
                self.assertFalse(os.path.exists(self.path("new")), command)

    def test_writes_nothing_over_what_it_is_made_from(self):
        os.symlink(self.file, self.path("link"))
        shutil.copy("scenarios/sizes/fbhadoop.txt", self.path("sizes"))
        with open(self.path("drawn"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1000\n"
                       "[variant a]\nworkload.size = 0\nworkload.sizes = sizes\n")
        for arguments, said in (
            (["--json", self.file, self.file], "--json: %s is the scenario %s;" % (self.file, self.file)),
            (["--html", self.path("link"), self.file], "--html: %s is the scenario" % self.path("link")),
            (["--json", self.path("sizes"), self.path("drawn")], "is a data file of the scenario, sizes"),
            (["--json", self.path("o"), "--html", self.path("./o"), self.file], "is written by --json"),
            (["--trace", self.path("o"), "--pcap", self.path("o"), "--variant", "slow", self.file], "is written by --pcap"),
            (["--json", "-", "--html", "/dev/stdout", self.file], "--html: /dev/stdout is written by --json"),
            (["--plot", self.path("p"), "--html", self.path("p/scenario-fast-links.svg"), self.file], "is written by --plot"),
            (["--plot", self.path("p/"), "--json", self.path("./p//scenario-slow-fct.svg"), self.file], "is written by --plot"),
            (["--html", "-", self.file], "--html: only --json is written to standard output"),
            (["--json", "a", "--json", "b", self.file], "--json: expected once"),
            (["--max-time", "1s", "--max-time", "2s", self.file], "--max-time: expected once"),
            (["compare", self.file, "--policies", "slow", "--json", self.file], "albedo sim compare: --json: %s is the scenario" % self.file),
            (["compare", self.file, "--policies", "slow,fsat"],
             "\"fsat\" is no variant of the scenario, which has plain (as it stands), slow, fast, and so was taken for a loss policy\n"),
            (["compare", self.file, "--policies", "slow", "--policies", "fast"], "albedo sim compare: --policies: expected once"),
        ):
            status, out, err = albedo("sim", *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn(said, err)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), SCENARIO)
        self.assertFalse(os.path.exists(self.path("o")))
        self.assertFalse(os.path.exists(self.path("p")))
        self.assertEqual(albedo("sim", "-q", "--json", "/dev/null", "--html", "/dev/null", self.file)[0], 0)

    def test_writes_over_what_was_there(self):
        for option in ("--json", "--html"):
            with open(self.path("old"), "w", encoding="utf-8") as file:
                file.write("x" * 1000000)
            self.assertEqual(albedo("sim", "--quiet", option, self.path("old"), "--variant", "slow", self.file)[0], 0)
            with open(self.path("old"), encoding="utf-8") as file:
                self.assertNotIn("xxx", file.read())
        self.assertEqual(albedo("sim", "--quiet", "--json", "/dev/null", "--variant", "slow", self.file)[0], 0)

    def test_page_of_a_run_without_an_end(self):
        self.assertEqual(albedo("sim", "--quiet", "--max-time", "4.5us", "--html", self.path("h"), "--variant", "slow", self.file)[0], 0)
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r": completion time</td>(<td>none</td>){7}")
        used = [float(share) for share in re.findall(r"<td>([0-9.]+) %</td>", page)]
        self.assertGreater(max(used), 0)
        self.assertLessEqual(max(used), 100)
        self.assertIn("from left to right: 0 to 4.5 us", page)

    def test_page_of_a_file_with_any_name(self):
        name = self.path("a <b> & c")
        shutil.copy(self.file, name)
        self.assertEqual(albedo("sim", "--quiet", "--html", self.path("h"), "--variant", "slow", name)[0], 0)
        with open(self.path("h"), encoding="utf-8") as file:
            self.assertIn("<title>a &lt;b&gt; &amp; c</title>", file.read())

    def test_result_of_a_file_whose_name_is_no_utf8(self):
        name = os.path.join(os.fsencode(self.path("")), b"sc\xe9n")
        shutil.copy(self.file, name)
        done = subprocess.run([ALBEDO, "sim", "--quiet", "--json", "-", "--variant", "slow", name],
                              stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout.decode().splitlines()[0])["scenario"][-4:], "sc\ufffdn")

    def test_page_of_a_title_that_is_no_utf8(self):
        with open(self.path("s"), "wb") as file:
            file.write(b"[scenario]\ntitle = a\xffb\n[network]\nhosts = 2\n[workload]\nkind = permutation\nsize = 10K\n")
        self.assertEqual(albedo("sim", "--quiet", "--html", self.path("h"), self.path("s"))[0], 0)
        with open(self.path("h"), encoding="utf-8") as file:
            self.assertIn("a&#xfffd;b", file.read())

    def test_page_of_a_switch_with_any_name(self):
        with open(self.path("topology"), "w", encoding="utf-8") as file:
            file.write("hosts 2\nswitch </script>\ncable h0 </script> 1Gb/s 1us\ncable h1 </script> 1Gb/s 1us\n")
        with open(self.path("s"), "w", encoding="utf-8") as file:
            file.write("[network]\ntopology = file\nfile = topology\n[workload w]\nkind = permutation\nsize = 10K\n")
        status, out, err = albedo("sim", "--quiet", "--json", "-", "--html", self.path("h"), self.path("s"))
        self.assertEqual((status, err), (0, ""))
        self.assertIn("</script>", {json.loads(line).get("switch") for line in out.splitlines()})
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("<script>"), page.count("</script>"))

    def test_plot(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is not installed")
        status, _, err = albedo("sim", "--quiet", "--plot", self.path("p"), "--variant", "slow", self.file)
        self.assertEqual(status, 0)
        self.assertNotIn("Warning", err)  # of gnuplot
        self.assertEqual(sorted(os.listdir(self.path("p"))),
                         ["scenario-slow-fct.svg", "scenario-slow-links.svg", "scenario-slow-slowdown.svg"])
        with open(os.path.join(self.path("p"), "scenario-slow-links.svg"), encoding="utf-8") as file:
            self.assertIn("h1 to s0", file.read())

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_plot_of_one_interval(self):
        status, _, err = albedo("sim", "--quiet", "--plot", self.path("p"), "--variant", "slow", "--set", "scenario.interval=1s",
                                self.file)
        self.assertEqual((status, err.count("Warning")), (0, 0))
        with open(os.path.join(self.path("p"), "scenario-slow-links.svg"), encoding="utf-8") as file:
            self.assertIn("<image", file.read())

    def test_plot_without_gnuplot(self):
        result = albedo("sim", "--quiet", "--plot", self.path("p"), self.file, environment={"PATH": self.folder.name})
        self.assertEqual(result, (1, "", "albedo sim: --plot: gnuplot is not installed (Debian: gnuplot-nox)\n"))

    def plot_by(self, script, *arguments, folder=None):
        with open(self.path("gnuplot"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(self.path("gnuplot"), 0o755)
        return albedo("sim", "--quiet", "--plot", folder or self.path("p"), *arguments, cwd=self.folder.name,
                      environment={"PATH": self.folder.name + ":" + os.environ["PATH"]})

    def gnuplot(self):
        """A script in its place: keeps what it is told, and writes figures."""
        figure = "echo '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>' >\"$name\""
        names = "sed -n \"s/''/'/g; s/^set output '\\(.*\\)'$/\\1/p\""
        return "tee %s | %s | while IFS= read -r name; do %s; done\n" % (self.path("commands"), names, figure)

    def test_gnuplot_that_ends_early(self):
        large = ["--variant", "slow", "--set", "network.hosts=64", "--set", "workload.size=1M", self.file]  # more than a pipe holds
        for script in ("exit 3\n", "exit 0\n"):
            self.assertEqual(self.plot_by(script, *large), (1, "", "albedo sim: gnuplot failed\n"))

    def test_gnuplot_that_writes_part_of_a_figure(self):
        figure = self.path("p/scenario-slow-fct.svg")
        unwritten = "albedo sim: %s: gnuplot has not written all of it; is there room for it?\n" % figure
        self.assertEqual(self.plot_by(self.gnuplot(), "--variant", "slow", self.file)[0], 0)
        for script in ("cat >/dev/null\n", "cat >/dev/null; seq 99 >%s\n" % figure, "cat\n"):
            self.assertEqual(self.plot_by(script, "--variant", "slow", self.file), (1, "", unwritten))

    def test_figure_that_cannot_be_opened(self):
        figure = self.path("p/scenario-slow-links.svg")
        os.makedirs(figure)
        result = self.plot_by(self.gnuplot(), "--variant", "slow", self.file)
        self.assertEqual(result, (1, "", "albedo sim: %s: Is a directory\n" % figure))

    def test_plot_in_a_folder_with_any_name(self):
        for folder in ("|p", "~"):
            result = self.plot_by(self.gnuplot(), "--variant", "slow", self.file, folder=folder)
            self.assertEqual(result[0], 0, result)
            with open(self.path("commands"), encoding="utf-8") as file:
                self.assertIn("set output './%s/scenario-slow-fct.svg'\n" % folder, file.read())

    def test_plot_of_a_file_with_any_name(self):
        shutil.copy(self.file, self.path("a'\nquit\n"))
        result = self.plot_by(self.gnuplot(), "--variant", "slow", self.path("a'\nquit\n"))
        self.assertEqual(result[0], 0, result)
        with open(self.path("commands"), encoding="utf-8") as file:
            commands = file.read()
        self.assertIn("set title 'a''?quit? (slow): ", commands)
        self.assertNotIn("\nquit", commands)

    def test_watches_a_host(self):
        watched = ["--variant", "fast", "--pcap", self.path("p"), "--trace", self.path("t"), "--host", "2"]
        status, out, err = albedo("sim", *watched, self.file)
        self.assertEqual((status, err), (0, ""))
        with open(self.path("p"), "rb") as file:
            capture = file.read()
        self.assertEqual(struct.unpack("<I", capture[:4])[0], 0xA1B23C4D)
        self.assertGreater(len(capture), 100000)  # what it sends, and what comes
        address = bytes([10, 0, 0, 3])
        at, addresses = 24, set()
        while at < len(capture):
            length = struct.unpack("<I", capture[at + 8:at + 12])[0]
            addresses.add(capture[at + 16 + 12:at + 16 + 16] == address or capture[at + 16 + 16:at + 16 + 20] == address)
            at += 16 + length
        self.assertEqual(addresses, {True})
        with open(self.path("t"), encoding="utf-8") as file:
            self.assertTrue([json.loads(line) for line in file])
        traces = [[line for line in text.splitlines() if line.startswith("trace")]
                  for text in (out, albedo("sim", "--variant", "fast", self.file)[1])]
        self.assertEqual(traces[0], traces[1])

    def test_payload_of_large_packets_is_captured_as_zeros(self):
        with open(self.path("large"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[host]\npayload = 60000\nwindow_max = 4M\n[workload]\nkind = permutation\nsize = 1M\n")
        self.assertEqual(albedo("sim", "-q", "--pcap", self.path("p"), self.path("large"))[0], 0)
        with open(self.path("p"), "rb") as file:
            capture = file.read()
        at, large = 24, 0
        while at < len(capture):
            length = struct.unpack("<I", capture[at + 8:at + 12])[0]
            if length > 50000:  # data, behind some 150 bytes of headers
                large += 1
                self.assertEqual(set(capture[at + 16 + 200:at + 16 + length]), {0})
            at += 16 + length
        self.assertGreater(large, 30)


if __name__ == "__main__":
    unittest.main()
