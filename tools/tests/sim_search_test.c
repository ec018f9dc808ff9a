// SPDX-License-Identifier: BSD-2-Clause
// What a search leaves of what it has found, where every scenario is said to break a promise.
#include "tools/command.h"
#include "tools/sim.h"
#include "tools/sim_shrink.h"

#include "base/tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/albedo-search-XXXXXX";

void sim_judge_case(const struct sim_case *of, struct sim_judgement *judgement)
{
    *judgement = (struct sim_judgement){.verdict = SIM_FAILED, .why = "it was to"};
}

static bool happens_again;

bool sim_fails_alike(const struct sim_judgement *a, const struct sim_judgement *b)
{
    return happens_again;
}

void sim_shrink(struct sim_case *of, struct sim_judgement *judgement, sim_judge judge)
{
    of->document.count = 1; // no data files any more
}

void sim_case_fini(struct sim_case *of)
{
    alb_document_fini(&of->document);
    for (uint32_t i = 0; i < of->data_count; i++)
        free(of->data[i].text);
}

static int setup(void **state)
{
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    happens_again = true;
    assert_non_null(mkdtemp(folder));
    return chdir(folder);
}

static int teardown(void **state)
{
    unlink("search-1");
    return rmdir(folder);
}

// Searches seed 1, and gives what was said.
static int search_and_listen(char said[512])
{
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600), kept = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    int status = sim_search(1, 1, false);
    dup2(kept, STDERR_FILENO);
    ssize_t length = pread(file, said, 511, 0);
    said[length > 0 ? length : 0] = '\0';
    close(kept);
    close(file);
    return status;
}

static void sim_search__writes_what_it_finds(void **state)
{
    char said[512], line[128] = "";
    assert_int_equal(search_and_listen(said), COMMAND_FAILED);
    assert_string_equal(said, "albedo sim: seed 1: it was to\nalbedo sim: written to search-1\n"
                              "replay: albedo sim --check --max-time 100s --max-events 20000000 search-1\n");
    FILE *file = fopen("search-1", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    assert_string_equal(line, "# Drawn from seed 1. it was to\n");
}

static void sim_search__says_that_it_cannot_write(void **state)
{
    char said[512];
    assert_int_equal(symlink("/dev/full", "search-1"), 0);
    assert_int_equal(search_and_listen(said), COMMAND_FAILED);
    assert_string_equal(said, "albedo sim: seed 1: it was to\nalbedo sim: search-1: No space left on device\n");
}

static void sim_search__says_that_it_does_not_happen_again(void **state)
{
    char said[512], kept[8192] = "";
    happens_again = false;
    assert_int_equal(search_and_listen(said), COMMAND_FAILED);
    assert_non_null(strstr(said, "albedo sim: seed 1 does not do it again: it was to\n"));
    FILE *file = fopen("search-1", "r");
    assert_non_null(file);
    assert_true(fread(kept, 1, sizeof(kept) - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(kept, "[network]")); // not shrunk
    unlink("search-1.sizes");
    unlink("search-1.goal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sim_search__writes_what_it_finds, setup, teardown),
        cmocka_unit_test_setup_teardown(sim_search__says_that_it_cannot_write, setup, teardown),
        cmocka_unit_test_setup_teardown(sim_search__says_that_it_does_not_happen_again, setup, teardown),
    };
    return cmocka_run_group_tests_name("sim_search", tests, NULL, NULL);
}
