// SPDX-License-Identifier: BSD-2-Clause
// Regions with version words, read beside a writer; and regions that are files.
#include "albedo/albedodv.h"

#include "fixture.h"

#include "device/tests/said.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STRIDE = 512,
    WRITES = 2000,
};

// ---- version words --------------------------------------------------------------------------------------------------

struct reader {
    struct fixture *f;
    struct albdv_region *region;
    atomic_bool stop;
    uint64_t whole, again;
    bool has_torn;
};

// As memcpy would, in words, so that the thread sanitizer does not take it for a mistake.
static void copy_words(uint64_t *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        to[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

// Every write sets all bytes of the place to one value.
static void *read_it(void *argument)
{
    struct reader *reader = argument;
    uint64_t copy[2 * STRIDE / 8];
    while (!atomic_load(&reader->stop)) {
        struct albdv_read read;
        if (albdv_read_begin(reader->region, reader->f->memory + 4096, sizeof(copy), &read)) {
            reader->again++;
            continue;
        }
        copy_words(copy, reader->f->memory + 4096, sizeof(copy));
        if (albdv_read_retry(&read)) {
            reader->again++;
            continue;
        }
        reader->whole++;
        for (size_t i = 1; i < sizeof(copy) / 8; i++)
            reader->has_torn |= copy[i] != copy[0];
    }
    return NULL;
}

// A WRITE of one segment is placed at once, so that readers see it whole, too.
static void region__is_read_whole(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    const struct albdv_region_attr attr = {.stride = STRIDE};
    struct reader reader = {.f = f, .region = albdv_create_region(f->mr, &attr)};
    pthread_t thread;
    assert_non_null(reader.region);
    fixture_connect(a, b);
    assert_int_equal(pthread_create(&thread, NULL, read_it, &reader), 0);
    for (uint64_t i = 0; i < WRITES; i++) {
        struct ibv_sge sge = fixture_sge(f, 0, 2 * STRIDE);
        struct ibv_send_wr wr = {
            .wr_id = i,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = (uintptr_t)f->memory + 4096, .rkey = f->mr->rkey},
        };
        struct ibv_send_wr *bad;
        memset(f->memory, (int)i, 2 * STRIDE);
        assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
        assert_int_equal(fixture_wait_for(f->cq, i).status, IBV_WC_SUCCESS);
    }
    atomic_store(&reader.stop, true);
    pthread_join(thread, NULL);
    assert_false(reader.has_torn);
    assert_false(albdv_region_is_poisoned(reader.region));
    assert_true(reader.region->words[4096 / STRIDE] > 0);
    assert_int_equal(reader.region->words[0], 0);
    assert_int_equal(albdv_destroy_region(reader.region), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void region__words_may_be_the_programs(void **state)
{
    struct fixture *f = *state;
    static uint64_t words[FIXTURE_BYTES / STRIDE];
    struct albdv_region_attr attr = {.comp_mask = ALBDV_REGION_ATTR_WORDS, .stride = STRIDE, .words = words};
    struct albdv_region *region = albdv_create_region(f->mr, &attr);
    assert_non_null(region);
    assert_ptr_equal(region->words, words);
    assert_ptr_equal(region->mr, f->mr);
    assert_null(albdv_create_region(f->mr, NULL));
    assert_int_equal(errno, EBUSY);
    assert_int_equal(albdv_destroy_region(region), 0);
    region = albdv_create_region(f->mr, NULL); // ends with the memory region
    assert_non_null(region);
    assert_int_equal(region->stride, FIXTURE_BYTES);
}

static void region__refusals(void **state)
{
    struct fixture *f = *state;
    struct albdv_region_attr attr = {.stride = 48};
    assert_null(albdv_create_region(NULL, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(albdv_create_region(f->mr, &attr));
    assert_int_equal(errno, EINVAL);
    attr.stride = 100;
    assert_null(albdv_create_region(f->mr, &attr));
    assert_int_equal(errno, EINVAL);
    attr = (struct albdv_region_attr){.comp_mask = ALBDV_REGION_ATTR_WORDS, .stride = STRIDE};
    assert_null(albdv_create_region(f->mr, &attr));
    assert_int_equal(errno, EINVAL);
    attr.comp_mask = 2;
    assert_null(albdv_create_region(f->mr, &attr));
    assert_int_equal(errno, EINVAL);
}

// ibv_reg_mr takes such a one.
static void region__of_no_bytes(void **state)
{
    struct fixture *f = *state;
    struct albdv_region_attr attr = {.stride = 0};
    struct ibv_mr *empty = ibv_reg_mr(f->pd, f->memory, 0, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(empty);
    assert_null(albdv_create_region(empty, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(albdv_create_region(empty, &attr));
    assert_int_equal(errno, EINVAL);
    attr.stride = STRIDE;
    assert_null(albdv_create_region(empty, &attr));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dereg_mr(empty), 0);
}

static void fork__child_destroys_its_copy(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow a child of a process with threads
#endif
    const struct fixture *f = *state;
    struct albdv_region *region = albdv_create_region(f->mr, NULL);
    struct albdv_read read;
    int status;
    assert_non_null(region);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(albdv_destroy_region(region));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(albdv_read_begin(region, f->memory, 64, &read), 0); // the parent's is there
    assert_int_equal(albdv_read_retry(&read), 0);
    assert_int_equal(albdv_destroy_region(region), 0);
}

static void region__not_on_roce0(void **state)
{
    struct fixture *f = *state;
    struct said said;
    char text[512];
    said_begin(&said);
    assert_null(albdv_create_region(f->mr, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    said_end(&said, text, sizeof(text));
    assert_non_null(strstr(text, "albdv_create_region: only albedo0 has this, and the program has opened roce0"));
    assert_null(albdv_reg_durable(f->pd, "/tmp/albedo-nowhere", 4096, 0, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_not_equal(access("/tmp/albedo-nowhere", F_OK), 0);
}

// ---- files ----------------------------------------------------------------------------------------------------------

static void durable__is_a_region(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/albedo-region.XXXXXX", journal[sizeof(path) + 8];
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_null(albdv_reg_durable(f->pd, path, 8192, access, 4));
    assert_int_equal(errno, EINVAL);
    assert_null(albdv_reg_durable(f->pd, path, 8192, IBV_ACCESS_ON_DEMAND, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    struct ibv_mr *mr = albdv_reg_durable(f->pd, path, 8192, access, ALBDV_DURABLE_PAGE_CACHE);
    assert_non_null(mr);
    assert_int_equal(mr->length, 8192);
    assert_null(albdv_reg_durable(f->pd, path, 8192, access, 0));
    assert_int_equal(errno, EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    memset(mr->addr, 7, 100);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = albdv_reg_durable(f->pd, path, 0, access, 0);
    assert_non_null(mr);
    assert_int_equal(mr->length, 8192);
    assert_int_equal(((uint8_t *)mr->addr)[99], 7);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    snprintf(journal, sizeof(journal), "%s.journal", path);
    unlink(path);
    unlink(journal);
}

static void durable__by_its_only_name(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/albedo-region.XXXXXX", other[sizeof(path) + 8];
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    const uint32_t flags = ALBDV_DURABLE_PAGE_CACHE | ALBDV_DURABLE_ONLY_NAME;
    struct stat status;
    close(mkstemp(path));
    snprintf(other, sizeof(other), "%s.other", path);
    assert_int_equal(symlink(path, other), 0);
    assert_null(albdv_reg_durable(f->pd, other, 8192, access, flags));
    assert_int_equal(errno, ELOOP);
    unlink(other);
    assert_int_equal(link(path, other), 0);
    assert_null(albdv_reg_durable(f->pd, other, 8192, access, flags));
    assert_int_equal(errno, EMLINK);
    unlink(other);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 0); // nothing was done to it
    struct ibv_mr *mr = albdv_reg_durable(f->pd, path, 8192, access, flags);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    snprintf(other, sizeof(other), "%s.journal", path);
    unlink(path);
    unlink(other);
}

int main(void)
{
    const struct CMUnitTest albedo_tests[] = {
        FIXTURE_TEST(region__is_read_whole),     FIXTURE_TEST(region__words_may_be_the_programs),
        FIXTURE_TEST(region__refusals),          FIXTURE_TEST(fork__child_destroys_its_copy),
        FIXTURE_TEST(region__of_no_bytes),       FIXTURE_TEST(durable__is_a_region),
        FIXTURE_TEST(durable__by_its_only_name),
    };
    const struct CMUnitTest roce_tests[] = {FIXTURE_TEST(region__not_on_roce0)};
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    int failed = cmocka_run_group_tests_name("region albedo0", albedo_tests, NULL, NULL);
    setenv("ALBEDO_DEVICES", "roce0", 1);
    return failed + cmocka_run_group_tests_name("region roce0", roce_tests, NULL, NULL);
}
