// SPDX-License-Identifier: BSD-2-Clause
// Intrusive doubly linked list. A head is a node of its own; a node that is in no list points to itself.
#pragma once

#include "base/types.h"

struct alb_list {
    struct alb_list *next;
    struct alb_list *prev;
};

static inline void alb_list_init(struct alb_list *node)
{
    node->next = node;
    node->prev = node;
}

static inline bool alb_list_is_empty(const struct alb_list *head)
{
    return head->next == head;
}

// True while the node (not a head) is in a list.
static inline bool alb_list_is_linked(const struct alb_list *node)
{
    return node->next != node;
}

static inline void alb_list_push_back(struct alb_list *head, struct alb_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void alb_list_push_front(struct alb_list *head, struct alb_list *node)
{
    alb_list_push_back(head->next, node);
}

// Takes the node out of its list; harmless for one that is in none.
static inline void alb_list_remove(struct alb_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    alb_list_init(node);
}

// The first node, taken out, or NULL.
static inline struct alb_list *alb_list_pop(struct alb_list *head)
{
    struct alb_list *node = head->next;
    if (node == head)
        return NULL;
    alb_list_remove(node);
    return node;
}

#define ALB_LIST_ENTRY(node, type, member) ALB_CONTAINER_OF(node, type, member)

// The current node may be removed in the body.
#define ALB_LIST_FOR_EACH(head, node)                                                      \
    for (struct alb_list *node = (head)->next, *node##_next_ = node->next; node != (head); \
         node = node##_next_, node##_next_ = node->next)
