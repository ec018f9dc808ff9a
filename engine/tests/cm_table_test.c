// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

#include "base/tests/listen_conflicts.h"
#include "engine/tests/fixture.h"

static void create__takes_all_memory_or_none(void **state)
{
    struct fixture *f = *state;
    size_t before = f->bytes_held;
    assert_int_equal(alb_cm_create(f->engine, 0, NULL), EINVAL);
    assert_int_equal(alb_cm_create(f->engine, 65537, NULL), EINVAL);
    for (uint32_t nth = 1; nth <= 5; nth++) {
        f->refused_from = nth;
        assert_int_equal(alb_cm_create(f->engine, 16, NULL), ENOMEM);
        assert_true(f->bytes_held == before);
    }
    f->refused_from = 0;
    assert_int_equal(alb_cm_create(f->engine, 16, NULL), 0);
    assert_int_equal(alb_cm_create(f->engine, 16, NULL), EBUSY);
    alb_cm_destroy(f->engine);
    assert_true(f->bytes_held == before);
    alb_cm_destroy(f->engine);
}

static void id_create__wants_an_open_manager_and_room(void **state)
{
    struct fixture *f = *state;
    struct alb_cm_id *ids[17];
    assert_int_equal(alb_cm_id_create(f->engine, NULL, &ids[0]), ENODEV);
    assert_int_equal(alb_cm_create(f->engine, 16, NULL), 0);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(alb_cm_id_create(f->engine, NULL, &ids[i]), 0);
    assert_int_equal(alb_cm_id_create(f->engine, NULL, &ids[16]), ENOMEM);
    assert_int_equal(alb_cm_id_count(f->engine), 16);
    for (unsigned i = 0; i < 16; i++)
        alb_cm_id_destroy(ids[i], 0);
    assert_int_equal(alb_cm_id_count(f->engine), 0);
    alb_cm_destroy(f->engine);
}

static void id_number__shows_the_slot_and_is_never_zero(void **state)
{
    struct fixture *f = *state;
    struct alb_cm_id *id;
    uint32_t ones = 0, place = 0;
    assert_int_equal(alb_cm_create(f->engine, 1, NULL), 0);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(alb_cm_id_create(f->engine, NULL, &id), 0);
        assert_int_equal(alb_cm_id_number(id) >> 24, f->engine->config.slot);
        assert_int_not_equal(alb_cm_id_number(id), 0);
        ones |= alb_cm_id_number(id) >> 16 & 255;
        assert_true(i == 0 || place == (alb_cm_id_number(id) & 0xffff));
        place = alb_cm_id_number(id) & 0xffff;
        alb_cm_id_destroy(id, 0);
    }
    assert_int_equal(ones, 0xff);
    assert_int_equal(place, f->engine->cm->salt); // the place is the first one
    alb_cm_destroy(f->engine);
}

// A peer that remembers a number takes its next user for the one before.
static void id_number__comes_back_after_255_others(void **state)
{
    struct fixture *f = *state;
    struct alb_cm_id *id;
    uint32_t numbers[256];
    assert_int_equal(alb_cm_create(f->engine, 1, NULL), 0);
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(alb_cm_id_create(f->engine, NULL, &id), 0);
        numbers[i] = alb_cm_id_number(id);
        for (unsigned j = i < 255 ? 0 : 1; j < i; j++)
            assert_int_not_equal(numbers[j], numbers[i]);
        alb_cm_id_destroy(id, 0);
    }
    assert_int_equal(numbers[255], numbers[0]);
    alb_cm_destroy(f->engine);
}

static struct alb_addr addr(const char *text)
{
    struct alb_addr result;
    assert_true(alb_addr_parse(text, &result));
    return result;
}

static int listen_on(struct fixture *f, const char *text, bool is_one_family, uint64_t service_id,
                     struct alb_cm_id **id)
{
    struct alb_cm_listen listen = {
        .service_id = service_id, .addr = addr(text), .is_one_family = is_one_family, .backlog = 1};
    assert_int_equal(alb_cm_id_create(f->engine, NULL, id), 0);
    return alb_cm_listen(*id, &listen);
}

static void listen__refuses_what_another_has(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(alb_cm_create(f->engine, 16, NULL), 0);
    for (unsigned i = 0; i < ALB_COUNT(listen_conflicts); i++) {
        const struct listen_conflict *pair = &listen_conflicts[i];
        struct alb_cm_id *first, *second, *other;
        assert_int_equal(listen_on(f, pair->first, pair->first_is_one_family, 7, &first), 0);
        assert_int_equal(listen_on(f, pair->second, false, 8, &other), 0);
        assert_int_equal(listen_on(f, pair->second, false, 7, &second), pair->result);
        alb_cm_id_destroy(first, 0);
        alb_cm_id_destroy(second, 0);
        alb_cm_id_destroy(other, 0);
    }
    alb_cm_destroy(f->engine);
}

static void find_listener__the_narrowest_wins(void **state)
{
    struct fixture *f = *state;
    struct alb_cm_id *one, *any_ipv4, *any;
    struct alb_addr here = addr("10.0.0.1"), there = addr("10.0.0.2"), ipv6 = addr("fd00::1");
    assert_int_equal(alb_cm_create(f->engine, 16, NULL), 0);
    assert_int_equal(listen_on(f, "10.0.0.1", false, 1, &one), 0);
    assert_ptr_equal(alb_cm_find_listener(f->engine, 1, &here), one);
    assert_null(alb_cm_find_listener(f->engine, 1, &there));
    assert_null(alb_cm_find_listener(f->engine, 2, &here));
    assert_int_equal(listen_on(f, "0.0.0.0", false, 2, &any_ipv4), 0);
    assert_ptr_equal(alb_cm_find_listener(f->engine, 2, &there), any_ipv4);
    assert_null(alb_cm_find_listener(f->engine, 2, &ipv6));
    assert_int_equal(listen_on(f, "::", true, 2, &any), 0);
    assert_ptr_equal(alb_cm_find_listener(f->engine, 2, &ipv6), any);
    assert_ptr_equal(alb_cm_find_listener(f->engine, 2, &here), any_ipv4);
    alb_cm_id_destroy(any_ipv4, 0);
    assert_null(alb_cm_find_listener(f->engine, 2, &here));
    alb_cm_id_destroy(any, 0);
    assert_int_equal(listen_on(f, "::", false, 2, &any), 0);
    assert_ptr_equal(alb_cm_find_listener(f->engine, 2, &here), any);
    assert_int_equal(alb_cm_listen(any, &(struct alb_cm_listen){.service_id = 9, .backlog = 1}), EINVAL);
    alb_cm_id_destroy(any, 0);
    alb_cm_id_destroy(one, 0);
    alb_cm_destroy(f->engine);
}

static void listen__wants_a_backlog(void **state)
{
    struct fixture *f = *state;
    struct alb_cm_id *id;
    assert_int_equal(alb_cm_create(f->engine, 1, NULL), 0);
    assert_int_equal(alb_cm_id_create(f->engine, NULL, &id), 0);
    assert_int_equal(alb_cm_listen(id, &(struct alb_cm_listen){.service_id = 9}), EINVAL);
    alb_cm_id_destroy(id, 0);
    alb_cm_destroy(f->engine);
}

// Orphans in TIMEWAIT and the like never keep a new id out.
static void take__orphans_give_way(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_id *ids[CM_IDS];
    cm_establish(cm);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now);
    cm->ids[0] = NULL;
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), 1);
    for (unsigned i = 0; i < CM_IDS; i++)
        assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), NULL, &ids[i]), 0);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 0)), CM_IDS);
    assert_int_equal(alb_map_count(&cm_engine(cm, 0)->cm->peers), 0);
    for (unsigned i = 0; i < CM_IDS; i++)
        alb_cm_id_destroy(ids[i], cm->pair->now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(create__takes_all_memory_or_none),
        FIXTURE_TEST(id_create__wants_an_open_manager_and_room),
        FIXTURE_TEST(id_number__shows_the_slot_and_is_never_zero),
        FIXTURE_TEST(id_number__comes_back_after_255_others),
        FIXTURE_TEST(listen__refuses_what_another_has),
        FIXTURE_TEST(find_listener__the_narrowest_wins),
        FIXTURE_TEST(listen__wants_a_backlog),
        CM_TEST(take__orphans_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
