/* SPDX-License-Identifier: MIT */
/* spoolcat --stacks: the stacks of each process with their samples. */
#ifndef SPOOLCAT_STACK_TABLE_H
#define SPOOLCAT_STACK_TABLE_H

#include "views.h"

view_fn stacks_print;

#endif
