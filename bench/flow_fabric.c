// SPDX-License-Identifier: BSD-2-Clause
// flow over libfabric's reliable datagram endpoints: messages are RMA writes with remote completion data, as over
// verbs; of a list all but the last are plain writes without a completion on either side, and they arrive in order.
// Polling only: what these providers repair, they repair while they are polled.
#include "bench/flow.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 128
#define LINK_SHIFT 24 // the word has the number of the link above it

struct hello {
    uint8_t name[NAME_BYTES]; // address of the endpoint
    uint64_t key, address;
    uint32_t number; // by which the receiver knows the link
};

struct fabric_link {
    struct alb_flow_link base;
    struct fid_mr *region;
    uint8_t *memory;
    struct hello theirs;
    fi_addr_t to;
    uint32_t outstanding, in_list; // in_list: of the list that is being posted
};

static const struct alb_flow_options *options;
static struct fi_info *info;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_cq *cq;
static struct fid_av *addresses;
static struct fabric_link *links[ALB_FLOW_SENDERS_MAX];
static uint32_t link_count;

static void must(int result, const char *what)
{
    if (result != 0)
        alb_flow_fail(what, fi_strerror(-result));
}

static uint32_t slot_bytes(void)
{
    return ALB_MAX(options->bytes, (uint32_t)ALB_FLOW_ANSWER_BYTES);
}

static void find_provider(void)
{
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_WAW;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(options->device);
    must(fi_getinfo(FI_VERSION(1, 17), options->local, NULL, FI_SOURCE, hints, &info), options->device);
    fi_freeinfo(hints);
}

static void fabric_open(const struct alb_flow_options *o)
{
    struct fid_fabric *fabric;
    options = o;
    if (o->is_event)
        alb_flow_fail("--event", "not with this transport");
    find_provider();
    struct fi_cq_attr cq_attr = {.size = 4096, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    must(fi_av_open(domain, &av_attr, &addresses, NULL), "fi_av_open");
    must(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
    must(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), "fi_ep_bind");
    must(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint), "fi_enable");
}

static struct alb_flow_link *fabric_create(uint32_t number, struct alb_flow_blob *mine)
{
    struct fabric_link *l = calloc(1, sizeof(*l));
    size_t bytes = (size_t)slot_bytes() * (options->peer ? 1 : options->window), name_bytes = NAME_BYTES;
    if (!l || !(l->memory = calloc(1, bytes)))
        alb_flow_die("create");
    l->base.number = number;
    l->base.memory = l->memory;
    must(fi_mr_reg(domain, l->memory, bytes, FI_WRITE | FI_REMOTE_WRITE, 0, number + 1, 0, &l->region, NULL),
         "fi_mr_reg");
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        must(fi_mr_bind(l->region, &endpoint->fid, 0), "fi_mr_bind");
        must(fi_mr_enable(l->region), "fi_mr_enable");
    }
    struct hello hello = {.key = fi_mr_key(l->region), .number = number};
    hello.address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)l->memory : 0;
    must(fi_getname(&endpoint->fid, hello.name, &name_bytes), "fi_getname");
    mine->bytes = sizeof(hello);
    memcpy(mine->data, &hello, sizeof(hello));
    links[link_count++] = l;
    return &l->base;
}

static void fabric_connect(struct alb_flow_link *link, const struct alb_flow_blob *theirs)
{
    struct fabric_link *l = (struct fabric_link *)link;
    memcpy(&l->theirs, theirs->data, sizeof(l->theirs));
    if (fi_av_insert(addresses, l->theirs.name, 1, &l->to, 0, NULL) != 1)
        alb_flow_fail("fi_av_insert", "the address of the other side is refused");
}

static bool post(struct fabric_link *l, uint32_t bytes, uint32_t slot, uint32_t word, uint64_t flags)
{
    void *desc = fi_mr_desc(l->region);
    struct iovec from = {l->memory, bytes};
    struct fi_rma_iov to = {l->theirs.address + (uint64_t)slot * slot_bytes(), bytes, l->theirs.key};
    struct fi_msg_rma message = {.msg_iov = &from,
                                 .desc = &desc,
                                 .iov_count = 1,
                                 .addr = l->to,
                                 .rma_iov = &to,
                                 .rma_iov_count = 1,
                                 .context = l,
                                 .data = (uint64_t)l->theirs.number << LINK_SHIFT | word};
    ssize_t result = fi_writemsg(endpoint, &message, flags);
    if (result == -FI_EAGAIN)
        return false;
    must((int)result, "fi_writemsg");
    return true;
}

static bool fabric_send(struct alb_flow_link *link, uint32_t bytes, uint32_t slot, uint32_t word, uint64_t stamp)
{
    struct fabric_link *l = (struct fabric_link *)link;
    if (l->outstanding == options->window + ALB_FLOW_ANSWERS)
        return false;
    memcpy(l->memory, &stamp, sizeof(stamp));
    for (; l->in_list + 1 < options->list; l->in_list++) {
        if (!post(l, bytes, slot + l->in_list, word, FI_MORE))
            return false;
    }
    if (!post(l, bytes, slot + l->in_list, word, FI_REMOTE_CQ_DATA | FI_COMPLETION))
        return false;
    l->in_list = 0;
    l->outstanding++;
    return true;
}

static uint32_t fabric_progress(struct alb_flow_event *events)
{
    struct fi_cq_data_entry entries[ALB_FLOW_EVENTS_MAX];
    ssize_t count = fi_cq_read(cq, entries, ALB_FLOW_EVENTS_MAX);
    if (count == -FI_EAGAIN)
        return 0;
    if (count < 0)
        alb_flow_fail("fi_cq_read", fi_strerror((int)-count));
    for (ssize_t i = 0; i < count; i++) {
        if (entries[i].flags & FI_REMOTE_CQ_DATA) {
            struct fabric_link *l = links[(entries[i].data >> LINK_SHIFT) % link_count];
            events[i] =
                (struct alb_flow_event){&l->base, ALB_FLOW_CAME, entries[i].data & ALB_FLOW_WORD_MAX, l->memory};
        } else {
            struct fabric_link *l = entries[i].op_context;
            l->outstanding--;
            events[i] = (struct alb_flow_event){&l->base, ALB_FLOW_SENT, 0, NULL};
        }
    }
    return (uint32_t)count;
}

static int fabric_arm(void)
{
    return -1;
}

const struct alb_flow_ops alb_flow_fabric = {"fabric",    fabric_open,     fabric_create, fabric_connect,
                                             fabric_send, fabric_progress, fabric_arm};
