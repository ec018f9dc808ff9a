// SPDX-License-Identifier: BSD-2-Clause
// What comes from the other side of a copy: messages that are none, and paths that lead out of the folder. What other
// copies do to the same file.
#include "tools/files_hold.h"
#include "tools/files_message.h"
#include "tools/files_path.h"

#include "base/tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct files_message sample(void)
{
    struct files_message message = {
        .kind = FILES_PUT,
        .mode = 0640,
        .size = 123456789012,
        .chunk_bytes = 8192,
        .place = {.address = 1, .table = 2, .rkey = 3, .table_rkey = 4},
        .digest = {.low = 5, .high = 6},
    };
    snprintf(message.text, sizeof(message.text), "a/b");
    return message;
}

static void files_message__there_and_back(void **state)
{
    struct files_message message = sample(), back;
    uint8_t bytes[FILES_MESSAGE_BYTES];
    files_message_encode(&message, bytes);
    assert_true(files_message_decode(bytes, sizeof(bytes), &back));
    assert_int_equal(back.kind, FILES_PUT);
    assert_int_equal(back.mode, 0640);
    assert_int_equal(back.size, 123456789012);
    assert_int_equal(back.chunk_bytes, 8192);
    assert_memory_equal(&back.place, &message.place, sizeof(back.place));
    assert_memory_equal(&back.digest, &message.digest, sizeof(back.digest));
    assert_string_equal(back.text, "a/b");
}

static void refuse(const struct files_message *message)
{
    struct files_message back;
    uint8_t bytes[FILES_MESSAGE_BYTES];
    files_message_encode(message, bytes);
    assert_false(files_message_decode(bytes, sizeof(bytes), &back));
}

static void files_message_decode__nonsense(void **state)
{
    struct files_message message = sample(), back;
    uint8_t bytes[FILES_MESSAGE_BYTES];
    files_message_encode(&message, bytes);
    assert_false(files_message_decode(bytes, sizeof(bytes) - 1, &back));
    memset(bytes + FILES_MESSAGE_BYTES - FILES_TEXT_MAX, 'x', FILES_TEXT_MAX); // without an end
    assert_false(files_message_decode(bytes, sizeof(bytes), &back));
    bytes[0] ^= 1;
    assert_false(files_message_decode(bytes, sizeof(bytes), &back));
    static const uint32_t chunks[] = {0, 4095, 4097, FILES_CHUNK_MAX + 4096};
    for (size_t i = 0; i < ALB_COUNT(chunks); i++) {
        message.chunk_bytes = chunks[i];
        refuse(&message);
    }
    message = sample();
    message.size = UINT64_MAX;
    refuse(&message);
    message = sample();
    message.kind = FILES_KINDS;
    refuse(&message);
}

static void files_digest_format__as_xxh128sum(void **state)
{
    char text[FILES_DIGEST_TEXT];
    struct alb_digest nothing = alb_digest_of("", 0);
    assert_string_equal(files_digest_format(&nothing, text), "99aa06d3014798d86001c324468d497f");
}

// 0, or the errno.
static int try(int root, const char *path, bool makes_folders, const char *expected_name)
{
    char name[NAME_MAX + 1];
    int fd = files_path_open_folder(root, path, makes_folders, name);
    if (fd < 0)
        return errno;
    if (expected_name)
        assert_string_equal(name, expected_name);
    close(fd);
    return 0;
}

static void files_path__stays_within(void **state)
{
    char folder[] = "/tmp/albedo-path-XXXXXX", command[64], part[NAME_MAX + 3];
    assert_non_null(mkdtemp(folder));
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(root, "in", 0700), 0);
    assert_int_equal(symlinkat("/tmp", root, "link"), 0);
    assert_int_equal(symlinkat("in", root, "inner"), 0);
    assert_int_equal(close(openat(root, "file", O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(try(root, "x", false, "x"), 0);
    assert_int_equal(try(root, "in/x", false, "x"), 0);
    assert_int_equal(try(root, "in/...", false, "..."), 0);
    assert_int_equal(try(root, "new/er/x", false, NULL), ENOENT);
    assert_int_equal(try(root, "new/er/x", true, "x"), 0);
    static const char *const bad[] = {"",           "/", "/x",  "..",    "../x", "in/..",
                                      "in/../../x", ".", "./x", "in//x", "in/",  "link/"};
    for (size_t i = 0; i < ALB_COUNT(bad); i++)
        assert_int_equal(try(root, bad[i], true, NULL), EINVAL);
    assert_int_equal(try(root, "link/x", true, NULL), ELOOP);
    assert_int_equal(try(root, "inner/x", true, NULL), ELOOP);
    assert_int_equal(try(root, "file/x", true, NULL), ENOTDIR);
    // What is refused leaves no folders.
    assert_int_equal(try(root, "made/../x", true, NULL), EINVAL);
    assert_int_equal(try(root, "made//x", true, NULL), EINVAL);
    assert_int_equal(faccessat(root, "made", F_OK, 0), -1);
    memset(part, 'y', sizeof(part) - 1);
    part[sizeof(part) - 1] = '\0';
    assert_int_equal(try(root, part, true, NULL), ENAMETOOLONG);
    close(root);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static ino_t safe[4]; // folders, in their order
static uint32_t safe_count;

// In place of the C library's.
int fsync(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_true(safe_count < ALB_COUNT(safe));
    safe[safe_count++] = status.st_ino;
    return 0;
}

static ino_t inode(int root, const char *name)
{
    struct stat status;
    assert_int_equal(fstatat(root, name, &status, 0), 0);
    return status.st_ino;
}

// Else the machine could lose them, with the file that was made safe there.
static void files_path__makes_folders_safe(void **state)
{
    char folder[] = "/tmp/albedo-path-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    safe_count = 0;
    assert_int_equal(try(root, "new/er/x", true, "x"), 0);
    assert_int_equal(safe_count, 2);
    assert_true(safe[0] == inode(root, ".") && safe[1] == inode(root, "new"));
    assert_int_equal(try(root, "new/er/x", true, "x"), 0);
    assert_int_equal(safe_count, 2); // they were there
    assert_int_equal(unlinkat(root, "new/er", AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(root, "new", AT_REMOVEDIR), 0);
    close(root);
    assert_int_equal(rmdir(folder), 0);
}

static void files_hold__one_at_a_time(void **state)
{
    char folder[] = "/tmp/albedo-hold-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    int first = files_hold(root, "part");
    assert_true(first >= 0);
    assert_int_equal(files_hold(root, "part"), -1);
    assert_int_equal(errno, EBUSY);
    // It gets its name, and its part's is free for the next copy.
    assert_int_equal(renameat(root, "part", root, "name"), 0);
    int second = files_hold(root, "part");
    assert_true(second >= 0);
    close(second);
    second = files_hold(root, "part");
    assert_true(second >= 0);
    close(second);
    close(first);
    assert_int_equal(unlinkat(root, "part", 0), 0);
    assert_int_equal(symlinkat("name", root, "part"), 0);
    assert_int_equal(files_hold(root, "part"), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(unlinkat(root, "part", 0), 0);
    assert_int_equal(unlinkat(root, "name", 0), 0);
    close(root);
    assert_int_equal(rmdir(folder), 0);
}

// What somebody else has made, or has another name for, is not used: he could read and write it for ever.
static void files_hold__of_this_user_alone(void **state)
{
    char folder[] = "/tmp/albedo-hold-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    close(files_hold(root, "part"));
    assert_int_equal(linkat(root, "part", root, "other", 0), 0);
    assert_int_equal(files_hold(root, "part"), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(unlinkat(root, "other", 0), 0);
    // One that others may open, as one that was about to get its name, is made anew.
    assert_int_equal(fchmodat(root, "part", 0644, 0), 0);
    int fd = files_hold(root, "part");
    struct stat status;
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(files_hold_is_in_place(root, "part", fd));
    assert_false(files_hold_is_region(fd));
    assert_int_equal(renameat(root, "part", root, "elsewhere"), 0);
    assert_false(files_hold_is_in_place(root, "part", fd));
    close(fd);
    if (geteuid() == 0) {
        assert_int_equal(fchownat(root, "elsewhere", 1234, 0, 0), 0);
        assert_int_equal(files_hold(root, "elsewhere"), -1);
        assert_int_equal(errno, EPERM);
    }
    assert_int_equal(unlinkat(root, "elsewhere", 0), 0);
    close(root);
    assert_int_equal(rmdir(folder), 0);
}

// Its file may only be read; who received it died before it got its name.
static void files_hold__of_a_file_that_may_not_be_written(void **state)
{
    char folder[] = "/tmp/albedo-hold-XXXXXX";
    struct stat status;
    assert_non_null(mkdtemp(folder));
    int root = open(folder, O_RDONLY | O_DIRECTORY);
    if (geteuid() == 0) { // who may write everything
        assert_int_equal(fchown(root, 1234, 0), 0);
        assert_int_equal(seteuid(1234), 0);
    }
    for (mode_t mode = 0400; mode <= 0444; mode += 044) {
        int before = files_hold(root, "part");
        assert_int_equal(fchmod(before, mode), 0);
        assert_int_equal(files_hold(root, "part"), -1);
        assert_int_equal(errno, EBUSY); // it is still under way
        close(before);
        int fd = files_hold(root, "part");
        assert_true(fd >= 0 && fstat(fd, &status) == 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        close(fd);
    }
    assert_int_equal(unlinkat(root, "part", 0), 0);
    assert_int_equal(seteuid(getuid()), 0);
    close(root);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_message__there_and_back),
        cmocka_unit_test(files_message_decode__nonsense),
        cmocka_unit_test(files_digest_format__as_xxh128sum),
        cmocka_unit_test(files_path__stays_within),
        cmocka_unit_test(files_path__makes_folders_safe),
        cmocka_unit_test(files_hold__one_at_a_time),
        cmocka_unit_test(files_hold__of_this_user_alone),
        cmocka_unit_test(files_hold__of_a_file_that_may_not_be_written),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
