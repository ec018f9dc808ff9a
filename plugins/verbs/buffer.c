// SPDX-License-Identifier: BSD-2-Clause
// ibv_alloc_buf(3), ibv_free_buf, ibv_reg_buf_mr of rdma-core 64 and later: ordinary memory at the start of a page,
// whose registrations lie within it. There is no DMA-BUF behind it.
#include "plugins/verbs/symver.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_buf {
    uint8_t *address;
    size_t length;
};

void *alb_buffer_alloc(struct ibv_pd *pd, size_t length, struct ibv_buf **out);
void alb_buffer_free(struct ibv_buf *buffer);
struct ibv_mr *alb_buffer_reg_mr(struct ibv_pd *pd, struct ibv_buf *buffer, void *address, size_t length, int access);
int alb_buffer_export_fd(struct ibv_buf *buffer);

void *alb_buffer_alloc(struct ibv_pd *pd, size_t length, struct ibv_buf **out)
{
    struct ibv_buf *buffer = malloc(sizeof(*buffer));
    void *address;
    int error = buffer ? posix_memalign(&address, (size_t)sysconf(_SC_PAGESIZE), length) : ENOMEM;
    if (error) {
        free(buffer);
        errno = error;
        return NULL;
    }
    *buffer = (struct ibv_buf){address, length};
    *out = buffer;
    return address;
}

void alb_buffer_free(struct ibv_buf *buffer)
{
    free(buffer->address);
    free(buffer);
}

struct ibv_mr *alb_buffer_reg_mr(struct ibv_pd *pd, struct ibv_buf *buffer, void *address, size_t length, int access)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)buffer->address;
    if (offset > buffer->length || length > buffer->length - offset) {
        errno = EINVAL;
        return NULL;
    }
    return (ibv_reg_mr)(pd, address, length, access);
}

int alb_buffer_export_fd(struct ibv_buf *buffer)
{
    errno = ENODATA;
    return -1;
}

ALB_SYMVER_DEFAULT(alb_buffer_alloc, ibv_alloc_buf, "IBVERBS_1.17");
ALB_SYMVER_DEFAULT(alb_buffer_free, ibv_free_buf, "IBVERBS_1.17");
ALB_SYMVER_DEFAULT(alb_buffer_reg_mr, ibv_reg_buf_mr, "IBVERBS_1.17");
ALB_SYMVER_DEFAULT(alb_buffer_export_fd, ibv_export_buf_dmabuf_fd, "IBVERBS_1.18");
