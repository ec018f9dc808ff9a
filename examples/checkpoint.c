// SPDX-License-Identifier: BSD-2-Clause
// A checkpoint of a training run: several shards that must be of the same step, kept in a file of the host that they
// are written to. That host is killed again and again in the middle of it.
//
//     raw          RDMA WRITEs into a mapped file: after a kill it holds shards of several steps, and nothing says so
//     transaction  one transaction for each step into a durable region (albdv_region(3)): after a kill it holds one
//                  step, at least the one that was reported last
//
//     cc checkpoint.c $(pkg-config --cflags --libs albedodv) -o checkpoint
//     albedo run --device albedo0 -- ./checkpoint [KILLS [FILE]]
//
// FILE is where it is kept meanwhile (in /tmp unless it is named), and must not be there yet.
#include "loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SHARDS = 4,
    SHARD_WORDS = 64 * 1024,
};

struct checkpoint {
    uint64_t shards[SHARDS][SHARD_WORDS]; // every word is the step that it is of
};

static void fill(struct checkpoint *checkpoint, uint64_t step)
{
    for (int s = 0; s < SHARDS; s++)
        for (int i = 0; i < SHARD_WORDS; i++)
            checkpoint->shards[s][i] = step;
}

// The step that it is of; UINT64_MAX: of several.
static uint64_t step_of(const struct checkpoint *checkpoint)
{
    uint64_t step = checkpoint->shards[0][0];
    for (int s = 0; s < SHARDS; s++)
        for (int i = 0; i < SHARD_WORDS; i++)
            if (checkpoint->shards[s][i] != step)
                return UINT64_MAX;
    return step;
}

// ---- the host that is killed ----------------------------------------------------------------------------------------

static struct ibv_mr *map_file(struct loop *loop, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    check(fd >= 0 && ftruncate(fd, sizeof(struct checkpoint)) == 0, path);
    void *memory = mmap(NULL, sizeof(struct checkpoint), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(memory != MAP_FAILED, "mmap");
    close(fd);
    return loop_register(loop, memory, sizeof(struct checkpoint));
}

static struct ibv_mr *open_file(struct loop *loop, const char *path, bool is_transaction)
{
    struct ibv_mr *mr = is_transaction ? albdv_reg_durable(loop->pd, path, sizeof(struct checkpoint), LOOP_ACCESS, 0)
                                       : map_file(loop, path);
    check(mr || errno != EOPNOTSUPP,
          "albdv_reg_durable, which only albedo0 has: start this by `albedo run --device albedo0 --`");
    check(mr != NULL, path);
    return mr;
}

static void write_step(struct pair *pair, struct albdv_qp_ex *qp, struct ibv_mr *from, struct ibv_mr *to)
{
    struct checkpoint *local = from->addr, *remote = to->addr;
    struct piece pieces[SHARDS];
    for (int s = 0; s < SHARDS; s++)
        pieces[s] = (struct piece){from, local->shards[s], sizeof(local->shards[s]), to, remote->shards[s]};
    if (qp) {
        do
            loop_commit(qp, pieces, SHARDS, 0);
        while (!loop_wait_commit(pair->cq));
        return;
    }
    for (int s = 0; s < SHARDS; s++)
        loop_post(pair->near, IBV_WR_RDMA_WRITE, from, local->shards[s], pieces[s].length, to, remote->shards[s]);
    for (int s = 0; s < SHARDS; s++)
        loop_wait_success(pair->cq);
}

// Writes steps until it is killed, and reports each that is done.
static void train(const char *path, bool is_transaction, int report)
{
    static struct checkpoint local;
    struct loop loop;
    struct pair pair;
    loop_open(&loop);
    loop_connect(&loop, &pair);
    struct ibv_mr *from = loop_register(&loop, &local, sizeof(local));
    struct ibv_mr *to = open_file(&loop, path, is_transaction);
    struct albdv_qp_ex *qp = is_transaction ? albdv_extend_qp(pair.near, NULL) : NULL;
    check(!is_transaction || qp, "albdv_extend_qp");
    uint64_t step = ((struct checkpoint *)to->addr)->shards[0][0];
    for (;;) {
        fill(&local, ++step);
        write_step(&pair, qp, from, to);
        check(write(report, &step, sizeof(step)) == sizeof(step), "report");
    }
}

// ---- the parent: kills it, and looks --------------------------------------------------------------------------------

static void run_for(const char *path, bool is_transaction, unsigned microseconds, uint64_t *reported)
{
    int reports[2];
    uint64_t step;
    check(pipe(reports) == 0, "pipe");
    fflush(stdout);
    pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
        close(reports[0]);
        train(path, is_transaction, reports[1]);
    }
    close(reports[1]);
    if (read(reports[0], &step, sizeof(step)) != sizeof(step)) { // it could not even begin, and has said why
        waitpid(pid, NULL, 0);
        exit(1);
    }
    *reported = step;
    const struct timespec time = {.tv_nsec = (long)microseconds * 1000};
    nanosleep(&time, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(reports[0], &step, sizeof(step)) == sizeof(step))
        *reported = step;
    close(reports[0]);
}

// What the file holds, as a program finds it that starts now.
static uint64_t recover(const char *path, bool is_transaction)
{
    struct loop loop;
    loop_open(&loop);
    struct ibv_mr *mr = open_file(&loop, path, is_transaction);
    uint64_t step = step_of(mr->addr);
    ibv_dereg_mr(mr);
    loop_close(&loop);
    return step;
}

static bool run(const char *path, bool is_transaction, int kills)
{
    int mixed = 0, lost = 0;
    uint64_t reported = 0;
    for (int i = 0; i < kills; i++) {
        run_for(path, is_transaction, 2000 + (unsigned)i * 1237 % 9000, &reported);
        uint64_t step = recover(path, is_transaction);
        mixed += step == UINT64_MAX;
        lost += step != UINT64_MAX && step < reported;
    }
    printf("%-11s %d kills up to step %llu: %d times shards of several steps, %d times a step lost\n",
           is_transaction ? "transaction" : "raw", kills, (unsigned long long)reported, mixed, lost);
    return !is_transaction || (mixed == 0 && lost == 0);
}

// What this process has made, and removes in the end, unless a signal ends it.
static struct {
    pid_t pid; // those that it has forked remove nothing
    char folder[32], path[4096], journal[4096 + 16];
} made;

static void remove_made(void)
{
    if (getpid() != made.pid)
        return;
    if (made.path[0]) {
        unlink(made.path);
        unlink(made.journal);
    }
    if (made.folder[0])
        rmdir(made.folder);
}

// Files that are there already are not touched.
static void make_file(const char *path)
{
    char journal[sizeof(made.journal)];
    check_error(strlen(path) < sizeof(made.path) ? 0 : ENAMETOOLONG, path);
    snprintf(journal, sizeof(journal), "%s.journal", path);
    check_error(access(journal, F_OK) == 0 ? EEXIST : 0, journal);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    check(fd >= 0, path);
    close(fd);
    memcpy(made.journal, journal, sizeof(journal));
    snprintf(made.path, sizeof(made.path), "%s", path);
}

static void make_folder(char path[64])
{
    char folder[] = "/tmp/checkpoint.XXXXXX";
    check(mkdtemp(folder) != NULL, folder);
    memcpy(made.folder, folder, sizeof(folder));
    snprintf(path, 64, "%s/checkpoint", folder);
}

int main(int argc, char **argv)
{
    int kills = (int)number_argument(argc, argv, 2, 10, "[KILLS [FILE]]");
    char own[64];
    made.pid = getpid();
    check_error(atexit(remove_made) == 0 ? 0 : ENOMEM, "atexit");
    if (argc <= 2)
        make_folder(own);
    make_file(argc > 2 ? argv[2] : own);
    bool is_good = run(made.path, false, kills);
    unlink(made.path);
    is_good &= run(made.path, true, kills);
    return is_good ? 0 : 1;
}
