// SPDX-License-Identifier: BSD-2-Clause
// Memory that work is under way for stays registered: the device and the connection are made here.
#include "tools/files_send.h"

#include "base/tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr

static struct {
    uint32_t reads, reads_under_way;
    bool is_registered;
    bool is_refused; // by the receiver, before anything else has completed
} device;

static struct files_link link_;
static struct ibv_mr mr;
static struct albdv_qp_ex qp; // posts no transaction: the receiver refuses first
static struct ibv_qp_ex qp_ex;

// ---- the device -----------------------------------------------------------------------------------------------------

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    device.is_registered = true;
    return &mr;
}

// What verbs.h makes of other rights; named only where nothing is optimised.
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned int access)
{
    return ibv_reg_mr(pd, address, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *there)
{
    assert_int_equal(device.reads_under_way, 0);
    device.is_registered = false;
    return 0;
}

static void start(struct ibv_qp_ex *there)
{
}

static int complete(struct ibv_qp_ex *there)
{
    return 0;
}

static void read_remote(struct ibv_qp_ex *there, uint32_t rkey, uint64_t address)
{
    device.reads++;
    device.reads_under_way++;
}

static void set_sge(struct ibv_qp_ex *there, uint32_t lkey, uint64_t address, uint32_t length)
{
}

const char *albdv_reason_str(enum albdv_reason reason)
{
    return "";
}

// ---- the connection -------------------------------------------------------------------------------------------------

int files_link_wait(struct files_link *link, struct ibv_wc *wc, int timeout_ms)
{
    if (device.is_refused && link->inbox_count == 0) {
        link->inbox_count = 1;
        return 0;
    }
    assert_int_equal(device.reads_under_way, 1);
    assert_true(device.is_registered);
    device.reads_under_way--;
    *wc = (struct ibv_wc){.wr_id = FILES_WR_READ, .status = IBV_WC_SUCCESS};
    return 1;
}

void files_link_quote(const struct files_link *link, const struct files_message *message, char why[FILES_WHY_MAX])
{
    strcpy(why, "refused");
}

void files_link_part(struct files_link *link)
{
}

void progress_add(struct progress *progress, uint64_t bytes, bool was_there)
{
}

// ---- tests ----------------------------------------------------------------------------------------------------------

static int setup(void **state)
{
    memset(&device, 0, sizeof(device));
    qp_ex = (struct ibv_qp_ex){
        .wr_start = start, .wr_complete = complete, .wr_rdma_read = read_remote, .wr_set_sge = set_sge};
    qp.qp = &qp_ex;
    link_ = (struct files_link){.qp = &qp};
    return 0;
}

static enum files_result send_bytes(uint32_t count, char why[FILES_WHY_MAX])
{
    static const struct files_place place = {.rkey = 1, .table_rkey = 2};
    struct alb_digest digest;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), count), 0);
    enum files_result result = files_send(&link_, fileno(file), count, FILES_CHUNK_MIN, &place, NULL, &digest, why);
    fclose(file);
    assert_false(device.is_registered);
    return result;
}

static void files_send__refused_while_it_reads_the_table(void **state)
{
    char why[FILES_WHY_MAX];
    device.is_refused = true;
    assert_int_equal(send_bytes(100, why), FILES_FAILED);
    assert_string_equal(why, "refused");
    assert_int_equal(device.reads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_send__refused_while_it_reads_the_table, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
