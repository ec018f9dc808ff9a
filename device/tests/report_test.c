// SPDX-License-Identifier: BSD-2-Clause
// Where the counters of a device are written when it closes.
#include "device/report.h"

#include "base/log.h"
#include "base/tests/test.h"
#include "engine/csa_path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct alb_board board;

static int setup(void **state)
{
    static struct alb_addr addr;
    static const struct alb_faults_spec none;
    const struct alb_board_identity identity = {
        .device = "roce0", .slot = 3, .mtu_bytes = 1024, .addresses = &addr, .address_count = 1, .faults = &none};
    strcpy(folder, "/tmp/albedo-report-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_true(alb_addr_parse("10.1.2.3", &addr));
    return alb_board_create(&board, &identity, 16);
}

static int teardown(void **state)
{
    alb_board_destroy(&board);
    return rmdir(folder);
}

static const char *path(const char *name)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s/%s", folder, name);
    return text;
}

static mode_t kind_of(const char *name)
{
    struct stat status;
    return lstat(name, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

// The number of reports in what can be read there: each begins a line.
static int reports_in(int fd)
{
    char text[65536];
    ssize_t length = read(fd, text, sizeof(text) - 1);
    int count = 0;
    text[length > 0 ? length : 0] = 0;
    for (const char *at = text; (at = strstr(at, "{\"pid\": ")); at++)
        count += at == text || at[-1] == '\n';
    return count;
}

static int reports_in_file(const char *name)
{
    int fd = open(name, O_RDONLY);
    int count = fd < 0 ? -1 : reports_in(fd);
    if (fd >= 0)
        close(fd);
    return count;
}

static void write_report(FILE *to)
{
    struct alb_board_rows rows;
    assert_true(alb_board_rows_read(board.fd, board.bytes, board.header, &rows));
    alb_report_write(board.header, &rows, to);
    alb_board_rows_release(&rows);
}

static void alb_report_write__what_a_queue_pair_dropped(void **state)
{
    char text[65536] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");
    board.qps[5] = (struct alb_qp_stats){.qpn = 5, .dropped[ALB_DROP_DUPLICATE] = 7};
    write_report(to);
    fclose(to);
    board.qps[5].qpn = 0;
    const char *qp = strstr(text, "\"queue_pairs\": [{\"qpn\": 5, ");
    assert_non_null(qp);
    assert_non_null(strstr(qp, "\"dropped\": {\"truncated\": 0, "));
    assert_non_null(strstr(qp, "\"duplicate\": 7, "));
}

static void alb_report_write__what_is_known_of_a_peer(void **state)
{
    char text[65536] = "";
    struct alb_peer_stats *peer = &board.peers[7];
    *peer = (struct alb_peer_stats){.is_known = true,
                                    .is_awake = true,
                                    .slot = 2,
                                    .path_count = 2,
                                    .payload_max = 1472,
                                    .window_bytes = UINT32_MAX};
    memcpy(peer->local, board.header->addresses[0].bytes, sizeof(peer->local));
    memcpy(peer->peer, board.header->addresses[0].bytes, sizeof(peer->peer));
    peer->paths[1] =
        (struct alb_path_stats){.rtt_ns = 45678, .recent_pkts = 40, .recent_lost = 3, .state = ALB_PATH_LEFT};
    board.header->path_ports[0][1] = 45001;
    FILE *to = fmemopen(text, sizeof(text), "w");
    write_report(to);
    fclose(to);
    const char *at = strstr(text, "\"peers\": [{\"peer\": \"10.1.2.3\", \"slot\": 2, \"local\": \"10.1.2.3\", ");
    assert_non_null(at);
    assert_non_null(strstr(at, "\"path_mtu_bytes\": 1500, "));
    assert_non_null(strstr(at, "\"window_bytes\": null, "));
    at = strstr(at, "{\"path\": 1, \"port\": 45001, \"state\": \"left\", \"rtt_ns\": 45678, \"rtt_min_ns\": null, ");
    assert_non_null(at);
    assert_non_null(strstr(at, "\"recent_pkts\": 40, \"recent_lost\": 3}]}]"));
    *peer = (struct alb_peer_stats){0};
}

// A board comes from another process: what it says of itself is not believed.
static void alb_report_write__a_peer_with_too_many_paths(void **state)
{
    static char text[1 << 20];
    board.peers[0] = (struct alb_peer_stats){.is_known = true, .path_count = UINT8_MAX, .paths[0].state = UINT8_MAX};
    FILE *to = fmemopen(text, sizeof(text), "w");
    write_report(to);
    fclose(to);
    assert_non_null(strstr(text, "{\"path\": 0, \"port\": null, \"state\": \"?\", "));
    assert_non_null(strstr(text, "{\"path\": 127, "));
    assert_null(strstr(text, "{\"path\": 128, "));
    board.peers[0] = (struct alb_peer_stats){0};
}

static void alb_report_to_file__replaces_a_file(void **state)
{
    alb_report_to_file(&board, path("plain"));
    alb_report_to_file(&board, path("plain"));
    assert_int_equal(reports_in_file(path("plain")), 1);
    unlink(path("plain"));
}

static void alb_report_to_file__every_pid(void **state)
{
    char name[64];
    snprintf(name, sizeof(name), "%d-%d", (int)getpid(), (int)getpid());
    alb_report_to_file(&board, path("%p-%p"));
    assert_int_equal(reports_in_file(path(name)), 1);
    unlink(path(name));
}

static void alb_report_to_file__replaces_what_a_link_leads_to(void **state)
{
    char links[2][128];
    strcpy(links[0], path("link"));
    strcpy(links[1], path("another"));
    assert_int_equal(symlink("behind", links[0]), 0); // where there is nothing yet
    assert_int_equal(symlink(links[0], links[1]), 0);
    for (int i = 0; i < 3; i++) {
        alb_report_to_file(&board, links[i % 2]);
        assert_int_equal(reports_in_file(path("behind")), 1);
        assert_int_equal(kind_of(path("behind")), S_IFREG);
    }
    assert_int_equal(kind_of(links[0]), S_IFLNK);
    assert_int_equal(kind_of(links[1]), S_IFLNK);
    unlink(path("behind"));
    unlink(links[1]);
    unlink(links[0]);
    assert_int_equal(symlink(links[0], links[0]), 0);
    alb_log_set_level(ALB_LOG_ERROR);
    alb_report_to_file(&board, links[0]); // which has no end
    assert_int_equal(kind_of(links[0]), S_IFLNK);
    unlink(links[0]);
}

// The file may be where others write.
static void alb_report_to_file__follows_no_link_of_others(void **state)
{
    char name[64];
    snprintf(name, sizeof(name), "plain.%d", (int)getpid());
    assert_int_equal(close(open(path("theirs"), O_WRONLY | O_CREAT, 0600)), 0);
    assert_int_equal(symlink("theirs", path(name)), 0);
    alb_report_to_file(&board, path("plain"));
    assert_int_equal(kind_of(path("plain")), S_IFREG);
    assert_int_equal(reports_in_file(path("plain")), 1);
    assert_int_equal(reports_in_file(path("theirs")), 0);
    unlink(path("plain"));
    unlink(path("theirs"));
}

// The program may be writing to it.
static void alb_report_to_file__appends_to_a_descriptor(void **state)
{
    char name[64];
    int fd = open(path("output"), O_WRONLY | O_CREAT, 0600);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    alb_report_to_file(&board, name);
    alb_report_to_file(&board, name);
    assert_int_equal(reports_in_file(path("output")), 2);
    close(fd);
    unlink(path("output"));
}

// As root, a name in its place would take /dev/stdout or /dev/null away from all programs.
static void alb_report_to_file__leaves_what_is_no_file(void **state)
{
    assert_int_equal(mkfifo(path("pipe"), 0600), 0);
    int reader = open(path("pipe"), O_RDONLY | O_NONBLOCK);
    alb_report_to_file(&board, path("pipe"));
    assert_int_equal(reports_in(reader), 1);
    close(reader);
    alb_log_set_level(ALB_LOG_ERROR);
    alb_report_to_file(&board, path("pipe")); // without a reader: not waited for
    assert_int_equal(kind_of(path("pipe")), S_IFIFO);
    unlink(path("pipe"));
}

static void alb_report_to_file__leaves_nothing_where_it_fails(void **state)
{
    alb_log_set_level(ALB_LOG_ERROR);
    alb_report_to_file(&board, path("missing/file"));
    assert_int_equal(mkdir(path("folder"), 0700), 0);
    alb_report_to_file(&board, path("folder"));
    assert_int_equal(kind_of(path("folder")), S_IFDIR);
    assert_int_equal(rmdir(path("folder")), 0); // and the folder around them is empty in the end
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_report_write__what_a_queue_pair_dropped),
        cmocka_unit_test(alb_report_write__what_is_known_of_a_peer),
        cmocka_unit_test(alb_report_write__a_peer_with_too_many_paths),
        cmocka_unit_test(alb_report_to_file__replaces_a_file),
        cmocka_unit_test(alb_report_to_file__every_pid),
        cmocka_unit_test(alb_report_to_file__replaces_what_a_link_leads_to),
        cmocka_unit_test(alb_report_to_file__follows_no_link_of_others),
        cmocka_unit_test(alb_report_to_file__appends_to_a_descriptor),
        cmocka_unit_test(alb_report_to_file__leaves_what_is_no_file),
        cmocka_unit_test(alb_report_to_file__leaves_nothing_where_it_fails),
    };
    return cmocka_run_group_tests_name("report", tests, setup, teardown);
}
