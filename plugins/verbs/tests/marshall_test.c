// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <errno.h>
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, const struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, const struct ibv_sa_path_rec *from);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buffer, size_t size);

static void copy_qp_attr__field_by_field(void **state)
{
    struct ib_uverbs_qp_attr from;
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTR};
    memset(&from, 0, sizeof(from));
    from.qp_state = IBV_QPS_INIT;
    from.path_mtu = IBV_MTU_2048;
    from.qkey = 1;
    from.rq_psn = 2;
    from.sq_psn = 3;
    from.dest_qp_num = 4;
    from.max_inline_data = 5;
    from.timeout = 6;
    from.rnr_retry = 7;
    from.ah_attr.grh.sgid_index = 8;
    from.ah_attr.grh.dgid[15] = 9;
    from.alt_ah_attr.dlid = 10;
    ibv_copy_qp_attr_from_kern(&to, &from);
    assert_int_equal(to.qp_state, IBV_QPS_RTR); // the caller's
    assert_int_equal(to.path_mtu, IBV_MTU_2048);
    assert_int_equal(to.qkey, 1);
    assert_int_equal(to.rq_psn, 2);
    assert_int_equal(to.sq_psn, 3);
    assert_int_equal(to.dest_qp_num, 4);
    assert_int_equal(to.cap.max_inline_data, 5);
    assert_int_equal(to.timeout, 6);
    assert_int_equal(to.rnr_retry, 7);
    assert_int_equal(to.ah_attr.grh.sgid_index, 8);
    assert_int_equal(to.ah_attr.grh.dgid.raw[15], 9);
    assert_int_equal(to.alt_ah_attr.dlid, 10);
}

static void copy_path_rec__there_and_back(void **state)
{
    struct ib_user_path_rec from, back;
    struct ibv_sa_path_rec to;
    memset(&from, 0, sizeof(from));
    memset(from.dgid, 1, sizeof(from.dgid));
    memset(from.sgid, 2, sizeof(from.sgid));
    from.dlid = 3;
    from.flow_label = 4;
    from.hop_limit = 5;
    from.pkey = 6;
    from.mtu = IBV_MTU_4096;
    from.rate = 7;
    from.packet_life_time = 8;
    from.preference = 9;
    ibv_copy_path_rec_from_kern(&to, &from);
    assert_int_equal(to.mtu, IBV_MTU_4096);
    assert_int_equal(to.packet_life_time, 8);
    ibv_copy_path_rec_to_kern(&back, &to);
    assert_memory_equal(&back, &from, sizeof(from));
}

static void read_sysfs_file__one_line(void **state)
{
    char text[64];
    assert_string_equal(ibv_get_sysfs_path(), "/sys");
    memset(text, 'x', sizeof(text));
    assert_true(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", text, sizeof(text)) > 0);
    assert_string_equal(text, "Linux");
    assert_int_equal(ibv_read_sysfs_file("/proc/sys/kernel", "no-such-file", text, sizeof(text)), -1);
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_int_equal(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", text, 3), -1); // no room for "Linux"
    assert_int_equal(errno, ERANGE);
    assert_int_equal(ibv_read_sysfs_file(NULL, "ostype", text, sizeof(text)), -1);
    assert_int_equal(ibv_read_sysfs_file("/proc/sys/kernel", "ostype", text, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_qp_attr__field_by_field),
        cmocka_unit_test(copy_path_rec__there_and_back),
        cmocka_unit_test(read_sysfs_file__one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
