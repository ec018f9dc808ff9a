// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <time.h>

static void query_device__sensible(void **state)
{
    struct fixture *f = *state;
    struct ibv_device_attr attr;
    memset(&attr, 0xee, sizeof(attr));
    assert_int_equal(ibv_query_device(f->context, &attr), 0);
    assert_int_equal(attr.node_guid, ibv_get_device_guid(f->context->device));
    assert_int_equal(attr.vendor_id, 0x02a1be);
    assert_int_equal(attr.phys_port_cnt, 1);
    assert_int_equal(attr.max_qp, 65536 - 16); // so many can be created
    assert_true(attr.max_cq > 0 && attr.max_mr > 0 && attr.max_sge > 0 && attr.max_qp_wr > 0);
    assert_true(attr.max_mr_size == INT64_MAX); // what `albedo info` can say as well
    assert_true(attr.max_mcast_grp > 0 && attr.max_mcast_qp_attach > 0);
    assert_int_equal(attr.max_total_mcast_qp_attach, attr.max_mcast_grp * attr.max_mcast_qp_attach);
    assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);                 // UCX compares for equality
    assert_true(attr.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT); // port__goes_down_and_up hears it
    assert_int_equal(ibv_query_device(f->context, NULL), EINVAL);
    assert_int_equal(ibv_query_device(NULL, &attr), EINVAL);
}

static void query_device_ex__sizes(void **state)
{
    struct fixture *f = *state;
    struct verbs_context *verbs = verbs_get_ctx(f->context);
    struct {
        struct ibv_device_attr_ex attr;
        uint8_t newer[64];
    } room;
    struct ibv_query_device_ex_input input = {.comp_mask = 1};

    memset(&room, 0xee, sizeof(room));
    assert_int_equal(verbs->query_device_ex(f->context, NULL, &room.attr, sizeof(room)), 0);
    assert_int_equal(room.attr.hca_core_clock, 1000000);
    assert_int_equal(room.attr.phys_port_cnt_ex, 1);
    assert_int_equal(room.attr.max_dm_size, 0);
    assert_true(room.attr.device_cap_flags_ex & 1ull << 40); // ATOMIC WRITE
    assert_int_equal((uint32_t)room.attr.device_cap_flags_ex, room.attr.orig_attr.device_cap_flags);
    assert_int_equal(room.newer[0], 0); // what we do not know is zero

    memset(&room, 0xee, sizeof(room));
    size_t old = sizeof(struct ibv_device_attr);
    assert_int_equal(verbs->query_device_ex(f->context, NULL, &room.attr, old), 0);
    assert_int_equal(((uint8_t *)&room)[old], 0xee); // nothing beyond what an old program has
    assert_int_equal(verbs->query_device_ex(f->context, NULL, &room.attr, old - 1), EINVAL);
    assert_int_equal(verbs->query_device_ex(f->context, &input, &room.attr, sizeof(room.attr)), EINVAL);
}

static void query_port__active(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr attr;
    assert_int_equal(ibv_query_port(f->context, 1, &attr), 0);
    assert_int_equal(attr.state, IBV_PORT_ACTIVE);
    assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_in_range(attr.active_mtu, IBV_MTU_256, IBV_MTU_4096);
    assert_int_equal(attr.max_msg_sz, 1u << 31);
    assert_int_equal(ibv_query_port(f->context, 0, &attr), EINVAL);
    assert_int_equal(ibv_query_port(f->context, 2, &attr), EINVAL);
}

// The symbol is called by programs that know only the first 48 bytes of the structure.
static void query_port__symbol_writes_48_bytes(void **state)
{
    struct fixture *f = *state;
    uint8_t room[sizeof(struct ibv_port_attr) + 16];
    memset(room, 0xee, sizeof(room));
    assert_int_equal((ibv_query_port)(f->context, 1, (struct _compat_ibv_port_attr *)room), 0);
    assert_int_equal(((struct ibv_port_attr *)room)->state, IBV_PORT_ACTIVE);
    for (size_t i = 48; i < sizeof(room); i++)
        assert_int_equal(room[i], 0xee);
}

// Programs of later releases ask so, and take the answer for what active_speed times active_width would be.
static void query_port_speed__in_units_of_100_mbit(void **state)
{
    struct fixture *f = *state;
    uint64_t speed = 0;
    int (*query)(struct ibv_context *, uint32_t, uint64_t *) =
        (int (*)(struct ibv_context *, uint32_t, uint64_t *))dlvsym(RTLD_DEFAULT, "ibv_query_port_speed",
                                                                    "IBVERBS_1.16");
    assert_non_null(query);
    assert_int_equal(query(f->context, 1, &speed), 0);
    assert_int_equal(speed, 400);
    assert_int_equal(query(f->context, 0, &speed), EINVAL);
    assert_int_equal(query(f->context, 2, &speed), EINVAL);
    assert_int_equal(query(f->context, 1, NULL), EINVAL);
    assert_int_equal(query(NULL, 1, &speed), EINVAL);
}

static void query_gid__table(void **state)
{
    struct fixture *f = *state;
    struct ibv_port_attr port;
    struct ibv_gid_entry entries[64], entry;
    union ibv_gid gid, zero = {0};
    assert_int_equal(ibv_query_port(f->context, 1, &port), 0);
    ssize_t count = ibv_query_gid_table(f->context, entries, 64, 0);
    assert_in_range(count, 1, port.gid_tbl_len);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        assert_int_equal(ibv_query_gid(f->context, 1, i, &gid), 0);
        if (i < count) {
            assert_memory_equal(&gid, &entries[i].gid, sizeof(gid));
            assert_int_equal(entries[i].gid_type, IBV_GID_TYPE_ROCE_V2);
            assert_int_equal(ibv_query_gid_ex(f->context, 1, (uint32_t)i, &entry, 0), 0);
            assert_memory_equal(&entry, &entries[i], sizeof(entry));
        } else {
            assert_memory_equal(&gid, &zero, sizeof(gid));
            assert_int_equal(ibv_query_gid_ex(f->context, 1, (uint32_t)i, &entry, 0), ENODATA);
        }
    }
    assert_int_equal(ibv_query_gid_table(f->context, entries, 0, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(f->context, entries, 64, 1), -EINVAL);
}

static void query_gid__nonsense(void **state)
{
    struct fixture *f = *state;
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(f->context, 1, -1, &gid), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_query_gid(f->context, 1, 1000, &gid), -1);
    assert_int_equal(ibv_query_gid(f->context, 2, 0, &gid), -1);
    assert_int_equal(ibv_query_gid(f->context, 1, 0, NULL), -1);
    assert_int_equal(ibv_query_gid_ex(f->context, 1, 1000, &entry, 0), EINVAL);
    assert_int_equal(ibv_query_gid_ex(f->context, 1, 0, &entry, 1), EINVAL);
}

static void query_pkey__one(void **state)
{
    struct fixture *f = *state;
    __be16 pkey;
    assert_int_equal(ibv_query_pkey(f->context, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
    assert_int_equal(ibv_query_pkey(f->context, 1, 1, &pkey), -1);
    assert_int_equal(ibv_get_pkey_index(f->context, 1, htons(0xffff)), 0);
    assert_int_equal(ibv_get_pkey_index(f->context, 1, htons(0x8001)), -1);
}

static void query_rt_values__monotonic(void **state)
{
    struct fixture *f = *state;
    struct verbs_context *verbs = verbs_get_ctx(f->context);
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(ibv_query_rt_values_ex(f->context, &values), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(values.raw_clock.tv_sec >= before.tv_sec && values.raw_clock.tv_sec <= after.tv_sec);
    values.comp_mask = IBV_VALUES_MASK_RESERVED;
    assert_int_equal(verbs->query_rt_values(f->context, &values), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(query_device__sensible),
        FIXTURE_TEST(query_device_ex__sizes),
        FIXTURE_TEST(query_port__active),
        FIXTURE_TEST(query_port__symbol_writes_48_bytes),
        FIXTURE_TEST(query_port_speed__in_units_of_100_mbit),
        FIXTURE_TEST(query_gid__table),
        FIXTURE_TEST(query_gid__nonsense),
        FIXTURE_TEST(query_pkey__one),
        FIXTURE_TEST(query_rt_values__monotonic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
