// SPDX-License-Identifier: BSD-2-Clause
// A file in the making, of a receiver that may end at any place: the device is a file that is mapped and locked here.
#include "tools/files_part.h"

#include "tools/files_talk.h"

#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    USER = 1234, // whom a test run by root becomes: root may open everything
    DIED = 77,
};

static char folder[] = "/tmp/albedo-part-XXXXXX";
static int root;

static struct {
    struct ibv_mr mr;
    int fd;
    int error; // of making one
} region;

// Where the process ends: before or behind the moment that the file gets its name.
static enum fate { LIVES, DIES_BEFORE, DIES_BEHIND } fate;

int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);

// The linker puts it before renameat (--wrap).
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    if (fate == DIES_BEFORE)
        _exit(DIED);
    int result = __real_renameat(from_folder, from, to_folder, to);
    if (fate == DIES_BEHIND)
        _exit(DIED);
    return result;
}

struct ibv_mr *albdv_reg_durable(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    errno = region.error;
    if (region.error)
        return NULL;
    region.fd = openat(root, strrchr(path, '/') + 1, O_RDWR | O_CLOEXEC);
    assert_true(region.fd >= 0);
    assert_int_equal(fcntl(region.fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(ftruncate(region.fd, (off_t)length), 0);
    void *address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
    assert_ptr_not_equal(address, MAP_FAILED);
    region.mr = (struct ibv_mr){.addr = address, .length = length};
    return &region.mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    munmap(mr->addr, mr->length);
    close(region.fd);
    return 0;
}

bool files_may_pass(int error)
{
    return false;
}

static int setup(void **state)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (geteuid() != 0)
        return 0;
    return fchown(root, USER, 0) == 0 ? seteuid(USER) : -1;
}

static int teardown(void **state)
{
    unlinkat(root, "name", 0);
    close(root);
    return rmdir(folder) == 0 ? seteuid(getuid()) : -1;
}

// Receives a file without bytes. True if it has its name.
static bool receive(mode_t mode)
{
    struct files_part part;
    char why[FILES_WHY_MAX];
    const struct files_message offer = {.mode = mode, .chunk_bytes = FILES_CHUNK_MIN};
    const struct alb_digest digest = alb_digest_of("", 0);
    bool is_named =
        files_part_open(&part, NULL, root, "name", &offer, false, why) && part.sink.finish(&part.sink, &digest, why);
    part.sink.close(&part.sink);
    return is_named;
}

static void receive_and_die(mode_t mode, enum fate its_fate)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fate = its_fate;
        receive(mode);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), DIED);
}

// Another copy of it takes the place of what is left, whatever its file's mode.
static void die_and_receive_again(enum fate its_fate)
{
    static const mode_t modes[] = {0000, 0040, 0200, 0400, 0444, 0600, 0755};
    for (size_t i = 0; i < ALB_COUNT(modes); i++) {
        struct stat status;
        receive_and_die(modes[i], its_fate);
        assert_true(receive(modes[i]));
        assert_int_equal(fstatat(root, "name", &status, 0), 0);
        assert_int_equal(status.st_mode & 0777, modes[i]);
    }
}

static void files_part__left_before_it_got_its_name(void **state)
{
    die_and_receive_again(DIES_BEFORE);
}

static void files_part__left_when_it_had_its_name(void **state)
{
    die_and_receive_again(DIES_BEHIND);
}

static void files_part__left_with_a_chunk_or_none(void **state)
{
    const struct files_message offer = {.mode = 0600, .size = 5 * FILES_CHUNK_MIN, .chunk_bytes = FILES_CHUNK_MIN};
    for (int chunk = -1; chunk < 5; chunk++) { // the one that was committed
        struct files_part part;
        struct files_place where;
        char why[FILES_WHY_MAX];
        assert_true(files_part_open(&part, NULL, root, "name", &offer, false, why));
        part.sink.place(&part.sink, &where);
        if (chunk >= 0)
            ((uint8_t *)(uintptr_t)where.table)[16 * chunk + 7] = 1;
        part.sink.close(&part.sink);
        assert_int_equal(unlinkat(root, "name.albedo-part", 0), chunk < 0 ? -1 : 0);
    }
}

// Tries to receive a file, and says why it cannot.
static const char *trouble(void)
{
    static char why[FILES_WHY_MAX];
    struct files_part part;
    const struct files_message offer = {.mode = 0600, .chunk_bytes = FILES_CHUNK_MIN};
    assert_false(files_part_open(&part, NULL, root, "name", &offer, false, why));
    part.sink.close(&part.sink);
    return why;
}

static bool is_said(const char *words)
{
    const char *why = trouble();
    if (!strstr(why, words))
        print_error("%s\n", why);
    return strstr(why, words) != NULL;
}

// It stays, and is named.
static void files_part_open__something_that_is_no_file_in_the_way(void **state)
{
    static const char *const names[] = {"name.albedo-part", "name.albedo-part.journal", "name.albedo-part.journal.new"};
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        char words[128];
        snprintf(words, sizeof(words), "cannot use what stands in the place of %s: it is no file; remove it", names[i]);
        assert_int_equal(mkdirat(root, names[i], 0700), 0);
        assert_true(is_said(words));
        assert_int_equal(unlinkat(root, names[i], AT_REMOVEDIR), 0);
        assert_int_equal(mkfifoat(root, names[i], 0600), 0);
        assert_true(is_said(words));
        assert_int_equal(unlinkat(root, names[i], 0), 0);
        assert_int_equal(symlinkat("elsewhere", root, names[i]), 0);
        assert_true(is_said(words));
        assert_int_equal(unlinkat(root, names[i], 0), 0);
    }
}

static void files_part_open__advice(void **state)
{
    assert_int_equal(mkdirat(root, "name", 0700), 0);
    assert_string_equal(trouble(), "cannot replace name: Is a directory; end its name with \"/\" to copy into it");
    assert_int_equal(unlinkat(root, "name", AT_REMOVEDIR), 0);
    region.error = EISDIR; // something else is one
    assert_string_equal(trouble(), "cannot make room for name: Is a directory");
    region.error = EPERM;
    assert_true(is_said("Operation not permitted; an attribute of its folder, or of a file there, forbids it"));
    region.error = 0;
}

static void files_part_open__a_part_or_journal_that_others_have(void **state)
{
    static const char *const names[] = {"name.albedo-part", "name.albedo-part.journal"};
    region.error = EPERM;
    for (size_t i = 0; i < ALB_COUNT(names); i++) {
        close(openat(root, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        assert_int_equal(linkat(root, names[i], root, "other", 0), 0);
        assert_true(is_said("the part beside it, or its journal, is not this user's alone: remove it"));
        unlinkat(root, names[i], 0);
        assert_int_equal(unlinkat(root, "other", 0), 0);
    }
    region.error = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_part__left_before_it_got_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(files_part__left_when_it_had_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(files_part__left_with_a_chunk_or_none, setup, teardown),
        cmocka_unit_test_setup_teardown(files_part_open__something_that_is_no_file_in_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(files_part_open__advice, setup, teardown),
        cmocka_unit_test_setup_teardown(files_part_open__a_part_or_journal_that_others_have, setup, teardown),
    };
    return cmocka_run_group_tests_name("files_part", tests, NULL, NULL);
}
