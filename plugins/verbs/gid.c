// SPDX-License-Identifier: BSD-2-Clause
// ibv_query_gid(3), ibv_query_gid_ex(3), ibv_query_gid_table(3). A GID is an address of this host; index 0 always
// works.
#include "plugins/verbs/door.h"

static const struct alb_addr *gid_at(struct ibv_context *context, uint32_t index)
{
    return index < ALB_DOOR_GIDS ? alb_device_gid(alb_door_context(context)->device, index) : NULL;
}

static void fill_entry(struct ibv_context *context, uint32_t index, const struct alb_addr *gid,
                       struct ibv_gid_entry *entry)
{
    *entry = (struct ibv_gid_entry){
        .gid_index = index,
        .port_num = ALB_DOOR_PORT,
        .gid_type = IBV_GID_TYPE_ROCE_V2,
        .ndev_ifindex = alb_device_gid_ifindex(alb_door_context(context)->device, index),
    };
    memcpy(entry->gid.raw, gid->bytes, sizeof(entry->gid.raw));
}

// An empty entry reads as zeros: programs walk the whole table.
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (!context || !gid || port != ALB_DOOR_PORT || index < 0 || index >= ALB_DOOR_GIDS) {
        errno = EINVAL;
        return -1;
    }
    const struct alb_addr *found = gid_at(context, (uint32_t)index);
    memset(gid, 0, sizeof(*gid));
    if (found)
        memcpy(gid->raw, found->bytes, sizeof(gid->raw));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry all;
    if (!context || !entry || flags || port != ALB_DOOR_PORT || index >= ALB_DOOR_GIDS)
        return alb_door_refuse(EINVAL);
    const struct alb_addr *gid = gid_at(context, index);
    if (!gid)
        return alb_door_refuse(ENODATA);
    fill_entry(context, index, gid, &all);
    memset(entry, 0, entry_size);
    memcpy(entry, &all, ALB_MIN(entry_size, sizeof(all)));
    return 0;
}

// Only the entries that hold a GID. Here the errno that is returned is negative.
ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                             uint32_t flags, size_t entry_size)
{
    const struct alb_addr *gid;
    size_t count = 0;
    if (!context || flags || entry_size < sizeof(struct ibv_gid_entry))
        return -alb_door_refuse(EINVAL);
    while (gid_at(context, (uint32_t)count))
        count++;
    if (count > max_entries || (count > 0 && !entries))
        return -alb_door_refuse(EINVAL);
    for (uint32_t i = 0; i < count && (gid = gid_at(context, i)); i++) {
        struct ibv_gid_entry *entry = (struct ibv_gid_entry *)((char *)entries + i * entry_size);
        memset(entry, 0, entry_size);
        fill_entry(context, i, gid, entry);
    }
    return (ssize_t)count;
}
