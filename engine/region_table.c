// SPDX-License-Identifier: BSD-2-Clause
#include "engine/region_table.h"

#include "engine/impl.h"

#include <errno.h>

// Key: 24 bits whose lowest ones are the index, then the low byte.
static uint32_t index_of(const struct alb_engine *engine, uint32_t key)
{
    return key >> 8 & (engine->region_table_size - 1);
}

int alb_region_table_init(struct alb_engine *engine)
{
    uint32_t size = 1;
    while (size < engine->config.region_max)
        size *= 2;
    engine->region_table_size = size;
    engine->regions = alb_engine_get_memory(engine, size * sizeof(*engine->regions));
    engine->region_tags = alb_engine_get_memory(engine, size);
    if (engine->regions && engine->region_tags)
        return 0;
    alb_region_table_fini(engine);
    return ENOMEM;
}

void alb_region_table_fini(struct alb_engine *engine)
{
    alb_engine_put_memory(engine, engine->regions, engine->region_table_size * sizeof(*engine->regions));
    alb_engine_put_memory(engine, engine->region_tags, engine->region_table_size);
    engine->regions = NULL;
    engine->region_tags = NULL;
}

// Never the byte before, and never foreseeable from it.
static uint8_t next_tag(struct alb_engine *engine, uint8_t tag)
{
    return (uint8_t)(tag + 1 + alb_rng_below(&engine->rng, 255));
}

int alb_region_table_add(struct alb_engine *engine, struct alb_region *region)
{
    if (engine->region_count == engine->config.region_max)
        return ENOMEM;
    uint32_t mask = engine->region_table_size - 1;
    uint32_t random = 1 + alb_rng_below(&engine->rng, (1u << 24) - 1); // 0 is no key that a program would take for one
    uint32_t index = random & mask;
    while (engine->regions[index])
        index = (index + 1) & mask;
    uint32_t place = (random & ~mask) | index;
    if (place == 0)
        place = mask + 1; // the same index with another high part
    region->key = place << 8 | next_tag(engine, engine->region_tags[index]);
    engine->regions[index] = region;
    engine->region_count++;
    return 0;
}

void alb_region_table_remove(struct alb_region *region)
{
    struct alb_engine *engine = region->engine;
    uint32_t index = index_of(engine, region->key);
    engine->regions[index] = NULL;
    engine->region_tags[index] = (uint8_t)region->key;
    engine->region_count--;
}

struct alb_region *alb_region_table_find(const struct alb_engine *engine, uint32_t key)
{
    struct alb_region *region = engine->regions[index_of(engine, key)];
    return region && region->key == key ? region : NULL;
}

struct alb_region *alb_region_table_find_place(const struct alb_engine *engine, uint32_t key)
{
    struct alb_region *region = engine->regions[index_of(engine, key)];
    return region && region->key >> 8 == key >> 8 ? region : NULL;
}
