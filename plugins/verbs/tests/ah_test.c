// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <arpa/inet.h>
#include <netinet/ip.h>

static void assert_refused(struct fixture *f, struct ibv_ah_attr attr, int error)
{
    errno = 0;
    assert_null(ibv_create_ah(f->pd, &attr));
    assert_int_equal(errno, error);
}

static void create_ah__arguments(void **state)
{
    struct fixture *f = *state;
    struct ibv_ah_attr good = fixture_ah_attr(f), attr;
    struct ibv_ah *ah = ibv_create_ah(f->pd, &good);
    assert_non_null(ah);
    assert_ptr_equal(ah->pd, f->pd);
    assert_int_equal(ibv_destroy_ah(ah), 0);

    attr = good;
    attr.is_global = 0;
    assert_refused(f, attr, EINVAL);
    attr = good;
    attr.port_num = 2;
    assert_refused(f, attr, EINVAL);
    attr = good;
    attr.grh.sgid_index = 200;
    assert_refused(f, attr, EINVAL);
    attr = good;
    memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
    assert_refused(f, attr, EINVAL);
    attr = good;
    memset(&attr.grh.dgid, 0xff, sizeof(attr.grh.dgid)); // a group of another family than the source's
    assert_refused(f, attr, ENETUNREACH);
    assert_null(ibv_create_ah(f->pd, NULL));
    assert_null(ibv_create_ah(NULL, &good));
    assert_int_equal(ibv_destroy_ah(NULL), EINVAL);
}

// 40 bytes as they lie in front of a datagram over IPv4, from 192.0.2.7 to this host.
static void make_ipv4_area(struct fixture *f, struct ibv_grh *grh)
{
    union ibv_gid gid;
    struct iphdr header = {.version = 4, .ihl = 5, .tos = 0x28, .ttl = 17, .protocol = IPPROTO_UDP};
    assert_int_equal(ibv_query_gid(f->context, 1, 0, &gid), 0);
    header.saddr = htonl(0xc0000207);
    memcpy(&header.daddr, gid.raw + 12, 4);
    memset(grh, 0, sizeof(*grh));
    memcpy((char *)grh + 20, &header, sizeof(header));
}

static void init_ah_from_wc__ipv4(void **state)
{
    struct fixture *f = *state;
    static const uint8_t sender[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 7};
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
    struct ibv_ah_attr attr;
    struct ibv_grh grh;
    make_ipv4_area(f, &grh);
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), 0);
    assert_int_equal(attr.is_global, 1);
    assert_memory_equal(attr.grh.dgid.raw, sender, sizeof(sender));
    assert_int_equal(attr.grh.sgid_index, 0);
    assert_int_equal(attr.grh.hop_limit, 17);
    assert_int_equal(attr.grh.traffic_class, 0x28);
    assert_int_equal(attr.sl, 3);
    assert_int_equal(attr.port_num, 1);
}

static void init_ah_from_wc__nonsense(void **state)
{
    struct fixture *f = *state;
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_ah_attr attr;
    struct ibv_grh grh;
    memset(&grh, 0, sizeof(grh));
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1);
    assert_int_equal(errno, EPROTONOSUPPORT);
    make_ipv4_area(f, &grh);
    ((struct iphdr *)((char *)&grh + 20))->daddr = htonl(0xc0000208); // not ours
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1);
    assert_int_equal(errno, ENOENT);
    grh = (struct ibv_grh){.version_tclass_flow = htonl(6u << 28), .next_hdr = 0x1b}; // RoCE version 1
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, &grh, &attr), -1);
    assert_int_equal(errno, EPROTONOSUPPORT);
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, NULL, &attr), -1);
    assert_int_equal(ibv_init_ah_from_wc(NULL, 1, &wc, &grh, &attr), -1);
    wc.wc_flags = 0; // then the area is not looked at
    assert_int_equal(ibv_init_ah_from_wc(f->context, 1, &wc, NULL, &attr), 0);
    assert_int_equal(attr.is_global, 0);
}

// A datagram answered to its sender.
static void create_ah_from_wc__answers(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_UD), *b = fixture_qp(f, IBV_QPT_UD);
    struct ibv_ah_attr attr = fixture_ah_attr(f);
    struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
    fixture_connect(a, b);
    fixture_post_recv(f, b, 1, 4096, 100 + 40);
    fixture_post_recv(f, a, 2, 8192, 100 + 40);
    memcpy(f->memory, "question", 8);
    memcpy(f->memory + 100, "answer", 6);
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr = {.wr_id = 3,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .wr.ud = {.ah = ah, .remote_qpn = b->qp_num, .remote_qkey = 0x1234}},
                       *bad;
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    struct ibv_wc wc = fixture_wait_for(f->cq, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    assert_int_equal(wc.byte_len, 8 + 40);
    assert_int_equal(wc.src_qp, a->qp_num);
    assert_memory_equal(f->memory + 4096 + 40, "question", 8);

    struct ibv_ah *back = ibv_create_ah_from_wc(f->pd, &wc, (struct ibv_grh *)(f->memory + 4096), 1);
    assert_non_null(back);
    sge = fixture_sge(f, 100, 6);
    wr.wr.ud.ah = back;
    wr.wr.ud.remote_qpn = wc.src_qp;
    assert_int_equal(ibv_post_send(b, &wr, &bad), 0);
    assert_int_equal(fixture_wait_for(f->cq, 2).byte_len, 6 + 40);
    assert_memory_equal(f->memory + 8192 + 40, "answer", 6);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_ah(back), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(create_ah__arguments),
        FIXTURE_TEST(init_ah_from_wc__ipv4),
        FIXTURE_TEST(init_ah_from_wc__nonsense),
        FIXTURE_TEST(create_ah_from_wc__answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
