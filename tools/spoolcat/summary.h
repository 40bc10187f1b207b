/* SPDX-License-Identifier: MIT */
/* spoolcat --summary: what capinfos says of a packet capture, for a spool. */
#ifndef SPOOLCAT_SUMMARY_H
#define SPOOLCAT_SUMMARY_H

#include "views.h"

view_fn summary_print;

#endif
